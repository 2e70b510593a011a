/** Workload: pending tasks, available agents, and whether more tasks should be submitted. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { TASK_STATUSES } from '../tasks/tasks.ts';

export const PENDING_STATUSES = ['inbox', 'assigned', 'in_progress', 'review', 'quality_review'] as const;
export const WORKLOAD_PRIORITIES = ['low', 'medium', 'high', 'critical', 'urgent'] as const;

const thresholdsSchema = z.object({
  queue_depth_normal: z.number(),
  queue_depth_throttle: z.number(),
  queue_depth_shed: z.number(),
  busy_agent_ratio_throttle: z.number(),
  busy_agent_ratio_shed: z.number(),
  error_rate_throttle: z.number(),
  error_rate_shed: z.number(),
  recent_window_seconds: z.int(),
});
export type Thresholds = z.infer<typeof thresholdsSchema>;

const recommendationSchema = z.object({
  action: z.enum(['normal', 'throttle', 'shed', 'pause']),
  reason: z.string(),
  details: z.array(z.string()),
  submit_ok: z.boolean(),
  suggested_delay_ms: z.int(),
});
export type Recommendation = z.infer<typeof recommendationSchema>;

const zeroFilled = <const K extends string>(keys: readonly K[]) =>
  z.object(Object.fromEntries(keys.map((key) => [key, z.int()])) as Record<K, z.ZodInt>);

export const workloadResponse = z.object({
  timestamp: unixSeconds,
  workspace_id: z.int(),
  capacity: z.object({
    active_tasks: z.int().describe('assigned, in progress or in review'),
    tasks_last_5m: z.int().describe('created or assigned in the recent window'),
    errors_last_5m: z.int().describe('activities in the recent window that report an error or a failure'),
    error_rate_5m: z.number().describe('errors among all activities of the recent window, 0 to 1'),
    completions_last_hour: z.int(),
    avg_completion_rate_per_hour: z.number().describe('over the last 24 hours'),
  }),
  queue: z.object({
    total_pending: z.int(),
    by_status: zeroFilled(PENDING_STATUSES),
    by_priority: zeroFilled(WORKLOAD_PRIORITIES),
    oldest_pending_age_seconds: z.int().nullable().describe('of those in inbox or assigned'),
    estimated_wait_seconds: z.int().nullable().describe('at the rate of the last hour'),
    estimated_wait_confidence: z.enum(['calculated', 'unknown']),
  }),
  tasks: z.object({ by_status: zeroFilled(TASK_STATUSES).describe('all tasks') }),
  agents: z.object({
    total: z.int(),
    online: z.int().describe('online, idle or busy'),
    busy: z.int(),
    idle: z.int(),
    offline: z.int(),
    busy_ratio: z.number(),
    load_distribution: z
      .array(z.object({ agent: z.string(), assigned: z.int(), in_progress: z.int() }))
      .describe('the 200 agents with the most to do that are not offline'),
  }),
  recommendation: recommendationSchema,
  thresholds: thresholdsSchema,
});
export type Workload = z.infer<typeof workloadResponse>;
