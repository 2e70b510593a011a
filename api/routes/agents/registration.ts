/** Agents that register themselves. */
import { registerSelf } from '../../../commands/agents/registration.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { registerBody, registerResponse } from '../../../shared/contract/agents/registration.ts';
import { defineRoute } from '../../http/route.ts';
import { agentRoom } from './agents.ts';

export const agentRegistrationRoute = defineRoute({
  method: 'post',
  path: '/api/agents/register',
  summary: 'Register as an agent',
  mcp: { tool: 'register_agent', idempotent: true },
  description:
    'An agent that already exists keeps its role; it becomes idle, and the call counts as a sign of life. With the key of an agent, a name that belongs to another agent is refused with 409.',
  access: 'viewer',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'screened' },
  limit: 'self-register',
  body: registerBody,
  refuses: [403, 409],
  responses: {
    200: { description: 'The agent already existed', schema: registerResponse },
    201: { description: 'The agent was created', schema: registerResponse },
  },
  async handle({ body, identity, services, command }) {
    const { agent, registered } = await registerSelf(services.commands, command, body, {
      find: (name) => findAgent(services.reads, identity.workspace, { name }),
      // Whatever its scopes, an agent's key may register only its own agent.
      only: identity.kind === 'agent-key' ? identity.agentId : undefined,
      room: agentRoom(services),
      now: services.now,
    });
    const { id, name, role, created_at } = agent;
    const message = registered ? `Agent ${name} is registered.` : `Agent ${name} was already registered.`;
    const response = { id, name, role, status: 'idle', created_at };
    return { status: registered ? 201 : 200, body: { agent: response, registered, message } };
  },
});
