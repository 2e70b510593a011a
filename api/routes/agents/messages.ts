/** Messages between agents: send one, read the feed. */
import { sendMessage } from '../../../commands/agents/messages.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { listComms } from '../../../queries/agents/messages.ts';
import { commsAnswer, commsQuery, messageAnswer, messageBody } from '../../../shared/contract/agents/messages.ts';
import { forbidden } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/** An agent's key may send only as that agent. @throws AppError 403 */
function requireSender(identity: Identity, from: string): void {
  if (identity.kind !== 'agent-key' || identity.role === 'admin' || identity.agentName === from) return;
  throw forbidden(`This key belongs to the agent ${identity.agentName}; \`from\` must be that name.`);
}

const send = defineRoute({
  method: 'post',
  path: '/api/agents/message',
  tag: 'Agents',
  summary: 'Send a message to an agent',
  description:
    'The recipient gets a notification. Prompt injection attempts are refused; credentials in the text are reported.',
  access: 'operator',
  limit: 'mutation',
  body: messageBody,
  refuses: [404, 422],
  responses: {
    200: { description: 'Sent', schema: messageAnswer },
  },
  async handle({ body, identity, services, command }) {
    const { from, to } = body;
    requireSender(identity, from);
    const agentIdOf = async (name: string) => (await findAgent(services.reads, identity.workspace, { name }))?.id;
    const id = await sendMessage(services.commands, command, agentIdOf, {
      from,
      to,
      content: body.content ?? body.message ?? '',
      messageType: body.type ?? 'text',
    });
    return { body: { success: true, id } };
  },
});

const comms = defineRoute({
  method: 'get',
  path: '/api/agents/comms',
  tag: 'Agents',
  summary: 'List messages between agents, and who talks to whom',
  access: 'viewer',
  query: commsQuery,
  responses: { 200: { description: 'The latest messages, oldest first', schema: commsAnswer } },
  cache: { models: ['chat'], scope: 'workspace' },
  handle: async ({ query, identity, services }) => ({
    body: await listComms(services.reads, identity.workspace, query),
  }),
});

export const agentMessageRoutes: readonly Route[] = [send, comms];
