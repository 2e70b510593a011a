/**
 * Scheduled work: the liveness sweep, stale and recurring tasks, deletions of projects, and housekeeping. Each scheduled
 * job is run by one of the processes.
 */
import { z } from 'zod';
import { sweepLiveness } from '../../commands/policies/agents/liveness.ts';
import { finishDeletions } from '../../commands/policies/projects/deletion.ts';
import { requeueStaleTasks } from '../../commands/policies/tasks/queue.ts';
import { spawnRecurring } from '../../commands/policies/tasks/recurrence.ts';
import { settingValues } from '../../queries/admin/settings.ts';
import { silentAgents } from '../../queries/agents/liveness.ts';
import { projectDirectory, projectTasks } from '../../queries/projects/projects.ts';
import { staleTaskReads } from '../../queries/tasks/queue.ts';
import { recurrenceReads } from '../../queries/tasks/recurrence.ts';
import { defineJob, handleJob, type JobHandler, type JobKind } from '../../shared/ports/jobs.ts';
import { HOUR, MINUTE, seconds } from '../../shared/time.ts';
import type { Core } from '../core.ts';
import { purgeIdempotency } from '../database/idempotency.ts';
import { createLogEntries } from '../database/log-entries.ts';

export interface Schedule {
  readonly kind: JobKind;
  readonly everyMs: number;
  readonly handler: JobHandler;
}

/** A job is aborted before the next one is due, so that they never overlap; milliseconds. */
const TIMEOUT_MS = 4 * MINUTE * 1_000;
const EVERY_MINUTE_MS = MINUTE * 1_000;
const SWEEP_MS = 5 * MINUTE * 1_000;
/** Deletions of projects are gone on with for as long in one turn, milliseconds. */
const DELETIONS_MS = 40_000;

function schedule(name: string, everyMs: number, run: () => Promise<void>): Schedule {
  const kind = defineJob({ name, schema: z.object({}), timeoutMs: Math.min(TIMEOUT_MS, everyMs - 5_000) });
  return { kind, everyMs, handler: handleJob(kind, run) };
}

/** @param now Unix ms */
export function schedulesOf(
  {
    commands,
    reads,
    config,
    database,
    positions,
  }: Pick<Core, 'commands' | 'reads' | 'config' | 'database' | 'positions'>,
  now: () => number = Date.now,
): readonly Schedule[] {
  const startedAt = now();
  return [
    schedule('liveness-sweep', SWEEP_MS, async () => {
      // A sweep that was due while the service was down runs at once, before any agent had a chance to report.
      if (config.agentTimeoutMinutes === 0 || now() - startedAt < SWEEP_MS) return;
      await sweepLiveness({
        commands,
        silentAgents: (since) => silentAgents(reads, since),
        timeoutMinutes: config.agentTimeoutMinutes,
        now,
      });
    }),
    schedule('project-deletions', EVERY_MINUTE_MS, () =>
      finishDeletions(
        { commands, readModels: positions, projects: projectDirectory(reads), projectTasks: projectTasks(reads) },
        Date.now() + DELETIONS_MS,
      ),
    ),
    schedule('stale-tasks', EVERY_MINUTE_MS, async () => {
      if (config.staleTaskMinutes === 0) return;
      await requeueStaleTasks({ commands, reads: staleTaskReads(reads), staleMinutes: config.staleTaskMinutes, now });
    }),
    schedule('recurring-tasks', EVERY_MINUTE_MS, async () => {
      const zone = config.timeZone;
      await spawnRecurring({ commands, reads: recurrenceReads(reads), projects: projectDirectory(reads), zone, now });
    }),
    schedule('purge-idempotency-keys', 10 * MINUTE * 1_000, async () => {
      await purgeIdempotency(database.pool);
    }),
    schedule('purge-logs', 10 * MINUTE * 1_000, async () => {
      const { 'retention.logs_days': days } = await settingValues(reads, config, ['retention.logs_days']);
      await createLogEntries(database.pool).purge(Number(days), now());
    }),
    schedule('purge-sessions', HOUR * 1_000, async () => {
      // Expired sessions are no longer accepted anyway, so no cache has to be invalidated.
      await database.pool.query('DELETE FROM credentials.sessions WHERE expires_at <= $1', [seconds(now())]);
    }),
  ];
}
