/**
 * Changes the unique names of a record: first claims the new name, then appends the record's own event, then releases
 * the old name.
 *
 * Several requests may rename a record at the same time and all claim for the same owner, so a claim alone does not
 * show which request it belongs to. Two rules prevent a late request from releasing a name that is in use. First,
 * before a request releases a name, it records in the owner's stream that the name is being given up, which makes the
 * appends of all other requests conflict. Second, a name that is being given up cannot be taken back until its release
 * is known to have ended (`NameOwnerState.givenUpNames`).
 */
import { conflict, isRefusal } from '../shared/errors.ts';
import { nameClaimVoided, nameReleased } from '../shared/events/claims.ts';
import type { EventDraft } from '../shared/events/define.ts';
import { claimName, type NameKind, type NameScope, releaseName } from './claims.ts';
import { type Decider, type Fold, on } from './decider.ts';
import type { CommandContext, Commands, Executed } from './handler.ts';
import { withoutIntents } from './intents.ts';

/** A name must not be taken back while its release may still be in progress. */
export interface GivenUpName {
  /** How often the name has been given up or denied. */
  readonly times: number;
  /** Since when its release may be in progress, Unix ms; null: the release is known to have ended. */
  readonly since: number | null;
}

/** The part of an owner's state that concerns names. */
export interface NameOwnerState {
  /** The names that this owner gave up or was denied, by `<kind>:<name>`. */
  readonly givenUpNames: Readonly<Record<string, GivenUpName>>;
}

/** Longer than any request lives, milliseconds: a release that has not ended by then never will. */
export const RELEASED_AFTER_MS = 30_000;

/** Kind of the names that users and agents share (`names.ts`). */
export const SHARED_NAME = 'name';
/** One key per unique name, for `NameOwnerState.givenUpNames`. */
export const nameKey = (kind: string, name: string): string => `${kind}:${name}`;

/** Adds a name that was given up or denied. */
export const giveUpName = (
  names: NameOwnerState['givenUpNames'],
  key: string,
  at: number,
): NameOwnerState['givenUpNames'] => ({
  ...names,
  [key]: { times: (names[key]?.times ?? 0) + 1, since: at },
});

/** How the events of claims change the state of an owner. */
export const namingFolds = <State extends NameOwnerState>(): readonly Fold<State>[] => [
  on(nameClaimVoided, (state: State, { data, at }) => ({
    ...state,
    givenUpNames: giveUpName(state.givenUpNames, nameKey(data.kind, data.name), at),
  })),
  on(nameReleased, (state: State, { data }) => {
    const key = nameKey(data.kind, data.name);
    const times = state.givenUpNames[key]?.times ?? 1;
    return { ...state, givenUpNames: { ...state.givenUpNames, [key]: { times, since: null } } };
  }),
];

/** A name to be claimed, or one that is held. */
export interface Claim<State> {
  readonly kind: NameKind<State>;
  readonly scope: NameScope;
  /** The claimed text: the name itself, or its key for comparison. */
  readonly name: string;
  /** The name as the caller wrote it; default: `name`. */
  readonly shown?: string;
}

/** A kind of record that has unique names. */
export interface Named<State extends NameOwnerState> {
  readonly decider: Decider<State>;
  /** @throws AppError 404 when the record does not exist, or was deleted */
  existing(state: State): unknown;
  /** The names that a record in this state holds. */
  held(workspace: number, state: State): readonly Claim<State>[];
}

const keyOf = <State>(claim: Claim<State>): string => nameKey(claim.kind.kind, claim.name);
const holds = <State>(state: State, { kind, name, scope }: Claim<State>): boolean =>
  kind.holds(state, name, scope) === 'yes';

/**
 * Makes all claims for `owner`, or none.
 *
 * @param undo default: releases the claims
 * @throws AppError 400 for a name that is not allowed, 409 for one that is taken
 */
export async function claimAll<State>(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim<State>[],
  owner: string,
  undo = (claimed: readonly Claim<State>[]): Promise<unknown> => releaseAll(commands, context, claimed, owner),
): Promise<void> {
  for (const { kind, name, shown = name } of claims) kind.refuse?.(shown);
  const claimed: Claim<State>[] = [];
  try {
    for (const claim of claims) {
      await claimName(commands, withoutIntents(context), claim.kind, claim.scope, claim.name, owner, claim.shown);
      claimed.push(claim);
    }
  } catch (error) {
    await undo(claimed);
    throw error;
  }
}

/**
 * Releases names of an owner that can never hold them, because it was deleted or never created. Best effort: the next
 * request for the name takes over a claim that is left behind.
 */
export async function releaseAll<State>(
  commands: Commands,
  context: CommandContext,
  claims: readonly Claim<State>[],
  owner: string,
): Promise<void> {
  await Promise.allSettled(
    claims.map((claim) => releaseName(commands, withoutIntents(context), claim.kind, claim.scope, claim.name, owner)),
  );
}

/** Creates a record with unique names in a new stream. If that is refused, the names are released. */
export async function createWithNames<State>(
  commands: Commands,
  context: CommandContext,
  decider: Decider<State>,
  stream: string,
  claims: readonly Claim<State>[],
  decide: (state: State) => readonly EventDraft[],
): Promise<Executed> {
  await claimAll(commands, context, claims, stream);
  try {
    return await commands.execute(decider, stream, context, decide, { fresh: true });
  } catch (error) {
    if (isRefusal(error)) await releaseAll(commands, context, claims, stream);
    throw error;
  }
}

/**
 * Runs a decision that may change the names of a record.
 *
 * @param stream of the record
 * @param wanted the names that the record will have afterwards
 * @throws AppError 404, 409 when a name is taken, and what `decide` throws
 */
export async function executeWithNames<State extends NameOwnerState>(
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
  // Decide first, so that a refused request claims no names.
  decide(before);
  const missing = wanted.filter((claim) => !holds(before, claim));
  const giveUp = (claims: readonly Claim<State>[]) =>
    settled(() => voidAndRelease(commands, context, named, stream, claims));
  for (const claim of missing) refuseWhileReleasing(named, before, claim);
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
    (state, event) => decider.evolve(state, { at: event.meta.at, ...event }),
    decidedOn,
  );
  const givenUp = named.held(context.origin.workspace, decidedOn).filter((claim) => !holds(after, claim));
  if (givenUp.length > 0) await settled(() => release(commands, context, named, stream, givenUp));
  return executed;
}

/** Ignores failures: the next request for the name takes over a claim that is left behind. */
async function settled(work: () => Promise<unknown>): Promise<void> {
  await Promise.allSettled([work()]);
}

function refuseWhileReleasing<State extends NameOwnerState>(
  { decider }: Named<State>,
  state: State,
  claim: Claim<State>,
): void {
  const since = state.givenUpNames[keyOf(claim)]?.since ?? null;
  if (since !== null && Date.now() - since < RELEASED_AFTER_MS) {
    throw conflict(`This ${decider.kind} is giving up that name at this moment; try again shortly.`, { code: 'BUSY' });
  }
}

/** @throws AppError 409 when a claim on which the decision is based is no longer valid */
function checkClaim<State extends NameOwnerState>(
  { decider }: Named<State>,
  before: State,
  now: State,
  claim: Claim<State>,
  claimed: boolean,
): void {
  const key = keyOf(claim);
  if (claimed ? before.givenUpNames[key]?.times !== now.givenUpNames[key]?.times : !holds(now, claim)) {
    throw conflict(`The names of this ${decider.kind} were changed at the same time; try again.`, { code: 'BUSY' });
  }
}

/**
 * Gives up claims after a refusal: first in the owner's stream, so that no other request can append relying on them.
 */
async function voidAndRelease<State extends NameOwnerState>(
  commands: Commands,
  context: CommandContext,
  named: Named<State>,
  stream: string,
  claims: readonly Claim<State>[],
): Promise<void> {
  if (claims.length === 0) return;
  let voided: readonly Claim<State>[] = [];
  await commands.execute(named.decider, stream, withoutIntents(context), (state) => {
    voided = claims.filter((claim) => !holds(state, claim));
    return voided.map(({ kind, name }) => nameClaimVoided.draft({ kind: kind.kind, name }));
  });
  await release(commands, context, named, stream, voided);
}

/** Releases the names that the stream records as being given up, then records there that the release has ended. */
async function release<State extends NameOwnerState>(
  commands: Commands,
  context: CommandContext,
  { decider }: Named<State>,
  stream: string,
  claims: readonly Claim<State>[],
): Promise<void> {
  for (const { kind, scope, name } of claims)
    await releaseName(commands, withoutIntents(context), kind, scope, name, stream);
  await commands.execute(decider, stream, withoutIntents(context), (state) =>
    claims
      .filter((claim) => typeof state.givenUpNames[keyOf(claim)]?.since === 'number')
      .map(({ kind, name }) => nameReleased.draft({ kind: kind.kind, name, owner: stream })),
  );
}
