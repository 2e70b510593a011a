/**
 * The derivation of each number of a response: the events of the log, and the rule from the events to the number. Few
 * events are listed by position; for many, the range of their positions is given. `docs/evidence.md` describes the
 * rules.
 */
import { z } from 'zod';
import { limitParam, onlyOne, unixSeconds } from './common.ts';

/** Maximum number of listed positions. */
const MAX_POSITIONS = 1_000;
const DEFAULT_POSITIONS = 100;

/** Parameters of a call that can show evidence. */
export const evidenceParams = {
  evidence: onlyOne.describe('`1` adds, for each number, the events of the log that it was derived from'),
  limit: limitParam(DEFAULT_POSITIONS, MAX_POSITIONS).describe(
    'of evidence: positions are listed if all events of a kind are at most so many; a range replaces them otherwise',
  ),
};

/** Maximum number of listed positions; undefined: no evidence was requested. */
export const listedOf = ({ evidence, limit }: { readonly evidence?: string | undefined; readonly limit: number }) =>
  evidence === '1' ? limit : undefined;

const RULES = [
  'activities',
  'signals',
  'actions',
  'tasks',
  'reports',
  'rules',
  'triggers',
  'replay',
  'derived',
] as const;

export const derivationSchema = z
  .object({
    total: z.number().describe('the number; for sums, how many values were added'),
    rule: z.enum(RULES).describe('rule by which events are counted'),
    filter: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())]))
      .optional()
      .describe('which events count; a list matches any of its values'),
    positions: z.array(z.int()).optional().describe('of all events that count, in log order'),
    from: z.int().optional().describe('instead of `positions`: no event that counts is before this position'),
    to: z.int().optional().describe('nor after this one'),
    types: z.array(z.string()).optional().describe('types of the events between them that matter; default: all'),
    numbers: z.array(z.string()).optional().describe('of a derived number: the numbers that it was calculated from'),
  })
  .meta({ id: 'Derivation' });
export type Derivation = z.infer<typeof derivationSchema>;

export const derivationsSchema = z
  .record(z.string(), derivationSchema)
  .describe('by number, such as `summary.error_count`');
export type Derivations = Readonly<Record<string, Derivation>>;

/** The derivation of a number, and a page of its events, as shown by attribution: each with its contribution. */
export const evidenceSchema = derivationSchema
  .partial()
  .extend({
    total: z.int().describe('the number; `count` of all events on all pages adds up to it'),
    events: z
      .array(
        z.object({
          position: z.int().describe('of the event in the log'),
          created_at: unixSeconds,
          count: z.int().describe('what the event adds to the number: 1, or its reports of tokens'),
          input_tokens: z.number().optional(),
          output_tokens: z.number().optional(),
          cost: z.number().optional().describe('US dollars'),
        }),
      )
      .describe('newest first'),
    next: z.string().nullable().describe('`cursor` of the next page; null: there is none'),
  })
  .meta({ id: 'Evidence' });
export type Evidence = z.infer<typeof evidenceSchema>;
