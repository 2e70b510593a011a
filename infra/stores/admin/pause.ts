/**
 * The pause after a restore, in PostgreSQL (`service.pause`), so that all processes see it and it survives restarts. It
 * begins only in `signalbox restore`, which no service may be running for: a process that has once seen the deployment
 * run need not look again.
 */
import type pg from 'pg';
import { unavailable } from '../../../shared/errors.ts';
import type { Pause } from '../../../shared/ports/admin/pause.ts';
import { seconds } from '../../../shared/time.ts';
import { pause as wait } from '../../../shared/waiting.ts';

/** Interval at which a process checks whether the pause has ended, milliseconds. */
const LOOK_MS = 1_000;

export interface OpenPause extends Pause {
  begin(): Promise<void>;
  /** Resolves when the pause has ended, or with `signal`. @param failed called when it cannot be read; it is read again */
  ended(signal: AbortSignal, failed: (error: unknown) => void): Promise<void>;
}

export function createPause(pool: Pick<pg.Pool, 'query'>): OpenPause {
  let runs = false;
  async function since(): Promise<number | null> {
    if (runs) return null;
    const { rows } = await pool.query('SELECT since FROM service.pause');
    const [row] = rows as { since: number }[];
    runs = row === undefined;
    return row?.since ?? null;
  }
  return {
    since,
    async refuse() {
      if ((await since()) === null) return;
      throw unavailable(
        'This deployment was restored from a backup and is paused: no call leaves, and no schedule runs. An operator ends this with: signalbox resume, or POST /api/resume.',
        { code: 'PAUSED' },
      );
    },
    async begin() {
      runs = false;
      await pool.query('INSERT INTO service.pause (since) VALUES ($1) ON CONFLICT DO NOTHING', [seconds(Date.now())]);
    },
    async end() {
      await pool.query('DELETE FROM service.pause');
    },
    async ended(signal, failed) {
      while (!signal.aborted) {
        const isOver = await since().then(
          (at) => at === null,
          (error: unknown) => {
            failed(error);
            return false;
          },
        );
        if (isOver) return;
        await wait(LOOK_MS, signal);
      }
    },
  };
}
