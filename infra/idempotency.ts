/** Idempotency records in PostgreSQL. */
import type pg from 'pg';
import type { IdempotencyRecord, IdempotencyStore } from '../shared/ports/idempotency.ts';

/** A running request is taken over when its process has not finished it by then, milliseconds. */
const LOCKED_MS = 30_000;
/** Records are kept this long, milliseconds. */
export const KEPT_MS = 24 * 3_600_000;

interface Row {
  request_hash: Buffer;
  state: 'running' | 'done';
  box: Buffer | null;
}

export function createIdempotencyStore(pool: pg.Pool, owner: string, now: () => number = Date.now): IdempotencyStore {
  const asRecord = (row: Row): IdempotencyRecord => ({ requestHash: row.request_hash, state: row.state, box: row.box });
  return {
    async begin(scope, keyHash, requestHash) {
      const at = now();
      // One statement decides who runs: a new record, or one that nobody runs any more.
      const taken = await pool.query(
        `INSERT INTO service.idempotency AS i (scope, key_hash, request_hash, state, owner, locked_until, created_at)
         VALUES ($1, $2, $3, 'running', $4, $5, $6)
         ON CONFLICT (scope, key_hash) DO UPDATE SET owner = $4, locked_until = $5
           WHERE i.state = 'running' AND i.locked_until < $6
         RETURNING request_hash, state, box, created_at`,
        [scope, keyHash, requestHash, owner, at + LOCKED_MS, at],
      );
      const mine = taken.rows[0] as (Row & { created_at: number }) | undefined;
      if (mine)
        return { taken: true, record: mine.created_at === at && mine.box === null ? undefined : asRecord(mine) };
      const { rows } = await pool.query(
        'SELECT request_hash, state, box FROM service.idempotency WHERE scope = $1 AND key_hash = $2',
        [scope, keyHash],
      );
      const there = rows[0] as Row | undefined;
      return { taken: false, record: there && asRecord(there) };
    },
    async save(scope, keyHash, box) {
      await pool.query(
        'UPDATE service.idempotency SET box = $3, locked_until = $4 WHERE scope = $1 AND key_hash = $2 AND owner = $5',
        [scope, keyHash, box, now() + LOCKED_MS, owner],
      );
    },
    async finish(scope, keyHash, box) {
      await pool.query("UPDATE service.idempotency SET box = $3, state = 'done' WHERE scope = $1 AND key_hash = $2", [
        scope,
        keyHash,
        box,
      ]);
    },
    async abandon(scope, keyHash) {
      await pool.query(
        "UPDATE service.idempotency SET locked_until = 0 WHERE scope = $1 AND key_hash = $2 AND state = 'running'",
        [scope, keyHash],
      );
    },
    async forget(scope, keyHash) {
      await pool.query(
        "DELETE FROM service.idempotency WHERE scope = $1 AND key_hash = $2 AND state = 'running' AND owner = $3",
        [scope, keyHash, owner],
      );
    },
  };
}

/** Forgets what is older than 24 h. */
export async function purgeIdempotency(pool: pg.Pool, now: number): Promise<number> {
  const { rowCount } = await pool.query('DELETE FROM service.idempotency WHERE created_at < $1', [now - KEPT_MS]);
  return rowCount ?? 0;
}
