/**
 * The projections of a process: creates their tables, follows the log for those that no other process leads, and
 * reports the status of each.
 */
import { sql } from 'kysely';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { pause, settledWithin } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { createTakeUp, storeStuck, type TakeUp } from '../following/checkpoints.ts';
import type { FollowerStatus, Subject } from '../following/follower.ts';
import type { Following } from '../following/following.ts';
import type { Gathering } from '../following/gathering.ts';
import { LOCK_CLASS } from '../following/leadership.ts';
import type { Logger } from '../logging.ts';
import { applyBatch } from './batch.ts';
import { BatchWriter, type RowWrites } from './batch-writer.ts';
import type { ChangeTracker } from './change-tracker.ts';
import type { Positions } from './positions.ts';
import type { RowCaches } from './row-cache.ts';
import { createTables } from './tables.ts';

/** How often an embedded service checks whether a command-line tool has rebuilt a read model, milliseconds. */
const GENERATIONS_MS = 2_000;
/** How long closing waits for rows that have gathered, milliseconds. */
const SETTLING_MS = 1_000;

/** Creates the tables of every projection version that has none. Several processes may call it at once. */
export async function ensureTables(database: Database, projections: readonly Projection[]): Promise<void> {
  const { rows: known } = await database.pool.query('SELECT schema_name FROM service.checkpoints');
  const there = new Set((known as { schema_name: string }[]).map((row) => row.schema_name));
  for (const projection of projections) {
    const schema = schemaOf(projection);
    if (there.has(schema)) continue;
    await database.db.transaction().execute(async (trx) => {
      // Not the leader's key, which is held for as long as the process leads.
      await sql`SELECT pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(${`tables of ${schema}`}))`.execute(trx);
      const { rows } = await sql`SELECT 1 FROM service.checkpoints WHERE schema_name = ${schema}`.execute(trx);
      if (rows.length > 0) return;
      await createTables(trx, projection, schema);
      await sql`INSERT INTO service.checkpoints (schema_name, projection, version)
        VALUES (${schema}, ${projection.name}, ${projection.version})`.execute(trx);
    });
  }
}

export interface ProjectorOptions {
  readonly database: Database;
  readonly store: EventStore;
  readonly following: Following;
  readonly positions: Positions;
  readonly changes: ChangeTracker;
  readonly rows: RowCaches;
  /** Writes do not wait for rows, because all reads do: rows are then written in larger groups. */
  readonly gathering?: Gathering | undefined;
  /** Told of the rows that are on their way. */
  readonly rowWrites?: RowWrites;
  readonly log: Logger;
  /** Name of this process in `service.checkpoints.leader`. */
  readonly process: string;
}

export interface ProjectionStatus extends FollowerStatus {
  readonly projection: string;
  readonly version: number;
}

export interface Projector {
  /** One entry for each projection that this process leads or tries to lead. */
  readonly statuses: readonly ProjectionStatus[];
  close(): Promise<void>;
}

/** Runs the projections wherever this process becomes their leader. Returns at once. */
export function startProjector(projections: readonly Projection[], options: ProjectorOptions): Projector {
  const { database, following, positions } = options;
  const closing = new AbortController();
  const writer = new BatchWriter(database.db, options.rowWrites);
  const takeUp = createTakeUp(database, options.process);
  const unwatch = following.reader.watch((position) => positions.raise(position));
  const followed = projections.map((projection) => ({
    projection,
    ...following.follow(projecting(projection, writer, takeUp, options), {
      by: 'one process',
      log: options.log.child({ projection: projection.name }),
    }),
  }));
  // On a server, every reader sees the checkpoint's generation; on the embedded database, a rebuild by a command-line
  // tool has to be detected.
  const watching = database.kind === 'embedded' ? watchGenerations(options, closing.signal) : undefined;
  return {
    get statuses() {
      return followed.map(({ projection, status }) => ({
        projection: projection.name,
        version: projection.version,
        position: status.position,
        caughtUp: status.caughtUp,
        stuck: status.stuck,
        applied: status.applied,
        since: status.since,
      }));
    },
    async close() {
      // So that the next start has little to read. It does not need a database that has failed to come back.
      await settledWithin(SETTLING_MS, positions.settled() ?? Promise.resolve()).catch(() => undefined);
      closing.abort();
      await watching;
      await Promise.all(followed.map((one) => one.close()));
      unwatch();
    },
  };
}

/** Adapts a projection to the follower: batches become rows, written in one statement with the checkpoint. */
function projecting(
  projection: Projection,
  writer: BatchWriter,
  takeUp: TakeUp,
  { database, store, positions, changes, rows, gathering }: ProjectorOptions,
): Subject {
  const schema = schemaOf(projection);
  const cache = rows.of(schema);
  const notify = database.kind === 'server';
  return {
    name: schema,
    types: projection.handles,
    ...(projection.weigh && { weigh: projection.weigh }),
    gathering,
    async begin() {
      cache.clear();
      const checkpoint = await takeUp(schema);
      changes.reset(schema);
      return checkpoint;
    },
    async apply(logged, { generation, from, to }) {
      const events: DomainEvent[] = [];
      for (const event of logged) {
        const decoded = store.decode(event);
        events.push(decoded instanceof Promise ? await decoded : decoded);
      }
      const move = { schema, generation, from, to, at: Date.now(), notify };
      const changed = await applyBatch(writer, projection, events, move, cache);
      if (changed) for (const { meta } of events) changes.record(schema, meta.workspace, to);
    },
    forget: () => cache.clear(),
    isTransient: (error) => isConnectionFailure(error as Error),
    stuck(stuck, generation) {
      positions.stuck(schema);
      return storeStuck(database, schema, generation, stuck);
    },
    ...(gathering && { received: (events) => positions.owe(schema, events) }),
    keepsUp: (keepsUp) => positions.gathers(schema, keepsUp ? gathering : undefined),
    reached: (position) => positions.advance(schema, position),
    rests: (resting) => positions.rest(schema, resting),
  };
}

/** Detects swapped tables, so that nothing cached from the old ones is used any more. */
async function watchGenerations(
  { database, changes, rows, log }: ProjectorOptions,
  signal: AbortSignal,
): Promise<void> {
  const known = new Map<string, number>();
  while (!signal.aborted) {
    try {
      const stored = await database.pool.query('SELECT schema_name, generation FROM service.checkpoints');
      for (const { schema_name: schema, generation } of stored.rows as { schema_name: string; generation: number }[]) {
        if (known.has(schema) && known.get(schema) !== generation) {
          rows.of(schema).clear();
          changes.reset(schema);
        }
        known.set(schema, generation);
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the generations of read models could not be read');
    }
    await pause(GENERATIONS_MS, signal);
  }
}
