/** Which agent a path means, and whether the caller may speak for it. */
import { findAgent } from '../../queries/agents.ts';
import type { AgentRef } from '../../shared/contract/agents.ts';
import { forbidden, notFound } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import type { Services } from '../services.ts';

/** @throws AppError 404 when the caller's workspace has no such agent */
export async function requireAgent(services: Services, identity: Identity, ref: AgentRef) {
  const agent = await findAgent(services.reads, identity.workspace, ref);
  if (!agent) throw notFound('Agent');
  return agent;
}

/**
 * Heartbeat and memory belong to the agent: a caller with an agent's identity may only touch that agent, unless it is
 * an admin. An agent's key counts by the agent's id; a session that says `x-agent-name` counts by that name, also where
 * the path has a number.
 *
 * @throws AppError 403
 */
export function requireSelf(identity: Identity, agent: { readonly id: number; readonly name: string }): void {
  if (identity.role === 'admin') return;
  const allowed =
    identity.kind === 'agent-key'
      ? identity.agentId === agent.id
      : identity.agentName === null || identity.agentName === agent.name;
  if (!allowed)
    throw forbidden(`You speak for the agent ${identity.agentName}; this call is for ${agent.name} itself.`);
}
