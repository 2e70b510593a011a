/**
 * The last run of each schedule, in PostgreSQL, so that every process shows the same. One row for each schedule: it
 * needs no purge. Runs are not events, because they happen every minute and say nothing about the records; their
 * effects are in the log.
 */
import type pg from 'pg';
import { AppError } from '../../../shared/errors.ts';
import { maskedAddresses } from '../../../shared/secret-texts.ts';
import { frontOf, storableText } from '../../../shared/storable.ts';
import { storeFaultOf } from '../../../shared/store-faults.ts';
import type { Logger } from '../../logging.ts';

/** Characters of a message. */
const MAX_MESSAGE = 1_000;

export interface ScheduleRun {
  readonly runningSince: number | null;
  readonly lastRun: number | null;
  readonly lastResult: { readonly ok: boolean; readonly message: string; readonly timestamp: number } | null;
}

/** The result of a requested run. */
export interface AskedResult {
  readonly ok: boolean;
  readonly message: string;
  /** Code of the fault of a store (`StoreFault`) because of which it failed. */
  readonly fault: string | null;
}

export interface ScheduleRuns {
  /** Runs a schedule and records the result. @throws what `work` throws */
  scheduled(schedule: string, work: () => Promise<string>): Promise<void>;
  /** The same for a run on request, under the name `asked`. Does not throw. */
  asked(schedule: string, asked: string, work: () => Promise<string>): Promise<void>;
  /** The result of a requested run; undefined: it has not ended, or another one has been requested since. */
  resultOf(schedule: string, asked: string): Promise<AskedResult | undefined>;
  last(schedule: string): Promise<ScheduleRun>;
  all(): Promise<ReadonlyMap<string, ScheduleRun>>;
}

const NEVER: ScheduleRun = { runningSince: null, lastRun: null, lastResult: null };

/** The columns of a `ScheduleRun`. */
const RUN = `running_since AS "runningSince", last_run AS "lastRun", CASE WHEN last_at IS NOT NULL THEN
  json_build_object('ok', last_ok, 'message', last_message, 'timestamp', last_at) END AS "lastResult"`;

const said = (text: string): string => frontOf(storableText(maskedAddresses(text)), MAX_MESSAGE);

export function createScheduleRuns(pool: pg.Pool, log: Logger, now: () => number = Date.now): ScheduleRuns {
  /** Sets columns of a schedule's row. A failure to store the progress must not stop the work. */
  async function note(schedule: string, values: Readonly<Record<string, unknown>>): Promise<void> {
    const names = Object.keys(values);
    try {
      await pool.query(
        `INSERT INTO service.schedule_runs (schedule, ${names.join(', ')})
         VALUES ($1, ${names.map((_, at) => `$${at + 2}`).join(', ')})
         ON CONFLICT (schedule) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
        [schedule, ...Object.values(values)],
      );
    } catch (error) {
      log.warn({ err: error, schedule }, 'how a scheduled task goes could not be stored');
    }
  }

  /** The result of `work`, or why it failed. */
  async function outcomeOf(work: () => Promise<string>) {
    try {
      return { ok: true, message: said(await work()), error: undefined };
    } catch (error) {
      return { ok: false, message: said(error instanceof Error ? error.message : String(error)), error };
    }
  }

  return {
    async scheduled(schedule, work) {
      const begun = now();
      await note(schedule, { running_since: begun });
      const { ok, message, error } = await outcomeOf(work);
      await note(schedule, {
        running_since: null,
        last_run: begun,
        last_ok: ok,
        last_message: message,
        last_at: now(),
      });
      if (!ok) throw error;
    },
    async asked(schedule, asked, work) {
      await note(schedule, { running_since: now() });
      const { ok, message, error } = await outcomeOf(work);
      if (!ok) log.error({ err: error, schedule }, 'a scheduled task that was run by hand failed');
      const isBehind = error instanceof AppError && error.status === 503;
      const fault = isBehind ? { code: error.extras.code, message } : storeFaultOf(error);
      await note(schedule, {
        running_since: null,
        asked,
        asked_ok: ok,
        asked_message: fault?.message ?? message,
        asked_fault: fault ? String(fault.code ?? 'STORE_UNAVAILABLE') : null,
      });
    },
    async resultOf(schedule, asked) {
      const { rows } = await pool.query(
        `SELECT asked_ok AS ok, asked_message AS message, asked_fault AS fault
         FROM service.schedule_runs WHERE schedule = $1 AND asked = $2`,
        [schedule, asked],
      );
      return rows[0] as AskedResult | undefined;
    },
    async last(schedule) {
      const { rows } = await pool.query(`SELECT ${RUN} FROM service.schedule_runs WHERE schedule = $1`, [schedule]);
      return (rows[0] as ScheduleRun | undefined) ?? NEVER;
    },
    async all() {
      const { rows } = await pool.query(`SELECT schedule, ${RUN} FROM service.schedule_runs`);
      return new Map(rows.map(({ schedule, ...run }) => [schedule as string, run as ScheduleRun]));
    },
  };
}
