/** Agents that register themselves. */
import { registerSelf } from '../../../commands/agents/registration.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { registerAnswer, registerBody } from '../../../shared/contract/agents/registration.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const register = defineRoute({
  method: 'post',
  path: '/api/agents/register',
  tag: 'Agents',
  summary: 'Register oneself as an agent',
  description: 'A name that is known already is greeted again: its role stays, it is idle and has been seen.',
  access: 'viewer',
  limit: 'self-register',
  body: registerBody,
  refuses: [403, 409],
  responses: {
    200: { description: 'The agent existed', schema: registerAnswer },
    201: { description: 'The agent is new', schema: registerAnswer },
  },
  async handle({ body, identity, services, command }) {
    const known = await findAgent(services.reads, identity.workspace, { name: body.name });
    const { agent, registered } = await registerSelf(services.commands, command, body, known, services.now);
    const { id, name, role, created_at } = agent;
    const message = registered ? `Agent ${name} is registered.` : `Agent ${name} is registered already; welcome back.`;
    const answer = { id, name, role, status: 'idle', created_at };
    return { status: registered ? 201 : 200, body: { agent: answer, registered, message } };
  },
});

export const agentRegistrationRoutes: readonly Route[] = [register];
