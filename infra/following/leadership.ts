/**
 * Leadership where several processes share a PostgreSQL server: session locks on one connection per process.
 *
 * When a process or its connection dies, the database gives its locks to the next process that asks. Until the old
 * leader notices, it cannot write because its checkpoints are fenced. The embedded database has only one process, which
 * always leads.
 */
import { createOutage, type Outage, pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { createSessionLocks, type HeldLock, type SessionLocks } from '../database/session-locks.ts';
import type { Logger } from '../logging.ts';

/** First key of our advisory locks ("SBOX"); the second identifies the locked name. */
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

/** Asks for all wanted names in one query, and holds the granted locks on one connection. */
class Locks implements Leadership {
  readonly #locks: SessionLocks;
  readonly #outage: Outage;
  readonly #closing = new AbortController();
  /** Names that are wanted, and the callbacks for when they are granted. */
  readonly #wanted = new Map<string, (held: HeldLock) => void>();
  /** Names that are wanted or held; needed because a session can take the same lock twice. */
  readonly #names = new Set<string>();
  #asking: Promise<void> | undefined;

  constructor(database: Database, log: Logger) {
    const broke = (err: Error) => log.warn({ err }, 'the connection that holds the leadership locks broke');
    this.#locks = createSessionLocks(database, { lockClass: LOCK_CLASS, name: 'leader', broke });
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
        await run(AbortSignal.any([ended, held.lost]));
        await held.giveBack();
      }
    } finally {
      this.#names.delete(name);
    }
  }

  /** Resolves when this process holds the lock; undefined when the signal aborts first. */
  #granted(name: string, signal: AbortSignal): Promise<HeldLock | undefined> {
    return new Promise((resolve) => {
      const settle = (held: HeldLock | undefined) => {
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
        await Promise.all(Array.from(this.#wanted.keys(), (name) => this.#take(name)));
        this.#outage.worked();
      } catch (error) {
        if (!this.#closing.signal.aborted) this.#outage.failed(error);
      }
      if (this.#wanted.size > 0) await pause(ASK_MS, this.#closing.signal);
    }
    // In the same turn as the check above, so a name that is added later starts a new loop.
    this.#asking = undefined;
  }

  async #take(name: string): Promise<void> {
    const held = await this.#locks.take(name);
    if (!held) return;
    const granted = this.#wanted.get(name);
    if (granted) granted(held);
    else await held.giveBack();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#asking;
    await this.#locks.close();
  }
}
