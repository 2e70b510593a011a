/** Requests and responses of heartbeats and wake-ups. */
import { z } from 'zod';
import { idNumber, jsonObject, unixSeconds } from '../common.ts';
import { filledText, text } from '../storable.ts';
import { taskSchema } from '../tasks/tasks.ts';
import { allInput } from '../tokens/costs.ts';
import { cachedTokens } from '../tokens/reports.ts';
import { messageSchema } from './messages.ts';

export const workItemsSchema = z.object({
  type: z.enum(['assigned_tasks', 'notifications', 'urgent_activities']),
  count: z.int(),
  items: z.array(jsonObject),
});

export const heartbeatResponse = z.object({
  status: z.enum(['HEARTBEAT_OK', 'WORK_ITEMS_FOUND']),
  agent: z.string().describe('name'),
  checked_at: unixSeconds,
  message: z.string().optional().describe('only with HEARTBEAT_OK'),
  work_items: z.array(workItemsSchema).optional().describe('only with WORK_ITEMS_FOUND; empty groups are left out'),
  total_items: z.int().optional().describe('only with WORK_ITEMS_FOUND'),
  pending_tasks: z
    .array(taskSchema)
    .describe('tasks of the agent that are assigned or in progress, most urgent and oldest first, at most 10'),
  messages: z.array(messageSchema).describe('the newest 50 unread messages to the agent, oldest first'),
});
export const heartbeatPostResponse = heartbeatResponse.extend({
  success: z.literal(true),
  token_recorded: z.boolean().describe('true: token_usage was complete and has been recorded'),
});

const range = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const count = { type: 'integer', ...range };
const maybeCount = { type: ['integer', 'null'], ...range };
/** Any value is accepted, so the description shows only what is recorded. */
const TOKEN_USAGE = {
  type: ['object', 'null'],
  properties: {
    model: { type: 'string' },
    inputTokens: count,
    outputTokens: count,
    cacheReadTokens: maybeCount,
    cacheWriteTokens: maybeCount,
    taskId: maybeCount,
  },
};

export const heartbeatBody = z.object({
  connection_id: text(200).nullish(),
  token_usage: z.unknown().optional().meta({ override: TOKEN_USAGE }).describe('ignored if incomplete'),
});

export const tokenUsage = z
  .object({
    model: filledText(200),
    inputTokens: z.int().nonnegative(),
    outputTokens: z.int().nonnegative(),
    ...cachedTokens,
    taskId: idNumber.nullish().catch(null),
  })
  .transform(({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, ...rest }) => ({
    ...rest,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cache_read_tokens: cacheReadTokens,
    cache_write_tokens: cacheWriteTokens,
  }))
  .refine((one) => Number.isSafeInteger(allInput(one) + one.output_tokens));

export const wakeBody = z.object({
  reason: text(2_000).nullish(),
  message: text(2_000).nullish().describe('alias of reason'),
});
export const wakeResponse = z.object({
  success: z.literal(true),
  message: z.string().describe('what the agent is asked to do'),
  session_key: z.string().nullable(),
});
