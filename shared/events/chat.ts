/**
 * Conversations and what is said in them. Streams: `chat-<workspace>-<key of the conversation>`, and
 * `chat_message-<workspace>-<message id>` for what happens to one message.
 */
import { z } from 'zod';
import { frontOf } from '../storable.ts';
import { seconds } from '../time.ts';
import { defineEvent } from './define.ts';

/** Characters of a message that a notification quotes. */
const QUOTED = 200;

const quoteOf = (text: string): string => (text.length > QUOTED ? `${frontOf(text, QUOTED)}...` : text);

export const chatMessageSent = defineEvent({
  type: 'ChatMessageSent',
  version: 1,
  doc: 'Somebody said something in a conversation. A conversation begins with its first message and has the id of it.',
  schema: z.object({
    messageId: z.int().positive(),
    conversationId: z.int().positive(),
    /** Key of the conversation as text: chosen by a client, or made from its id. */
    conversation: z.string(),
    from: z.string(),
    /** Null: to everybody. */
    to: z.string().nullable(),
    /** The agent in whose inbox the message is; null: in none. */
    toAgentId: z.int().positive().nullable(),
    content: z.string(),
    messageType: z.string(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    /** Said by the service on behalf of `from`, to report what became of a message. */
    report: z.boolean(),
  }),
  secrets: { fields: ['metadata'], owner: (_data, { workspace }) => `chat:${workspace}` },
  activity: ({ data }) =>
    data.report
      ? undefined
      : {
          type: 'chat_message',
          entity_type: 'message',
          entity_id: data.messageId,
          actor: data.from,
          description: data.to === null ? `${data.from} wrote to everybody` : `${data.from} wrote to ${data.to}`,
          data: {
            conversation_id: data.conversationId,
            ...(data.to !== null && { to: data.to }),
            message_type: data.messageType,
          },
        },
  notification: ({ data }) =>
    data.report || data.to === null
      ? undefined
      : {
          recipient: data.to,
          type: 'chat_message',
          title: `Message from ${data.from}`,
          message: quoteOf(data.content),
          source_type: 'message',
          source_id: data.messageId,
        },
  frames: ({ data, meta }) => [
    {
      type: 'chat.message',
      data: {
        id: data.messageId,
        conversation_id: data.conversationId,
        conversation_key: data.conversation,
        sender: data.from,
        recipient: data.to,
        content: data.content,
        created_at: seconds(meta.at),
        from_agent: data.from,
        to_agent: data.to,
        message_type: data.messageType,
        metadata: data.metadata,
        read_at: null,
      },
      secrets: ['metadata'],
    },
  ],
});

export const chatMessageRead = defineEvent({
  type: 'ChatMessageRead',
  version: 1,
  doc: 'A message was marked as read. `first`: it was unread before.',
  schema: z.object({
    messageId: z.int().positive(),
    conversation: z.string(),
    to: z.string().nullable(),
    first: z.boolean(),
  }),
});

export const chatEvents = [chatMessageSent, chatMessageRead];
