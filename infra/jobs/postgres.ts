/**
 * Jobs in PostgreSQL, in the schema `bullmq`: BullMQ's own Postgres backend on a server, and on the embedded database.
 *
 * BullMQ gets an object that looks like a `pg.Pool`, for four reasons:
 *
 * - Its statements name no schema, so they need `search_path`. On a server, a separate pool sets it for each
 *   connection. The embedded database has one session for all users; there the schema is appended to the search path,
 *   which affects no other statement, because all others name their schema.
 * - The embedded database delivers no notifications. Only this process works on it, so an event within the process
 *   replaces them, emitted after the statements that would have notified: an idle service need not poll. A job added by
 *   a command-line tool is found by the next poll, at most 10 s later.
 * - BullMQ's functions read a schedule and then write it and its next job, without a lock. Two concurrent calls ran a
 *   turn twice. On a server, they run under an advisory lock; the embedded database runs one statement at a time
 *   anyway.
 * - BullMQ repeats a failed fetch at once unless the connection was refused, which would be a busy loop while a
 *   database restarts. So a statement that fails because of its connection is rejected only after a pause.
 */
import { EventEmitter } from 'node:events';
import type * as BullMQ from 'bullmq';
import pg from 'pg';
import { isStoreFault } from '../../shared/store-faults.ts';
import { pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { Client } from '../database/session.ts';
import type { Logger } from '../logging.ts';
import type { JobStore } from './store.ts';

/** BullMQ's default, and the only one that works with a pool that BullMQ did not create. */
const SCHEMA = 'bullmq';
/** One connection for the worker's LISTEN, the others for statements. */
const POOL_SIZE = 4;
const FAILED_PAUSE_MS = 500;
/** The statements that end in `pg_notify('bullmq_jobs', queue)`; the queue is their first parameter. */
const RINGS =
  /\b(add_job|add_jobs_bulk|add_job_scheduler|update_job_scheduler\w*|move_to_delayed|move_active_to_wait|retry_jobs?|reprocess_job|promote|promote_jobs|change_delay|move_stalled_jobs_to_wait|pause)\s*\(/;
const BELL = 'bullmq_jobs';
/** The statements that read and then write a schedule; the queue is their first parameter. */
const SCHEDULES = /\b(add_job_scheduler|update_job_scheduler\w*)\s*\(/;
/** First key of the lock on the schedules of a queue ("SBSC"). */
const LOCK_CLASS = 0x5342_5343;

export interface PostgresJobsOptions {
  readonly database: Database;
  /** The server's URL; unset: the embedded database. */
  readonly databaseUrl: string | undefined;
  /** Time limit for one statement, milliseconds. */
  readonly statementTimeoutMs: number;
  readonly log: Logger;
}

export function openPostgresStore(bullmq: typeof BullMQ, options: PostgresJobsOptions): JobStore {
  const { database, databaseUrl } = options;
  const own = databaseUrl === undefined ? undefined : makePool(databaseUrl, options);
  const pool = own ?? database.pool;
  const seen = own ? serverPool(own) : embeddedPool(pool);
  let prepared: Promise<void> | undefined;
  async function prepare(): Promise<void> {
    const client = await pool.connect();
    try {
      await bullmq.runMigrations(client, SCHEMA);
    } finally {
      client.release();
    }
    if (!own) await pool.query(`SET search_path TO "$user", public, ${SCHEMA}`);
  }
  return {
    kind: 'postgres',
    factory: bullmq.createPostgresBackend as BullMQ.BackendFactory<BullMQ.IQueueBackend, unknown>,
    producer: () => seen,
    consumer: () => seen,
    prepare() {
      prepared ??= prepare().catch((error) => {
        prepared = undefined;
        throw error;
      });
      return prepared;
    },
    onReturn() {
      // An unavailable database comes back with all its jobs.
    },
    async close() {
      await own?.end();
    },
  };
}

function makePool(url: string, { statementTimeoutMs, log }: PostgresJobsOptions): pg.Pool {
  const pool = new pg.Pool({
    Client,
    connectionString: url,
    max: POOL_SIZE,
    application_name: 'signalbox jobs',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 1_000,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; only its types leave that out
    onConnect: (client) => client.query(`SET search_path TO ${SCHEMA}`).then(() => undefined),
  });
  pool.on('error', (error) => log.warn({ err: error }, 'an idle connection of the job store broke'));
  // A connection that breaks while in use rejects its query and also emits `error`, which must not end the process.
  pool.on('connect', (client) => {
    client.on('error', (error) => log.debug({ err: error }, 'a connection of the job store broke'));
  });
  return pool;
}

/** Runs a statement while no other process reads or writes the schedules of its queue. */
async function underLock(pool: pg.Pool, text: string, params: unknown[]): Promise<BullMQ.PgQueryResult> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, params[0]]);
    const result = await client.query(text, params);
    await client.query('COMMIT');
    client.release();
    return result;
  } catch (error) {
    // Closing the connection rolls back, whatever state it is in.
    client.release(error as Error);
    throw error;
  }
}

/** Rejects only after a pause when the connection failed. */
async function paused(statement: Promise<BullMQ.PgQueryResult>): Promise<BullMQ.PgQueryResult> {
  try {
    return await statement;
  } catch (error) {
    if (isStoreFault(error)) await pause(FAILED_PAUSE_MS);
    throw error;
  }
}

/** A pool for BullMQ, which does not own the connections: it can neither end them nor listen to their errors. */
function lent(parts: Pick<BullMQ.PgPool, 'query' | 'connect'>): BullMQ.PgPool {
  const pool: BullMQ.PgPool = {
    ...parts,
    end: () => Promise.resolve(),
    on: () => pool,
    removeAllListeners: () => pool,
  };
  return pool;
}

const serverPool = (pool: pg.Pool): BullMQ.PgPool =>
  lent({
    query: (text: string, params?: unknown[]) =>
      paused(SCHEDULES.test(text) ? underLock(pool, text, params ?? []) : pool.query(text, params)),
    connect: () => pool.connect(),
  });

function embeddedPool(pool: pg.Pool): BullMQ.PgPool {
  const listeners = new Set<EventEmitter>();
  async function query(text: string, params?: unknown[]): Promise<BullMQ.PgQueryResult> {
    const result = await paused(pool.query(text, params));
    // The search for stalled jobs, which runs every 30 s, returns rows only when it found some.
    if (result.rows.length > 0 && RINGS.test(text)) {
      for (const listener of listeners) listener.emit('notification', { channel: BELL, payload: params?.[0] });
    }
    return result;
  }
  function connect(): Promise<BullMQ.PgPoolClient> {
    const bell = new EventEmitter();
    listeners.add(bell);
    const client = Object.assign(bell, {
      query: (text: string, params?: unknown[]) =>
        // LISTEN does nothing here, and settings would apply to every user of the session.
        /^\s*LISTEN\b|\bset_config\(/im.test(text) ? Promise.resolve({ rows: [] }) : query(text, params),
      release() {
        listeners.delete(bell);
      },
    });
    return Promise.resolve(client as BullMQ.PgPoolClient);
  }
  return lent({ query, connect });
}
