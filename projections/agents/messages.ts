/** Messages between agents, and their number per pair, so that the graph of who talks to whom needs no counting. */
import { agentMessageSent, conversationOf } from '../../shared/events/agents/messages.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { Metadata } from '../../shared/events/metadata.ts';
import { NOTIFICATION_MESSAGE, NOTIFIER, notificationForwarded } from '../../shared/events/monitoring/notifications.ts';
import { seconds } from '../../shared/time.ts';
import { type Change, change, defineProjection, defineTable, insert, on } from '../projection.ts';

export const messagesTable = defineTable(
  'messages',
  {
    workspace_id: 'int',
    id: 'bigint',
    conversation_id: 'text',
    from_agent: 'text',
    to_agent: 'text',
    to_agent_id: 'bigint',
    content: 'text',
    message_type: 'text',
    read_at: 'bigint?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, position DESC',
      'workspace_id, from_agent, position DESC',
      'workspace_id, to_agent, position DESC',
      'workspace_id, created_at',
      '(workspace_id, to_agent_id, position DESC) WHERE read_at IS NULL',
    ],
  },
);

export const messageEdgesTable = defineTable(
  'message_edges',
  { workspace_id: 'int', from_agent: 'text', to_agent: 'text', count: 'bigint', last_message_at: 'bigint' },
  { key: ['workspace_id', 'from_agent', 'to_agent'], indexes: ['workspace_id, to_agent'] },
);

type Message = Omit<EventOf<typeof agentMessageSent>['data'], 'secrets'>;

/** A message, and one more between the two. */
function sent(data: Message, meta: Metadata): Change[] {
  const created_at = seconds(meta.at);
  const edge = { workspace_id: meta.workspace, from_agent: data.from, to_agent: data.to };
  return [
    insert(messagesTable, {
      workspace_id: meta.workspace,
      id: data.messageId,
      conversation_id: conversationOf(data),
      from_agent: data.from,
      to_agent: data.to,
      to_agent_id: data.toAgentId,
      content: data.content,
      message_type: data.messageType,
      read_at: null,
      created_at,
    }),
    change(messageEdgesTable, edge, (row) => ({
      ...edge,
      count: (row?.count ?? 0) + 1,
      last_message_at: Math.max(row?.last_message_at ?? 0, created_at),
    })),
  ];
}

export const agentMessagesProjection = defineProjection({
  name: 'agent_messages',
  version: 1,
  tables: [messagesTable, messageEdgesTable],
  handlers: [
    on(agentMessageSent, ({ data, meta }) => sent(data, meta)),
    on(notificationForwarded, ({ data: { recipient, message }, meta }) =>
      message === null
        ? []
        : sent({ ...message, from: NOTIFIER, to: recipient, messageType: NOTIFICATION_MESSAGE }, meta),
    ),
  ],
});
