/** The scheduler as the API shows it (`shared/ports/admin/scheduler.ts`). */
import { randomUUID } from 'node:crypto';
import { unavailable } from '../../shared/errors.ts';
import type { ScheduledTask, Scheduler } from '../../shared/ports/admin/scheduler.ts';
import { type Jobs, JobsUnavailableError } from '../../shared/ports/jobs.ts';
import { pause } from '../../shared/waiting.ts';
import type { ScheduleRuns } from '../stores/admin/scheduler.ts';
import type { ScheduleJob } from './schedules.ts';

/** How long a call waits for the requested run, and how often it checks; milliseconds. */
const WAIT_MS = 10_000;
const LOOK_MS = 100;
/** A run that is this much overdue counts as dead, with its process, milliseconds. */
const GONE_MS = 60_000;

/** @param parts.jobs opened at their first use */
export function createScheduler(parts: {
  readonly schedules: readonly ScheduleJob[];
  readonly runs: ScheduleRuns;
  readonly jobs: () => Promise<Pick<Jobs, 'enqueue'>>;
  readonly now: () => number;
  /** @throws AppError while no schedule may run */
  readonly gate: () => Promise<void>;
  /** Default 10 s. */
  readonly waitMs?: number;
}): Scheduler {
  const { schedules, runs, now, waitMs = WAIT_MS } = parts;

  async function enqueue({ kind }: ScheduleJob, asked: string): Promise<void> {
    try {
      const jobs = await parts.jobs();
      await jobs.enqueue(kind, { asked }, { id: asked });
    } catch (error) {
      if (!(error instanceof JobsUnavailableError)) throw error;
      throw unavailable('The job store cannot be reached, so the task was not started; try again.', {
        code: 'STORE_UNAVAILABLE',
        cause: error,
      });
    }
  }

  return {
    ids: schedules.map(({ id }) => id),
    async list() {
      const known = await runs.all();
      const at = now();
      return Promise.all(
        schedules.map(async (schedule): Promise<ScheduledTask> => {
          const { id, name, kind } = schedule;
          const run = known.get(kind.name);
          const since = run?.runningSince ?? null;
          return {
            id,
            name,
            enabled: await schedule.enabled(),
            // A run before the clock was set back is not in the future.
            lastRun: run?.lastRun == null ? null : Math.min(run.lastRun, at),
            nextRun: schedule.next(at),
            running: since !== null && Math.abs(at - since) < kind.timeoutMs + GONE_MS,
            ...(run?.lastResult && {
              lastResult: { ...run.lastResult, timestamp: Math.min(run.lastResult.timestamp, at) },
            }),
          };
        }),
      );
    },
    async runNow(id) {
      const schedule = schedules.find((one) => one.id === id);
      if (!schedule) throw new Error(`there is no scheduled task ${id}`);
      await parts.gate();
      const asked = `asked-${randomUUID()}`;
      await enqueue(schedule, asked);
      const deadline = now() + waitMs;
      while (now() < deadline) {
        const result = await runs.resultOf(schedule.kind.name, asked);
        if (result?.fault) throw unavailable(result.message, { code: result.fault, headers: { 'Retry-After': '5' } });
        if (result) return { ok: result.ok, message: result.message };
        await pause(LOOK_MS);
      }
      return { ok: true, message: 'It was handed to the workers and has not ended yet.' };
    },
  };
}
