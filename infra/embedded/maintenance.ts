/**
 * Maintenance of the embedded database, which PGlite does not do by itself: without checkpoints the write-ahead log would
 * grow for ever, without vacuum the tables would, and after two billion transactions PostgreSQL would refuse to write.
 */
import type { PGlite } from '@electric-sql/pglite';
import type { Session } from './session.ts';

/**
 * How much WAL is written before the next checkpoint, bytes: one that stops all statements for 200 to 500 ms. It waits until
 * the database is idle, but not for longer than `most`. More means a slower recovery.
 */
const CHECKPOINT_WAL_BYTES = { idle: 64 * 1024 * 1024, most: 256 * 1024 * 1024 };
/** Longest time between checkpoints if anything was written, milliseconds. */
const CHECKPOINT_MS = 5 * 60_000;
const LOOK_MS = 1000;
/** Maintenance waits until the database has been idle for this long, milliseconds … */
const IDLE_MS = 200;
/** … but not longer than this. */
const VACUUM_MAX_WAIT_MS = 5 * 60_000;
/**
 * How often tables are checked for growth, milliseconds. One that has doubled is analysed at once: prepared statements
 * keep the plan for the small table until then. Changed rows do not count, because analysing the table of tasks every few
 * seconds made changes of tasks an eighth slower.
 */
const GROWTH_LOOK_MS = 5_000;
/** Autovacuum's threshold for an analysis: changed rows. */
const CHANGED = 'pg_stat_get_mod_since_analyze(c.oid) > 50 + 0.1 * greatest(c.reltuples, 0)';
/** Twice as many blocks as at the last analysis. A table with fewer new rows is read quickly with any plan. */
const GROWN = `pg_stat_get_mod_since_analyze(c.oid) > 1000
  AND pg_relation_size(c.oid) > 2 * greatest(c.relpages, 1) * current_setting('block_size')::bigint`;
/**
 * Above this size, ANALYZE takes a sample of 7,500 rows instead of 30,000, because half a second is too long a pause.
 */
const LARGE_TABLE_BYTES = 8 * 1024 * 1024;

export type LogLevel = 'info' | 'warn' | 'error';
type Note = (level: LogLevel, message: string) => void;

export interface Maintenance {
  stop(): void;
}

/** @param vacuumLookMs how often tables are checked for dead rows and stale statistics, milliseconds */
export async function maintain(
  pglite: PGlite,
  session: Session,
  vacuumLookMs: number,
  note: Note,
): Promise<Maintenance> {
  let checkpointAt = performance.now();
  let checkpointPosition = await walPosition(pglite);
  let written = 0;
  let batchesSeen = -1;
  let vacuumLookAt = performance.now();
  let vacuumBatches = 0;
  let dueSince = 0;
  const due: string[] = [];
  let growthLookAt = performance.now();
  let growthBatches = 0;
  const growthLookMs = Math.min(GROWTH_LOOK_MS, vacuumLookMs);

  async function look(): Promise<void> {
    const now = performance.now();
    if (session.batches() !== batchesSeen) {
      batchesSeen = session.batches();
      written = (await session.exclusive(() => walPosition(pglite))) - checkpointPosition;
    }
    const isIdle = session.idleMs() >= IDLE_MS;
    const isDue =
      written >= (isIdle ? CHECKPOINT_WAL_BYTES.idle : CHECKPOINT_WAL_BYTES.most) ||
      (written > 0 && now - checkpointAt >= CHECKPOINT_MS);
    if (isDue) {
      await session.exclusive(async () => {
        await pglite.exec('CHECKPOINT');
        checkpointPosition = await walPosition(pglite);
      });
      checkpointAt = performance.now();
      written = 0;
    }
    if (now - growthLookAt >= growthLookMs && session.batches() !== growthBatches) {
      growthLookAt = now;
      growthBatches = session.batches();
      for (const statement of await session.exclusive(() => analysesDue(pglite, GROWN)))
        await session.exclusive(() => attempt(pglite, statement, note));
    }
    if (due.length === 0 && now - vacuumLookAt >= vacuumLookMs && session.batches() !== vacuumBatches) {
      vacuumLookAt = now;
      vacuumBatches = session.batches();
      due.push(...(await session.exclusive(() => vacuumsDue(pglite))));
      due.push(...(await session.exclusive(() => analysesDue(pglite, CHANGED))));
      dueSince = now;
    }
    if (due.length > 0 && (session.idleMs() >= IDLE_MS || now - dueSince >= VACUUM_MAX_WAIT_MS)) {
      const statement = due.shift();
      if (statement !== undefined) await session.exclusive(() => attempt(pglite, statement, note));
    }
  }

  let running = false;
  let stopped = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    look()
      .catch((error: unknown) => {
        // Errors after the stop do not matter.
        if (!stopped) note('error', `maintenance failed: ${String(error)}`);
      })
      .finally(() => {
        running = false;
      });
  }, LOOK_MS);
  timer.unref();
  return {
    stop: () => {
      stopped = true;
      clearInterval(timer);
    },
  };
}

/** The current position in the write-ahead log, bytes. */
async function walPosition(pglite: PGlite): Promise<number> {
  const [result] = await pglite.exec('SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const [high, low] = String(result?.rows[0]?.lsn).split('/');
  return Number.parseInt(high ?? '', 16) * 2 ** 32 + Number.parseInt(low ?? '', 16);
}

/**
 * Vacuums of the tables that need them: one per table, so that each pause is short, and small tables first. For dead
 * rows, autovacuum's threshold of a fifth of the table applies, because removing them reads every index in full. For
 * inserted rows, a fixed number does, because such a vacuum reads only the new pages, so running it often costs no more.
 */
async function vacuumsDue(pglite: PGlite): Promise<string[]> {
  const tables = await tablesWhere(
    pglite,
    `pg_stat_get_dead_tuples(c.oid) > 50 + 0.2 * greatest(c.reltuples, 0)
       OR pg_stat_get_ins_since_vacuum(c.oid) > 20000 OR age(c.relfrozenxid) > 200000000`,
  );
  return tables.map(({ name }) => `VACUUM (TRUNCATE false, PROCESS_TOAST false) ${name}`);
}

/** Analyses of the tables for which a condition on `c` holds. */
async function analysesDue(pglite: PGlite, condition: string): Promise<string[]> {
  const tables = await tablesWhere(pglite, `${condition} AND c.relkind <> 't'`);
  return tables.map(({ name, large }) => `SET LOCAL default_statistics_target = ${large ? 25 : 100}; ANALYZE ${name}`);
}

/** Tables for which a condition on `c`, their row of `pg_class`, holds; small ones first. */
async function tablesWhere(pglite: PGlite, condition: string): Promise<{ name: string; large: boolean }[]> {
  await pglite.exec('SELECT pg_stat_force_next_flush()');
  const [result] = await pglite.exec(
    `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name,
        pg_relation_size(c.oid) > ${LARGE_TABLE_BYTES} AS large
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't' AND (${condition})
      ORDER BY c.relpages`,
  );
  return (result?.rows ?? []) as { name: string; large: boolean }[];
}

async function attempt(pglite: PGlite, statement: string, note: Note): Promise<void> {
  const begin = performance.now();
  try {
    await pglite.exec(statement);
  } catch (error) {
    // The table may have been dropped.
    note('warn', `${statement}: ${String(error)}`);
  }
  const ms = Math.round(performance.now() - begin);
  if (ms > 250) note('info', `${statement} took ${ms} ms, during which no other query could run`);
}
