/** Which agent a path means, and whether the caller may speak for it. */
import { findAgent } from '../../../queries/agents/agents.ts';
import type { AgentRecord, AgentRef } from '../../../shared/contract/agents/agents.ts';
import { forbidden, notFound } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import type { Services } from '../../services.ts';

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
  if (!speaksFor(identity, agent))
    throw forbidden(`You speak for the agent ${identity.agentName}; this call is for ${agent.name} itself.`);
}

/** Whether what belongs to the agent itself may be read and changed by this caller. */
function speaksFor(identity: Identity, agent: { readonly id: number; readonly name: string }): boolean {
  if (identity.role === 'admin') return true;
  return identity.kind === 'agent-key'
    ? identity.agentId === agent.id
    : identity.agentName === null || identity.agentName === agent.name;
}

/** An agent's record as this caller may see it. */
export function shownTo<A extends AgentRecord>(identity: Identity, agent: A): A {
  if (identity.role === 'admin') return agent;
  return {
    ...agent,
    config: masked(agent.config) as AgentRecord['config'],
    working_memory: speaksFor(identity, agent) ? agent.working_memory : '',
  };
}

/** Callers with the same view get the same records. */
export function viewOf({ role, kind, agentId, agentName }: Identity): string {
  if (role === 'admin') return 'admin';
  if (kind === 'agent-key') return `agent ${agentId}`;
  return agentName === null ? 'people' : `agent ${JSON.stringify(agentName)}`;
}
