/** Runs the scheduled jobs whose time has come. */
import { randomUUID } from 'node:crypto';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { CRON_STREAM, cronDecider, type RunCommand, runIfDue } from '../../admin/cron.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext } from '../policy.ts';

/** Gives the number of jobs that were run, and of those that failed. A job that fails keeps no other from being run. */
export async function runDueJobs(parts: {
  readonly commands: Commands;
  readonly run: RunCommand;
  readonly zone: string;
  /** Unix ms. */
  readonly now: () => number;
}): Promise<{ readonly runs: number; readonly failed: number }> {
  const { commands } = parts;
  const { state } = await commands.load(cronDecider, CRON_STREAM);
  const context = scheduledContext(randomUUID(), DEFAULT_TENANT, DEFAULT_WORKSPACE);
  let runs = 0;
  let failed = 0;
  for (const { name } of state.jobs) {
    const result = await runIfDue(commands, context, name, parts);
    if (!result) continue;
    runs++;
    if (!result.ok) failed++;
  }
  return { runs, failed };
}
