/**
 * Unique names under concurrent writers of several processes.
 *
 * A name is a stream of its own; whoever appends its claim to it first has the name. The owner's stream changes after
 * that, in an append of its own, because no append spans two streams. A claim is void when its owner does not hold the
 * name: at once if the owner never can (because it was deleted), and after `ABANDONED_AFTER_MS` if the process may have
 * died between the two appends. Before such a claim is taken over, `nameClaimVoided` is appended to the old owner's
 * stream: if the old owner is merely slow, its second append conflicts with that and starts over.
 */
import { AppError, conflict } from '../shared/errors.ts';
import { nameClaimed, nameClaimVoided, nameReleased } from '../shared/events/claims.ts';
import { type Decider, defineDecider, on } from './decider.ts';
import type { CommandContext, Commands } from './handler.ts';

/** Longer than any request lives, milliseconds. */
export const ABANDONED_AFTER_MS = 30_000;

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

/** A kind of unique name: agent names, user names, session keys. */
export interface NameKind<OwnerState> {
  /** Part of the stream name: `agent_name`. */
  readonly kind: string;
  readonly owner: Decider<OwnerState>;
  /** `yes`: the owner has this name; `never`: it never will (again); `not yet`: it may be about to. */
  holds(state: OwnerState, name: string): 'yes' | 'never' | 'not yet';
  /** The 409 message. */
  taken(name: string): string;
  /** @throws AppError 400 for a name that nobody may take */
  refuse?(name: string): void;
}

/** Code of a refusal because somebody else has the name. */
export const NAME_TAKEN = 'NAME_TAKEN';
const taken = <OwnerState>(kind: NameKind<OwnerState>, name: string) =>
  conflict(kind.taken(name), { code: NAME_TAKEN });

const streamOf = (kind: string, scope: string | number, name: string) => `${kind}-${scope}-${encodeURIComponent(name)}`;

/**
 * Claims `name` for the owner of stream `owner`. Claiming a name that the owner already has is fine.
 *
 * @param scope within which the name is unique: a workspace id, or `all`
 * @throws AppError 409 when somebody else has it
 */
export async function claimName<OwnerState>(
  commands: Commands,
  context: CommandContext,
  kind: NameKind<OwnerState>,
  scope: string | number,
  name: string,
  owner: string,
): Promise<void> {
  const stream = streamOf(kind.kind, scope, name);
  const claim = (voided: string | undefined, options = {}) =>
    commands.execute(
      nameDecider,
      stream,
      context,
      (current) => {
        if (current.owner === owner) return [];
        if (current.owner !== undefined && current.owner !== voided) throw taken(kind, name);
        return [nameClaimed.draft({ kind: kind.kind, name, owner })];
      },
      options,
    );
  try {
    // Most names are new.
    await claim(undefined, { fresh: true });
  } catch (error) {
    if (!isTaken(error)) throw error;
    const { state } = await commands.load(nameDecider, stream);
    if (state.owner !== undefined && state.owner !== owner)
      await voidClaim(commands, context, kind, name, state.owner, state.claimedAt);
    await claim(state.owner);
  }
}

/** Stream of whoever has claimed a name, whether or not it holds it yet; undefined when nobody has. */
export async function claimantOf(
  commands: Commands,
  kind: Pick<NameKind<unknown>, 'kind'>,
  scope: string | number,
  name: string,
): Promise<string | undefined> {
  return (await commands.load(nameDecider, streamOf(kind.kind, scope, name))).state.owner;
}

/** A name is refused because somebody else has it. */
export const isTaken = (error: unknown): boolean => error instanceof AppError && error.extras.code === NAME_TAKEN;

/** Makes sure that `owner` can no longer get `name`. @throws AppError 409 when it has it or still may get it */
async function voidClaim<OwnerState>(
  commands: Commands,
  context: CommandContext,
  kind: NameKind<OwnerState>,
  name: string,
  owner: string,
  claimedAt: number,
): Promise<void> {
  const held = await commands.load(kind.owner, owner);
  const answer = kind.holds(held.state, name);
  if (answer === 'never') return;
  if (answer === 'yes' || Date.now() - claimedAt < ABANDONED_AFTER_MS) throw taken(kind, name);
  await commands.execute(kind.owner, owner, context, (state) => {
    if (kind.holds(state, name) === 'yes') throw taken(kind, name);
    return [nameClaimVoided.draft({ kind: kind.kind, name })];
  });
}

/**
 * Frees a name that the owner of stream `owner` no longer has. A name that now belongs to somebody else stays theirs.
 */
export async function releaseName(
  commands: Commands,
  context: CommandContext,
  kind: Pick<NameKind<unknown>, 'kind'>,
  scope: string | number,
  name: string,
  owner: string,
): Promise<void> {
  await commands.execute(nameDecider, streamOf(kind.kind, scope, name), context, (state) =>
    state.owner === owner ? [nameReleased.draft({ kind: kind.kind, name, owner })] : [],
  );
}
