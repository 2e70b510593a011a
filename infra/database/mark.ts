/**
 * Detects that a server has lost rows: after a crash, transactions that did not wait for the disk (`writeBatches`) may
 * be gone, although processes have read their rows. Each new connection reads a mark that does not survive a crash.
 */
import type pg from 'pg';

const READ = 'SELECT mark FROM service.mark';
const MAKE = 'INSERT INTO service.mark (mark) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING';

export interface MarkWatch {
  /** Call this for each new connection, before its first use. @throws errors of the connection */
  check(client: pg.ClientBase): Promise<void>;
  /** How often rows may have been lost. */
  readonly losses: number;
  /** @param listener is called when rows may have been lost @returns a function that ends this */
  onLoss(listener: () => void): () => void;
}

export function createMarkWatch(): MarkWatch {
  const listeners = new Set<() => void>();
  let losses = 0;
  let known: string | undefined;
  return {
    async check(client) {
      const mark = await markOf(client);
      if (mark === undefined || mark === known) return;
      const lost = known !== undefined;
      known = mark;
      if (!lost) return;
      losses++;
      for (const listener of listeners) listener();
    },
    get losses() {
      return losses;
    },
    onLoss(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Undefined before the migrations have run. */
async function markOf(client: pg.ClientBase): Promise<string | undefined> {
  try {
    const { rows } = await client.query(READ);
    if (rows.length > 0) return rows[0].mark as string;
    await client.query(MAKE);
    return (await client.query(READ)).rows[0]?.mark as string | undefined;
  } catch (error) {
    if ((error as { code?: string }).code === '42P01') return undefined;
    throw error;
  }
}
