/** Unassigned tasks that were assigned to the agent that fits best. The events are on the task's own stream. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields, taskPlace } from './tasks.ts';

export const taskRouted = defineEvent({
  type: 'TaskRouted',
  doc: 'An unassigned task was assigned to the most suitable agent, which follows it.',
  schema: z.object({
    ...taskFields,
    agent: z.string(),
    role: z.string(),
    /** How well the agent fits, 1 or more. */
    score: z.int().positive(),
    before: taskPlace,
    after: taskPlace,
  }),
  activity: ({ data: { task_id: taskId, title, agent, role, score } }) => ({
    type: 'task_auto_routed',
    ...aboutTask(taskId),
    description: `Gave task "${title}" to ${agent}`,
    data: { agent, role, score },
  }),
  frames: ({ data, meta }) => [
    {
      type: 'task.status_changed',
      data: {
        id: data.task_id,
        status: data.after.status,
        previous_status: data.before.status,
        assigned_to: data.after.assigned_to,
        updated_at: seconds(meta.at),
        reason: 'auto_routed',
      },
    },
  ],
});
