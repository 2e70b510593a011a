/** Runs the scheduled jobs that are due. */
import type { ProjectDirectory } from '../../../queries/projects/projects.ts';
import { AppError } from '../../../shared/errors.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { newId } from '../../../shared/ids.ts';
import { CRON_STREAM, type CronWork, cronDecider, runIfDue } from '../../admin/cron.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { counted, EVERY_MINUTE_MS, type Schedule } from '../schedule.ts';

/**
 * @returns the number of jobs that were run, and of those that failed. A failed job does not stop the others.
 *
 * @param zone of jobs without a time zone
 * @throws the first failure of a store, at the end
 */
export async function runDueJobs(
  work: CronWork,
  zone: string,
): Promise<{ readonly runs: number; readonly failed: number }> {
  const { state } = await work.commands.load(cronDecider, CRON_STREAM);
  const context = scheduledContext(newId(), DEFAULT_TENANT, DEFAULT_WORKSPACE);
  const failures: unknown[] = [];
  let runs = 0;
  let failed = 0;
  for (const { name } of state.jobs) {
    try {
      const result = await runIfDue(work, context, name, zone);
      if (!result) continue;
      runs++;
      if (!result.ok) failed++;
    } catch (error) {
      const status = error instanceof AppError ? error.status : undefined;
      // The job has been removed since.
      if (status !== 404) failures.push(error);
      if (status === 503) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  return { runs, failed };
}

/** @param parts.tasks the schedules that a job may run, by their ids */
export function cronSchedule(parts: {
  readonly commands: Commands;
  readonly projects: ProjectDirectory;
  readonly tasks: readonly Schedule[];
  /** Of jobs that name none. */
  readonly zone: string;
  readonly now: () => number;
}): Schedule {
  const { commands, projects, tasks, zone, now } = parts;
  return {
    id: 'cron',
    kind: 'cron-jobs',
    name: 'Run scheduled jobs that are due',
    everyMs: EVERY_MINUTE_MS,
    async run(_asked, signal) {
      const run = async (command: string) => {
        const task = tasks.find(({ id }) => id === command);
        if (!task) throw new Error(`There is no scheduled task ${command}.`);
        return task.run(true, signal);
      };
      const { runs, failed } = await runDueJobs({ commands, projects, run, now }, zone);
      return `${counted(runs, 'job was', 'jobs were')} run, ${failed} failed.`;
    },
  };
}
