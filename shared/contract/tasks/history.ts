/** The history of one task. */
import { z } from 'zod';
import { limitParam, unixSeconds, wholeText } from '../common.ts';
import { reviewedBySchema } from '../quality/reviews.ts';

export const historyEntrySchema = z
  .object({
    position: z.int().describe('of the event in the log'),
    revision: z.int().describe('of the event among those of this task, from 0'),
    at: unixSeconds,
    type: z.string().describe('of the event'),
    actor: z.string(),
    reviewed_by: reviewedBySchema
      .optional()
      .describe('of reviews: who gave it; `actor` is the reviewer that they named'),
    actor_type: z.string().describe('user, agent, api or system'),
    description: z.string(),
    changes: z
      .record(z.string(), z.object({ from: z.unknown(), to: z.unknown() }))
      .describe('by the names of the record'),
    cause: z.string().nullable().describe('what triggered it'),
    reason: z.string().nullable().describe('reason, if given'),
    request_id: z.string().nullable(),
    correlation_id: z.string(),
  })
  .meta({ id: 'HistoryEntry' });
export type HistoryEntry = z.infer<typeof historyEntrySchema>;

export const historyQuery = z.object({
  include: z.enum(['history']).optional().describe('history: what happened to the task, newest first'),
  history_limit: limitParam(50, 100),
  history_before: wholeText(0, 999_999_999_999_999, 'must be a revision')
    .optional()
    .describe('only what is older than this revision: the next page'),
});

export const historyResponse = z.object({
  history: z.array(historyEntrySchema).optional().describe('newest first'),
  history_before: z.int().nullable().optional().describe('`history_before` of the next page; null: this is the last'),
});
