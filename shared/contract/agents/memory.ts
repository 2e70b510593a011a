/** Requests and responses of an agent's working memory: a text, and any other keys. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { storable } from '../storable.ts';
import { agentHeader } from './agents.ts';

/** The response of GET, apart from the keys that the owner chose. */
export const memoryResponse = z.looseObject({
  agent: agentHeader,
  working_memory: z.string(),
  source: z.enum(['database', 'none']),
  updated_at: unixSeconds,
  size: z.int().describe('characters'),
});
export const memoryBody = z
  .looseObject({
    working_memory: z.string().nullish().describe('default: empty'),
    append: z
      .boolean()
      .nullish()
      .describe('true: append the text under a heading with the time, and merge the other keys; default false'),
  })
  // The size limit applies to the result, including what is already stored.
  .superRefine(storable({ characters: Number.POSITIVE_INFINITY }));
export type MemoryBody = z.infer<typeof memoryBody>;

/** Keys of a response; they are ignored in a body. */
const ANSWERED = ['working_memory', 'append', ...Object.keys(memoryResponse.shape)];

/** The keys that the owner of a memory stores besides the text. */
export const memoryFields = (body: MemoryBody): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([key]) => !ANSWERED.includes(key)));

export const memoryPutResponse = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.string(),
  saved_to_workspace: z.literal(false),
  updated_at: unixSeconds,
  size: z.int(),
});
export const memoryDeleteResponse = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.literal(''),
  updated_at: unixSeconds,
});
