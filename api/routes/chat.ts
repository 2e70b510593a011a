/** Chat: conversations, and the messages in them. */
import { sessionDelivery } from '../../commands/admin/gateways.ts';
import { readMessage, say } from '../../commands/chat.ts';
import { chatDirectory, listConversations, listMessages, messageRecord } from '../../queries/chat.ts';
import {
  type ChatMessageRecord,
  chatMessageAnswer,
  chatMessageBody,
  conversationsAnswer,
  conversationsQuery,
  type Forward,
  messagesAnswer,
  messagesQuery,
  readBody,
  sentAnswer,
} from '../../shared/contract/chat.ts';
import { idParams } from '../../shared/contract/common.ts';
import { notFound } from '../../shared/errors.ts';
import { sentRecord } from '../../shared/events/chat.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import type { Identity } from '../../shared/identity.ts';
import { masked } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Services } from '../services.ts';

/** Secrets in the metadata of a message are for admins. */
const shownTo = ({ role }: Identity, message: ChatMessageRecord): ChatMessageRecord =>
  role === 'admin' ? message : { ...message, metadata: masked(message.metadata) as ChatMessageRecord['metadata'] };

/** @throws AppError 404 */
async function requireMessage({ reads }: Services, { workspace }: Identity, id: number): Promise<ChatMessageRecord> {
  const message = await messageRecord(reads, workspace, id);
  if (!message) throw notFound('Message');
  return message;
}

const conversations = defineRoute({
  method: 'get',
  path: '/api/chat/conversations',
  tag: 'Chat',
  summary: 'Conversations, newest activity first',
  access: 'viewer',
  query: conversationsQuery,
  responses: { 200: { description: 'A page of conversations', schema: conversationsAnswer } },
  cache: { models: ['chat'], scope: 'workspace' },
  handle: async ({ query, identity, services }) => ({
    body: await listConversations(services.reads, identity.workspace, query),
  }),
});

const list = defineRoute({
  method: 'get',
  path: '/api/chat/messages',
  tag: 'Chat',
  summary: 'Messages, oldest first',
  description: 'Messages between agents are among them. A conversation that does not exist has no messages.',
  access: 'viewer',
  query: messagesQuery,
  responses: { 200: { description: 'A page of messages', schema: messagesAnswer } },
  cache: { models: ['chat'], scope: 'workspace', per: ({ role }) => (role === 'admin' ? 'admin' : 'others') },
  async handle({ query, identity, services }) {
    const found = await listMessages(services.reads, identity.workspace, query);
    return { body: { ...found, messages: found.messages.map((message) => shownTo(identity, message)) } };
  },
});

/** The caller, or the coordinator if the caller says so. An agent's key speaks only for its agent. */
function senderOf({ kind, displayName, username }: Identity, from: string | null | undefined, coordinator: string) {
  const caller = displayName || username;
  if (kind === 'agent-key' || from?.trim().toLowerCase() !== coordinator.toLowerCase()) return caller;
  return coordinator;
}

const send = defineRoute({
  method: 'post',
  path: '/api/chat/messages',
  tag: 'Chat',
  summary: 'Send a message',
  description:
    'A recipient gets a notification. What is sent to the coordinator is for the agent that the setting `chat.coordinator_target_agent` names, else the one whose config has `isDefault`, else the one whose session key ends in `:main`, else the one of that name. An agent of that name has the message in its inbox, which its heartbeats show; a text to an agent, or one with `forward`, is refused if it tries to take its reader over.',
  access: 'operator',
  body: chatMessageBody,
  refuses: [404, 422],
  responses: { 201: { description: 'The message', schema: sentAnswer } },
  async handle({ body, identity, services, command }) {
    const { commands, gateways, reads, settings } = services;
    // Gateways belong to the deployment.
    const reachable = body.forward === true && identity.tenant === DEFAULT_TENANT;
    const deliver = reachable ? await sessionDelivery(commands, gateways) : undefined;
    const said = {
      from: senderOf(identity, body.from, settings.coordinatorAgent),
      content: body.content,
      conversation: body.conversation_id ?? undefined,
      recipient: body.recipient?.trim() || body.to?.trim() || undefined,
      messageType: body.message_type ?? 'text',
      metadata: body.metadata ?? null,
      forward: body.forward ?? false,
      sessionKey: body.sessionKey || undefined,
      coordinator: settings.coordinatorAgent,
    };
    const directory = chatDirectory(reads, identity.workspace, settings);
    const sent = await say(commands, command, directory, said, deliver);
    directory.begun({ id: sent.data.conversationId, key: sent.data.conversation });
    const message = sentRecord(sent);
    const forward = body.forward ? ((message.metadata?.forwardInfo ?? null) as Forward | null) : null;
    return { status: 201, body: { message: shownTo(identity, message), forward } };
  },
});

const one = defineRoute({
  method: 'get',
  path: '/api/chat/messages/{id}',
  tag: 'Chat',
  summary: 'One message',
  access: 'viewer',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The message', schema: chatMessageAnswer } },
  handle: async ({ params, identity, services }) => ({
    body: { message: shownTo(identity, await requireMessage(services, identity, params.id)) },
  }),
});

const read = defineRoute({
  method: 'patch',
  path: '/api/chat/messages/{id}',
  tag: 'Chat',
  summary: 'Mark a message as read',
  description: 'A message that has been read is no longer in the inbox of its agent.',
  access: 'operator',
  params: idParams,
  body: readBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'The message', schema: chatMessageAnswer } },
  async handle({ params, body, identity, services, command }) {
    const message = await requireMessage(services, identity, params.id);
    if (!body.read) return { body: { message: shownTo(identity, message) } };
    const { id, conversation_key: conversation, to_agent: to } = message;
    const at = await readMessage(services.commands, command, { id, conversation, to });
    // Nothing else of a message changes.
    return { body: { message: shownTo(identity, { ...message, read_at: seconds(at) }) } };
  },
});

export const chatRoutes: readonly Route[] = [conversations, list, send, one, read];
