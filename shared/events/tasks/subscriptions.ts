/** Subscribers of tasks, who are notified about them. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { taskFields } from './tasks.ts';

export const taskSubscribed = defineEvent({
  type: 'TaskSubscribed',
  doc: 'Agents or users follow a task, because they were mentioned in it or commented on it.',
  /** Those who did not follow it before. Usernames, and names of agents; up to version 1 also display names. */
  schema: z.object({ ...taskFields, names: z.array(z.string()) }),
});
