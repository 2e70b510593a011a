/**
 * Idempotency records in PostgreSQL.
 *
 * The process that runs a request holds a lease on its record and renews it meanwhile. When the process dies, the lease
 * expires and the next request with the key takes over. A process that was only slow notices this when it tries to
 * store its intents or its response. Leases use the database's clock, because the clocks of hosts differ.
 *
 * If the database fails during a request, the end of the request cannot be stored. It is stored as soon as the database
 * responds again: otherwise a repeated request would wait for the lease to expire, although the database has long been
 * available.
 */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { counted, EVERY_TEN_MINUTES_MS, type Schedule } from '../../commands/schedules/schedule.ts';
import { type AppError, conflict, RUN_IN_PROGRESS } from '../../shared/errors.ts';
import type { IdempotencyRecord, IdempotencyStore } from '../../shared/ports/idempotency.ts';
import { createBackOff, pause } from '../../shared/waiting.ts';
import { deleteOld } from './pieces.ts';

/** A lease expires when it has not been renewed for this long, milliseconds. */
const LEASE_MS = 10_000;
/** Maximum number of ended runs whose end must still be stored; further ones wait for their leases to expire. */
const MAX_OVER = 1_000;
/** Pauses between attempts to free keys of ended requests. */
const FREE_BACK_OFF = { firstMs: 100, lastMs: 1_000 };
/** How long records are kept, milliseconds. */
export const KEPT_MS = 24 * 3_600_000;
/** The database's clock, Unix ms; `now()` would be the start of the transaction. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
/** Name of the deployment's secret in `credentials.secrets`. */
const SECRET = 'idempotency';

/** The columns of an `IdempotencyRecord`. */
const RECORD = 'request_hash AS "requestHash", state, box AS sealed';

/** One run of a request, and the record that it holds or may hold. */
interface Run {
  readonly scope: string;
  readonly keyHash: Buffer;
  readonly run: string;
}

/** The records of these runs, as long as the runs own them. Takes the parameters of `recordsOf`, from $2. */
const OWNED = `state = 'running' AND (scope, key_hash, owner) IN (SELECT * FROM unnest($2::text[], $3::bytea[], $4::text[]))`;
const recordsOf = (runs: readonly Run[]) => [
  runs.map(({ scope }) => scope),
  runs.map(({ keyHash }) => keyHash),
  runs.map(({ run }) => run),
];

/** @param owner name of this process */
export function createIdempotencyStore(pool: pg.Pool, owner: string, leaseMs = LEASE_MS): IdempotencyStore {
  /**
   * Requests that run in this process. Each run has its own name: a statement may still execute after its caller has
   * given up, and must not touch what a later run of the same process has stored.
   */
  const held = new Map<string, Run>();
  /** Ended runs whose end could not be stored; each with the time when its lease has expired anyway. */
  const over = new Map<Run, number>();
  let freeing: Promise<void> | undefined;
  let runs = 0;
  let renewing: NodeJS.Timeout | undefined;
  let secret: Buffer | undefined;
  const nameOf = (scope: string, keyHash: Buffer) => `${scope} ${keyHash.toString('base64')}`;

  const runOf = (scope: string, keyHash: Buffer) => held.get(nameOf(scope, keyHash))?.run ?? '';

  function hold(scope: string, keyHash: Buffer, run: string): void {
    held.set(nameOf(scope, keyHash), { scope, keyHash, run });
    renewing ??= setInterval(renew, leaseMs / 3).unref();
  }
  function release(scope: string, keyHash: Buffer): void {
    held.delete(nameOf(scope, keyHash));
    if (held.size > 0) return;
    clearInterval(renewing);
    renewing = undefined;
  }
  function renew(): void {
    pool
      .query(`UPDATE service.idempotency SET locked_until = ${NOW} + $1 WHERE ${OWNED}`, [
        leaseMs,
        ...recordsOf([...held.values()]),
      ])
      // If the lease expires too early, `save` or `finish` refuses; there is no other harm.
      .catch(() => undefined);
  }

  /** Frees the key of a run once the database responds. */
  function freeLater(run: Run): void {
    if (over.size >= MAX_OVER) return;
    over.set(run, performance.now() + leaseMs);
    if (!freeing) freeing = freeAll();
  }
  async function freeAll(): Promise<void> {
    const backOff = createBackOff(FREE_BACK_OFF);
    while (over.size > 0) {
      await pause(backOff.next());
      const all = [...over.keys()];
      const told = await pool
        .query(`UPDATE service.idempotency SET locked_until = $1 WHERE ${OWNED}`, [0, ...recordsOf(all)])
        .then(
          () => true,
          () => false,
        );
      for (const one of all) if (told || performance.now() > (over.get(one) ?? 0)) over.delete(one);
    }
    // In the same turn as the check above, so a run that is added later starts a new loop.
    freeing = undefined;
  }
  /** Ends a run without a response. */
  async function end(scope: string, keyHash: Buffer, tell: () => Promise<unknown>): Promise<void> {
    const run = held.get(nameOf(scope, keyHash));
    try {
      await tell();
    } catch (error) {
      if (run) freeLater(run);
      throw error;
    } finally {
      release(scope, keyHash);
    }
  }

  /** Takes the key in a single statement, which inserts a record, or takes over one whose lease has expired. */
  async function take(one: Run, requestHash: Buffer): Promise<IdempotencyRecord | undefined> {
    const { scope, keyHash, run } = one;
    try {
      const { rows } = await pool.query(
        `INSERT INTO service.idempotency AS i (scope, key_hash, request_hash, state, owner, locked_until, created_at)
         VALUES ($1, $2, $3, 'running', $4, ${NOW} + $5, ${NOW})
         ON CONFLICT (scope, key_hash) DO UPDATE SET owner = $4, locked_until = ${NOW} + $5
           WHERE i.state = 'running' AND i.locked_until < ${NOW}
         RETURNING ${RECORD}`,
        [scope, keyHash, requestHash, run, leaseMs],
      );
      return rows[0] as IdempotencyRecord | undefined;
    } catch (error) {
      // The statement may have taken the key nevertheless.
      freeLater(one);
      throw error;
    }
  }

  /** Changes the record of a run that still owns it. @returns whether it did */
  async function change(assignments: string, scope: string, keyHash: Buffer, ...values: unknown[]): Promise<boolean> {
    const { rowCount } = await pool.query(
      `UPDATE service.idempotency SET ${assignments}
       WHERE scope = $1 AND key_hash = $2 AND owner = $3 AND state = 'running'`,
      [scope, keyHash, runOf(scope, keyHash), ...values],
    );
    return rowCount === 1;
  }

  return {
    async secret() {
      secret ??= await findOrMakeSecret(pool);
      return secret;
    },
    async begin(scope, keyHash, requestHash) {
      const here = held.has(nameOf(scope, keyHash));
      const run = `${owner} ${++runs}`;
      const taken = here ? undefined : await take({ scope, keyHash, run }, requestHash);
      if (taken) {
        hold(scope, keyHash, run);
        return { taken: true, record: taken };
      }
      const { rows } = await pool.query(
        `SELECT ${RECORD} FROM service.idempotency WHERE scope = $1 AND key_hash = $2`,
        [scope, keyHash],
      );
      return { taken: false, record: rows[0] as IdempotencyRecord | undefined };
    },
    async save(scope, keyHash, sealed) {
      if (!(await change(`box = $4, locked_until = ${NOW} + $5`, scope, keyHash, sealed, leaseMs))) throw takenOver();
    },
    async finish(scope, keyHash, sealed) {
      if (!(await change("box = $4, state = 'done'", scope, keyHash, sealed))) throw takenOver();
      release(scope, keyHash);
    },
    abandon: (scope, keyHash) => end(scope, keyHash, () => change('locked_until = 0', scope, keyHash)),
    forget: (scope, keyHash) =>
      end(scope, keyHash, () =>
        pool.query(
          "DELETE FROM service.idempotency WHERE scope = $1 AND key_hash = $2 AND state = 'running' AND owner = $3",
          [scope, keyHash, runOf(scope, keyHash)],
        ),
      ),
  };
}

const takenOver = (): AppError =>
  conflict('A retry of this request has taken over; send it again in a moment to get its result.', {
    code: RUN_IN_PROGRESS,
    headers: { 'Retry-After': '1' },
  });

/**
 * The secret is kept in the database, so that all processes share it without configuration, and in the `credentials`
 * schema, which is guarded, backed up and copied together with the keys of personal fields.
 */
async function findOrMakeSecret(pool: pg.Pool): Promise<Buffer> {
  const find = async () =>
    (await pool.query('SELECT value FROM credentials.secrets WHERE name = $1', [SECRET])).rows[0] as
      | { value: Buffer }
      | undefined;
  const known = await find();
  if (known) return known.value;
  await pool.query(
    'INSERT INTO credentials.secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
    [SECRET, randomBytes(32), Math.floor(Date.now() / 1_000)],
  );
  const made = await find();
  if (!made)
    throw new Error('the secret for idempotent requests was removed from the database while it was being created');
  return made.value;
}

/** Deletes records older than 24 h. @returns their number */
export async function purgeIdempotency(pool: pg.Pool, signal?: AbortSignal): Promise<number> {
  const { rows } = await pool.query(`SELECT ${NOW} AS now`);
  const before = (rows[0] as { now: number }).now - KEPT_MS;
  return deleteOld(pool, { table: 'service.idempotency', by: 'created_at', before }, { signal });
}

export const idempotencySchedule = (pool: pg.Pool): Schedule => ({
  id: 'purge_idempotency_keys',
  kind: 'purge-idempotency-keys',
  name: 'Delete old idempotency keys',
  everyMs: EVERY_TEN_MINUTES_MS,
  async run(_asked, signal) {
    return `${counted(await purgeIdempotency(pool, signal), 'key was', 'keys were')} forgotten.`;
  },
});
