/** Access to the reports about an agent (attribution, diagnostics): the agent itself, and admins who ask for it. */
import { findAgent } from '../../../queries/agents/agents.ts';
import type { AgentRef } from '../../../shared/contract/agents/agents.ts';
import type { ReportQuery } from '../../../shared/contract/agents/scope.ts';
import { forbidden, orNotFound } from '../../../shared/errors.ts';
import { type Identity, TASK_VIEW } from '../../../shared/identity.ts';
import type { Services } from '../../services.ts';

/** Fields of a caller that decide which reports it reads, and which tasks it sees in them. */
export const READER = [...TASK_VIEW, 'kind', 'username'] as const satisfies readonly (keyof Identity)[];
export type Reader = Pick<Identity, (typeof READER)[number]>;

export type AccessScope = 'self' | 'privileged';

/**
 * When a caller counts as the agent itself. `name or username`: if either matches. `name before username`: a caller
 * that speaks for an agent counts only as that agent, whatever its username.
 */
export type SelfRule = 'name or username' | 'name before username';

/** @throws AppError 403 */
export function accessScopeOf(
  identity: Reader,
  agent: { readonly id: number; readonly name: string },
  privileged: string | undefined,
  rule: SelfRule,
): AccessScope {
  if (isSelf(identity, agent, rule)) return 'self';
  if (privileged === '1' && identity.role === 'admin') return 'privileged';
  throw forbidden(
    identity.role === 'admin'
      ? `This report is for the agent ${agent.name} itself. As an admin, add privileged=1 to read it.`
      : `This report is for the agent ${agent.name} itself and for admins: use the agent's key, or name the agent in the header x-agent-name.`,
  );
}

function isSelf(identity: Reader, agent: { readonly id: number; readonly name: string }, rule: SelfRule): boolean {
  // A key belongs to its agent, even after the agent is renamed.
  if (identity.kind === 'agent-key') return identity.agentId === agent.id;
  if (identity.agentName === agent.name) return true;
  return (rule === 'name or username' || identity.agentName === null) && identity.username === agent.name;
}

/**
 * The agent of a report, and the scope in which the caller reads it.
 *
 * @throws AppError 404 when the caller's workspace has no such agent, 403 when the caller may not read the report
 */
export async function requireReport(
  services: Services,
  identity: Reader,
  ref: AgentRef,
  query: Pick<ReportQuery, 'privileged'>,
  rule: SelfRule,
) {
  const agent = orNotFound(await findAgent(services.reads, identity.workspace, ref), 'Agent');
  return { agent, scope: accessScopeOf(identity, agent, query.privileged, rule) };
}
