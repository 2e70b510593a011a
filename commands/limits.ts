/**
 * How many records of a kind a workspace may have, when each has a stream of its own. They are counted in the read model
 * and created under a lock, so that requests at the same time, through whichever process, cannot pass the limit together.
 */
import { conflict } from '../shared/errors.ts';
import type { EventDefinition } from '../shared/events/define.ts';
import type { EventLog } from '../shared/ports/event-log.ts';
import type { Locks } from '../shared/ports/locks.ts';
import type { ReadModels } from '../shared/ports/read-models.ts';

export interface LimitParts {
  readonly locks: Locks;
  readonly log: Pick<EventLog, 'head'>;
  readonly readModels: Pick<ReadModels, 'visible'>;
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
 * Creates a record, unless the workspace has as many as it may.
 *
 * @throws AppError 409 when it does; 503 when the read model is behind; what `create` throws
 */
export function withinLimit<T>(
  { locks, log, readModels, count }: LimitParts,
  { kind, most, added }: Limit,
  workspace: number,
  create: () => Promise<T>,
): Promise<T> {
  return locks.holding(`${kind} of workspace ${workspace}`, async () => {
    // Also one whose creator has died, or no longer waits for it to be seen.
    await readModels.visible([added.type], await log.head());
    if ((await count(workspace)) >= most)
      throw conflict(`A workspace has at most ${most} ${kind}; delete some that are no longer needed.`);
    return create();
  });
}
