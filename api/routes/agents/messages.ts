/** Messages between agents: send one, read the feed. */
import { sendMessage } from '../../../commands/agents/messages.ts';
import { listComms } from '../../../queries/agents/messages.ts';
import { commsQuery, commsResponse, messageBody, messageResponse } from '../../../shared/contract/agents/messages.ts';
import { TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

/** Notifications contain titles of tasks. */
export const NOTICES =
  'Notifications that were delivered to agents are among them; a caller that speaks for an agent and is no admin sees those of that agent.';

const send = defineRoute({
  method: 'post',
  path: '/api/agents/message',
  summary: 'Send a message to an agent',
  mcp: { tool: 'send_message', takes: ['from', 'to', 'content', 'type'] },
  description:
    'The recipient gets a notification. Prompt injection attempts are refused; credentials in the text are reported. `from` is the name of an agent or of the caller; only admins send in the name of other users.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'refused' },
  body: messageBody,
  agents: ({ body }) => ({ name: body.from }),
  refuses: [404, 422],
  responses: { 200: { description: 'Sent', schema: messageResponse } },
  async respond({ body, identity, services, command }) {
    const { from, to } = body;
    const message = { from, to, content: body.content ?? body.message ?? '', message_type: body.type ?? 'text' };
    const sender = identity.kind === 'user' && identity.role !== 'admin' ? identity : undefined;
    const id = await sendMessage(services.commands, command, message, sender);
    return { success: true, id };
  },
});

const comms = defineCachedRoute({
  method: 'get',
  path: '/api/agents/comms',
  page: { list: 'messages', newestLast: true },
  summary: 'List messages between agents, and pairs of senders and recipients',
  mcp: { tool: 'list_agent_messages' },
  description: NOTICES,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: commsQuery,
  responses: { 200: { description: 'The latest messages, oldest first', schema: commsResponse } },
  cache: { models: ['chat', 'agents'], caller: TASK_VIEW },
  respond: ({ query, identity, services }) => listComms(services.reads, taskViewOf(identity), query),
});

export const agentMessageRoutes: readonly Route[] = [send, comms];
