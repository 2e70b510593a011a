/** Recurring tasks: a schedule in the metadata of a task makes it the template of others. */
import { z } from 'zod';
import { cronProblem } from '../../cron.ts';
import { isObject } from '../../storable.ts';
import { text } from '../storable.ts';

/** `metadata.recurrence`; other keys are kept unchanged. */
export const recurrenceSchema = z
  .looseObject({
    cron_expr: z
      .string()
      .superRefine((cron, { addIssue }) => {
        const problem = cronProblem(cron);
        if (problem !== undefined) addIssue({ code: 'custom', message: problem });
      })
      .optional()
      .describe('minute, hour, day of month, month and day of week, in the time zone of the deployment'),
    natural_text: text(500).optional(),
    enabled: z.boolean().optional().describe('true: a task is created whenever the schedule is due'),
  })
  .refine(({ enabled, cron_expr }) => enabled !== true || cron_expr !== undefined, {
    path: ['cron_expr'],
    message: 'is missing; an enabled recurrence needs a schedule, such as 0 9 * * 1-5',
  });

type Json = Readonly<Record<string, unknown>>;

/** The recurrence in a task's metadata; an empty object if there is none. */
export const recurrenceOf = (metadata: Json): Json => (isObject(metadata.recurrence) ? metadata.recurrence : {});

/** The schedule of a template task; null for all other tasks, including those created from a template. */
export function activeCron(metadata: Json): string | null {
  const { enabled, cron_expr: cron, parent_task_id: parent = null } = recurrenceOf(metadata);
  return enabled === true && parent === null && typeof cron === 'string' ? cron : null;
}

/** The metadata after one more task was created. `at`: Unix seconds. */
export const spawnedMetadata = (metadata: Json, at: number, spawnCount: number): Record<string, unknown> => ({
  ...metadata,
  recurrence: { ...recurrenceOf(metadata), last_spawned_at: at, spawn_count: spawnCount },
});
