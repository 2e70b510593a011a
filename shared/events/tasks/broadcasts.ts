/** Messages to all subscribers of a task. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields } from './tasks.ts';

export const taskBroadcast = defineEvent({
  type: 'TaskBroadcast',
  doc: 'A message was sent to the agents that follow a task. Their notifications follow this event.',
  schema: z.object({
    ...taskFields,
    author: z.string(),
    message: z.string(),
    /** Number of notified agents, and of agents without a session. */
    sent: z.int().nonnegative(),
    skipped: z.int().nonnegative(),
  }),
  activity: ({ data: { task_id: taskId, title, author, message, sent, skipped } }) => ({
    type: 'task_broadcast',
    ...aboutTask(taskId),
    actor: author,
    description: `Broadcast a message about task "${title}" to ${sent} ${sent === 1 ? 'agent' : 'agents'}`,
    data: { sent, skipped, message },
  }),
});
