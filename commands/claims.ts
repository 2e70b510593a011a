/**
 * Unique names under concurrent writers of several processes.
 *
 * A name is a stream of its own; the first claim on it wins. The owner's stream changes afterwards, in a separate
 * append, because no append spans two streams. A claim is void when its owner does not hold the name: at once if the
 * owner never can (because it was deleted), otherwise after `ABANDONED_AFTER_MS`, because the process may have died
 * between the two appends. Before such a claim is taken over, `nameClaimVoided` is appended to the old owner's stream:
 * if the old owner is merely slow, its second append conflicts with that event and starts over. So uniqueness does not
 * depend on time; the wait only spares slow owners the conflict. Meanwhile other claimants wait for a moment, then get
 * 409 `BUSY`.
 */
import { AppError, conflict } from '../shared/errors.ts';
import { nameClaimed, nameClaimVoided, nameReleased } from '../shared/events/claims.ts';
import { pause } from '../shared/waiting.ts';
import { type Decider, defineDecider, type LoadOptions, on } from './decider.ts';
import type { CommandContext, Commands, ExecuteOptions } from './handler.ts';

/** A living process needs less than this between a claim and the owner's append, milliseconds. */
export const ABANDONED_AFTER_MS = 5_000;
/** Pauses while another record is getting the name, milliseconds: about a second in total. Most owners need a few. */
const PAUSES = [10, 20, 40, 80, 150, 300, 400];
/** Maximum number of attempts to claim a name that other processes claim as soon as it is free. */
const MAX_TRIES = 5;

interface NameState {
  /** Stream of the owner. */
  readonly owner: string | undefined;
  readonly claimedAt: number;
}

export const nameDecider = defineDecider<NameState>({
  kind: 'name',
  initial: { owner: undefined, claimedAt: 0 },
  folds: [
    on(nameClaimed, (_, { data, at }) => ({ owner: data.owner, claimedAt: at })),
    on(nameReleased, () => ({ owner: undefined, claimedAt: 0 })),
  ],
});

/** Scope within which a name is unique: a workspace id, or `all`. */
export type NameScope = string | number;

/** A kind of unique name: names of users and agents, session keys. */
export interface NameKind<OwnerState> {
  /** Part of the stream name: `session_key`. */
  readonly kind: string;
  readonly owner: Decider<OwnerState>;
  /** `yes`: the owner has this name; `never`: it does not and never will; `not yet`: it may be about to get it. */
  holds(state: OwnerState, name: string, scope: NameScope): 'yes' | 'never' | 'not yet';
  /** The 409 message. @param shown the name as the caller wrote it */
  taken(shown: string): string;
  /** @throws AppError 400 for a reserved name */
  refuse?(shown: string): void;
  /** @throws AppError 409 when records without a claim of this kind are in the way */
  checkFree?(commands: Commands, scope: NameScope, name: string, shown: string, owner: string): Promise<void>;
  /** For names with several kinds of owners: the kind of the owner of this stream. Default: this kind. */
  // biome-ignore lint/suspicious/noExplicitAny: the state of another kind of record; only its own kind reads it.
  of?(owner: string): NameKind<any>;
}

/** Code of a refusal because another record has the name. */
export const NAME_TAKEN = 'NAME_TAKEN';
const taken = <OwnerState>(kind: NameKind<OwnerState>, shown: string) =>
  conflict(kind.taken(shown), { code: NAME_TAKEN });
const beingTaken = (shown: string) =>
  conflict(`Another request is taking "${shown}" at this moment; try again in a few seconds.`, { code: 'BUSY' });

const streamOf = (kind: string, scope: NameScope, name: string) => `${kind}-${scope}-${encodeURIComponent(name)}`;

/**
 * Claims `name` for the owner of stream `owner`. An owner may claim again a name that it already has.
 *
 * @param shown the name as the caller wrote it
 * @throws AppError 409 `NAME_TAKEN` when another record has it, `BUSY` when one is getting it, for longer than a second
 */
export async function claimName<OwnerState>(
  commands: Commands,
  context: CommandContext,
  kind: NameKind<OwnerState>,
  scope: NameScope,
  name: string,
  owner: string,
  shown = name,
): Promise<void> {
  await kind.checkFree?.(commands, scope, name, shown, owner);
  const stream = streamOf(kind.kind, scope, name);
  const claim = (given: string | undefined, options: ExecuteOptions) =>
    commands.execute(
      nameDecider,
      stream,
      context,
      (current) => {
        if (current.owner === owner) return [];
        if (current.owner !== undefined && current.owner !== given) throw taken(kind, shown);
        return [nameClaimed.draft({ kind: kind.kind, name, owner })];
      },
      options,
    );
  // Most names are new.
  let voided: string | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      await claim(voided, { fresh: attempt === 1 });
      return;
    } catch (error) {
      if (!isTaken(error)) throw error;
      if (attempt >= MAX_TRIES) throw beingTaken(shown);
    }
    voided = await vacated(commands, context, kind, { scope, name, shown }, stream, owner);
  }
}

/** Stream of the claimant of a name, whether or not the claimant holds it yet; undefined if the name is free. */
export async function claimantOf(
  commands: Pick<Commands, 'load'>,
  kind: Pick<NameKind<unknown>, 'kind'>,
  scope: NameScope,
  name: string,
  options?: LoadOptions,
): Promise<string | undefined> {
  return (await commands.load(nameDecider, streamOf(kind.kind, scope, name), options)).state.owner;
}

/** Whether a name was refused because another record has it. */
export const isTaken = (error: unknown): boolean => error instanceof AppError && error.extras.code === NAME_TAKEN;

/** Whether a name was refused because another record has it or is getting it. */
export const isClaimed = (error: unknown): boolean =>
  isTaken(error) || (error instanceof AppError && error.extras.code === 'BUSY');

interface Wanted {
  readonly scope: NameScope;
  readonly name: string;
  readonly shown: string;
}

// biome-ignore lint/suspicious/noExplicitAny: as in `NameKind.of`.
const kindOf = <OwnerState>(kind: NameKind<OwnerState>, owner: string): NameKind<any> => kind.of?.(owner) ?? kind;

/**
 * Waits until no other owner has the name of a claim's stream, or can still get it.
 *
 * @returns the owner of the claim, which is void unless it is `owner`; undefined when there is none
 * @throws AppError 409 `NAME_TAKEN`, `BUSY`
 */
async function vacated<OwnerState>(
  commands: Commands,
  context: CommandContext,
  kind: NameKind<OwnerState>,
  { scope, name, shown }: Wanted,
  stream: string,
  owner: string,
): Promise<string | undefined> {
  for (const ms of [...PAUSES, undefined]) {
    const { state: claim } = await commands.load(nameDecider, stream);
    if (claim.owner === undefined || claim.owner === owner) return claim.owner;
    const its = kindOf(kind, claim.owner);
    const answer = its.holds((await commands.load(its.owner, claim.owner)).state, name, scope);
    if (answer === 'never') return claim.owner;
    if (answer === 'yes') throw taken(kind, shown);
    if (Date.now() - claim.claimedAt >= ABANDONED_AFTER_MS) {
      await commands.execute(its.owner, claim.owner, context, (state) => {
        if (its.holds(state, name, scope) === 'yes') throw taken(kind, shown);
        return [nameClaimVoided.draft({ kind: kind.kind, name })];
      });
      return claim.owner;
    }
    if (ms !== undefined) await pause(ms, undefined, { ref: true });
  }
  throw beingTaken(shown);
}

/** Releases a name that the owner of stream `owner` no longer has. A name that now has another owner is kept. */
export async function releaseName(
  commands: Commands,
  context: CommandContext,
  kind: Pick<NameKind<unknown>, 'kind'>,
  scope: NameScope,
  name: string,
  owner: string,
): Promise<void> {
  await commands.execute(nameDecider, streamOf(kind.kind, scope, name), context, (state) =>
    state.owner === owner ? [nameReleased.draft({ kind: kind.kind, name, owner })] : [],
  );
}
