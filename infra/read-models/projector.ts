/**
 * The projections of a process: creates their tables, follows the log for those that no other process leads, and
 * reports the status of each.
 */

import { sql } from 'kysely';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { activeTracer, type SpanOptions, traced } from '../../shared/ports/tracing.ts';
import { isStoreFault } from '../../shared/store-faults.ts';
import type { AnyDatabase, Database } from '../database/database.ts';
import { createTakeUp, storeStuck, type TakeUp } from '../following/checkpoints.ts';
import type { FollowerStatus, Subject } from '../following/follower.ts';
import type { Following } from '../following/following.ts';
import type { Gathering } from '../following/gathering.ts';
import type { Logger } from '../logging.ts';
import { applyBatch } from './batch.ts';
import { BatchWriter, type RowWrites } from './batch-writer.ts';
import type { ChangeTracker } from './change-tracker.ts';
import type { Positions } from './positions.ts';
import type { RowCaches } from './row-cache.ts';
import { createTables } from './tables.ts';

/** The projections whose version has no tables. */
export async function withoutTables(
  db: AnyDatabase,
  projections: readonly Projection[],
): Promise<readonly Projection[]> {
  const { rows } = await sql<{ schema: string }>`SELECT schema_name AS schema FROM service.checkpoints`.execute(db);
  const there = new Set(rows.map(({ schema }) => schema));
  return projections.filter((projection) => !there.has(schemaOf(projection)));
}

/** Creates the tables of every projection version that has none. One process at a time (`makingTables`). */
export async function ensureTables({ db }: Pick<Database, 'db'>, projections: readonly Projection[]): Promise<void> {
  for (const projection of await withoutTables(db, projections)) {
    const schema = schemaOf(projection);
    await db.transaction().execute(async (trx) => {
      // A command that is attached to a starting service may have created them meanwhile.
      if ((await withoutTables(trx, [projection])).length === 0) return;
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
  readonly log: Logger;
  /** Name of this process in `service.checkpoints.leader`. */
  readonly process: string;
}

/** For a process that responses requests. */
export interface ProjectorTuning {
  /** Lets rows gather until a read waits for them. */
  readonly gathering?: Gathering | undefined;
  /** Records the row writes in flight, so that appends wait for them. */
  readonly rowWrites?: RowWrites;
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

/** Runs the projections for which this process becomes the leader. Returns at once. */
export function startProjector(
  projections: readonly Projection[],
  options: ProjectorOptions,
  { gathering, rowWrites }: ProjectorTuning = {},
): Projector {
  const { database, following, changes, rows } = options;
  const writer = new BatchWriter(database.db, rowWrites);
  const takeUp = createTakeUp(database, options.process);
  const followed = projections.map((projection) => ({
    projection,
    ...following.follow(projecting(projection, writer, takeUp, gathering, options), {
      by: 'one process',
      log: options.log.child({ projection: projection.name }),
    }),
  }));
  const unwatch = database.onLoss(() => {
    for (const one of followed) one.restart(new Error('the database has lost rows that it had written'));
  });
  // Discards everything cached from the old tables.
  const ignoreSwaps = database.onSwap?.((schema) => {
    rows.of(schema).clear();
    changes.reset(schema);
  });
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
      ignoreSwaps?.();
      await Promise.all(followed.map((one) => one.close()));
      unwatch();
    },
  };
}

/** Maximum number of traces to which the span of a batch links. */
const MAX_LINKS = 32;

/** The span of a batch continues the trace of its first event that has one, and links to the others. */
function spanOf(events: readonly DomainEvent[]): SpanOptions {
  const [parent, ...links] = new Set(events.flatMap(({ meta }) => meta.traceparent ?? []));
  const attributes = { 'signalbox.events': events.length, 'signalbox.position': events.at(-1)?.position ?? 0 };
  return { parent, links: links.slice(0, MAX_LINKS), attributes };
}

/** Adapts a projection to the follower: batches become rows, written in one statement with the checkpoint. */
function projecting(
  projection: Projection,
  writer: BatchWriter,
  takeUp: TakeUp,
  gathering: Gathering | undefined,
  { database, store, positions, changes, rows }: ProjectorOptions,
): Subject {
  const schema = schemaOf(projection);
  const cache = rows.of(schema);
  const notify = database.kind === 'server';
  /** `Database.losses` at its start: positions reached since then become invalid after the next loss. */
  let losses = 0;
  return {
    name: schema,
    types: projection.handles,
    ...(projection.wants && { wants: projection.wants }),
    ...(projection.weigh && { weigh: projection.weigh }),
    gathering,
    async begin() {
      cache.clear();
      losses = database.losses;
      const checkpoint = await takeUp(schema);
      changes.reset(schema, checkpoint.position);
      return checkpoint;
    },
    async apply(logged, { generation, from, to }) {
      const events: DomainEvent[] = [];
      for (const event of logged) {
        const decoded = store.decode(event);
        events.push(decoded instanceof Promise ? await decoded : decoded);
      }
      const move = { schema, generation, from, to, at: Date.now(), notify };
      const write = () => applyBatch(writer, projection, events, move, cache);
      changes.begin(schema);
      const { changed, concerned } = await (activeTracer()
        ? traced(`project ${projection.name}`, spanOf(events), write)
        : write());
      for (const one of concerned) changes.concerns.record(`${schema}.${one.table}`, one.workspace, one.concerned, to);
      if (changed) for (const { meta } of events) changes.record(schema, meta.workspace, to);
      changes.end(schema);
    },
    forget: () => cache.clear(),
    isTransient: (error) => isStoreFault(error),
    stuck: (stuck, generation) => storeStuck(database, schema, generation, stuck),
    reached(position) {
      if (losses === database.losses) positions.advance(schema, position);
    },
  };
}
