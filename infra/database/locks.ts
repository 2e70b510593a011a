/** Locks that all processes share (`shared/ports/locks.ts`): advisory ones of PostgreSQL, which end with their connection. */
import { AppError, conflict } from '../../shared/errors.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { isStoreFault } from '../../shared/store-faults.ts';
import { createBackOff, pause, takingTurnsByKey } from '../../shared/waiting.ts';
import type { Database } from './database.ts';
import { createSessionLocks, type HeldLock } from './session-locks.ts';

/** First key of these locks ("SBOL"). */
const LOCK_CLASS = 0x5342_4f4c;
/** How long to wait for a lock, milliseconds. */
const WAIT_MS = 10_000;
/** Pauses between attempts to take a lock that another process holds. */
const BACK_OFF = { firstMs: 4, lastMs: 32, spread: true };
/**
 * After this many turns, a process with further waiting callers leaves the lock to other processes. The pause, in
 * milliseconds, is long enough for each of them to ask for it.
 */
const TURNS = 8;
const YIELD_MS = 40;

/** A single process holds every lock for as long as it runs. */
const ALONE: HeldLock = { lost: new AbortController().signal, giveBack: async () => undefined };

export interface OpenLocks extends Locks {
  close(): Promise<void>;
}

const isUnavailable = (error: unknown): boolean =>
  error instanceof AppError ? error.status === 503 : isStoreFault(error);

/** @param waitMs default 10 s */
export function createLocks(database: Pick<Database, 'kind' | 'connect'>, waitMs = WAIT_MS): OpenLocks {
  const isAlone = database.kind === 'embedded';
  const session = createSessionLocks(database, { lockClass: LOCK_CLASS, name: 'locks' });
  // Each name is taken only once per process, because PostgreSQL gives a session its own locks again. While the
  // database is unavailable, all callers that wait for a name fail with the first.
  const inTurn = takingTurnsByKey(isUnavailable);
  /** By name: the number of unfinished callers, and the number of turns since there were none. */
  const lines = new Map<string, { callers: number; turns: number }>();

  async function taken(name: string, giveUpAt: number): Promise<HeldLock> {
    const backOff = createBackOff(BACK_OFF);
    while (performance.now() < giveUpAt) {
      const held = await session.take(name);
      if (held) return held;
      await pause(backOff.next(), undefined, { ref: true });
    }
    throw conflict('The same change is in progress; try again.', { code: 'BUSY' });
  }

  /** Resolves when the next caller may take its turn. `settle` receives the work, which may end earlier. */
  async function turn<T>(
    name: string,
    giveUpAt: number,
    work: (lost: AbortSignal) => Promise<T>,
    settle: (working: Promise<T>) => void,
  ): Promise<void> {
    const held = isAlone ? ALONE : await taken(name, giveUpAt);
    try {
      const working = work(held.lost);
      settle(working);
      await working;
    } finally {
      await held.giveBack();
      const line = lines.get(name);
      if (held !== ALONE && line && ++line.turns % TURNS === 0) await pause(YIELD_MS, undefined, { ref: true });
    }
  }

  return {
    isAlone,
    async holding(name, work) {
      const line = lines.get(name) ?? { callers: 0, turns: 0 };
      lines.set(name, line);
      line.callers++;
      const giveUpAt = performance.now() + waitMs;
      try {
        return await new Promise((resolve, reject) => {
          inTurn(name, () => turn(name, giveUpAt, work, resolve)).catch(reject);
        });
      } finally {
        if (--line.callers === 0) lines.delete(name);
      }
    },
    close: () => session.close(),
  };
}
