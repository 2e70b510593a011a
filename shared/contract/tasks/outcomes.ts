/** Outcomes of completed tasks. */
import { z } from 'zod';

/** Windows in seconds; any other timeframe means no limit. */
export const TIMEFRAMES: ReadonlyMap<string, number> = new Map([
  ['day', 86_400],
  ['week', 7 * 86_400],
  ['month', 30 * 86_400],
]);

export const outcomesQuery = z.object({
  timeframe: z
    .string()
    .max(100)
    .default('all')
    .transform((value) => value.trim().toLowerCase() || 'all')
    .meta({ override: { type: 'string', default: 'all' } })
    .describe('day, week or month: 24 hours, 7 days or 30 days up to now; anything else is everything'),
});

const counts = {
  success: z.int(),
  failed: z.int(),
  partial: z.int(),
  abandoned: z.int(),
  unknown: z.int().describe('without an outcome'),
};
const group = z.object({
  ...counts,
  total: z.int(),
  success_rate: z.number().describe('successes among those with an outcome; 0 when there are none'),
});
export type OutcomeGroup = z.infer<typeof group>;

export const outcomesResponse = z.object({
  timeframe: z.string(),
  summary: z.object({
    total_done: z.int(),
    with_outcome: z.int(),
    by_outcome: z.object(counts),
    avg_retry_count: z.number(),
    avg_time_to_resolution_seconds: z.number().describe('from creation to completion; 0 when nothing was completed'),
    success_rate: z.number().describe('0 to 1, among those with an outcome'),
  }),
  by_agent: z.record(z.string(), group).describe('by assignee; `unassigned` for tasks without one'),
  by_priority: z.record(z.string(), group),
  common_errors: z.array(z.object({ error_message: z.string(), count: z.int() })).describe('the 10 most frequent'),
  record_count: z.int().describe('the same as summary.total_done'),
});
export type Outcomes = z.infer<typeof outcomesResponse>;
