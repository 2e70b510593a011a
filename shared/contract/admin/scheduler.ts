/** The scheduled tasks of the service. */
import { z } from 'zod';

const milliseconds = z.int().describe('Unix milliseconds');

export const scheduledTaskSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    enabled: z.boolean().describe('false: switched off by a setting'),
    lastRun: milliseconds
      .nullable()
      .describe('start of the last scheduled run, Unix milliseconds; null before the first'),
    nextRun: milliseconds,
    running: z.boolean(),
    lastResult: z.object({ ok: z.boolean(), message: z.string(), timestamp: milliseconds }).optional(),
  })
  .meta({ id: 'ScheduledTask' });

export const schedulerResponse = z.object({ tasks: z.array(scheduledTaskSchema) });

const taskId = z.string().max(100).optional();
export const runTaskBody = z.object({
  task_id: taskId.describe('required: one of the ids that GET lists'),
  task: taskId.describe('alias of task_id'),
});
export const runTaskResponse = z.object({ ok: z.literal(true), message: z.string() });
export const taskFailedResponse = z.object({ ok: z.literal(false), message: z.string(), error: z.string() });
