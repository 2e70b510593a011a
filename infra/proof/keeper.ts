/**
 * Maintains the tree over the log: its own follower adds each event, in the one process that leads, and signs a
 * checkpoint soon after. A write never waits for it.
 */

import { UnknownPositionError } from '../../shared/errors.ts';
import { BEGINNING, type EventLog, type LoggedEvent } from '../../shared/ports/event-log.ts';
import { isStoreFault } from '../../shared/store-faults.ts';
import { createOutage, settledWithin } from '../../shared/waiting.ts';
import type { Config } from '../config.ts';
import type { Core } from '../core.ts';
import type { Database } from '../database/database.ts';
import { storeStuck, takeUpOrBegin } from '../following/checkpoints.ts';
import type { FollowerStatus, Subject } from '../following/follower.ts';
import { createGathering } from '../following/gathering.ts';
import type { Logger } from '../logging.ts';
import { AlteredLogError, signTree } from './checkpoints.ts';
import { type KeySettings, openSigner } from './keys.ts';
import { addLeaves, type Edge, isInLog, lastEntry, readEdge, TREE } from './tree.ts';

/** Events that arrive within this time are added together, milliseconds. */
const GATHER_MS = 200;
/** A checkpoint follows an event after a second, so that the events of one request are together; milliseconds. */
const SIGN_AFTER_MS = 1_000;
/** Minimum interval between two checkpoints, milliseconds. */
const SIGN_EVERY_MS = 30_000;
/** Time limit for the last checkpoint when closing, milliseconds. */
const CLOSING_MS = 2_000;

export interface KeeperOptions extends Pick<Core, 'database' | 'eventLog' | 'following' | 'log' | 'process'> {
  readonly config: KeySettings & Pick<Config, 'eventStoreUrl'>;
  /** Whether checkpoints are signed; otherwise the tree only grows. */
  readonly signs: boolean;
}

export interface Keeper {
  readonly status: FollowerStatus;
  /** Adds the gathered events at once, because a caller waits for them. */
  hurry(): void;
  close(): Promise<void>;
}

/** Adds events to the tree where this process becomes the leader. Returns at once. */
export function startKeeper(options: KeeperOptions): Keeper {
  const log = options.log.child({ follower: TREE });
  const signing = options.signs ? startSigning({ ...options, log }) : undefined;
  const gathering = createGathering(() => false, GATHER_MS);
  const subject = { ...growing({ ...options, log }, signing), gathering };
  const { status, close } = options.following.follow(subject, { by: 'one process', log });
  return {
    status,
    hurry: () => gathering.end(),
    async close() {
      await close();
      await signing?.close();
    },
  };
}

function growing({ database, eventLog, log, process, config }: KeeperOptions, signing: Signing | undefined): Subject {
  const { pool } = database;
  /** Undefined: must be read before the next event is added. */
  let edge: Edge | undefined;
  return {
    name: TREE,
    types: undefined,
    async begin() {
      signing?.behind();
      const checkpoint = await takeUpOrBegin(database, TREE, process, { label: 'tree over the log', first: BEGINNING });
      await checkSameLog(pool, eventLog).catch(async (error: unknown) => {
        // The follower does not know the generation yet, so it cannot record this itself.
        if (error instanceof UnknownPositionError) {
          const stuck = { position: error.position, reason: error.message };
          await storeStuck(database, TREE, checkpoint.generation, stuck);
        }
        throw error;
      });
      edge = await readEdge(pool);
      return checkpoint;
    },
    async apply(events, move) {
      if (config.eventStoreUrl !== undefined) await warnOfTwins(pool, log, events);
      edge = await addLeaves(pool, edge ?? (await readEdge(pool)), events, move);
      signing?.reached(edge.size);
    },
    // After a failed statement, it is unknown which events were added.
    forget() {
      edge = undefined;
    },
    isTransient: (error) => isStoreFault(error),
    stuck: (stuck, generation) => storeStuck(database, TREE, generation, stuck),
    rests: () => signing?.caughtUp(),
  };
}

/** @throws UnknownPositionError when the log is not the one of the tree, or was restored to an earlier state */
async function checkSameLog(pool: Database['pool'], eventLog: EventLog): Promise<void> {
  const last = await lastEntry(pool);
  if (last && !(await isInLog(eventLog, last))) throw new UnknownPositionError(last.position);
}

/**
 * An event store server keeps ids unique within a stream only. Ids are random, or derived from an Idempotency-Key: an
 * id in two streams is the fault of a program, and no other check finds it.
 */
async function warnOfTwins(pool: Database['pool'], log: Logger, events: readonly LoggedEvent[]): Promise<void> {
  const ids = events.map(({ id }) => id);
  const { rows } = await pool.query(
    'SELECT id FROM log.entries WHERE id = ANY($1::uuid[]) AND position <> ALL($2::bigint[])',
    [ids, events.map(({ position }) => position)],
  );
  const twins = new Set([
    ...(rows as { id: string }[]).map(({ id }) => id),
    ...ids.filter((id, n) => ids.indexOf(id) < n),
  ]);
  if (twins.size > 0) log.error({ ids: [...twins] }, 'events of several streams have the same id');
}

type Signing = ReturnType<typeof startSigning>;

/** Signs the tree at the start and when it has grown, at most once per `SIGN_EVERY_MS`. */
function startSigning({ database, config: settings, log }: Pick<KeeperOptions, 'database' | 'config' | 'log'>) {
  const { pool } = database;
  /** Undefined until the tree has caught up: only then is it known whether events were lost. */
  let size: number | undefined;
  let signedSize = -1;
  let signedAt = 0;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const outage = createOutage(
    log,
    'a checkpoint of the log could not be signed',
    'checkpoints of the log are signed again',
  );
  const isSigned = () => size === undefined || size <= signedSize;

  async function signNow(): Promise<void> {
    try {
      const signer = await openSigner(pool, settings, true);
      if (signer) signedSize = await signTree(pool, settings, signer);
      signedAt = Date.now();
      outage.worked();
    } catch (error) {
      outage.failed(error);
      // An altered log stays altered, so this size is not tried again.
      if (error instanceof AlteredLogError) signedSize = size ?? 0;
    }
  }

  function sign(): void {
    running ??= signNow().finally(() => {
      running = undefined;
      timer = undefined;
      schedule();
    });
  }

  function schedule(): void {
    if (timer || closed || isSigned()) return;
    timer = setTimeout(sign, Math.max(SIGN_AFTER_MS, signedAt + SIGN_EVERY_MS - Date.now()));
    timer.unref();
  }

  return {
    /** The tree may lack events of the log. */
    behind() {
      size = undefined;
      clearTimeout(timer);
      timer = undefined;
    },
    /** The tree has every event that the log had a moment ago. */
    caughtUp() {
      size ??= 0;
      schedule();
    },
    /** The tree has this many events. */
    reached(now: number) {
      if (size === undefined) return;
      size = now;
      schedule();
    },
    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      await running;
      if (isSigned()) return;
      sign();
      await settledWithin(CLOSING_MS, running ?? Promise.resolve());
    },
  };
}
