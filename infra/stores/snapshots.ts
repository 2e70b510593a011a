/** Snapshots in PostgreSQL. */
import type pg from 'pg';
import type { Snapshot, Snapshots } from '../../shared/ports/snapshots.ts';
import type { Logger } from '../logging.ts';

/** Maximum number of snapshots waiting to be written; further ones are dropped. */
const MAX_WAITING = 1_000;

export interface SnapshotStore extends Snapshots {
  /** Waits for pending writes. */
  close(): Promise<void>;
}

export function createSnapshots(pool: pg.Pool, log: Logger): SnapshotStore {
  const waiting = new Map<string, { readonly kind: string; readonly snapshot: Snapshot }>();
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    for (const [stream, { kind, snapshot }] of waiting) {
      waiting.delete(stream);
      const { revision, position, at, state } = snapshot;
      try {
        await pool.query(
          `INSERT INTO service.snapshots AS s (stream, kind, revision, position, at, state) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (stream) DO UPDATE SET kind = $2, revision = $3, position = $4, at = $5, state = $6
             WHERE s.kind <> $2 OR s.revision < $3`,
          [stream, kind, revision, position, at, JSON.stringify(state)],
        );
      } catch (error) {
        log.debug({ err: error, stream }, 'a snapshot was not saved');
      }
    }
    writing = undefined;
  }

  return {
    async find(stream, kind) {
      const { rows } = await pool.query(
        'SELECT revision, position, at, state FROM service.snapshots WHERE stream = $1 AND kind = $2',
        [stream, kind],
      );
      return rows[0] as Snapshot | undefined;
    },
    save(stream, kind, snapshot) {
      if (waiting.size >= MAX_WAITING) return;
      waiting.set(stream, { kind, snapshot });
      writing ??= write();
    },
    async close() {
      await writing;
    },
  };
}
