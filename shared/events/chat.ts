/**
 * Conversations and their messages. Streams: `chat-<workspace>-<key of the conversation>`, and
 * `chat_message-<workspace>-<message id>` for changes of one message.
 */
import { z } from 'zod';
import type { ChatMessageRecord } from '../contract/chat.ts';
import { frontOf } from '../storable.ts';
import { seconds } from '../time.ts';
import { type DomainEvent, defineEvent, type EventOf, type UserInText } from './define.ts';
import { byUser } from './monitoring/notifications.ts';

/** Characters of a message that a notification quotes. */
const QUOTED = 200;

const quoteOf = (text: string): string => (text.length > QUOTED ? `${frontOf(text, QUOTED)}...` : text);

/** A message as callers see it, except for the workspace. Times: Unix seconds. */
export const messageFields = (message: {
  readonly id: number;
  readonly conversation_id: number;
  readonly conversation: string;
  readonly from: string;
  readonly to: string | null;
  readonly content: string;
  readonly created_at: number;
  readonly message_type: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly readAt: number | null;
}) => ({
  id: message.id,
  conversation_id: message.conversation_id,
  conversation_key: message.conversation,
  sender: message.from,
  recipient: message.to,
  content: message.content,
  created_at: message.created_at,
  from_agent: message.from,
  to_agent: message.to,
  message_type: message.message_type,
  metadata: message.metadata,
  read_at: message.readAt,
});

const sent = z.object({
  message_id: z.int().positive(),
  conversation_id: z.int().positive(),
  /** Key of the conversation as text: chosen by a client, or derived from its id. */
  conversation: z.string(),
  /** The username of a user; otherwise the name of an agent or of the coordinator. */
  from: z.string(),
  /** Null: to everybody. */
  to: z.string().nullable(),
  /** The agent that is the sender; null: a person, the coordinator, or the service. */
  from_agent_id: z.int().positive().nullable(),
  /** The agent that `to` names; null: none has this name. */
  recipient_id: z.int().positive().nullable(),
  /** The agent that has the message in its inbox; null: none. */
  to_agent_id: z.int().positive().nullable(),
  content: z.string(),
  message_type: z.string(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  /** Whether the service wrote it on behalf of `from`, to report the outcome of a message. */
  report: z.boolean(),
});

/** An unread message. */
const sentFields = ({ data, meta }: DomainEvent<string, z.output<typeof sent>>) =>
  messageFields({ ...data, id: data.message_id, created_at: seconds(meta.at), readAt: null });

/** Keys of a message's record that contain its sender. */
const peopleOf = ({ from }: z.output<typeof sent>): UserInText[] => SENDER.map((key) => ({ key, username: from }));
export const SENDER = ['sender', 'from_agent'] as const;

export const chatMessageSent = defineEvent({
  type: 'ChatMessageSent',
  doc: 'A message was sent in a conversation. A conversation begins with its first message.',
  schema: sent,
  secrets: { fields: ['metadata'], owner: (_data, { workspace }) => `chat:${workspace}` },
  activity: ({ data }) =>
    data.report
      ? undefined
      : {
          type: 'chat_message',
          entity_type: 'message',
          entity_id: data.message_id,
          actor: data.from,
          description: data.to === null ? `${data.from} wrote to everybody` : `${data.from} wrote to ${data.to}`,
          data: {
            conversation_id: data.conversation_id,
            ...(data.to !== null && { to: data.to }),
            message_type: data.message_type,
          },
        },
  notification: ({ data, meta }) =>
    data.report || data.to === null
      ? undefined
      : {
          recipient: data.to,
          type: 'chat_message',
          title: `Message from ${data.from}`,
          message: quoteOf(data.content),
          source_type: 'message',
          source_id: data.message_id,
          ...byUser('title', meta, data.from),
        },
  frames: (event) => [
    { type: 'chat.message', data: sentFields(event), secrets: ['metadata'], people: peopleOf(event.data) },
  ],
});

/** The record of a message that was just sent. */
export const sentRecord = (event: EventOf<typeof chatMessageSent>): ChatMessageRecord => ({
  ...sentFields(event),
  workspace_id: event.meta.workspace,
});

export const chatMessageRead = defineEvent({
  type: 'ChatMessageRead',
  doc: 'A message was marked as read. `first`: it was unread before.',
  schema: z.object({
    message_id: z.int().positive(),
    conversation: z.string(),
    to: z.string().nullable(),
    /** The agent that it names; null: none. */
    recipient_id: z.int().positive().nullable(),
    first: z.boolean(),
  }),
});
