/** Every schedule of the service, with the stores and queries behind it. */
import { backupSchedule } from '../commands/schedules/admin/backup.ts';
import { cleanupSchedule } from '../commands/schedules/admin/cleanup.ts';
import { cronSchedule } from '../commands/schedules/admin/cron.ts';
import { heartbeatSummarySchedule } from '../commands/schedules/agents/leases.ts';
import { livenessSchedule } from '../commands/schedules/agents/liveness.ts';
import { agentReferencesSchedule } from '../commands/schedules/agents/references.ts';
import { alertsSchedule } from '../commands/schedules/alerts/evaluations.ts';
import { connectionsSchedule } from '../commands/schedules/connections.ts';
import { githubSchedule } from '../commands/schedules/github/syncs.ts';
import { projectDeletionsSchedule } from '../commands/schedules/projects/deletion.ts';
import { reviewsSchedule } from '../commands/schedules/quality/verdicts.ts';
import type { Schedule, Setting } from '../commands/schedules/schedule.ts';
import { taskDispatchSchedule } from '../commands/schedules/tasks/dispatch.ts';
import { staleTasksSchedule } from '../commands/schedules/tasks/queue.ts';
import { recurringTasksSchedule } from '../commands/schedules/tasks/recurrence.ts';
import { taskRoutingSchedule } from '../commands/schedules/tasks/routing.ts';
import { webhookRetrySchedule } from '../commands/schedules/webhooks/retries.ts';
import { workspaceRemovalsSchedule } from '../commands/schedules/workspaces/removal.ts';
import { projections } from '../projections/index.ts';
import { settingValues } from '../queries/admin/settings.ts';
import { silentAgents } from '../queries/agents/liveness.ts';
import { alertReads } from '../queries/alerts/rules.ts';
import { adminsIn } from '../queries/auth/users.ts';
import { staleConnections } from '../queries/connections.ts';
import { projectDirectory, projectTasks } from '../queries/projects/projects.ts';
import { dispatchReads } from '../queries/tasks/dispatch.ts';
import { staleTaskReads } from '../queries/tasks/queue.ts';
import { recurrenceReads } from '../queries/tasks/recurrence.ts';
import { routingReads } from '../queries/tasks/routing.ts';
import type { Core } from './core.ts';
import { sessionsSchedule } from './credentials/credentials.ts';
import { type ScheduleJob, scheduleJob } from './jobs/schedules.ts';
import { createLogIndex } from './log-index/log-index.ts';
import { createGithub } from './outgoing/github/client.ts';
import { historySchedule } from './read-models/retention.ts';
import { createScheduleRuns } from './stores/admin/scheduler.ts';
import { idempotencySchedule } from './stores/idempotency.ts';
import { logLinesSchedule } from './stores/monitoring/logs.ts';
import { createBackups } from './tools/backup.ts';

type Parts = Pick<
  Core,
  'commands' | 'leases' | 'reads' | 'config' | 'database' | 'eventLog' | 'positions' | 'locks' | 'log' | 'pause'
>;

/**
 * @param now Unix ms
 * @param retryWebhooks returns how many deliveries wait for a retry; only workers can retry
 */
export function schedulesOf(
  parts: Parts,
  now: () => number = () => Date.now(),
  retryWebhooks: () => Promise<number> = async () => 0,
): readonly ScheduleJob[] {
  const { database, log } = parts;
  const runs = createScheduleRuns(database.pool, log, now);
  return allSchedules(parts, now, retryWebhooks).map((schedule) => scheduleJob(runs, now, schedule));
}

function allSchedules(parts: Parts, now: () => number, retry: () => Promise<number>): readonly Schedule[] {
  const { commands, leases, reads, config, database, eventLog, positions, locks, log } = parts;
  const setting: Setting = async (name) => (await settingValues(reads, config, [name]))[name];
  const startedAt = now();
  const projects = projectDirectory(reads);
  const running = {
    commands,
    reads: dispatchReads(reads),
    locks,
    now,
    setting,
    hasRunner: config.runnerUrl !== undefined,
  };
  const index = createLogIndex({ database, eventLog, timeoutMs: config.visibleTimeoutMs });
  const schedules: readonly Schedule[] = [
    heartbeatSummarySchedule({ commands, leases, readModels: positions }),
    livenessSchedule({
      commands,
      leases,
      silentAgents: (since) => silentAgents(reads, since),
      setting,
      startedAt,
      now,
    }),
    connectionsSchedule({
      commands,
      leases,
      startedAt,
      now,
      timeoutMinutes: config.connectionTimeoutMinutes,
      staleConnections: (since) => staleConnections(reads, since),
    }),
    backupSchedule({ commands, backups: createBackups({ database, eventLog, config }), setting }),
    cleanupSchedule({
      commands,
      setting,
      historyDays: config.retainHistoryDays,
      now,
      reads,
    }),
    projectDeletionsSchedule({ commands, readModels: positions, projects, projectTasks: projectTasks(reads) }),
    workspaceRemovalsSchedule({ commands, leases, reads, admins: adminsIn(reads) }),
    agentReferencesSchedule({ commands, reads }),
    staleTasksSchedule({
      commands,
      setting,
      now,
      staleMinutes: config.staleTaskMinutes,
      reads: staleTaskReads(reads),
    }),
    recurringTasksSchedule({
      commands,
      projects,
      setting,
      now,
      zone: config.timeZone,
      reads: recurrenceReads(reads),
    }),
    taskRoutingSchedule({ commands, reads: routingReads(reads), setting }),
    taskDispatchSchedule(running),
    reviewsSchedule(running),
    githubSchedule({
      commands,
      projects,
      setting,
      now,
      everyMs: config.githubSyncIntervalMs,
      github: createGithub({ ...config, gate: parts.pause.refuse }, now),
      reads,
    }),
    webhookRetrySchedule({ retry, setting }),
    alertsSchedule({
      commands,
      reads: alertReads(reads),
      now,
      everySeconds: config.alertSeconds,
      failed: (error, { workspace, id }) =>
        log.error({ err: error, workspace, rule: id }, 'an alert rule could not be evaluated'),
    }),
    idempotencySchedule(database.pool),
    logLinesSchedule(database.pool, setting, now),
    historySchedule({ index, db: database.db, projections, locks, days: config.retainHistoryDays, now }),
    sessionsSchedule(database.pool, now),
  ];
  return [...schedules, cronSchedule({ commands, projects, tasks: schedules, zone: config.timeZone, now })];
}
