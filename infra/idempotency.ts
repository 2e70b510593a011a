/**
 * Idempotency records in PostgreSQL.
 *
 * Whoever runs a request holds a lease on its record, and renews it while the request runs. When the process dies, or
 * cannot tell the database that the request is over, the lease ends by itself and the next request with the key takes
 * over. A process that was only slow finds that out when it is about to store what it wants to append, and stops.
 */
import type pg from 'pg';
import { conflict } from '../shared/errors.ts';
import type { IdempotencyRecord, IdempotencyStore } from '../shared/ports/idempotency.ts';

/** A running request may be taken over when its process has not renewed the lease for this long, milliseconds. */
const LEASE_MS = 10_000;
/** Records are kept this long, milliseconds. */
export const KEPT_MS = 24 * 3_600_000;

interface Row {
  request_hash: Buffer;
  state: 'running' | 'done';
  box: Buffer | null;
}

/** @param owner name of this process */
export function createIdempotencyStore(
  pool: pg.Pool,
  owner: string,
  now: () => number = Date.now,
  leaseMs = LEASE_MS,
): IdempotencyStore {
  /**
   * Requests that run in this process. Each run has a name of its own: a statement whose caller gave it up may still
   * be done, and must not touch what a later run of the same process has stored.
   */
  const held = new Map<string, { readonly scope: string; readonly keyHash: Buffer; readonly run: string }>();
  let runs = 0;
  let renewing: NodeJS.Timeout | undefined;
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
    const all = [...held.values()];
    pool
      .query(
        `UPDATE service.idempotency SET locked_until = $1 WHERE state = 'running'
           AND (scope, key_hash, owner) IN (SELECT * FROM unnest($2::text[], $3::bytea[], $4::text[]))`,
        [now() + leaseMs, all.map((one) => one.scope), all.map((one) => one.keyHash), all.map((one) => one.run)],
      )
      // A lease that ends too early costs the request a refusal in `save`, and no more.
      .catch(() => undefined);
  }

  const asRecord = (row: Row): IdempotencyRecord => ({ requestHash: row.request_hash, state: row.state, box: row.box });
  return {
    async begin(scope, keyHash, requestHash) {
      const at = now();
      const here = held.has(nameOf(scope, keyHash));
      const run = `${owner} ${++runs}`;
      // One statement decides who runs: a new record, or one that nobody runs any more.
      const taken = here
        ? undefined
        : await pool.query(
            `INSERT INTO service.idempotency AS i (scope, key_hash, request_hash, state, owner, locked_until, created_at)
         VALUES ($1, $2, $3, 'running', $4, $5, $6)
         ON CONFLICT (scope, key_hash) DO UPDATE SET owner = $4, locked_until = $5
           WHERE i.state = 'running' AND i.locked_until < $6
         RETURNING request_hash, state, box, created_at`,
            [scope, keyHash, requestHash, run, at + leaseMs, at],
          );
      const mine = taken?.rows[0] as (Row & { created_at: number }) | undefined;
      if (mine) {
        hold(scope, keyHash, run);
        return { taken: true, record: mine.created_at === at && mine.box === null ? undefined : asRecord(mine) };
      }
      const { rows } = await pool.query(
        'SELECT request_hash, state, box FROM service.idempotency WHERE scope = $1 AND key_hash = $2',
        [scope, keyHash],
      );
      const there = rows[0] as Row | undefined;
      return { taken: false, record: there && asRecord(there) };
    },
    async save(scope, keyHash, box) {
      const { rowCount } = await pool.query(
        `UPDATE service.idempotency SET box = $3, locked_until = $4
         WHERE scope = $1 AND key_hash = $2 AND owner = $5 AND state = 'running'`,
        [scope, keyHash, box, now() + leaseMs, runOf(scope, keyHash)],
      );
      if (rowCount !== 1) {
        throw conflict('A repetition of this request was faster; ask again in a moment for what came of it.', {
          code: 'IDEMPOTENCY_IN_PROGRESS',
          headers: { 'Retry-After': '1' },
        });
      }
    },
    async finish(scope, keyHash, box) {
      await pool.query("UPDATE service.idempotency SET box = $3, state = 'done' WHERE scope = $1 AND key_hash = $2", [
        scope,
        keyHash,
        box,
      ]);
      release(scope, keyHash);
    },
    async abandon(scope, keyHash) {
      try {
        await pool.query(
          "UPDATE service.idempotency SET locked_until = 0 WHERE scope = $1 AND key_hash = $2 AND state = 'running' AND owner = $3",
          [scope, keyHash, runOf(scope, keyHash)],
        );
      } finally {
        release(scope, keyHash);
      }
    },
    async forget(scope, keyHash) {
      try {
        await pool.query(
          "DELETE FROM service.idempotency WHERE scope = $1 AND key_hash = $2 AND state = 'running' AND owner = $3",
          [scope, keyHash, runOf(scope, keyHash)],
        );
      } finally {
        release(scope, keyHash);
      }
    },
  };
}

/** Forgets what is older than 24 h. */
export async function purgeIdempotency(pool: pg.Pool, now: number): Promise<number> {
  const { rowCount } = await pool.query('DELETE FROM service.idempotency WHERE created_at < $1', [now - KEPT_MS]);
  return rowCount ?? 0;
}
