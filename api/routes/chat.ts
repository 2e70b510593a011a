/** Chat: conversations, and the messages in them. */
import { sessionDelivery } from '../../commands/admin/gateways.ts';
import { readMessage, say } from '../../commands/chat.ts';
import { agentsNamed } from '../../queries/agents/agents.ts';
import { listConversations, listMessages, messageRecord } from '../../queries/chat.ts';
import { PEOPLE_MODELS, withDisplayNames } from '../../queries/names.ts';
import * as contract from '../../shared/contract/chat.ts';
import { idParams } from '../../shared/contract/common.ts';
import { orNotFound } from '../../shared/errors.ts';
import { SENDER, sentRecord } from '../../shared/events/chat.ts';
import { authorOf, type Identity, TASK_VIEW, taskViewOf } from '../../shared/identity.ts';
import type { ReadAt } from '../../shared/ports/read-models.ts';
import { masked } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { inPieces } from '../../shared/waiting.ts';
import { defineCachedRoute, defineRoute, type Route } from '../http/route.ts';
import type { Services } from '../services.ts';
import { NOTICES } from './agents/messages.ts';

/** Messages with the display names of their senders. Only admins see secrets in the metadata. */
async function allShownTo(
  { displayNames }: Services,
  { seesSecrets, workspace }: Pick<Identity, 'seesSecrets' | 'workspace'>,
  messages: readonly contract.ChatMessageRecord[],
): Promise<contract.ChatMessageRecord[]> {
  const named = await withDisplayNames(displayNames, workspace, messages, SENDER);
  return inPieces(named, (message) =>
    seesSecrets
      ? message
      : { ...message, metadata: masked(message.metadata) as contract.ChatMessageRecord['metadata'] },
  );
}

const shownTo = async (
  services: Services,
  identity: Identity,
  message: contract.ChatMessageRecord,
): Promise<contract.ChatMessageRecord> =>
  (await allShownTo(services, identity, [message]))[0] as contract.ChatMessageRecord;

/** A filter by a name in the form that records show. */
const nameOf = (
  { displayNames }: Services,
  { workspace }: Pick<Identity, 'workspace'>,
  shown: string | undefined,
  at?: ReadAt,
) => (shown === undefined ? undefined : displayNames.usernameOf(workspace, shown, at));

/** @throws AppError 404 */
const requireMessage = async ({ reads }: Services, identity: Identity, id: number) =>
  orNotFound(await messageRecord(reads, taskViewOf(identity), id), 'Message');

const conversations = defineCachedRoute({
  method: 'get',
  path: '/api/chat/conversations',
  summary: 'Conversations, newest activity first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.conversationsQuery,
  responses: { 200: { description: 'A page of conversations', schema: contract.conversationsResponse } },
  cache: { models: ['chat', ...PEOPLE_MODELS, 'agents'], caller: [...TASK_VIEW, 'seesSecrets'] },
  async respond({ query, identity, services }) {
    const { workspace } = identity;
    const agent = await nameOf(services, identity, query.agent);
    const found = await listConversations(services.reads, taskViewOf(identity), { ...query, agent });
    const shownAs = await services.displayNames.of(
      workspace,
      found.conversations.flatMap(({ participants }) => participants),
    );
    const conversations = found.conversations.map((one) => ({
      ...one,
      participants: one.participants.map((name) => shownAs(name, one.updated_at)),
    }));
    return { ...found, conversations };
  },
});

const list = defineCachedRoute({
  method: 'get',
  path: '/api/chat/messages',
  summary: 'Messages, oldest first',
  mcp: { tool: 'read_messages' },
  description: `Messages between agents are among them. ${NOTICES} A conversation that does not exist has no messages.`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.messagesQuery,
  responses: { 200: { description: 'A page of messages', schema: contract.messagesResponse } },
  cache: { models: ['chat', ...PEOPLE_MODELS, 'agents'], caller: [...TASK_VIEW, 'seesSecrets'] },
  async respond({ query, identity, services }) {
    const [from_agent, to_agent] = await Promise.all([
      nameOf(services, identity, query.from_agent),
      nameOf(services, identity, query.to_agent),
    ]);
    const found = await listMessages(services.reads, taskViewOf(identity), { ...query, from_agent, to_agent });
    return { ...found, messages: await allShownTo(services, identity, found.messages) };
  },
});

/** The caller, or the coordinator if the caller asks for that. An agent's key speaks only for its agent. */
function senderOf(identity: Identity, from: string | null | undefined, coordinator: string) {
  const { kind } = identity;
  const caller = authorOf(identity);
  if (kind === 'agent-key' || from?.trim().toLowerCase() !== coordinator.toLowerCase()) return caller;
  return coordinator;
}

/** The coordinator's name is reserved, so no display name gets what is for it. */
async function recipientOf(services: Services, identity: Identity, text: string | undefined, at: ReadAt) {
  const isCoordinator = text?.toLowerCase() === services.settings.coordinatorAgent.toLowerCase();
  return isCoordinator ? text : nameOf(services, identity, text, at);
}

const send = defineRoute({
  method: 'post',
  path: '/api/chat/messages',
  summary: 'Send a message',
  description:
    'A recipient gets a notification. What is sent to the coordinator is for the agent that the setting `chat.coordinator_target_agent` names, else the one whose config has `isDefault`, else the one whose session key ends in `:main`, else the one of that name. An agent of that name has the message in its inbox, which its heartbeats show; a text to an agent, or one with `forward`, is refused if it tries to take over its reader.',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'refused' },
  limit: 'none',
  body: contract.chatMessageBody,
  refuses: [404, 422],
  responses: { 201: { description: 'The message', schema: contract.sentResponse } },
  async respond({ body, identity, services, command, context, isStrict }) {
    const { commands, gateways, settings } = services;
    // These lookups do not depend on events of this request.
    const at = { since: context.startedAt };
    const deliver = body.forward
      ? await sessionDelivery(commands, gateways, command.origin, body.attachments ?? [])
      : undefined;
    const from = senderOf(identity, body.from, settings.coordinatorAgent);
    const said = {
      from,
      fromId: from === authorOf(identity) ? identity.agentId : undefined,
      content: body.content,
      conversation: body.conversation_id ?? undefined,
      recipient: await recipientOf(services, identity, body.recipient?.trim() || body.to?.trim() || undefined, at),
      message_type: body.message_type ?? 'text',
      metadata: body.metadata ?? null,
      forward: body.forward ?? false,
      session_key: body.sessionKey || undefined,
      // Other sessions at the gateway belong to other workspaces.
      ownSessionsOnly: deliver !== undefined && (await isStrict()),
      coordinator: settings.coordinatorAgent,
    };
    const directory = services.chat(identity.workspace, settings, at);
    const sent = await say(commands, command, directory, said, deliver);
    directory.begun({ id: sent.data.conversation_id, key: sent.data.conversation });
    const message = sentRecord(sent);
    const forward = body.forward ? ((message.metadata?.forwardInfo ?? null) as contract.Forward | null) : null;
    return { message: await shownTo(services, identity, message), forward };
  },
});

const one = defineRoute({
  method: 'get',
  path: '/api/chat/messages/{id}',
  summary: 'One message',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The message', schema: contract.chatMessageResponse } },
  respond: async ({ params, identity, services }) => ({
    message: await shownTo(services, identity, (await requireMessage(services, identity, params.id)).message),
  }),
});

const read = defineRoute({
  method: 'patch',
  path: '/api/chat/messages/{id}',
  summary: 'Mark a message as read',
  mcp: { tool: 'mark_message_read', idempotent: true, takes: [], sets: { read: true } },
  description: 'A message that has been read is no longer in the inbox of its agent.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  params: idParams,
  // Reading a message removes it from the inbox of its recipient.
  async agents({ params, body, identity, services }) {
    if (!body.read) return undefined;
    const found = await messageRecord(services.reads, taskViewOf(identity), params.id);
    const to = found?.message.to_agent ?? null;
    return to === null ? undefined : agentsNamed(services.reads, identity.workspace, [to]);
  },
  body: contract.readBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'The message', schema: contract.chatMessageResponse } },
  async respond({ params, body, identity, services, command }) {
    const { message, recipient } = await requireMessage(services, identity, params.id);
    if (!body.read) return { message: await shownTo(services, identity, message) };
    const { id, conversation_key: conversation } = message;
    const at = await readMessage(services.commands, command, { id, conversation, ...recipient });
    // No other field of the message changes.
    return { message: await shownTo(services, identity, { ...message, read_at: seconds(at) }) };
  },
});

export const chatRoutes: readonly Route[] = [conversations, list, send, one, read];
