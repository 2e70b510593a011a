/** Messages between agents. Streams: `agent_messages-<workspace>-<recipient id>`. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { seconds } from '../../time.ts';
import { defineEvent, type FrameDraft } from '../define.ts';
import { aboutAgent } from './agents.ts';

export const agentMessageSent = defineEvent({
  type: 'AgentMessageSent',
  doc: 'An agent or a person sent a message to an agent.',
  schema: z.object({
    message_id: z.int().positive(),
    from: z.string(),
    to: z.string(),
    /** The sender, if an agent had its name; null: a person, or a name that no agent had. */
    from_agent_id: z.int().positive().nullable(),
    to_agent_id: z.int().positive(),
    content: z.string(),
    message_type: z.string(),
    /** Types of credentials that the text seems to contain; never the credentials themselves. */
    secrets: z.object({ count: z.int().nonnegative(), types: z.array(z.string()) }),
  }),
  activity: ({ data }) => ({
    type: 'agent_message',
    ...aboutAgent(data.to_agent_id),
    actor: data.from,
    description: `${data.from} wrote to ${data.to}`,
    data: { to: data.to },
  }),
  notification: ({ data }) => ({
    recipient: data.to,
    type: 'message',
    title: `Message from ${data.from}`,
    message: `${data.from}: ${frontOf(data.content, 200)}`,
    source_type: 'agent',
    source_id: data.to_agent_id,
  }),
  frames: (event) => {
    const { data, meta } = event;
    const frames: FrameDraft[] = [
      {
        type: 'chat.message',
        data: {
          id: data.message_id,
          conversation_id: conversationOf(data),
          from_agent: data.from,
          to_agent: data.to,
          content: data.content,
          message_type: data.message_type,
          metadata: null,
          read_at: null,
          created_at: seconds(meta.at),
        },
      },
    ];
    if (data.secrets.count > 0) {
      frames.push({
        type: 'security.event',
        role: 'admin',
        data: {
          id: meta.number,
          event_type: 'secret_exposure',
          severity: 'critical',
          source: 'agent_message',
          agent_name: data.from,
          detail: JSON.stringify(data.secrets),
          tenant_id: meta.tenant,
          timestamp: seconds(meta.at),
        },
      });
    }
    return frames;
  },
  audit: ({ data }) =>
    data.secrets.count > 0
      ? {
          action: 'secret_exposure',
          actor: data.from,
          target: ['agent', data.to_agent_id],
          detail: { ...data.secrets },
        }
      : undefined,
});

/**
 * Key of the conversation between an agent and its correspondent; the same in both directions. It has the ids of agents,
 * so that a rename begins no new conversation, and `@` with the name of others.
 */
export function conversationOf(data: {
  readonly from: string;
  readonly from_agent_id: number | null;
  readonly to_agent_id: number;
}): string {
  const { from, from_agent_id: fromId, to_agent_id: toId } = data;
  return fromId === null ? `a2a:${toId}:@${from}` : `a2a:${Math.min(fromId, toId)}:${Math.max(fromId, toId)}`;
}
