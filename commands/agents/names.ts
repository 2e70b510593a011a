/**
 * The unique names of an agent (its name, its session key) around the one append that changes them: claim first, then
 * the agent's own event, then let the old name go.
 *
 * Several requests may rename one agent at once, and all of them claim for the same owner, so a claim alone does not
 * say whose it is. Two rules keep a name that is held from being released by a request that is late. Whoever releases a
 * name has first written to the agent's stream that it is being left, which makes everybody else's append conflict. And
 * a name that is being left is not taken back before its release is known to be over (`AgentState.left`).
 */
import { AppError, conflict, invalid } from '../../shared/errors.ts';
import { nameClaimVoided, nameReleased } from '../../shared/events/claims.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { agentNameFault } from '../../shared/names.ts';
import { ABANDONED_AFTER_MS, claimName, type NameKind, releaseName } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { AGENT_NAME, type AgentState, agentDecider, agentStream, existing, nameKey, SESSION_KEY } from './agents.ts';

const holding =
  (held: (state: AgentState, name: string) => boolean): NameKind<AgentState>['holds'] =>
  (state, name) => {
    if (state.deleted) return 'never';
    if (state.registered) return held(state, name) ? 'yes' : 'not yet';
    // A stream whose first claim was voided never becomes an agent (`decideRegister`).
    return Object.keys(state.left).length > 0 ? 'never' : 'not yet';
  };

/** Names of agents, unique per workspace: scope is the workspace id. */
export const agentNameKind: NameKind<AgentState> = {
  kind: AGENT_NAME,
  owner: agentDecider,
  holds: holding((state, name) => state.name === name),
  taken: (name) => `An agent named "${name}" already exists; choose another name.`,
};

/** Session keys, unique over the deployment: scope is `all`. */
export const sessionKeyKind: NameKind<AgentState> = {
  kind: SESSION_KEY,
  owner: agentDecider,
  holds: holding((state, name) => state.sessionKey === name),
  taken: () => 'Another agent has this session_key; choose another one.',
};

export interface Claim {
  readonly kind: NameKind<AgentState>;
  readonly scope: string | number;
  readonly name: string;
}

/** The names an agent with these fields needs. */
export function claimsFor(
  workspace: number,
  agent: { readonly name?: string; readonly sessionKey?: string | null },
): Claim[] {
  const claims: Claim[] = [];
  if (agent.name !== undefined) claims.push({ kind: agentNameKind, scope: workspace, name: agent.name });
  if (agent.sessionKey) claims.push({ kind: sessionKeyKind, scope: 'all', name: agent.sessionKey });
  return claims;
}

/** A refusal happened before anything was written; after any other failure the outcome is unknown. */
export const isRefusal = (error: unknown): boolean => error instanceof AppError && error.status < 500;

const keyOf = (claim: Claim): string => nameKey(claim.kind.kind, claim.name);
const holds = (state: AgentState, claim: Claim): boolean => claim.kind.holds(state, claim.name) === 'yes';
// Claims and releases are safe to repeat, so they need no intents; and a repeated request has to look at them anew.
const bare = ({ origin }: CommandContext): CommandContext => ({ origin });

/** Claims all of them for `owner`, or none. @throws AppError 400 for a name that no agent may take, 409 when one is taken */
export async function claimAll(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim[],
  owner: string,
  undo: (claimed: readonly Claim[]) => Promise<unknown>,
): Promise<void> {
  for (const { kind, name } of claims) {
    const fault = kind === agentNameKind ? agentNameFault(name) : undefined;
    if (fault !== undefined) throw invalid(`name: ${fault}`, [`name: ${fault}`]);
  }
  const claimed: Claim[] = [];
  try {
    for (const claim of claims) {
      await claimName(commands, bare(context), claim.kind, claim.scope, claim.name, owner);
      claimed.push(claim);
    }
  } catch (error) {
    await undo(claimed);
    throw error;
  }
}

/**
 * Releases names of an owner that can never hold them: it is deleted, or was never registered. Best effort: a claim that
 * stays behind is taken over by whoever wants the name.
 */
export async function releaseAll(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim[],
  owner: string,
): Promise<void> {
  await Promise.allSettled(
    claims.map((claim) => releaseName(commands, bare(context), claim.kind, claim.scope, claim.name, owner)),
  );
}

/**
 * Runs a decision that may change the agent's names.
 *
 * @param wanted the names that the agent is to have afterwards
 * @throws AppError 404, 409 when a name is taken, and what `decide` throws
 */
export async function executeWithNames(
  commands: Commands,
  context: CommandContext,
  id: number,
  wanted: readonly Claim[],
  decide: (state: AgentState) => readonly EventDraft[],
): Promise<Executed> {
  const stream = agentStream(context.origin.workspace, id);
  const { state: before } = await commands.load(agentDecider, stream);
  existing(before);
  const missing = wanted.filter((claim) => !holds(before, claim));
  const giveUp = (claims: readonly Claim[]) => settled(() => voidAndRelease(commands, context, stream, claims));
  for (const claim of missing) refuseWhileLeaving(before, claim);
  await claimAll(commands, context, missing, stream, giveUp);

  let decidedOn = before;
  let executed: Executed;
  try {
    executed = await commands.execute(agentDecider, stream, context, (state) => {
      decidedOn = state;
      existing(state);
      for (const claim of wanted) checkClaim(before, state, claim, missing.includes(claim));
      return decide(state);
    });
  } catch (error) {
    if (isRefusal(error)) await giveUp(missing);
    throw error;
  }
  const after = executed.events.reduce(
    (state, event) => agentDecider.evolve(state, { ...event, at: event.meta.at }),
    decidedOn,
  );
  const left = claimsFor(context.origin.workspace, decidedOn).filter((claim) => !holds(after, claim));
  if (left.length > 0) await settled(() => release(commands, context, stream, left));
  return executed;
}

/** Does not fail the request: a name that stays claimed without being held is taken over by whoever wants it later. */
async function settled(work: () => Promise<unknown>): Promise<void> {
  await Promise.allSettled([work()]);
}

function refuseWhileLeaving(state: AgentState, claim: Claim): void {
  const since = state.left[keyOf(claim)]?.since ?? null;
  if (since !== null && Date.now() - since < ABANDONED_AFTER_MS) {
    throw conflict('This agent is just giving that name up; try again in a moment.', { code: 'BUSY' });
  }
}

/** @throws AppError 409 when a claim that the decision rests on does not hold any more */
function checkClaim(before: AgentState, now: AgentState, claim: Claim, claimed: boolean): void {
  const key = keyOf(claim);
  if (claimed ? before.left[key]?.times !== now.left[key]?.times : !holds(now, claim)) {
    throw conflict('The names of this agent were changed at the same time; try again.', { code: 'BUSY' });
  }
}

/** Gives up claims after a refusal: first in the agent's own stream, so that no append of another request rests on them. */
async function voidAndRelease(
  commands: Commands,
  context: CommandContext,
  stream: string,
  claims: readonly Claim[],
): Promise<void> {
  if (claims.length === 0) return;
  let voided: readonly Claim[] = [];
  await commands.execute(agentDecider, stream, bare(context), (state) => {
    voided = claims.filter((claim) => !holds(state, claim));
    return voided.map(({ kind, name }) => nameClaimVoided.draft({ kind: kind.kind, name }));
  });
  await release(commands, context, stream, voided);
}

/** Releases names that the stream says are being left, and then says there that it is done. */
async function release(
  commands: Commands,
  context: CommandContext,
  stream: string,
  claims: readonly Claim[],
): Promise<void> {
  for (const { kind, scope, name } of claims) await releaseName(commands, bare(context), kind, scope, name, stream);
  await commands.execute(agentDecider, stream, bare(context), (state) =>
    claims
      .filter((claim) => typeof state.left[keyOf(claim)]?.since === 'number')
      .map(({ kind, name }) => nameReleased.draft({ kind: kind.kind, name, owner: stream })),
  );
}
