/** Search across the records of a workspace. */
import { z } from 'zod';
import { limitParam, unixSeconds } from '../common.ts';
import { isStorable, UNSTORABLE_TEXT } from '../storable.ts';

export const RESULT_TYPES = ['task', 'agent', 'activity', 'audit', 'message', 'webhook', 'pipeline'] as const;
export type ResultType = (typeof RESULT_TYPES)[number];

/** Plurals and `all` are accepted too. */
const TYPES: ReadonlyMap<string, readonly ResultType[]> = new Map<string, readonly ResultType[]>([
  ['all', RESULT_TYPES],
  ...RESULT_TYPES.flatMap((type): [string, readonly ResultType[]][] => [
    [type, [type]],
    [type === 'activity' ? 'activities' : `${type}s`, [type]],
  ]),
]);

/** One character that may be a word: a letter of a script without letter case, such as Han, or an emoji. */
const WORD = /^[\p{Lo}\p{Extended_Pictographic}]$/u;

export const searchQuery = z.object({
  q: z
    .string({ error: 'is required' })
    .trim()
    .min(1, 'is required')
    .max(500, 'must have at most 500 characters')
    .refine((text) => text.length > 1 || WORD.test(text), 'must have at least 2 characters')
    .refine(isStorable, UNSTORABLE_TEXT)
    .describe(
      'the text to look for, regardless of case; at least 2 characters, or one of a script without letter case (Han, Kana) or an emoji; no character has a special meaning',
    ),
  type: z
    .string()
    .optional()
    .transform((type) => (type === undefined || type === '' ? RESULT_TYPES : (TYPES.get(type.toLowerCase()) ?? [])))
    .meta({ override: { type: 'string' } })
    .describe(`${RESULT_TYPES.join(', ')}, their plurals, or all; anything else finds nothing`),
  limit: limitParam(30, 100),
});
export type SearchQuery = z.infer<typeof searchQuery>;

export const resultSchema = z
  .object({
    type: z.enum(RESULT_TYPES),
    id: z.int(),
    title: z.string(),
    subtitle: z.string().optional(),
    excerpt: z.string().optional().describe('the text around the match, or its beginning; absent if there is none'),
    snippet: z.string().optional().describe('the same as excerpt'),
    created_at: unixSeconds,
    relevance: z.int().describe('2: found in the title of a task, agent, webhook or pipeline; else 1'),
    score: z.int().describe('the same as relevance'),
  })
  .meta({ id: 'SearchResult' });
export type SearchResult = z.infer<typeof resultSchema>;

export const searchResponse = z.object({
  query: z.string(),
  count: z.int().describe('hits before the list was cut: the newest of each type, `limit` at most'),
  total: z.int().describe('the same as count'),
  results: z.array(resultSchema),
});
