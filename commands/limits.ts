/**
 * The limit of records of a kind in a workspace, where each has a stream of its own. Near the limit, records are
 * counted in the read model and created under a lock, so that concurrent requests, in any process, cannot exceed it
 * together. A workspace with room for more than `NEAR` creates them at once, based on a recent count: the lock and the
 * wait for the read model took most of the time of creating an agent.
 */
import { LRUCache } from 'lru-cache';
import { conflict } from '../shared/errors.ts';
import type { EventDefinition } from '../shared/events/define.ts';
import type { Locks } from '../shared/ports/locks.ts';
import { atHead, type ReadModels } from '../shared/ports/read-models.ts';
import type { CommandContext } from './handler.ts';
import { hasReserved } from './record-ids.ts';

export interface LimitParts {
  readonly locks: Locks;
  readonly readModels: ReadModels;
  /** How many the workspace has, according to the read model. */
  readonly count: (workspace: number) => Promise<number>;
  /** The same without waiting for the read model. */
  readonly countThere: (workspace: number) => Promise<number>;
  readonly recentCounts: RecentCounts;
}

/** More than all processes together create in `RECENT_MS`, and more than a served read model can lag behind. */
const NEAR = 1_000;
const RECENT_MS = 250;
/** Maximum number of cached counts per process; one per workspace and kind. */
const KEPT = 10_000;

/** Recent counts, and the number of records that this process has created since. One per process. */
export interface RecentCounts {
  /** Whether there is room for more than `NEAR`; if so, counts one more record. */
  hasRoom(name: string, most: number, count: () => Promise<number>): Promise<boolean>;
}

export function createRecentCounts(now: () => number): RecentCounts {
  const kept = new LRUCache<string, { readonly counted: Promise<number>; readonly at: number; created: number }>({
    max: KEPT,
  });
  return {
    async hasRoom(name, most, count) {
      if (most <= NEAR) return false;
      let known = kept.get(name);
      if (!known || now() - known.at > RECENT_MS) {
        const counting = { counted: count(), at: now(), created: 0 };
        kept.set(name, counting);
        counting.counted.catch(() => {
          if (kept.peek(name) === counting) kept.delete(name);
        });
        known = counting;
      }
      known.created++;
      return (await known.counted) + known.created + NEAR < most;
    },
  };
}

export interface Limit {
  /** In the plural, as in the message. */
  readonly kind: string;
  readonly most: number;
  /** The event that adds one. */
  readonly added: Pick<EventDefinition, 'type'>;
}

/**
 * Creates a record, or `howMany`, unless the workspace has reached its limit. A request that is repeated after a crash
 * has already passed the check.
 *
 * @throws AppError 409 at the limit; 503 when the read model lags behind; what `create` throws
 */
export async function withinLimit<T>(
  { locks, readModels, count, countThere, recentCounts }: LimitParts,
  { kind, most, added }: Limit,
  context: CommandContext,
  create: () => Promise<T>,
  howMany = 1,
): Promise<T> {
  if (hasReserved(context)) return create();
  const { workspace } = context.origin;
  const name = `${kind} of workspace ${workspace}`;
  if (await recentCounts.hasRoom(name, most, () => countThere(workspace))) return create();
  return locks.holding(name, async () => {
    // Includes records whose creator has died, or no longer waits for the read model.
    await readModels.reach([added.type], atHead());
    if ((await count(workspace)) + howMany > most)
      throw conflict(`A workspace has at most ${most} ${kind}; delete some that are no longer needed.`);
    return create();
  });
}

/** Creates records of a kind within a limit (`withinLimit`). */
export type Room = <T>(context: CommandContext, create: () => Promise<T>, howMany?: number) => Promise<T>;

/** For records whose limit has already been checked. */
export const roomMade: Room = (_context, create) => create();

export const roomFor =
  (parts: LimitParts, limit: Limit): Room =>
  (context, create, howMany) =>
    withinLimit(parts, limit, context, create, howMany);
