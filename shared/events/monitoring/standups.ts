/** Standup reports. Streams: `standup-<workspace>-<date>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** The numbers of a report. */
export const standupSummary = z.object({
  totalAgents: z.int(),
  totalCompleted: z.int(),
  totalInProgress: z.int(),
  totalAssigned: z.int(),
  totalReview: z.int(),
  totalBlocked: z.int(),
  totalActivity: z.int(),
  overdue: z.int(),
});
export type StandupSummary = z.infer<typeof standupSummary>;

export const standupGenerated = defineEvent({
  type: 'StandupGenerated',
  doc: 'A standup report for a day was created. It replaces an earlier one for the same day.',
  schema: z.object({
    /** `YYYY-MM-DD`, UTC. */
    date: z.string(),
    summary: standupSummary,
  }),
  activity: ({ data: { date, summary } }) => ({
    type: 'standup_generated',
    entity_type: 'standup',
    entity_id: 0,
    description: `Standup report of ${date} for ${summary.totalAgents} agents`,
    data: {
      date,
      agentCount: summary.totalAgents,
      tasksSummary: {
        completed: summary.totalCompleted,
        inProgress: summary.totalInProgress,
        assigned: summary.totalAssigned,
        review: summary.totalReview,
        blocked: summary.totalBlocked,
      },
    },
  }),
});
