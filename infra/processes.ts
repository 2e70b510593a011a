/** The processes of a deployment, for `signalbox status`. */
import { hostname } from 'node:os';
import { createOutage } from '../shared/waiting.ts';
import type { Core } from './core.ts';

const BEAT_MS = 2_000;
/** A process that has not reported for this long counts as gone, milliseconds. */
export const GONE_MS = 15_000;

/** Registers this process and keeps the entry alive. @returns a function that removes it */
export async function registerProcess(core: Core, role: string, version: string): Promise<() => Promise<void>> {
  const { pool } = core.database;
  const beat = async () => {
    const now = Date.now();
    await pool.query(
      `INSERT INTO service.processes (id, role, host, pid, version, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
       ON CONFLICT (id) DO UPDATE SET seen_at = $6`,
      [core.process, role, hostname(), process.pid, version, now],
    );
    await pool.query('DELETE FROM service.processes WHERE seen_at < $1', [now - 20 * GONE_MS]);
  };
  await beat();
  const beating = createOutage(
    core.log,
    'the heartbeat of this process could not be stored',
    'the heartbeat of this process is stored again',
  );
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= beat()
      .then(beating.worked, beating.failed)
      .finally(() => {
        running = undefined;
      });
  }, BEAT_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await pool
      .query('DELETE FROM service.processes WHERE id = $1', [core.process])
      .catch((error) => core.log.warn({ err: error }, 'this process could not be removed from the list of processes'));
  };
}
