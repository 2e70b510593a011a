/** Tasks that come again. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { taskFields } from './tasks.ts';

export const taskRecurred = defineEvent({
  type: 'TaskRecurred',
  doc: 'The schedule of a recurring task was due: one task with this id is created from it. A minute that has passed is never due again.',
  schema: z.object({
    ...taskFields,
    child_id: z.int().positive(),
    /** The minute in which it was due, Unix seconds. */
    due_at: z.int(),
    /** How many tasks were created from it, including this one. */
    spawn_count: z.int().nonnegative(),
  }),
});
