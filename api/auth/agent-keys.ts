/**
 * What a caller with an agent's key may call and change, by the rules of the routes (`Rules` in `api/http/route.ts`). What
 * such a caller sees is decided where it is read (`queries/tasks/visibility.ts`).
 *
 * An agent may not change its own name or role either: `decideUpdate` refuses that, because only the decision knows what
 * would change.
 */
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import type { Call, Route } from '../http/route.ts';

/** The key of an agent that has no more rights than the agent. */
export const isBoundKey = ({ kind, role }: Pick<Identity, 'kind' | 'role'>): boolean =>
  kind === 'agent-key' && role !== 'admin';

const isOwn = ({ agentId, agentName }: Identity, ref: AgentRef): boolean =>
  'id' in ref ? ref.id === agentId : ref.name === agentName;

const closedToAgents = ({ agentName }: Identity, what: string): string =>
  `You have the key of the agent ${agentName}, and ${what} is not for agents, whatever the scopes of their keys: use the API key of the deployment, or sign in.`;

/** Why a caller may make no request at all to this route; undefined if some requests are allowed. */
export function routeFault({ rules: { agentKeys }, method, path }: Route, identity: Identity): string | undefined {
  if (identity.kind !== 'agent-key') return undefined;
  const call = `${method.toUpperCase()} ${path}`;
  if (agentKeys === 'never') return closedToAgents(identity, call);
  if (agentKeys !== 'admin' || !isBoundKey(identity)) return undefined;
  return `This key belongs to the agent ${identity.agentName}, and ${call} changes more than that agent: use a key with the scope admin, the API key of the deployment, or sign in.`;
}

/** Why a caller with an agent's key may not make this request; undefined: it may. */
export async function requestFault(
  { notForAgents, agents }: Route,
  call: Omit<Call<unknown, unknown, unknown, Role>, 'command'>,
): Promise<string | undefined> {
  const { identity } = call;
  const part = notForAgents?.(call);
  if (part !== undefined) return closedToAgents(identity, part);
  if (!agents || !isBoundKey(identity)) return undefined;
  const about = await agents(call);
  const own = `This key belongs to the agent ${identity.agentName} and changes only that agent`;
  if (about === 'unknown') return `${own}; it is not known whose this is.`;
  const other = [about].flat().find((ref) => ref !== undefined && !isOwn(identity, ref));
  if (other === undefined) return undefined;
  const named = 'id' in other ? `agent ${other.id}` : `the agent ${other.name}`;
  return `${own}, not ${named}: use the key of that agent, or a key with the scope admin.`;
}
