/** The unique names of an agent: its name, and its session key. How they are taken and given up: `commands/naming.ts`. */
import { invalid } from '../../shared/errors.ts';
import { agentNameFault } from '../../shared/names.ts';
import type { NameKind } from '../claims.ts';
import type { Claim, Named } from '../naming.ts';
import { AGENT_NAME, type AgentState, agentDecider, existing, SESSION_KEY } from './agents.ts';

const holding =
  (held: (state: AgentState, name: string) => boolean): NameKind<AgentState>['holds'] =>
  (state, name) => {
    if (state.deleted) return 'never';
    if (state.registered) return held(state, name) ? 'yes' : 'not yet';
    // A stream whose first claim was voided can never become an agent (`decideRegister`).
    return Object.keys(state.givenUpNames).length > 0 ? 'never' : 'not yet';
  };

/** Names of agents, unique per workspace: scope is the workspace id. */
export const agentNameKind: NameKind<AgentState> = {
  kind: AGENT_NAME,
  owner: agentDecider,
  holds: holding((state, name) => state.name === name),
  taken: (name) => `An agent named "${name}" already exists; choose another name.`,
  refuse(name) {
    const fault = agentNameFault(name);
    if (fault !== undefined) throw invalid(`name: ${fault}`, [`name: ${fault}`]);
  },
};

/** Session keys, unique in the deployment: scope is `all`. */
export const sessionKeyKind: NameKind<AgentState> = {
  kind: SESSION_KEY,
  owner: agentDecider,
  holds: holding((state, name) => state.sessionKey === name),
  taken: () => 'Another agent has this session_key; choose another one.',
};

/** The names that an agent with these fields needs. */
export function claimsFor(
  workspace: number,
  agent: { readonly name?: string; readonly sessionKey?: string | null },
): Claim<AgentState>[] {
  const claims: Claim<AgentState>[] = [];
  if (agent.name !== undefined) claims.push({ kind: agentNameKind, scope: workspace, name: agent.name });
  if (agent.sessionKey) claims.push({ kind: sessionKeyKind, scope: 'all', name: agent.sessionKey });
  return claims;
}

export const namedAgent: Named<AgentState> = { decider: agentDecider, existing, held: claimsFor };
