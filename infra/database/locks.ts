/** Locks that all processes share (`shared/ports/locks.ts`): advisory ones of PostgreSQL, which end with their connection. */
import { conflict } from '../../shared/errors.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { takingTurnsByKey } from '../../shared/waiting.ts';
import type { Database } from './database.ts';
import { endInTime, inTime } from './session.ts';

/** First key of these locks ("SBOL"); the second names what is locked. */
const CLASS = 0x5342_4f4c;
/** How long to wait for a lock, milliseconds. */
const WAIT_MS = 10_000;
const LOCK_NOT_AVAILABLE = '55P03';

export function createLocks({ kind, connect }: Pick<Database, 'kind' | 'connect'>): Locks {
  // The embedded database has one process. On a server, too, those of one process need one connection and not many.
  const inTurn = takingTurnsByKey(() => false);
  const locked = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const client = await connect('lock');
    try {
      await client.query(inTime("SELECT set_config('lock_timeout', $1, false)", [`${WAIT_MS}ms`]));
      const lock = inTime('SELECT pg_advisory_lock($1, hashtext($2))', [CLASS, name], 2 * WAIT_MS);
      await client.query(lock).catch((error: unknown) => {
        if ((error as { readonly code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error;
        throw conflict('Others are doing the same right now; try again.', { code: 'BUSY', cause: error });
      });
      return await work();
    } finally {
      await endInTime(client);
    }
  };
  return { holding: (name, work) => inTurn(name, kind === 'embedded' ? work : () => locked(name, work)) };
}
