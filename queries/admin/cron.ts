/** Scheduled jobs, their log and their history. */
import { cronProjection } from '../../projections/admin/cron.ts';
import type { CronJobRecord, RUN_STATUSES } from '../../shared/contract/admin/cron.ts';
import { nextDue, planProblem, staggerOf } from '../../shared/cron.ts';
import { notFound } from '../../shared/errors.ts';
import { seconds } from '../../shared/time.ts';
import { type Reads, tables } from '../reads.ts';

const own = (reads: Reads) => tables(reads, cronProjection);
type Status = (typeof RUN_STATUSES)[number];

/** The next run, Unix ms, as is `now`; null: none. @param late seconds */
function nextRun(schedule: string, zone: string, late: number, now: number): number | null {
  const due = nextDue(schedule, zone, seconds(now) - late);
  return due === null ? null : (due + late) * 1_000;
}

/** Jobs by name. One that cannot be planned has its reason as `lastError`. @param zone of jobs without a time zone @param now Unix ms */
export async function listJobs(reads: Reads, zone: string, now: number): Promise<CronJobRecord[]> {
  const rows = await own(reads).selectFrom('cron_jobs').selectAll().orderBy('name').execute();
  return rows.map(
    ({ name, schedule, command, enabled, time_zone, stagger_seconds, agent, last_run, last_status, last_error }) => {
      const ownZone = time_zone ?? zone;
      const problem = planProblem(schedule, ownZone);
      const lastStatus = problem === undefined ? (last_status as Status | null) : 'error';
      // A run before the clock was set back is not in the future.
      const lastRun = last_run === null ? null : Math.min(last_run, now);
      const late = staggerOf(name, stagger_seconds ?? 0);
      return {
        name,
        schedule: time_zone === null ? schedule : `${schedule} (${time_zone})`,
        enabled,
        last_run: lastRun === null ? null : seconds(lastRun),
        last_status: lastStatus,
        id: name,
        command,
        ...(agent !== null && { agentId: agent }),
        ...(time_zone !== null && { timezone: time_zone }),
        ...(stagger_seconds !== null && { staggerSeconds: stagger_seconds }),
        lastRun,
        nextRun: enabled && problem === undefined ? nextRun(schedule, ownZone, late, now) : null,
        lastStatus,
        lastError: problem ?? last_error,
      };
    },
  );
}

/** Runs of a job, newest first. @throws AppError 404 */
async function runsOf(reads: Reads, name: string) {
  const job = await own(reads).selectFrom('cron_jobs').select('name').where('name', '=', name).executeTakeFirst();
  if (!job) throw notFound('Scheduled job');
  return own(reads).selectFrom('cron_runs').selectAll().where('name', '=', name).orderBy('run', 'desc').execute();
}

/** Maximum number of lines about runs of all jobs. */
const LINES = 200;

/** The results of a job's runs, newest first; without a job, the last lines of all jobs. @throws AppError 404 */
export async function jobLogs(reads: Reads, job: string | undefined) {
  const runs =
    job === undefined
      ? await own(reads)
          .selectFrom('cron_runs')
          .selectAll()
          .orderBy('started_at', 'desc')
          .orderBy('name')
          .orderBy('run', 'desc')
          .limit(LINES)
          .execute()
      : await runsOf(reads, job);
  const lines = runs.flatMap(({ name, run, status, message, started_at, duration_ms, late_by }) => [
    ...(status === 'running'
      ? []
      : [
          {
            timestamp: started_at + (duration_ms ?? 0),
            message: `Run ${run}: ${message}`,
            level: status === 'error' ? ('error' as const) : ('info' as const),
            job: name,
          },
        ]),
    {
      timestamp: started_at,
      message: `Run ${run} began${late_by === null ? '' : ` late: it was due ${late_by} s before`}.`,
      level: 'info' as const,
      job: name,
    },
  ]);
  return job === undefined ? lines.sort((a, b) => b.timestamp - a.timestamp).slice(0, LINES) : lines;
}

const PAGE = 20;

/** @throws AppError 404 */
export async function jobHistory(reads: Reads, name: string, page: number, query: string | undefined) {
  const asked = query?.trim().toLowerCase() ?? '';
  const found = (await runsOf(reads, name)).filter(
    ({ status, message }) => status.includes(asked) || (status === 'error' && message.toLowerCase().includes(asked)),
  );
  const entries = found.slice((page - 1) * PAGE, page * PAGE);
  return {
    entries: entries.map(({ status, message, started_at, duration_ms }) => ({
      jobId: name,
      status: status as Status,
      timestamp: started_at,
      ...(duration_ms !== null && { durationMs: duration_ms }),
      ...(status === 'error' && { error: message }),
    })),
    total: found.length,
    hasMore: page * PAGE < found.length,
    page,
  };
}
