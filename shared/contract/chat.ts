/** Chat: conversations, and the messages in them. */
import { z } from 'zod';
import { idValue, jsonObject, limitParam, MAX_ID, offsetParam, secondsParam, unixSeconds } from './common.ts';
import { filledText, isStorable, nameFilter, storable, text, UNSTORABLE_TEXT } from './storable.ts';

export const conversationSchema = z
  .object({
    id: z.int().describe('id of its first message'),
    participants: z
      .array(z.string())
      .describe('senders and recipients, in the order of their first message, at most 100'),
    last_message: z.string().describe('its first 1,000 characters'),
    updated_at: unixSeconds.describe('time of the last message, Unix seconds, UTC'),
    conversation_id: z.int().describe('same as `id`'),
    conversation_key: z.string().describe('key as text; accepted wherever an id is'),
    last_message_at: unixSeconds.describe('same as `updated_at`'),
    participant_count: z.int(),
    message_count: z.int(),
    unread_count: z.int().describe('unread messages to `agent`; 0 without that parameter'),
    created_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'Conversation' });
export type ConversationRecord = z.infer<typeof conversationSchema>;

export const chatMessageSchema = z
  .object({
    id: z.int(),
    conversation_id: z.int(),
    conversation_key: z.string(),
    sender: z.string(),
    recipient: z.string().nullable().describe('null: to all'),
    content: z.string(),
    created_at: unixSeconds,
    from_agent: z.string().describe('same as `sender`'),
    to_agent: z.string().nullable().describe('same as `recipient`'),
    message_type: z.string(),
    metadata: jsonObject.nullable(),
    read_at: unixSeconds.nullable(),
    workspace_id: z.int(),
  })
  .meta({ id: 'ChatMessage' });
export type ChatMessageRecord = z.infer<typeof chatMessageSchema>;

export const conversationsQuery = z.object({
  agent: nameFilter.describe(
    'only conversations in which this name is a sender or a recipient, or which have messages to all',
  ),
  limit: limitParam(50),
  offset: offsetParam,
});
export type ConversationsQuery = z.infer<typeof conversationsQuery>;

export const conversationsResponse = z.object({
  conversations: z.array(conversationSchema).describe('newest activity first'),
  total: z.int(),
  page: z.int(),
  limit: z.int(),
});

/** A conversation: by its id, possibly as text, or by its key. */
export type ConversationRef = { readonly id: number } | { readonly key: string };

const MAX_KEY = 200;
const refOf = (given: number | string): ConversationRef =>
  typeof given === 'number' ? { id: given } : /^\d+$/.test(given) ? { id: Number(given) } : { key: given };
const hasSafeId = (given: number | string): boolean => {
  const ref = refOf(given);
  return 'key' in ref || (Number.isSafeInteger(ref.id) && ref.id > 0);
};
const NOT_AN_ID = 'must be a positive whole number, or the key of a conversation';

export const messagesQuery = z.object({
  conversation_id: z
    .string()
    .trim()
    .max(MAX_KEY)
    .refine(isStorable, UNSTORABLE_TEXT)
    .refine((given) => given === '' || hasSafeId(given), NOT_AN_ID)
    .transform((given) => (given === '' ? undefined : refOf(given)))
    .optional()
    .meta({ override: { type: 'integer', minimum: 1, maximum: MAX_ID } })
    .describe('id of a conversation; its key is accepted, too'),
  from_agent: nameFilter.describe('sender'),
  to_agent: nameFilter.describe('recipient'),
  since: secondsParam.describe('only messages after this time, Unix seconds'),
  limit: limitParam(50),
  offset: offsetParam,
});
export type MessagesQuery = z.infer<typeof messagesQuery>;

export const messagesResponse = z.object({
  messages: z.array(chatMessageSchema).describe('oldest first; pages count from the oldest'),
  total: z.int(),
  page: z.int(),
  limit: z.int(),
});

/** Maximum number of characters; the limit ensures that every message can be screened in full. */
const MAX_CONTENT = 50_000;
/** Characters as JSON. */
const MAX_METADATA = 10_000;
const MAX_ATTACHMENTS = 20;
const IMAGE = /^data:image\/[a-z0-9.+-]+;base64,[a-z0-9+/]+={0,2}$/i;

export const chatMessageBody = z.object({
  content: filledText(MAX_CONTENT),
  conversation_id: z
    .union([idValue, filledText(MAX_KEY).refine(hasSafeId, NOT_AN_ID)])
    .transform(refOf)
    .nullish()
    .meta({ override: { type: 'integer', minimum: 1, maximum: MAX_ID } })
    .describe(
      'id of a conversation; or a key as text, which begins a conversation if there is none; absent: a new one',
    ),
  recipient: text(100).normalize('NFC').nullish().describe('an agent or a user; absent: everybody'),
  to: text(100).normalize('NFC').nullish().describe('alias of recipient'),
  message_type: filledText(100)
    .optional()
    .describe('default text; others: system, handoff, status, command, tool_call'),
  metadata: jsonObject.superRefine(storable({ characters: MAX_METADATA })).nullish(),
  from: text(200).nullish().describe('only the name of the coordinator counts; otherwise the caller is the sender'),
  forward: z
    .boolean()
    .optional()
    .describe(
      'send it to the session of the recipient through the primary gateway, if there is one, and report the result in `forward`',
    ),
  sessionKey: text(200).nullish().describe('deliver to the agent with this session key'),
  attachments: z
    .array(z.object({ name: text(200).optional(), type: text(100).optional(), dataUrl: z.string() }))
    .max(MAX_ATTACHMENTS)
    .transform((all) => all.filter(({ dataUrl }) => IMAGE.test(dataUrl)))
    .nullish()
    .describe(
      'images as `data:image/…;base64,…` URLs, for the session; everything else is left out, and nothing is stored',
    ),
});

const forwardSchema = z.object({
  attempted: z.boolean(),
  delivered: z
    .boolean()
    .describe('true: a session of the gateway has taken the message, or it is in the inbox of an agent'),
  reason: z
    .enum(['no_recipient', 'no_active_session', 'gateway_send_failed'])
    .optional()
    .describe('why it was not delivered; after gateway_send_failed it is in the inbox of the agent'),
  session: z.string().optional().describe('session key of the agent'),
  runId: z.string().optional().describe('of the run that the gateway has begun'),
});
export type Forward = z.infer<typeof forwardSchema>;

export const chatMessageResponse = z.object({ message: chatMessageSchema });
export const sentResponse = z.object({
  message: chatMessageSchema,
  forward: forwardSchema.nullable().describe('null unless `forward` was asked for'),
});

export const readBody = z.object({ read: z.boolean().optional().describe('true: read now; otherwise unchanged') });
