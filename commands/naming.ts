/**
 * The unique names of a record around the one append that changes them: claim first, then the record's own event, then
 * let the old name go.
 *
 * Several requests may rename one record at once, and all of them claim for the same owner, so a claim alone does not
 * say whose it is. Two rules keep a name that is held from being released by a request that is late. Whoever releases a
 * name has first written to the owner's stream that it is being left, which makes everybody else's append conflict. And
 * a name that is being left is not taken back before its release is known to be over (`Leaving.left`).
 */
import { AppError, conflict } from '../shared/errors.ts';
import { nameClaimVoided, nameReleased } from '../shared/events/claims.ts';
import type { EventDraft } from '../shared/events/define.ts';
import { ABANDONED_AFTER_MS, claimName, type NameKind, releaseName } from './claims.ts';
import { type Decider, type Fold, on } from './decider.ts';
import type { CommandContext, Commands, Executed } from './handler.ts';

/** A name must not be taken back while its release may still be on its way. */
export interface LeftName {
  /** How often it was given up or denied. */
  readonly times: number;
  /** Since when its release may be on its way, Unix ms; null: the release is known to be over. */
  readonly since: number | null;
}

/** The part of an owner's state that is about names. */
export interface Leaving {
  /** By `<kind>:<name>`: the names that this owner gave up or was denied. */
  readonly left: Readonly<Record<string, LeftName>>;
}

/** One key per unique name, for `Leaving.left`. */
export const nameKey = (kind: string, name: string): string => `${kind}:${name}`;

/** `left` with a name more that was given up or denied. */
export const leave = (left: Leaving['left'], key: string, at: number): Leaving['left'] => ({
  ...left,
  [key]: { times: (left[key]?.times ?? 0) + 1, since: at },
});

/** What the events of claims do to the state of an owner. */
export const namingFolds = <State extends Leaving>(): readonly Fold<State>[] => [
  on(nameClaimVoided, (state: State, { data, at }) => ({
    ...state,
    left: leave(state.left, nameKey(data.kind, data.name), at),
  })),
  on(nameReleased, (state: State, { data }) => {
    const key = nameKey(data.kind, data.name);
    return { ...state, left: { ...state.left, [key]: { times: state.left[key]?.times ?? 1, since: null } } };
  }),
];

/** A name that is wanted or held. */
export interface Claim<State> {
  readonly kind: NameKind<State>;
  /** Within which the name is unique: a workspace id, or `all`. */
  readonly scope: string | number;
  readonly name: string;
}

/** A kind of record that has unique names. */
export interface Named<State extends Leaving> {
  readonly decider: Decider<State>;
  /** @throws AppError 404 when the record does not exist (any more) */
  existing(state: State): unknown;
  /** The names that a record in this state holds. */
  held(workspace: number, state: State): readonly Claim<State>[];
}

/** A refusal happened before anything was written; after any other failure the outcome is unknown. */
export const isRefusal = (error: unknown): boolean => error instanceof AppError && error.status < 500;

const keyOf = <State>(claim: Claim<State>): string => nameKey(claim.kind.kind, claim.name);
const holds = <State>(state: State, claim: Claim<State>): boolean => claim.kind.holds(state, claim.name) === 'yes';
// Claims and releases are safe to repeat, so they need no intents; and a repeated request has to look at them anew.
const bare = ({ origin }: CommandContext): CommandContext => ({ origin });

/** Claims all of them for `owner`, or none. @throws AppError 400 for a name that nobody may take, 409 when one is taken */
export async function claimAll<State>(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim<State>[],
  owner: string,
  undo: (claimed: readonly Claim<State>[]) => Promise<unknown>,
): Promise<void> {
  for (const { kind, name } of claims) kind.refuse?.(name);
  const claimed: Claim<State>[] = [];
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
 * Releases names of an owner that can never hold them: it is deleted, or was never made. Best effort: a claim that
 * stays behind is taken over by whoever wants the name.
 */
export async function releaseAll<State>(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim<State>[],
  owner: string,
): Promise<void> {
  await Promise.allSettled(
    claims.map((claim) => releaseName(commands, bare(context), claim.kind, claim.scope, claim.name, owner)),
  );
}

/**
 * Runs a decision that may change the names of a record.
 *
 * @param stream of the record
 * @param wanted the names that the record is to have afterwards
 * @throws AppError 404, 409 when a name is taken, and what `decide` throws
 */
export async function executeWithNames<State extends Leaving>(
  commands: Commands,
  context: CommandContext,
  named: Named<State>,
  stream: string,
  wanted: readonly Claim<State>[],
  decide: (state: State) => readonly EventDraft[],
): Promise<Executed> {
  const { decider } = named;
  const { state: before } = await commands.load(decider, stream);
  named.existing(before);
  const missing = wanted.filter((claim) => !holds(before, claim));
  const giveUp = (claims: readonly Claim<State>[]) =>
    settled(() => voidAndRelease(commands, context, named, stream, claims));
  for (const claim of missing) refuseWhileLeaving(named, before, claim);
  await claimAll(commands, context, missing, stream, giveUp);

  let decidedOn = before;
  let executed: Executed;
  try {
    executed = await commands.execute(decider, stream, context, (state) => {
      decidedOn = state;
      named.existing(state);
      for (const claim of wanted) checkClaim(named, before, state, claim, missing.includes(claim));
      return decide(state);
    });
  } catch (error) {
    if (isRefusal(error)) await giveUp(missing);
    throw error;
  }
  const after = executed.events.reduce(
    (state, event) => decider.evolve(state, { ...event, at: event.meta.at }),
    decidedOn,
  );
  const left = named.held(context.origin.workspace, decidedOn).filter((claim) => !holds(after, claim));
  if (left.length > 0) await settled(() => release(commands, context, named, stream, left));
  return executed;
}

/** Does not fail the request: a name that stays claimed without being held is taken over by whoever wants it later. */
async function settled(work: () => Promise<unknown>): Promise<void> {
  await Promise.allSettled([work()]);
}

function refuseWhileLeaving<State extends Leaving>({ decider }: Named<State>, state: State, claim: Claim<State>): void {
  const since = state.left[keyOf(claim)]?.since ?? null;
  if (since !== null && Date.now() - since < ABANDONED_AFTER_MS) {
    throw conflict(`This ${decider.kind} is just giving that name up; try again in a moment.`, { code: 'BUSY' });
  }
}

/** @throws AppError 409 when a claim that the decision rests on does not hold any more */
function checkClaim<State extends Leaving>(
  { decider }: Named<State>,
  before: State,
  now: State,
  claim: Claim<State>,
  claimed: boolean,
): void {
  const key = keyOf(claim);
  if (claimed ? before.left[key]?.times !== now.left[key]?.times : !holds(now, claim)) {
    throw conflict(`The names of this ${decider.kind} were changed at the same time; try again.`, { code: 'BUSY' });
  }
}

/** Gives up claims after a refusal: first in the owner's stream, so that no append of another request rests on them. */
async function voidAndRelease<State extends Leaving>(
  commands: Commands,
  context: CommandContext,
  named: Named<State>,
  stream: string,
  claims: readonly Claim<State>[],
): Promise<void> {
  if (claims.length === 0) return;
  let voided: readonly Claim<State>[] = [];
  await commands.execute(named.decider, stream, bare(context), (state) => {
    voided = claims.filter((claim) => !holds(state, claim));
    return voided.map(({ kind, name }) => nameClaimVoided.draft({ kind: kind.kind, name }));
  });
  await release(commands, context, named, stream, voided);
}

/** Releases names that the stream says are being left, and then says there that it is done. */
async function release<State extends Leaving>(
  commands: Commands,
  context: CommandContext,
  { decider }: Named<State>,
  stream: string,
  claims: readonly Claim<State>[],
): Promise<void> {
  for (const { kind, scope, name } of claims) await releaseName(commands, bare(context), kind, scope, name, stream);
  await commands.execute(decider, stream, bare(context), (state) =>
    claims
      .filter((claim) => typeof state.left[keyOf(claim)]?.since === 'number')
      .map(({ kind, name }) => nameReleased.draft({ kind: kind.kind, name, owner: stream })),
  );
}
