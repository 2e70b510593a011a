/**
 * Leadership where several processes share a PostgreSQL server: session locks on one connection per process.
 *
 * When a process or its connection dies, the database gives its locks to the next process that asks. Until the old
 * leader notices, the fencing of checkpoints keeps it from writing. The embedded database has only one process, which
 * always leads.
 */
import type pg from 'pg';
import { createOutage, type Outage, pause, takingTurns } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { endInTime, inTime } from '../database/session.ts';
import type { Logger } from '../logging.ts';

/** First key of our advisory locks ("SBOX"); the second names what is locked. */
export const LOCK_CLASS = 0x5342_4f58;
/** How often a process asks for the locks that it does not hold, milliseconds. */
const ASK_MS = 1_000;

export interface Leadership {
  /** Calls `run` whenever this process becomes the leader of `name`, until the signal aborts. */
  lead(name: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export function createLeadership(database: Database, log: Logger): Leadership {
  if (database.kind === 'server') return new Locks(database, log);
  return {
    lead: (_name, signal, run) => run(signal),
    close: () => Promise.resolve(),
  };
}

interface Session {
  readonly client: pg.Client;
  /** Aborted when the connection, and with it the locks, is lost. */
  readonly held: AbortController;
}

/** Asks for all wanted names in one query, and holds the granted locks on one connection. */
class Locks implements Leadership {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #outage: Outage;
  readonly #closing = new AbortController();
  /** Names that are wanted, and the callbacks for when they are granted. */
  readonly #wanted = new Map<string, (held: AbortSignal) => void>();
  /** Names that are wanted or held; needed because a session can take the same lock twice. */
  readonly #names = new Set<string>();
  /** A connection takes one query at a time. */
  readonly #inTurn = takingTurns();
  /** Holds the locks. */
  #session: Session | undefined;
  #asking: Promise<void> | undefined;

  constructor(database: Database, log: Logger) {
    this.#database = database;
    this.#log = log;
    this.#outage = createOutage(
      log,
      'leadership cannot be requested; trying again',
      'leadership can be requested again',
    );
  }

  async lead(name: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#names.has(name)) throw new Error(`${name} is followed twice in this process`);
    this.#names.add(name);
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    try {
      while (!ended.aborted) {
        const held = await this.#granted(name, ended);
        if (!held) return;
        await run(AbortSignal.any([ended, held]));
        if (!held.aborted) await this.#giveBack(name);
      }
    } finally {
      this.#names.delete(name);
    }
  }

  /** Resolves when this process holds the lock; undefined when the signal aborts first. */
  #granted(name: string, signal: AbortSignal): Promise<AbortSignal | undefined> {
    return new Promise((resolve) => {
      const settle = (held: AbortSignal | undefined) => {
        this.#wanted.delete(name);
        signal.removeEventListener('abort', aborted);
        resolve(held);
      };
      const aborted = () => settle(undefined);
      this.#wanted.set(name, settle);
      signal.addEventListener('abort', aborted, { once: true });
      this.#asking ??= this.#ask();
    });
  }

  async #ask(): Promise<void> {
    // Names wanted in the same turn of the event loop are requested together.
    await Promise.resolve();
    while (this.#wanted.size > 0 && !this.#closing.signal.aborted) {
      try {
        const { client, held } = await this.#connected();
        const { rows } = await this.#inTurn(() =>
          client.query(
            inTime('SELECT name FROM unnest($2::text[]) AS name WHERE pg_try_advisory_lock($1, hashtext(name))', [
              LOCK_CLASS,
              [...this.#wanted.keys()],
            ]),
          ),
        );
        this.#outage.worked();
        for (const { name } of rows as { name: string }[]) {
          const granted = this.#wanted.get(name);
          if (granted) granted(held.signal);
          else await this.#giveBack(name);
        }
      } catch (error) {
        // The connection may never answer again, so the next request uses a new one.
        await this.#drop();
        if (!this.#closing.signal.aborted) this.#outage.failed(error);
      }
      if (this.#wanted.size > 0) await pause(ASK_MS, this.#closing.signal);
    }
    // In the same turn as the check above, so a name that is added later starts a new loop.
    this.#asking = undefined;
  }

  async #connected(): Promise<Session> {
    if (this.#session) return this.#session;
    const client = await this.#database.connect('leader');
    const session = { client, held: new AbortController() };
    client.on('error', (error) =>
      this.#log.warn({ err: error }, 'the connection that holds the leadership locks broke'),
    );
    client.once('end', () => {
      if (this.#session === session) this.#session = undefined;
      session.held.abort();
    });
    this.#session = session;
    return session;
  }

  /** Releases one lock for another process to take, while this one keeps the rest. */
  async #giveBack(name: string): Promise<void> {
    const unlock = inTime('SELECT pg_advisory_unlock($1, hashtext($2))', [LOCK_CLASS, name]);
    // If the connection does not answer, it is dropped, which releases all its locks.
    await this.#inTurn(async () => this.#session?.client.query(unlock)).catch(() => this.#drop());
  }

  async #drop(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    session?.held.abort();
    if (session) await endInTime(session.client);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#asking;
    await this.#drop();
  }
}
