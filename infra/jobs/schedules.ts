/**
 * Runs schedules (`commands/schedules/schedule.ts`): each is a repeated job. One of the processes runs it, and the
 * result is recorded for all.
 */
import { z } from 'zod';
import type { Schedule } from '../../commands/schedules/schedule.ts';
import { defineJob, handleJob, type JobHandler, type JobKind } from '../../shared/ports/jobs.ts';
import { DAY, HOUR, MINUTE } from '../../shared/time.ts';
import type { ScheduleRuns } from '../stores/admin/scheduler.ts';

const payload = z.object({
  /** Name under which the run was requested; without it, the run is a scheduled one. */
  asked: z.string().optional(),
});
type Payload = z.infer<typeof payload>;

/** A schedule, and the job that runs it. */
export interface ScheduleJob extends Pick<Schedule, 'id' | 'name' | 'everyMs'> {
  /** `kind.name` is the name of the schedule in the job store. */
  readonly kind: JobKind<Payload>;
  readonly handler: JobHandler;
  readonly enabled: () => Promise<boolean>;
  /** Its next due time; Unix ms in and out. */
  readonly next: (now: number) => number;
}

/** A job is aborted before the next one is due, so jobs never overlap; milliseconds. */
const TIMEOUT_MS = 4 * MINUTE * 1_000;
const HOUR_MS = HOUR * 1_000;
const DAY_MS = DAY * 1_000;

/** The last time at which a daily schedule was due, Unix ms. */
const lastSlot = (dailyAt: number, now: number): number =>
  Math.floor((now - dailyAt * HOUR_MS) / DAY_MS) * DAY_MS + dailyAt * HOUR_MS;

/**
 * A schedule that has never run is not made up for: it waits for its hour. So does one whose last run is more than a day
 * ahead, because the clock was set back.
 */
const isDue = (dailyAt: number, lastRun: number | null, now: number): boolean => {
  const slot = lastSlot(dailyAt, now);
  return lastRun === null || lastRun > now + DAY_MS ? now - slot < HOUR_MS : lastRun < slot;
};

/** @param now Unix ms */
export function scheduleJob(runs: ScheduleRuns, now: () => number, schedule: Schedule): ScheduleJob {
  const { id, name, everyMs, dailyAt, run, enabled = async () => true } = schedule;
  const timeoutMs = Math.min(TIMEOUT_MS, everyMs - 5_000);
  const kind = defineJob({ name: schedule.kind, schema: payload, timeoutMs });
  return {
    id,
    name,
    kind,
    everyMs,
    enabled,
    next: (at) => (dailyAt === undefined ? (Math.floor(at / everyMs) + 1) * everyMs : lastSlot(dailyAt, at) + DAY_MS),
    handler: handleJob(kind, async ({ asked }, { signal }) => {
      if (asked !== undefined) return runs.asked(kind.name, asked, () => run(true, signal));
      if (!(await enabled())) return;
      if (dailyAt !== undefined && !isDue(dailyAt, (await runs.last(kind.name)).lastRun, now())) return;
      await runs.scheduled(kind.name, () => run(false, signal));
    }),
  };
}
