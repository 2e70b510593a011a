/** Polls of the queue: an agent asks for its next task. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { isStorable, UNSTORABLE_TEXT } from '../storable.ts';
import { taskSchema } from './tasks.ts';

/** Maximum number of tasks that an agent may request at a time. */
const MAX_CAPACITY = 20;

const CAPACITY = `must be a whole number from 1 to ${MAX_CAPACITY}`;

export const queueQuery = z.object({
  agent: z
    .string()
    .trim()
    .max(100)
    .refine(isStorable, UNSTORABLE_TEXT)
    .normalize('NFC')
    .optional()
    .describe('name of the agent; default: the header x-agent-name, or the agent of the API key'),
  max_capacity: z
    .string()
    .regex(/^\d{1,3}$/, CAPACITY)
    .transform(Number)
    .refine((value) => value >= 1 && value <= MAX_CAPACITY, CAPACITY)
    .default(1)
    .meta({ override: { type: 'integer', minimum: 1, maximum: MAX_CAPACITY, default: 1 } })
    .describe('how many tasks the agent wants to have in progress at most'),
});

export const POLL_REASONS = ['continue_current', 'at_capacity', 'assigned', 'no_tasks_available'] as const;
export type PollReason = (typeof POLL_REASONS)[number];

export const queueResponse = z.object({
  task: taskSchema
    .omit({ project_name: true, project_prefix: true, ticket_ref: true })
    .meta({ id: 'QueuedTask' })
    .nullable(),
  reason: z.enum(POLL_REASONS),
  agent: z.string(),
  timestamp: unixSeconds,
});
