/**
 * The processes of a deployment, for `signalbox status`. Each writes its row every few seconds, which also shows whether
 * the stores accept writes.
 */
import { hostname } from 'node:os';
import { storeFaultOf } from '../shared/store-faults.ts';
import { askedSince, createOutage, within } from '../shared/waiting.ts';
import type { Core } from './core.ts';
import { waitForStore } from './database/wait.ts';

const BEAT_MS = 2_000;
/** A process that has not reported for this long counts as gone, milliseconds. */
export const GONE_MS = 15_000;
/** Time limit for a write that shows whether the stores accept any, milliseconds. */
const WRITE_MS = 3_000;
/** How old such a write may be to show it, milliseconds. */
const FRESH_MS = 250;

export interface RegisteredProcess {
  /** Writes the row, unless it has just been written. @throws the error of the store that accepts no writes */
  checkWritable(): Promise<void>;
  /** Removes the row. */
  remove(): Promise<void>;
}

/** Registers this process and keeps its row alive. @param startBy until when to wait for a database that accepts writes */
export async function registerProcess(
  core: Core,
  role: string,
  version: string,
  startBy: number,
): Promise<RegisteredProcess> {
  const { pool } = core.database;
  const write = async () => {
    const now = Date.now();
    await pool.query(
      `INSERT INTO service.processes (id, role, host, pid, version, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
       ON CONFLICT (id) DO UPDATE SET seen_at = $6`,
      [core.process, role, hostname(), process.pid, version, now],
    );
    await pool.query('DELETE FROM service.processes WHERE seen_at < $1', [now - 20 * GONE_MS]);
  };
  await waitForStore('a database that accepts writes', write, startBy, core.log);
  const beat = async () => {
    await write();
    await core.eventLog.checkWritable?.();
  };
  const beating = createOutage(core.log, 'the stores accept no writes', 'the stores accept writes again');
  const written = askedSince(async () => {
    try {
      await within(WRITE_MS, beat(), 'a write');
      beating.worked();
      return undefined;
    } catch (error) {
      const fault = storeFaultOf(error);
      beating.failed(error, fault && { code: fault.code, remedy: fault.message });
      return { error };
    }
  });
  const check = async (since?: number) => {
    const failure = await written(since);
    if (failure) throw failure.error;
  };
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    // The failure is logged.
    running ??= check()
      .catch(() => undefined)
      .finally(() => {
        running = undefined;
      });
  }, BEAT_MS);
  timer.unref();
  return {
    checkWritable: () => check(performance.now() - FRESH_MS),
    async remove() {
      clearInterval(timer);
      await running;
      await pool
        .query('DELETE FROM service.processes WHERE id = $1', [core.process])
        .catch((error) =>
          core.log.warn({ err: error }, 'this process could not be removed from the list of processes'),
        );
    },
  };
}
