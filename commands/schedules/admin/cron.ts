/** Runs the scheduled jobs whose time has come. */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../../shared/errors.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { CRON_STREAM, type CronWork, cronDecider, runIfDue } from '../../admin/cron.ts';
import { scheduledContext } from '../../policies/policy.ts';

/**
 * Gives the number of jobs that were run, and of those that failed. A job that fails keeps no other from being run.
 *
 * @param zone of jobs that name none
 * @throws the first failure of a store, at the end
 */
export async function runDueJobs(
  work: CronWork,
  zone: string,
): Promise<{ readonly runs: number; readonly failed: number }> {
  const { state } = await work.commands.load(cronDecider, CRON_STREAM);
  const context = scheduledContext(randomUUID(), DEFAULT_TENANT, DEFAULT_WORKSPACE);
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
      // It has been removed since.
      if (status !== 404) failures.push(error);
      if (status === 503) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  return { runs, failed };
}
