/**
 * Advisory locks of PostgreSQL, any number of them on one connection of a process. They end with the connection, so a
 * process that dies releases them.
 *
 * The connection never waits for a lock, because everything else on it would wait as well: it takes only free locks,
 * and callers ask again.
 */
import type pg from 'pg';
import { askingTogether } from '../../shared/waiting.ts';
import type { Database } from './database.ts';
import { endInTime, inTime } from './session.ts';

export interface HeldLock {
  /** Aborted when the connection is lost: another process can then take the lock. */
  readonly lost: AbortSignal;
  /** Never throws. */
  giveBack(): Promise<void>;
}

export interface SessionLocks {
  /**
   * Takes a lock; undefined when another process has it. Concurrent requests share a statement.
   *
   * @param name not one that this process holds: PostgreSQL gives a session the same lock twice
   * @throws errors of `pg`; all locks are lost then
   */
  take(name: string): Promise<HeldLock | undefined>;
  close(): Promise<void>;
}

interface Session {
  take(name: string): Promise<HeldLock | undefined>;
  end(): Promise<void>;
}

export interface SessionLockOptions {
  /** First key of the locks; the second is the hash of their name. */
  readonly lockClass: number;
  /** Of the connection. */
  readonly name: string;
  readonly broke?: (error: Error) => void;
}

export function createSessionLocks(database: Pick<Database, 'connect'>, options: SessionLockOptions): SessionLocks {
  const { lockClass, name: connectionName, broke } = options;
  let current: Promise<Session> | undefined;
  let closed = false;

  const session = (): Promise<Session> => {
    if (closed) throw new Error('the locks are closed');
    current ??= open();
    return current;
  };

  function open(): Promise<Session> {
    const ended = () => {
      if (current === opened) current = undefined;
    };
    const opened = database.connect(connectionName).then((client) => {
      if (broke) client.on('error', broke);
      return openSession(client, lockClass, ended);
    });
    opened.catch(ended);
    return opened;
  }

  return {
    take: async (name) => (await session()).take(name),
    async close() {
      closed = true;
      const last = await current?.catch(() => undefined);
      await last?.end();
    },
  };
}

function openSession(client: pg.Client, lockClass: number, ended: () => void): Session {
  const lost = new AbortController();
  const over = () => {
    ended();
    lost.abort();
  };
  client.once('end', over);
  /** The connection may never respond again, so the next caller uses a new one. */
  const end = async () => {
    over();
    await endInTime(client);
  };
  const ask = (what: string) => async (names: readonly string[]) => {
    try {
      return (await client.query(inTime(what, [lockClass, names]))).rows as readonly { readonly name: string }[];
    } catch (error) {
      await end();
      throw error;
    }
  };
  const names = 'unnest($2::text[]) AS name';
  const takeAll = askingTogether(ask(`SELECT name FROM ${names} WHERE pg_try_advisory_lock($1, hashtext(name))`));
  const giveBackAll = askingTogether(ask(`SELECT pg_advisory_unlock($1, hashtext(name)) FROM ${names}`));
  return {
    async take(name) {
      const granted = await takeAll([name]);
      if (!granted.some((one) => one.name === name)) return undefined;
      const giveBack = async () => {
        if (!lost.signal.aborted) await giveBackAll([name]).catch(() => undefined);
      };
      return { lost: lost.signal, giveBack };
    },
    end,
  };
}
