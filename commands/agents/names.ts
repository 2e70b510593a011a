/** The unique names of an agent: its name and its session key. `commands/naming.ts` claims and releases them. */

import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import { invalid } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { agentNameFault } from '../../shared/names.ts';
import { isStorableText } from '../../shared/storable.ts';
import { claimantOf, type NameKind } from '../claims.ts';
import type { LoadOptions } from '../decider.ts';
import type { Commands } from '../handler.ts';
import { agentNameClaims } from '../names.ts';
import type { Claim, Named } from '../naming.ts';
import { type AgentState, agentDecider, agentStream, existing, holding, SESSION_KEY } from './agents.ts';

/** @throws AppError 400 for a name that agents must not have */
export function refuseName(name: string): void {
  const fault = agentNameFault(name);
  if (fault !== undefined) throw invalid(`name: ${fault}`, [`name: ${fault}`]);
}

/** Session keys, unique in the deployment: scope is `all`. */
export const sessionKeyKind: NameKind<AgentState> = {
  kind: SESSION_KEY,
  owner: agentDecider,
  holds: holding((state, name) => state.session_key === name),
  taken: () => 'Another agent has this session_key; choose another one.',
};

/** Claims of the names of an agent with these fields. */
export function claimsFor(
  workspace: number,
  agent: { readonly name?: string; readonly session_key?: string | null },
): Claim<AgentState>[] {
  const claims: Claim<AgentState>[] = [];
  if (agent.name !== undefined) claims.push(...agentNameClaims(workspace, agent.name, refuseName));
  if (agent.session_key) claims.push({ kind: sessionKeyKind, scope: 'all', name: agent.session_key });
  return claims;
}

export const namedAgent: Named<AgentState> = { decider: agentDecider, existing, held: claimsFor };

export type KnownAgent = Pick<AgentState, 'id' | 'name' | 'role' | 'session_key'>;

/**
 * An agent according to the log, because writes do not wait for read models and never decide on a stale one; undefined
 * when the workspace has no such agent.
 *
 * @param options.recent accepts a cached state, which may lack changes by other processes: for a caller whose command
 *   detects later changes
 * @param options.since the agent as of this moment (`performance.now()`) or later; default: of the call
 */
export async function agentInLog(
  commands: Pick<Commands, 'load'>,
  workspace: number,
  ref: AgentRef,
  { recent = false, since = performance.now() }: LoadOptions = {},
): Promise<KnownAgent | undefined> {
  const isIt = (state: AgentState) => state.registered && !state.deleted && ('id' in ref || state.name === ref.name);
  const agentOn = async (stream: string) => {
    if (recent) {
      const { state } = await commands.load(agentDecider, stream, { recent });
      if (isIt(state)) return known(state);
    }
    const { state } = await commands.load(agentDecider, stream, { since });
    return isIt(state) ? known(state) : undefined;
  };
  if ('id' in ref) return agentOn(agentStream(workspace, ref.id));
  const seen = new Set<string>();
  for (const { kind, name } of claimsFor(workspace, ref)) {
    const stream = await claimantOf(commands, kind, workspace, name, { since });
    if (stream === undefined || seen.has(stream) || !stream.startsWith(AGENTS_OF(workspace))) continue;
    seen.add(stream);
    const agent = await agentOn(stream);
    if (agent) return agent;
  }
  return undefined;
}

const AGENTS_OF = (workspace: number) => agentStream(workspace, 0).slice(0, -1);

const known = ({ id, name, role, session_key }: AgentState): KnownAgent => ({ id, name, role, session_key });

/**
 * The id of the agent named by the header `x-agent-name` or by the caller's key; undefined if there is none.
 *
 * @param since when the request arrived, `performance.now()`
 */
export async function agentSpokenFor(
  commands: Commands,
  { workspace, agentName }: Pick<Identity, 'workspace' | 'agentName'>,
  since: number,
): Promise<number | undefined> {
  if (agentName === null || !isStorableText(agentName)) return undefined;
  return (await agentInLog(commands, workspace, { name: agentName }, { since }))?.id;
}
