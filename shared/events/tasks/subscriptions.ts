/** Subscribers of tasks, who are notified about them. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { taskFields } from './tasks.ts';

export const taskSubscribed = defineEvent({
  type: 'TaskSubscribed',
  doc: 'Agents or users follow a task, because they were mentioned in it or commented on it.',
  schema: z.object({
    ...taskFields,
    /** Those who did not follow it before: usernames, and names of agents. */
    names: z.array(z.string()),
    /** The ids of those that are agents, by name. Absent: none is. */
    agents: z.record(z.string(), z.int().positive()).optional(),
  }),
});
