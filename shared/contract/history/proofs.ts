/** Proofs that the log was not altered. */
import { z } from 'zod';
import { eventId } from './events.ts';

const sizeText = z
  .string()
  // Values out of range are refused with a message that names the range.
  .refine((text) => /^-?\d{1,30}$/.test(text), 'must be a number of events, a whole number')
  .transform(Number)
  .meta({ override: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } });

export const sizeQuery = z.object({
  size: sizeText.optional().describe('number of events; default: those of the latest checkpoint'),
});

export const proofQuery = z.object({
  event: eventId.describe('id of the event'),
  size: sizeText
    .optional()
    .describe('number of events of the tree, from `index` + 1; default: those of the latest checkpoint'),
});

export const consistencyQuery = z.object({
  from: sizeText.describe('number of events of the earlier tree'),
  to: sizeText.describe('number of events of the later tree'),
});

const hash = z.string().describe('SHA-256 in base64');

export const proofResponse = z.object({
  index: z.int().describe('number of the event in the log, from 0'),
  size: z.int().describe('number of events of the tree'),
  leaf: hash,
  path: z.array(hash).describe('from the leaf to the root'),
});

export const consistencyResponse = z.object({ path: z.array(hash) });
