/** Messages between agents: send, and the feed. */
import { z } from 'zod';
import { jsonObject, limitParam, offsetParam, secondsParam, unixSeconds } from '../common.ts';
import { filledText, nameFilter, nameText, text } from '../storable.ts';

export const messageSchema = z
  .object({
    id: z.int(),
    from_agent: z.string(),
    to_agent: z.string(),
    content: z.string(),
    type: z.string(),
    created_at: unixSeconds,
    message_type: z.string().describe('same as `type`'),
    conversation_id: z.string(),
    metadata: jsonObject.nullable(),
    read_at: unixSeconds.nullable(),
    workspace_id: z.int(),
  })
  .meta({ id: 'AgentMessage' });
export type AgentMessageRecord = z.infer<typeof messageSchema>;

/** Maximum number of characters; the limit ensures that every message is screened in full. */
export const MAX_MESSAGE = 50_000;

export const messageBody = z
  .object({
    from: nameText(200),
    to: nameText(100),
    content: text(MAX_MESSAGE).optional(),
    message: text(MAX_MESSAGE).optional().describe('alias of content'),
    type: filledText(100).optional().describe('default text'),
  })
  .refine((body) => (body.content ?? body.message ?? '').trim() !== '', {
    path: ['content'],
    message: 'is required and must not be empty',
  });
export const messageResponse = z.object({ success: z.literal(true), id: z.int() });

export const commsQuery = z.object({
  agent: nameFilter.describe('sender or recipient'),
  since: secondsParam.describe('only messages after this time, Unix seconds'),
  limit: limitParam(50, 200),
  offset: offsetParam,
});
export type CommsQuery = z.infer<typeof commsQuery>;

/**
 * Maximum number of pairs of agents, and of agents, in the graph. There can be as many pairs as agents times agents.
 */
export const MAX_GRAPH = 1_000;

export const commsResponse = z.object({
  messages: z.array(messageSchema).describe('the latest messages, oldest first'),
  total: z.int(),
  graph: z.object({
    edges: z
      .array(
        z.object({
          from_agent: z.string(),
          to_agent: z.string(),
          message_count: z.int(),
          last_message_at: unixSeconds,
        }),
      )
      .describe(`those with the most messages first, at most ${MAX_GRAPH}`),
    agentStats: z
      .array(z.object({ agent: z.string(), sent: z.int(), received: z.int() }))
      .describe(`of all messages, those with the most first, at most ${MAX_GRAPH}`),
  }),
  source: z.object({ mode: z.enum(['empty', 'live']), seededCount: z.int(), liveCount: z.int() }),
});
