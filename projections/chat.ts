/**
 * Messages of all kinds, with their conversations: between agents, in chat, and notifications that were delivered to
 * agents. Totals that lists show are stored here, so that they need no counting.
 */
import { agentMessageSent, conversationOf } from '../shared/events/agents/messages.ts';
import { chatMessageRead, chatMessageSent } from '../shared/events/chat.ts';
import type { Metadata } from '../shared/events/metadata.ts';
import { NOTIFICATION_MESSAGE, NOTIFIER, notificationForwarded } from '../shared/events/monitoring/notifications.ts';
import { frontOf } from '../shared/storable.ts';
import { seconds } from '../shared/time.ts';
import { type Change, change, defineProjection, defineTable, insert, on, update } from './projection.ts';

export const messagesTable = defineTable(
  'messages',
  {
    workspace_id: 'int',
    id: 'bigint',
    /** Key of the conversation. */
    conversation: 'text',
    from_agent: 'text',
    /** Null: to everybody. */
    to_agent: 'text?',
    /** The agent that sent it. */
    from_agent_id: 'bigint?',
    /** The agent that `to_agent` names. */
    recipient_id: 'bigint?',
    /** The agent that has the message in its inbox. */
    to_agent_id: 'bigint?',
    content: 'text',
    message_type: 'text',
    metadata: 'jsonb?',
    read_at: 'bigint?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    sized: true,
    concerns: ({ to_agent_id }) => ({ ids: [to_agent_id] }),
    // Reading a message changes its position, so the order is by time and id.
    indexes: [
      'workspace_id, created_at, id',
      'workspace_id, conversation, created_at, id',
      'workspace_id, from_agent, created_at, id',
      'workspace_id, to_agent, created_at, id',
      '(workspace_id, recipient_id, created_at, id) WHERE recipient_id IS NOT NULL',
      '(workspace_id, from_agent_id, created_at, id) WHERE from_agent_id IS NOT NULL',
      '(workspace_id, to_agent_id, created_at, id) WHERE to_agent_id IS NOT NULL',
      '(workspace_id, created_at, id) WHERE to_agent_id IS NOT NULL',
      '(workspace_id, to_agent_id, created_at, id) WHERE read_at IS NULL',
    ],
  },
);

export const messageEdgesTable = defineTable(
  'message_edges',
  {
    workspace_id: 'int',
    /** 0: a person, the service, or a name that no agent had. */
    from_agent_id: 'bigint',
    to_agent_id: 'bigint',
    /** Names as they were. */
    from_agent: 'text',
    to_agent: 'text',
    count: 'bigint',
    last_message_at: 'bigint',
  },
  {
    key: ['workspace_id', 'from_agent_id', 'to_agent_id', 'from_agent', 'to_agent'],
    indexes: ['workspace_id, from_agent', 'workspace_id, to_agent', 'workspace_id, to_agent_id'],
  },
);

export const conversationsTable = defineTable(
  'conversations',
  {
    workspace_id: 'int',
    conversation: 'text',
    /** Id of its first message. */
    id: 'bigint',
    message_count: 'bigint',
    /** Messages to everybody. */
    broadcasts: 'bigint',
    last_message: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['workspace_id', 'conversation'],
    indexes: [
      'workspace_id, id',
      'workspace_id, updated_at, id',
      '(workspace_id, updated_at, id) WHERE broadcasts > 0',
    ],
  },
);

export const participantsTable = defineTable(
  'participants',
  {
    workspace_id: 'int',
    conversation: 'text',
    /** `agent:` and the id of an agent, `name:` and the name of others. */
    participant: 'text',
    /** The name in its first message here. */
    name: 'text',
    agent_id: 'bigint?',
    /** The agent that got the newest message to this participant in its inbox. */
    inbox_id: 'bigint?',
    /** Number of unread messages to this participant. */
    unread: 'bigint',
    /** Id of the first message from or to this participant. */
    first_id: 'bigint',
  },
  {
    key: ['workspace_id', 'conversation', 'participant'],
    indexes: ['workspace_id, name', '(workspace_id, agent_id) WHERE agent_id IS NOT NULL'],
  },
);

const participantOf = (name: string, agent: number | null): string =>
  agent === null ? `name:${name}` : `agent:${agent}`;

export const messageTotalsTable = defineTable(
  'message_totals',
  { workspace_id: 'int', messages: 'bigint' },
  { key: ['workspace_id'] },
);

/** Characters of the last message in a list of conversations. */
const SHOWN = 1_000;

interface Message {
  readonly message_id: number;
  readonly conversation: string;
  /** Undefined: the id of the first message. */
  readonly conversation_id?: number;
  readonly from: string;
  readonly to: string | null;
  readonly from_agent_id: number | null;
  readonly recipient_id: number | null;
  readonly to_agent_id: number | null;
  readonly content: string;
  readonly message_type: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** A message, the changes of its conversation, and the count between the two if it is for an agent. */
function sent(message: Message, meta: Metadata): Change[] {
  const { message_id: id, conversation, from, to, from_agent_id, recipient_id } = message;
  const created_at = seconds(meta.at);
  const { workspace: workspace_id } = meta;
  const place = { workspace_id, conversation };
  const recipient = to === null ? undefined : participantOf(to, recipient_id);
  const participants = new Map([
    [participantOf(from, from_agent_id), { name: from, agent_id: from_agent_id }],
    ...(to === null ? [] : [[participantOf(to, recipient_id), { name: to, agent_id: recipient_id }] as const]),
  ]);
  const changes = [
    insert(messagesTable, {
      workspace_id,
      conversation,
      id,
      from_agent: from,
      to_agent: to,
      from_agent_id,
      recipient_id,
      to_agent_id: message.to_agent_id,
      content: message.content,
      message_type: message.message_type,
      metadata: message.metadata,
      read_at: null,
      created_at,
    }),
    change(conversationsTable, place, (row) => ({
      workspace_id,
      conversation,
      id: row?.id ?? message.conversation_id ?? id,
      message_count: (row?.message_count ?? 0) + 1,
      broadcasts: (row?.broadcasts ?? 0) + (to === null ? 1 : 0),
      last_message: frontOf(message.content, SHOWN),
      created_at: row?.created_at ?? created_at,
      updated_at: Math.max(row?.updated_at ?? 0, created_at),
    })),
    change(messageTotalsTable, { workspace_id }, (row) => ({
      workspace_id,
      messages: (row?.messages ?? 0) + 1,
    })),
    // A map, because a sender who is also the recipient is one participant.
    ...[...participants].map(([participant, { name, agent_id }]) =>
      change(participantsTable, { workspace_id, conversation, participant }, (row) => ({
        workspace_id,
        conversation,
        participant,
        name: row?.name ?? name,
        agent_id,
        inbox_id: (participant === recipient ? message.to_agent_id : null) ?? row?.inbox_id ?? null,
        unread: (row?.unread ?? 0) + (participant === recipient ? 1 : 0),
        first_id: row?.first_id ?? id,
      })),
    ),
  ];
  if (to === null || message.to_agent_id === null) return changes;
  const edge = {
    workspace_id,
    ...{ from_agent_id: from_agent_id ?? 0, to_agent_id: message.to_agent_id },
    ...{ from_agent: from, to_agent: to },
  };
  return [
    ...changes,
    change(messageEdgesTable, edge, (row) => ({
      count: (row?.count ?? 0) + 1,
      last_message_at: Math.max(row?.last_message_at ?? 0, created_at),
      ...edge,
    })),
  ];
}

/** A message between agents, or from the service to an agent. */
const between = (
  data: Omit<Message, 'conversation' | 'metadata' | 'recipient_id'> & {
    readonly to: string;
    readonly to_agent_id: number;
  },
  meta: Metadata,
): Change[] =>
  sent({ conversation: conversationOf(data), recipient_id: data.to_agent_id, metadata: null, ...data }, meta);

export const chatProjection = defineProjection({
  name: 'chat',
  version: 1,
  tables: [messagesTable, messageEdgesTable, conversationsTable, participantsTable, messageTotalsTable],
  handlers: [
    on(agentMessageSent, ({ data, meta }) => between(data, meta)),
    on(notificationForwarded, ({ data: { recipient, message }, meta }) =>
      message === null
        ? []
        : between(
            {
              ...message,
              ...{ from: NOTIFIER, from_agent_id: null, to: recipient, message_type: NOTIFICATION_MESSAGE },
            },
            meta,
          ),
    ),
    on(chatMessageSent, ({ data, meta }) => sent(data, meta)),
    on(chatMessageRead, ({ data: { message_id: messageId, conversation, to, recipient_id, first }, meta }) => {
      const { workspace: workspace_id } = meta;
      const read = update(messagesTable, { workspace_id, id: messageId }, (row) => ({
        ...row,
        read_at: seconds(meta.at),
      }));
      if (!first || to === null) return [read];
      const reader = { workspace_id, conversation, participant: participantOf(to, recipient_id) };
      return [read, update(participantsTable, reader, (row) => ({ ...row, unread: row.unread - 1 }))];
    }),
  ],
});
