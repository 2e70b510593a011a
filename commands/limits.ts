/**
 * How many records of a kind a workspace may have, when each has a stream of its own. They are counted in the read model
 * and created under a lock, so that requests at the same time, through whichever process, cannot pass the limit together.
 */
import { conflict } from '../shared/errors.ts';
import type { EventDefinition } from '../shared/events/define.ts';
import type { Locks } from '../shared/ports/locks.ts';
import { atHead, type ReadModels } from '../shared/ports/read-models.ts';
import type { CommandContext } from './handler.ts';
import { hasReserved } from './reserve.ts';

export interface LimitParts {
  readonly locks: Locks;
  readonly readModels: ReadModels;
  /** How many the workspace has, according to the read model. */
  readonly count: (workspace: number) => Promise<number>;
}

export interface Limit {
  /** In the plural, as in the message. */
  readonly kind: string;
  readonly most: number;
  /** The event that adds one. */
  readonly added: Pick<EventDefinition, 'type'>;
}

/**
 * Creates a record, or `howMany`, unless the workspace has as many as it may. A request that is repeated after a crash has passed.
 *
 * @throws AppError 409 when it does; 503 when the read model is behind; what `create` throws
 */
export function withinLimit<T>(
  { locks, readModels, count }: LimitParts,
  { kind, most, added }: Limit,
  context: CommandContext,
  create: () => Promise<T>,
  howMany = 1,
): Promise<T> {
  if (hasReserved(context)) return create();
  const { workspace } = context.origin;
  return locks.holding(`${kind} of workspace ${workspace}`, async () => {
    // Also one whose creator has died, or no longer waits for it to be seen.
    await readModels.reach([added.type], atHead());
    if ((await count(workspace)) + howMany > most)
      throw conflict(`A workspace has at most ${most} ${kind}; delete some that are no longer needed.`);
    return create();
  });
}

/** Creates records of a kind within a limit (`withinLimit`). */
export type Room = <T>(context: CommandContext, create: () => Promise<T>, howMany?: number) => Promise<T>;

/** For records for which there is room: their number has been checked already. */
export const roomMade: Room = (_context, create) => create();

export const roomFor =
  (parts: LimitParts, limit: Limit): Room =>
  (context, create, howMany) =>
    withinLimit(parts, limit, context, create, howMany);
