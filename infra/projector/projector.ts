/**
 * All projections of a process: makes their tables, leads those that no other process leads, reports on each.
 */
import { sql } from 'kysely';
import type pg from 'pg';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { type Database, inTime } from '../database/database.ts';
import { pause } from '../event-log/tail.ts';
import { createTrouble, type Trouble } from '../trouble.ts';
import { BatchWriter } from './batch-writer.ts';
import { leadProjection, type RunnerOptions, type RunnerStatus } from './runner.ts';
import { createTables } from './tables.ts';

/** First key of our advisory locks ("SBOX"); the second names what is locked. */
export const LOCK_CLASS = 0x5342_4f58;
/** How often a process that does not lead a projection tries to. */
const TAKE_OVER_MS = 1_000;
/** How often an embedded service looks whether a command has rebuilt a read model. */
const GENERATIONS_MS = 2_000;

/** Makes the tables of every projection version that has none. Several processes may call it at once. */
export async function ensureTables(database: Database, projections: readonly Projection[]): Promise<void> {
  const { rows: known } = await database.pool.query('SELECT schema_name FROM service.checkpoints');
  const there = new Set((known as { schema_name: string }[]).map((row) => row.schema_name));
  for (const projection of projections) {
    const schema = schemaOf(projection);
    if (there.has(schema)) continue;
    await database.db.transaction().execute(async (trx) => {
      // Another key than a leader's, which is held for as long as it leads.
      await sql`SELECT pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(${`tables of ${schema}`}))`.execute(trx);
      const { rows } = await sql`SELECT 1 FROM service.checkpoints WHERE schema_name = ${schema}`.execute(trx);
      if (rows.length > 0) return;
      await createTables(trx, projection, schema);
      await sql`INSERT INTO service.checkpoints (schema_name, projection, version)
        VALUES (${schema}, ${projection.name}, ${projection.version})`.execute(trx);
    });
  }
}

export type ProjectorOptions = Omit<RunnerOptions, 'writer'>;

export interface Projector {
  /** One entry per projection that this process leads or tries to lead. */
  readonly statuses: readonly RunnerStatus[];
  close(): Promise<void>;
}

/** Starts to lead. Returns at once. */
export function startProjector(projections: readonly Projection[], given: ProjectorOptions): Projector {
  const options: RunnerOptions = { ...given, writer: new BatchWriter(given.database.db) };
  const closing = new AbortController();
  const statuses: RunnerStatus[] = [];
  const running: Promise<void>[] = [];
  const locks = options.database.kind === 'server' ? new Locks(options) : undefined;
  for (const projection of projections) {
    const status: RunnerStatus = {
      projection: projection.name,
      version: projection.version,
      position: 0,
      caughtUp: false,
      stuck: undefined,
      applied: 0,
      since: Date.now(),
    };
    statuses.push(status);
    running.push(
      locks
        ? locks.lead(schemaOf(projection), closing.signal, (signal) =>
            leadProjection(projection, options, status, signal),
          )
        : leadProjection(projection, options, status, closing.signal),
    );
  }
  // On a server every reader sees the checkpoint's generation; here a rebuild by the command line has to be noticed.
  const watching = options.database.kind === 'embedded' ? watchGenerations(options, closing.signal) : undefined;
  return {
    statuses,
    async close() {
      closing.abort();
      await watching;
      await Promise.all(running);
      await locks?.close();
    },
  };
}

/** Notices that tables were swapped, so that nothing that was read from the old ones is given out any more. */
async function watchGenerations({ database, touches, log }: RunnerOptions, signal: AbortSignal): Promise<void> {
  const known = new Map<string, number>();
  while (!signal.aborted) {
    try {
      const { rows } = await database.pool.query('SELECT schema_name, generation FROM service.checkpoints');
      for (const { schema_name: schema, generation } of rows as { schema_name: string; generation: number }[]) {
        if (known.has(schema) && known.get(schema) !== generation) touches.reset(schema);
        known.set(schema, generation);
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'generations of read models could not be read');
    }
    await pause(GENERATIONS_MS, signal);
  }
}

/**
 * Session locks on one connection: when the process dies, or the connection does, the database gives them to the
 * next. The runner's fence (the checkpoint moves only from where it left it) covers the moment in which the old
 * leader does not know yet.
 */
class Locks {
  readonly #options: RunnerOptions;
  #client: Promise<pg.Client> | undefined;
  #asking: Promise<void> = Promise.resolve();
  /** Aborted when the connection that holds the locks is gone. */
  #held = new AbortController();
  readonly #trouble: Trouble;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#trouble = createTrouble(
      options.log,
      'leadership of read models cannot be asked for; trying again',
      'leadership of read models can be asked for again',
    );
  }

  async lead(name: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      try {
        const mine = await this.#tryLock(name);
        this.#trouble.worked();
        if (mine) {
          await run(AbortSignal.any([signal, this.#held.signal]));
          continue;
        }
      } catch (error) {
        if (!signal.aborted) this.#trouble.failed(error);
      }
      await pause(TAKE_OVER_MS, signal);
    }
  }

  /** One question at a time: a client takes one query at once. */
  #tryLock(name: string): Promise<boolean> {
    const mine = this.#asking.then(async () => {
      const client = await this.#connection();
      const asked = client.query(inTime('SELECT pg_try_advisory_lock($1, hashtext($2)) AS mine', [LOCK_CLASS, name]));
      const { rows } = await asked.catch((error) => {
        // It may be silent for good: the next question makes another.
        client.end().catch(() => undefined);
        throw error;
      });
      return Boolean(rows[0]?.mine);
    });
    this.#asking = mine.then(
      () => undefined,
      () => undefined,
    );
    return mine;
  }

  #connection(): Promise<pg.Client> {
    this.#client ??= this.#options.database.connect('leader').then(
      (client) => {
        const held = new AbortController();
        this.#held = held;
        client.on('error', (error) => this.#options.log.warn({ err: error }, 'the leader connection broke'));
        client.once('end', () => {
          this.#client = undefined;
          held.abort();
        });
        return client;
      },
      (error) => {
        this.#client = undefined;
        throw error;
      },
    );
    return this.#client;
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.end();
  }
}
