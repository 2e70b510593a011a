/** Agent health, in a window that ends now, compared with the previous window. */
import { z } from 'zod';
import { jsonObject, unixSeconds } from '../common.ts';
import { derivationsSchema, evidenceParams } from '../evidence.ts';
import { agentSchema } from './agents.ts';
import { reportQuery, timeframeSchema } from './scope.ts';

export const DIAGNOSTICS_SECTIONS = ['summary', 'tasks', 'errors', 'activity', 'status', 'trends', 'tokens'] as const;
export type DiagnosticsSection = (typeof DIAGNOSTICS_SECTIONS)[number];

export const diagnosticsQuery = reportQuery(DIAGNOSTICS_SECTIONS).extend(evidenceParams);

const percent = z.number().describe('per cent, two decimals');
const byType = z
  .array(z.object({ type: z.string(), count: z.int() }))
  .describe('most frequent first, at most 1,000 types');
export type TypeCount = z.infer<typeof byType>[number];
const counts = z.record(z.string(), z.int());

export const diagnosticsSummary = z.object({
  tasks_completed: z.int().describe('number of its tasks completed in the window'),
  tasks_total: z.int().describe('tasks that are assigned to it'),
  activity_count: z.int(),
  heartbeats: z
    .int()
    .describe(
      'heartbeats in the window; those that changed nothing are no activities, and count at the last of 5 minutes',
    ),
  error_count: z.int(),
  error_rate_percent: percent.describe(
    'errors per activity in per cent, two decimals; at most 100, and 100 if there are only errors',
  ),
});

const completedTask = z.object({
  id: z.int(),
  title: z.string(),
  priority: z.string(),
  updated_at: unixSeconds,
  completed_at: unixSeconds.nullable(),
});
export type CompletedTask = z.infer<typeof completedTask>;

export const diagnosticsTasks = z.object({
  by_status: counts.describe('tasks that are assigned to it'),
  by_priority: counts,
  recent_completed: z.array(completedTask).describe('tasks that are done and changed in the window, newest first; 10'),
  throughput_per_day: z.number().describe('`tasks_completed` per day of the window, which counts as one day at least'),
});

const failure = z.object({
  id: z.int(),
  type: z.string(),
  description: z.string().describe('reason, if known'),
  data: jsonObject,
  created_at: unixSeconds,
});
export type Failure = z.infer<typeof failure>;

export const diagnosticsErrors = z.object({
  by_type: byType,
  total: z.int(),
  recent: z.array(failure).describe('newest first; 20'),
});

export const diagnosticsActivity = z.object({
  by_type: byType,
  timeline: z
    .array(
      z.object({
        timestamp: unixSeconds.describe('beginning of the hour'),
        hour: z.string().describe('the same as ISO 8601'),
        count: z.int(),
      }),
    )
    .describe('hours with activities, oldest first'),
});

const statusSpan = z.object({
  status: z.string(),
  since: unixSeconds,
  until: unixSeconds,
  position: z.int().describe('of the event in the log that began it'),
});
export type StatusSpan = z.infer<typeof statusSpan>;

export const diagnosticsStatus = z.object({
  seconds_by_status: counts.describe(
    'complete from `since` on: they add up to the seconds from then to `timeframe.until`',
  ),
  since: unixSeconds.describe('beginning of the window, or of the agent'),
  spans: z
    .array(statusSpan)
    .describe(
      'oldest first, the last is the current status; of more than 1,000 changes, those since the thousandth newest',
    ),
});

const period = z.object({
  since: unixSeconds,
  until: unixSeconds,
  activities: z.int(),
  errors: z.int(),
  tasks_completed: z.int(),
});
export type Period = z.infer<typeof period>;

export const trendAlert = z.object({ level: z.enum(['info', 'warning']), message: z.string() });
export type TrendAlert = z.infer<typeof trendAlert>;

export const diagnosticsTrends = z.object({
  current_period: period,
  previous_period: period.describe('as long, and just before'),
  change: z.object({ activities_pct: percent, errors_pct: percent, tasks_completed_pct: percent }),
  alerts: z.array(trendAlert),
});

export const diagnosticsTokens = z.object({
  by_model: z
    .array(z.object({ model: z.string(), input_tokens: z.number(), output_tokens: z.number(), request_count: z.int() }))
    .describe('those with the most tokens first, at most 1,000'),
  total: z.object({ input_tokens: z.number(), output_tokens: z.number(), requests: z.int() }),
});

export const diagnosticsResponse = z.object({
  agent: agentSchema.pick({ id: true, name: true, role: true, status: true }),
  timeframe: timeframeSchema,
  summary: diagnosticsSummary.optional(),
  tasks: diagnosticsTasks.optional(),
  errors: diagnosticsErrors.optional(),
  activity: diagnosticsActivity.optional(),
  status: diagnosticsStatus.optional(),
  trends: diagnosticsTrends.optional(),
  tokens: diagnosticsTokens.optional(),
  evidence: derivationsSchema.optional(),
});
export type Diagnostics = z.infer<typeof diagnosticsResponse>;
