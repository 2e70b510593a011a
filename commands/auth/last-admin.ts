/**
 * Every tenant that has an enabled admin keeps one, even when several processes remove admins at the same time.
 *
 * The rule spans the streams of several users, but an append changes only one. So a removal (deleting, disabling,
 * demoting or moving an admin) first takes a turn on the tenant's own stream (`adminRemovalBegun`). It takes the turn
 * at an exact revision, after the previous turn has ended and another enabled admin has been read from the log; that
 * admin cannot be removed without a turn either. Only then is the user's stream changed.
 *
 * A turn ends when its user is no longer an admin. If that does not happen, because the process died or the change was
 * refused, the next removal appends `adminRemovalVoided` to that user's stream: a late change then conflicts and has to
 * take another turn. Correctness does not depend on any clock; waiting only saves the slower process a repetition.
 */
import { conflict } from '../../shared/errors.ts';
import { adminRemovalBegun, adminRemovalVoided, adminsStream } from '../../shared/events/auth/last-admin.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { pause } from '../../shared/waiting.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { isAdminOf, type UserState, userDecider } from './users.ts';

/** How long to wait for another removal to finish, milliseconds. */
const TURN_WAIT_MS = 2_000;
/** How long all attempts to take a turn may last, milliseconds. */
const GIVE_UP_MS = 10_000;
/** Pause between checks whether another removal has finished, milliseconds. */
const LOOK_MS = 20;

/** Ids of a tenant's enabled admins according to the read model: candidates, to be checked against the log. */
export type AdminsOf = (tenant: number) => Promise<readonly number[]>;

interface TurnsState {
  readonly count: number;
  readonly last: { readonly user_id: number; readonly turn: number } | null;
}

export const turnsDecider = defineDecider<TurnsState>({
  kind: 'list of admins',
  initial: { count: 0, last: null },
  folds: [
    on(adminRemovalBegun, ({ count }, { data }) => ({
      count: count + 1,
      last: { user_id: data.user_id, turn: data.turn },
    })),
  ],
});

/** Whether the tenant of `state` loses an enabled admin by these events. */
export function removesAdmin(state: UserState, drafts: readonly EventDraft[]): boolean {
  const after = drafts.reduce((now, { type, data }) => userDecider.evolve(now, { type, data, at: 0 }), state);
  return isAdminOf(state, state.tenant) && !isAdminOf(after, state.tenant);
}

interface Turn {
  readonly tenant: number;
  /** `UserState.turns` when the turn was taken. */
  readonly turn: number;
}

class TurnNeeded extends Error {
  readonly tenant: number;
  constructor(tenant: number) {
    super(`a turn in tenant ${tenant} is needed`);
    this.tenant = tenant;
  }
}

class Overtaken extends Error {}

const busy = (cause: unknown) =>
  conflict('Other admins are being changed right now; try again.', { code: 'BUSY', cause });

/**
 * Runs a decision on a user. Every change that may remove an admin must use this function.
 *
 * @throws AppError 409 `LAST_ADMIN` when it would remove a tenant's last enabled admin, `BUSY` when no turn became
 *   free; whatever `decide` throws
 */
export async function changeUser(
  commands: Commands,
  context: CommandContext,
  admins: AdminsOf,
  userId: number,
  decide: (state: UserState) => readonly EventDraft[],
): Promise<Executed> {
  const step = context.step ?? 0;
  const deadline = Date.now() + GIVE_UP_MS;
  let held: Turn | undefined;
  for (;;) {
    // All tries are one step of the request.
    context.step = step;
    try {
      return await commands.execute(userDecider, userStream(userId), context, (state) => {
        const drafts = decide(state);
        const allowed = held?.tenant === state.tenant && held.turn === state.turns;
        if (!allowed && removesAdmin(state, drafts)) throw new TurnNeeded(state.tenant);
        return drafts;
      });
    } catch (error) {
      if (!(error instanceof TurnNeeded)) throw error;
      if (held && Date.now() > deadline) throw busy(error);
      // Without the request's intents: a repeated request must not reuse an old turn.
      held = await takeTurn(commands, { origin: context.origin }, admins, userId, error.tenant, deadline);
    }
  }
}

async function takeTurn(
  commands: Commands,
  context: CommandContext,
  admins: AdminsOf,
  userId: number,
  tenant: number,
  deadline: number,
): Promise<Turn> {
  const stream = adminsStream(tenant);
  for (;;) {
    const { state: seen } = await commands.load(turnsDecider, stream);
    if (seen.last) await settle(commands, context, tenant, seen.last);
    const { turns: turn } = (await commands.load(userDecider, userStream(userId))).state;
    await needAnotherAdmin(commands, admins, tenant, userId);
    try {
      await commands.execute(turnsDecider, stream, context, ({ count }) => {
        if (count !== seen.count) throw new Overtaken();
        return [adminRemovalBegun.draft({ tenant, user_id: userId, turn })];
      });
      return { tenant, turn };
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (Date.now() > deadline) throw busy(error);
    }
  }
}

/** Resolves when a turn has ended: its user is no longer an admin, or the turn has been voided. */
async function settle(
  commands: Commands,
  context: CommandContext,
  tenant: number,
  { user_id, turn }: { readonly user_id: number; readonly turn: number },
): Promise<void> {
  const stream = userStream(user_id);
  const isOpen = (state: UserState) => isAdminOf(state, tenant) && state.turns === turn;
  for (
    const deadline = Date.now() + TURN_WAIT_MS;
    Date.now() < deadline;
    await pause(LOOK_MS, undefined, { ref: true })
  ) {
    if (!isOpen((await commands.load(userDecider, stream)).state)) return;
  }
  await commands.execute(userDecider, stream, context, (state) =>
    isOpen(state) ? [adminRemovalVoided.draft({ user_id })] : [],
  );
}

/** @throws AppError 409 `LAST_ADMIN` when the log has no enabled admin of the tenant besides this user */
export async function needAnotherAdmin(
  commands: Commands,
  admins: AdminsOf,
  tenant: number,
  userId: number,
): Promise<void> {
  for (const other of await admins(tenant)) {
    if (other === userId) continue;
    const { state } = await commands.load(userDecider, userStream(other));
    if (isAdminOf(state, tenant)) return;
  }
  throw conflict('This is the last enabled admin; make another user an admin first.', { code: 'LAST_ADMIN' });
}
