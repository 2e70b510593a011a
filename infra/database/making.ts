/**
 * Creating and migrating tables: one process at a time, while the others wait. Both may exceed the time-out for
 * statements, so they use a connection of their own without a time-out.
 */
import type pg from 'pg';
import { createBackOff, pause } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import type { AnyDatabase, Database } from './database.ts';
import { kyselyOn } from './kysely.ts';
import { endInTime, inTime } from './session.ts';
import { waitForStore } from './wait.ts';

/** The lock key of Kysely's migrator, which takes it again: programs that use only that migrator wait as well. */
export const TABLES_LOCK = '3853314791062309107';
/** How long a statement waits for a table that another connection has locked, and the pause after that, milliseconds. */
const LOCK_MS = 2_000;
const BACK_OFF = { firstMs: 20, lastMs: 500, spread: true };

/** The connection that holds the lock. `pg_locks` shows a bigint as two numbers. */
const HOLDER = `SELECT pid, application_name AS name, host(client_addr) AS address
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) + objid::bigint = ${TABLES_LOCK} AND objsubid = 1`;

/**
 * Runs `make` while no other process creates tables. It determines itself what is left to do.
 *
 * @param options.deadline how long to wait for another process, Unix ms
 * @throws Error that names the connection of the other process when the deadline passes
 */
export async function makingTables(
  database: Pick<Database, 'kind' | 'connect' | 'db'>,
  { deadline, log }: { readonly deadline: number; readonly log: Logger },
  make: (db: AnyDatabase) => Promise<void>,
): Promise<void> {
  // One session: its transactions exclude each other.
  if (database.kind === 'embedded') return make(database.db);
  const own = await waitForStore('the database', () => database.connect('tables'), deadline, log);
  try {
    await own.query(inTime(`SET statement_timeout = 0; SET lock_timeout = ${LOCK_MS}`));
    await takeLock(own, deadline, log);
    await makeUnlessLocked(() => make(kyselyOn(own)), deadline, log);
  } finally {
    // The lock ends with the connection.
    await endInTime(own);
  }
}

/** Repeats `make` while a table is locked: a statement that waited longer would hold up everyone behind it. */
async function makeUnlessLocked(make: () => Promise<void>, deadline: number, log: Logger): Promise<void> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if (!isLockTimeout(error) || Date.now() > deadline) throw error;
      log.warn({ err: error }, 'a table is locked by another connection; trying again');
      await pause(LOCK_MS, undefined, { ref: true });
    }
  }
}

const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && ((error as { code?: string }).code === '55P03' || isLockTimeout(error.cause));

async function takeLock(client: pg.Client, deadline: number, log: Logger): Promise<void> {
  const backOff = createBackOff(BACK_OFF);
  const begun = Date.now();
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await client.query(inTime(`SELECT pg_try_advisory_lock(${TABLES_LOCK}) AS taken`));
    if (rows[0].taken) return;
    if (isFirst) log.info('waiting for another process, which makes or migrates the tables');
    const waitMs = backOff.next();
    if (Date.now() + waitMs > deadline) throw await tooLate(client, Date.now() - begun);
    await pause(waitMs, undefined, { ref: true });
  }
}

async function tooLate(client: pg.Client, waitedMs: number): Promise<Error> {
  const { rows } = await client.query(inTime(HOLDER));
  const holder = rows[0] as { pid: number; name: string | null; address: string | null } | undefined;
  const who = holder
    ? `It has the connection with the process id ${holder.pid} ("${holder.name ?? ''}", from ${holder.address ?? 'an unknown address'}). Start again when it has ended. If it hangs, end it with SELECT pg_terminate_backend(${holder.pid}).`
    : 'It has ended meanwhile: start again.';
  return new Error(
    `another process makes or migrates the tables of the database, and did not finish within ${Math.round(waitedMs / 1_000)} s (START_TIMEOUT_MS). ${who}`,
  );
}
