/** Agents that register themselves. */
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { decideReturn, registerAgent, selfRegistration } from '../../../commands/agents/registration.ts';
import { hasReserved } from '../../../commands/reserve.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { registerAnswer, registerBody } from '../../../shared/contract/agents/registration.ts';
import { seconds } from '../../../shared/time.ts';
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
    const { commands, reads } = services;
    const { workspace } = identity;
    const known = await findAgent(reads, workspace, { name: body.name });
    if (known && !hasReserved(command)) {
      await commands.execute(agentDecider, agentStream(workspace, known.id), command, decideReturn);
      const { id, name, role, created_at } = known;
      const message = `Agent ${name} is registered already; welcome back.`;
      return { body: { agent: { id, name, role, status: 'idle', created_at }, registered: false, message } };
    }
    const registration = selfRegistration(body);
    const { id, executed } = await registerAgent(commands, command, registration);
    const created_at = seconds(executed.events[0]?.meta.at ?? services.now());
    const { name, role } = registration;
    const agent = { id, name, role, status: 'idle', created_at };
    return { status: 201, body: { agent, registered: true, message: `Agent ${name} is registered.` } };
  },
});

export const agentRegistrationRoutes: readonly Route[] = [register];
