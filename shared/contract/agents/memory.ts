/** Requests and answers of the working memory of an agent: a text, and any other keys. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { storable } from '../storable.ts';
import { agentHeader } from './agents.ts';

/** What GET answers besides the keys that the owner chose. */
export const memoryAnswer = z.looseObject({
  agent: agentHeader,
  working_memory: z.string(),
  source: z.enum(['database', 'none']),
  updated_at: unixSeconds,
  size: z.int().describe('characters'),
});
export const memoryBody = z
  .looseObject({
    working_memory: z.string().nullish().describe('missing: empty'),
    append: z
      .boolean()
      .nullish()
      .describe(
        'true: the text is added at the end under a heading with the time, other keys are merged; default false',
      ),
  })
  // How much it may be is counted with what is there already.
  .superRefine(storable({ characters: Number.POSITIVE_INFINITY }));
export type MemoryBody = z.infer<typeof memoryBody>;

/** Of an answer: these keys of a body say nothing new. */
const ANSWERED = ['working_memory', 'append', ...Object.keys(memoryAnswer.shape)];

/** The keys that the owner of a memory keeps besides the text. */
export const memoryFields = (body: MemoryBody): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([key]) => !ANSWERED.includes(key)));

export const memoryPutAnswer = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.string(),
  saved_to_workspace: z.literal(false),
  updated_at: unixSeconds,
  size: z.int(),
});
export const memoryDeleteAnswer = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.literal(''),
  updated_at: unixSeconds,
});
