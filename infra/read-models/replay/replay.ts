/**
 * Folds the log through the projections of this program, into tables next to the live ones (`<schema>_replay`), and
 * compares both at every position. The log and the live tables do not change. The tables of the replay are dropped at
 * its end, or, if it was killed, by the next one.
 */
import { sql } from 'kysely';
import { type Projection, schemaOf, type Table } from '../../../projections/projection.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { Database } from '../../database/database.ts';
import { LOCK_CLASS } from '../../following/leadership.ts';
import { Building, replayerOf, replayOf } from '../rebuild/building.ts';
import { isRunning } from '../rebuild/bulk.ts';
import { openSessions, type RebuildOptions, type RebuildStores, type Sessions } from '../rebuild/plan.ts';
import { planBuild } from '../rebuild/rebuild.ts';
import { dropBuilt } from '../rebuild/switching.ts';
import { dropUnused } from '../tables.ts';
import { columnsOf, compareTable, liveTables, type TableColumns, type TableDifferences } from './comparing.ts';

export interface ReplayOptions extends Pick<RebuildOptions, 'onProgress' | 'signal'> {
  /** Differences before this position are ignored. Default: the start of the history of the live tables. */
  readonly from?: Position | undefined;
  /** Where the replay ends. Default: the position of the live tables. */
  readonly until?: Position | undefined;
  /** Maximum number of examples per table; default 5. */
  readonly examples?: number;
  /** Versions of rows that one statement compares; default 50,000 on the embedded database, all on a server. */
  readonly part?: number;
}

/** A statement on the embedded database blocks all others. */
const PART = 50_000;

/** A table of either side. */
export interface TableReplay {
  readonly table: string;
  readonly columns: Pick<TableColumns, 'onlyLive' | 'onlyReplayed'>;
  /** Undefined: the tables were not compared. */
  readonly differences: TableDifferences | undefined;
  /** Why they were not compared. */
  readonly reason?: 'only live' | 'only in the replay' | 'another key';
}

export interface ProjectionReplay {
  readonly projection: string;
  /** The schema of the live tables, and that of this program. */
  readonly live: string;
  readonly replayed: string;
  readonly from: Position;
  readonly until: Position;
  readonly tables: readonly TableReplay[];
}

/** The tables that the deployment serves: those of the version that is furthest ahead. */
interface Served {
  readonly schema: string;
  readonly position: Position;
  readonly generation: number;
  /** Null: there is no past. */
  readonly since: Position | null;
}

interface Replayed {
  readonly projection: Projection;
  readonly served: Served;
  readonly from: Position;
  readonly until: Position;
}

/** Whether a table differs from the log. */
export const differs = ({ columns, differences }: TableReplay): boolean =>
  columns.onlyLive.length + columns.onlyReplayed.length > 0 || differences === undefined || differences.first !== null;

/**
 * @throws Error when there is nothing to compare with, a position is out of range, another replay is running, or the
 *   projection throws: the message names the event
 */
export async function replayProjections(
  stores: RebuildStores,
  projections: readonly Projection[],
  options: ReplayOptions = {},
): Promise<ProjectionReplay[]> {
  const { database } = stores;
  const wanted: Replayed[] = [];
  for (const projection of projections) wanted.push(await rangeOf(database, projection, options));
  const sessions = await openSessions(stores, 1);
  try {
    await dropAbandoned(database, sessions);
    const build = await planBuild(stores, sessions, projections.length, {
      check: true,
      fresh: true,
      history: true,
      replay: true,
      signal: options.signal,
      onProgress: options.onProgress,
    });
    const opened: { readonly building: Building; readonly one: Replayed }[] = [];
    try {
      for (const one of wanted) {
        const building = await Building.open(build, explaining(one.projection));
        building.target = one.until;
        opened.push({ building, one });
      }
      await build.feed(opened.map(({ building }) => building));
      const reports: ProjectionReplay[] = [];
      for (const { building, one } of opened) {
        building.tell('indexing');
        await building.index();
        building.tell('comparing');
        options.signal?.throwIfAborted();
        reports.push(
          await compare(sessions, one, database, {
            examples: options.examples ?? 5,
            part: options.part ?? (database.kind === 'embedded' ? PART : Number.POSITIVE_INFINITY),
          }),
        );
      }
      return reports;
    } finally {
      for (const { building } of opened) await dropBuilt(building);
    }
  } finally {
    await sessions.close();
  }
}

async function servedBy({ db }: Database, { name }: Projection): Promise<Served> {
  const { rows } = await sql<Served>`
    SELECT schema_name AS schema, position, generation, CASE WHEN history_to = position THEN history_from END AS since
    FROM service.checkpoints WHERE projection = ${name} AND schema_name = projection || '_v' || version
    ORDER BY position DESC, version DESC LIMIT 1`.execute(db);
  if (!rows[0]) throw new Error(`the deployment has no read model ${name} to compare with`);
  return rows[0];
}

async function rangeOf(database: Database, projection: Projection, options: ReplayOptions): Promise<Replayed> {
  const served = await servedBy(database, projection);
  const { schema, position, since } = served;
  if (since === null)
    throw new Error(`${schema} has no past to compare with; run: signalbox rebuild --history ${projection.name}`);
  const { from = since, until = position } = options;
  if (until > position) throw new Error(`--until: must be at most ${position}, the position of ${schema}`);
  if (from > until) throw new Error('--from must not be after the end');
  if (from < since)
    throw new Error(
      `--from: the past of ${schema} goes back to position ${since} only; to fill it from the log, run: signalbox rebuild --history ${projection.name}`,
    );
  return { projection, served, from, until };
}

/** The projection, with errors that name the event. */
function explaining(projection: Projection): Projection {
  const at = <T>(event: DomainEvent, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(
        `${projection.name} cannot apply ${event.type} at position ${event.position} (${event.id}): ${reason}`,
        { cause: error },
      );
    }
  };
  return {
    ...projection,
    project: (event) =>
      at(event, () => projection.project(event)).map((change) => ({
        ...change,
        apply: (row: unknown) => at(event, () => change.apply(row)),
      })),
  };
}

/** Drops tables of killed replays. @throws Error when another replay is running */
async function dropAbandoned(database: Database, sessions: Sessions): Promise<void> {
  const running = new Error('another replay is running; wait until it has ended');
  await sessions.use(async ({ db }) => {
    if (database.kind === 'server') {
      // This session holds the lock until its end.
      const { rows } = await sql<{ taken: boolean }>`
        SELECT pg_try_advisory_lock(${LOCK_CLASS}, hashtext('replay')) AS taken`.execute(db);
      if (!rows[0]?.taken) throw running;
    }
    const { rows } = await sql<{ schema: string; leader: string }>`
      SELECT schema_name AS schema, leader FROM service.checkpoints WHERE leader LIKE ${replayerOf('%')}`.execute(db);
    for (const { schema, leader } of rows) {
      // The processes that share an embedded database are on one machine; one that does not share it is alone.
      if (database.attached && isOther(Number(/\d+$/.exec(leader)?.[0]))) throw running;
      await db.transaction().execute((trx) => dropUnused(trx, schema));
    }
  });
}

const isOther = (pid: number): boolean => pid !== process.pid && isRunning(pid);

async function compare(
  sessions: Sessions,
  { projection, served, from, until }: Replayed,
  database: Database,
  options: Required<Pick<ReplayOptions, 'examples' | 'part'>>,
): Promise<ProjectionReplay> {
  const sides = { projection, live: served.schema, replayed: replayOf(schemaOf(projection)), from, until };
  const there = await sessions.use(({ db }) => liveTables(db, served.schema));
  const tables: TableReplay[] = [];
  for (const table of projection.tables as readonly Table[]) {
    const live = there.get(table.name);
    if (!live) {
      tables.push(apart(table.name, 'only in the replay'));
      continue;
    }
    tables.push(
      await sessions.use(async ({ db }) => {
        const columns = await columnsOf(db, served.schema, table, live);
        if (columns.key.toSorted().join() !== table.key.toSorted().join())
          return { table: table.name, columns, differences: undefined, reason: 'another key' as const };
        const differences = await compareTable(db, sides, table, columns.both, options);
        return { table: table.name, columns, differences };
      }),
    );
  }
  const mine = new Set(projection.tables.map(({ name }) => name));
  for (const name of there.keys()) if (!mine.has(name)) tables.push(apart(name, 'only live'));
  const now = await servedBy(database, projection);
  if (now.schema !== served.schema || now.generation !== served.generation || now.since !== served.since)
    throw new Error(`${served.schema} was rebuilt or replaced meanwhile; run the command again`);
  return { projection: projection.name, live: served.schema, replayed: schemaOf(projection), from, until, tables };
}

const apart = (table: string, reason: TableReplay['reason'] & string): TableReplay => ({
  table,
  columns: { onlyLive: [], onlyReplayed: [] },
  differences: undefined,
  reason,
});
