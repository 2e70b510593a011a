/**
 * Scheduled work: silent agents and connections, stale and recurring tasks, deletions of projects and workspaces,
 * cleanup and housekeeping. Each scheduled job is run by one of the processes; how it went is recorded for all.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { createBackup } from '../../commands/admin/backup.ts';
import { scheduledContext } from '../../commands/policies/policy.ts';
import { reviewTasks } from '../../commands/policies/quality/verdicts.ts';
import { dispatchTasks } from '../../commands/policies/tasks/dispatch.ts';
import { cleanUp, cleanUpWorkspaces } from '../../commands/schedules/admin/cleanup.ts';
import { runDueJobs } from '../../commands/schedules/admin/cron.ts';
import { sweepLiveness } from '../../commands/schedules/agents/liveness.ts';
import { evaluateAlerts, FIRST } from '../../commands/schedules/alerts/evaluations.ts';
import { disconnectStale } from '../../commands/schedules/connections.ts';
import { syncProjects } from '../../commands/schedules/github/syncs.ts';
import { finishDeletions } from '../../commands/schedules/projects/deletion.ts';
import { requeueStaleTasks } from '../../commands/schedules/tasks/queue.ts';
import { spawnRecurring } from '../../commands/schedules/tasks/recurrence.ts';
import { routeTasks } from '../../commands/schedules/tasks/routing.ts';
import { finishRemovals } from '../../commands/schedules/workspaces/removal.ts';
import { projections } from '../../projections/index.ts';
import { retentionReads } from '../../queries/admin/cleanup.ts';
import { settingValues } from '../../queries/admin/settings.ts';
import { silentAgents } from '../../queries/agents/liveness.ts';
import { alertReads } from '../../queries/alerts/rules.ts';
import { adminsIn } from '../../queries/auth/users.ts';
import { staleConnections } from '../../queries/connections.ts';
import { githubProjects } from '../../queries/github/syncs.ts';
import { notificationDirectory } from '../../queries/monitoring/notifications.ts';
import { projectDirectory, projectTasks } from '../../queries/projects/projects.ts';
import { dispatchReads } from '../../queries/tasks/dispatch.ts';
import { staleTaskReads } from '../../queries/tasks/queue.ts';
import { recurrenceReads } from '../../queries/tasks/recurrence.ts';
import { routingReads } from '../../queries/tasks/routing.ts';
import { workspaceContents } from '../../queries/workspaces/removal.ts';
import { allWorkspaces } from '../../queries/workspaces/workspaces.ts';
import type { SettingName } from '../../shared/contract/admin/settings.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { defineJob, handleJob, type JobHandler, type JobKind } from '../../shared/ports/jobs.ts';
import { DAY, HOUR, MINUTE, seconds } from '../../shared/time.ts';
import type { Core } from '../core.ts';
import { createGithub } from '../outgoing/github/client.ts';
import { createLogIndex } from '../proof/index.ts';
import { beginningOfPast, beginPastAt } from '../read-models/retention.ts';
import { createScheduleRuns, type ScheduleRuns } from '../stores/admin/scheduler.ts';
import { purgeIdempotency } from '../stores/idempotency.ts';
import { createLogEntries } from '../stores/monitoring/logs.ts';
import { createBackups } from '../tools/backup.ts';

export interface Schedule {
  /** Its name in the API; `kind.name` is that in the job store. */
  readonly id: string;
  readonly name: string;
  readonly kind: JobKind<Payload>;
  /** How often its job comes. */
  readonly everyMs: number;
  readonly handler: JobHandler;
  /** Whether settings let it run. */
  readonly enabled: () => Promise<boolean>;
  /** When it is due next; Unix ms in and out. */
  readonly next: (now: number) => number;
}

const payload = z.object({
  /** The run was asked for under this name; without it, it is due. */
  asked: z.string().optional(),
});
type Payload = z.infer<typeof payload>;

interface Definition {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly everyMs: number;
  /** Once a day from this hour on, UTC, instead of each time that its job comes. */
  readonly dailyAt?: number;
  /** Default: always. */
  readonly enabled?: () => Promise<boolean>;
  /** Gives what it has done, as a sentence. @param asked somebody wants it now, whatever it would wait for */
  readonly run: (asked: boolean, signal: AbortSignal) => Promise<string>;
}

/** A job is aborted before the next one is due, so that they never overlap; milliseconds. */
const TIMEOUT_MS = 4 * MINUTE * 1_000;
const EVERY_MINUTE_MS = MINUTE * 1_000;
const EVERY_TEN_MINUTES_MS = 10 * MINUTE * 1_000;
const SWEEP_MS = 5 * MINUTE * 1_000;
const HOUR_MS = HOUR * 1_000;
const DAY_MS = DAY * 1_000;
/** Deletions of projects are gone on with for as long in one turn, milliseconds. */
const DELETIONS_MS = 40_000;
/** Rules are evaluated for as long in one turn, milliseconds; the next one goes on. */
const ALERTS_MS = 40_000;
const CLEANUP_MS = 3 * MINUTE * 1_000;

const NO_RUNNER = 'No agent runner is configured: RUNNER_URL is not set. Tasks stay as they are.';

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** The last moment at which a daily task was due, Unix ms. */
const lastSlot = (dailyAt: number, now: number): number =>
  Math.floor((now - dailyAt * HOUR_MS) / DAY_MS) * DAY_MS + dailyAt * HOUR_MS;

/** A task that has never run is not made up for: it waits for its hour. */
const isDue = (dailyAt: number, lastRun: number | null, now: number): boolean => {
  const slot = lastSlot(dailyAt, now);
  return lastRun === null ? now - slot < HOUR_MS : lastRun < slot;
};

function schedule(runs: ScheduleRuns, now: () => number, definition: Definition): Schedule {
  const { id, name, everyMs, dailyAt, run, enabled = async () => true } = definition;
  const timeoutMs = Math.min(TIMEOUT_MS, everyMs - 5_000);
  const kind = defineJob({ name: definition.kind, schema: payload, timeoutMs });
  return {
    ...{ id, name, kind, everyMs, enabled },
    next: (at) => (dailyAt === undefined ? (Math.floor(at / everyMs) + 1) * everyMs : lastSlot(dailyAt, at) + DAY_MS),
    handler: handleJob(kind, async ({ asked }, { signal }) => {
      if (asked !== undefined) return runs.asked(kind.name, asked, () => run(true, signal));
      if (!(await enabled())) return;
      if (dailyAt !== undefined && !isDue(dailyAt, (await runs.last(kind.name)).lastRun, now())) return;
      await runs.scheduled(kind.name, () => run(false, signal));
    }),
  };
}

type Parts = Pick<Core, 'commands' | 'reads' | 'config' | 'database' | 'eventLog' | 'positions' | 'locks' | 'log'>;

/**
 * @param now Unix ms
 * @param retryWebhooks gives how many deliveries wait to be repeated; only workers can do it
 */
export function schedulesOf(
  { commands, reads, config, database, eventLog, positions, locks, log }: Parts,
  now: () => number = Date.now,
  retryWebhooks: () => Promise<number> = async () => 0,
): readonly Schedule[] {
  const startedAt = now();
  const runs = createScheduleRuns(database.pool, log, now);
  const setting = async (name: SettingName): Promise<string> => (await settingValues(reads, config, [name]))[name];
  const on = (name: SettingName) => async () => (await setting(name)) === 'true';
  const timeout = async () => Number(await setting('general.agent_timeout_minutes'));
  const notifications = notificationDirectory(reads);
  const backups = createBackups({ database, eventLog, config });
  const alertsMs = (config.alertSeconds || MINUTE) * 1_000;
  /** Where the last turn had to stop. */
  let alertsFrom = FIRST;
  const github = createGithub(config, now);
  const definitions: readonly Definition[] = [
    {
      ...{ id: 'agent_heartbeat', kind: 'liveness-sweep', everyMs: SWEEP_MS },
      name: 'Set silent agents offline',
      enabled: async () => (await on('general.agent_heartbeat')()) && (await timeout()) > 0,
      async run(asked) {
        // A sweep that was due while the service was down runs at once, before any agent had a chance to report.
        if (!asked && now() - startedAt < SWEEP_MS)
          return 'Too soon after the start of the process: agents may still report.';
        const timeoutMinutes = await timeout();
        if (timeoutMinutes === 0) return 'Agents are never set offline: general.agent_timeout_minutes is 0.';
        const find = (since: number) => silentAgents(reads, since);
        const marked = await sweepLiveness({ commands, silentAgents: find, timeoutMinutes, now });
        return `${counted(marked.length, 'agent was', 'agents were')} set offline.`;
      },
    },
    {
      ...{ id: 'stale_connections', kind: 'stale-connections', everyMs: EVERY_MINUTE_MS },
      name: 'Disconnect silent tools',
      enabled: async () => config.connectionTimeoutMinutes > 0,
      async run(asked) {
        const timeoutMinutes = config.connectionTimeoutMinutes;
        if (timeoutMinutes === 0) return 'Tools are never disconnected: MC_CONNECTION_TIMEOUT_MINUTES is 0.';
        // While the service was down, no tool could report.
        if (!asked && now() - startedAt < timeoutMinutes * EVERY_MINUTE_MS)
          return 'Too soon after the start of the process: tools may still report.';
        const find = (since: number) => staleConnections(reads, since);
        const ended = await disconnectStale({ commands, staleConnections: find, timeoutMinutes, now });
        return `${counted(ended.length, 'connection was', 'connections were')} ended.`;
      },
    },
    {
      ...{ id: 'auto_backup', kind: 'auto-backup', everyMs: EVERY_TEN_MINUTES_MS, dailyAt: 3 },
      name: 'Write a backup',
      enabled: on('general.auto_backup'),
      async run() {
        const keep = Number(await setting('general.backup_retention_count'));
        const context = scheduledContext(randomUUID(), DEFAULT_TENANT, DEFAULT_WORKSPACE);
        const { name, events } = await createBackup(commands, context, backups, keep);
        return `${name} was written: ${counted(events, 'event', 'events')}.`;
      },
    },
    {
      ...{ id: 'auto_cleanup', kind: 'auto-cleanup', everyMs: EVERY_TEN_MINUTES_MS, dailyAt: 4 },
      name: 'Remove old notifications, activities, pipeline runs, token reports and audit entries',
      enabled: on('general.auto_cleanup'),
      async run() {
        const notificationDays = Number(await setting('retention.notifications_days'));
        const deadline = now() + CLEANUP_MS;
        const removed = await cleanUp({ commands, notifications, notificationDays, deadline, now });
        const others = await cleanUpWorkspaces({
          cleaning: { commands, reads: retentionReads(reads), now },
          workspaces: await allWorkspaces(reads),
          retention: {
            activities: Number(await setting('retention.activities_days')),
            pipeline_runs: Number(await setting('retention.pipeline_runs_days')),
            token_usage: Number(await setting('retention.token_usage_days')),
            audit_log: Number(await setting('retention.audit_log_days')),
          },
          deadline,
        });
        const all = [
          counted(removed, 'notification', 'notifications'),
          ...(others.activities > 0 ? [counted(others.activities, 'activity', 'activities')] : []),
          ...(others.pipeline_runs > 0 ? [counted(others.pipeline_runs, 'pipeline run', 'pipeline runs')] : []),
          ...(others.token_usage > 0 ? [counted(others.token_usage, 'token report', 'token reports')] : []),
          ...(others.audit_log > 0 ? [counted(others.audit_log, 'audit entry', 'audit entries')] : []),
        ];
        return `${all.join(', ')} ${all.length === 1 && removed === 1 ? 'was' : 'were'} removed.`;
      },
    },
    {
      ...{ id: 'project_deletions', kind: 'project-deletions', everyMs: EVERY_MINUTE_MS },
      name: 'Finish deletions of projects',
      async run() {
        await finishDeletions(
          { commands, readModels: positions, projects: projectDirectory(reads), projectTasks: projectTasks(reads) },
          Date.now() + DELETIONS_MS,
        );
        return 'No deletion is left half done.';
      },
    },
    {
      ...{ id: 'workspace_removals', kind: 'workspace-removals', everyMs: EVERY_MINUTE_MS },
      name: 'Finish deletions of workspaces',
      async run() {
        const parts = { commands, contents: workspaceContents(reads), admins: adminsIn(reads) };
        await finishRemovals(parts, Date.now() + DELETIONS_MS);
        return 'No deletion is left half done.';
      },
    },
    {
      ...{ id: 'stale_task_requeue', kind: 'stale-tasks', everyMs: EVERY_MINUTE_MS },
      name: 'Return stuck tasks to the queue',
      enabled: async () => config.staleTaskMinutes > 0 && (await on('general.stale_task_requeue')()),
      async run() {
        const staleMinutes = config.staleTaskMinutes;
        if (staleMinutes === 0) return 'Tasks are never taken back: MC_STALE_TASK_MINUTES is 0.';
        const requeued = await requeueStaleTasks({ commands, reads: staleTaskReads(reads), staleMinutes, now });
        return `${counted(requeued.length, 'task was', 'tasks were')} taken back.`;
      },
    },
    {
      ...{ id: 'recurring_task_spawn', kind: 'recurring-tasks', everyMs: EVERY_MINUTE_MS },
      name: 'Create tasks from recurring ones',
      enabled: on('general.recurring_task_spawn'),
      async run() {
        const zone = config.timeZone;
        const projects = projectDirectory(reads);
        const made = await spawnRecurring({ commands, reads: recurrenceReads(reads), projects, zone, now });
        return `${counted(made.length, 'task was', 'tasks were')} made.`;
      },
    },
    {
      ...{ id: 'task_auto_route', kind: 'task-routing', everyMs: EVERY_MINUTE_MS },
      name: 'Assign unassigned tasks to agents',
      enabled: on('general.task_dispatch'),
      async run() {
        const routed = await routeTasks({ commands, reads: routingReads(reads) });
        return `${counted(routed.length, 'task was', 'tasks were')} given to agents.`;
      },
    },
    {
      ...{ id: 'task_dispatch', kind: 'task-dispatch', everyMs: EVERY_MINUTE_MS },
      name: 'Dispatch tasks to agents',
      enabled: on('general.task_dispatch'),
      async run() {
        if (config.runnerUrl === undefined) return NO_RUNNER;
        const dispatched = await dispatchTasks({ commands, reads: dispatchReads(reads), locks, now });
        return `${counted(dispatched, 'task was', 'tasks were')} dispatched.`;
      },
    },
    {
      ...{ id: 'aegis_review', kind: 'aegis-review', everyMs: EVERY_MINUTE_MS },
      name: 'Review the results of tasks',
      enabled: on('general.aegis_review'),
      async run() {
        if (config.runnerUrl === undefined) return NO_RUNNER;
        const begun = await reviewTasks({ commands, reads: dispatchReads(reads), locks, now });
        return `${counted(begun, 'review was', 'reviews were')} begun.`;
      },
    },
    {
      ...{ id: 'github_sync', kind: 'github-sync', everyMs: config.githubSyncIntervalMs },
      name: 'Sync projects with their GitHub repositories',
      enabled: async () => github.configured && (await on('general.github_sync')()),
      async run(_asked, signal) {
        if (!github.configured) return 'GitHub is not connected: GITHUB_TOKEN is not set.';
        const work = {
          commands,
          github,
          projects: projectDirectory(reads),
          githubProjects: githubProjects(reads),
          now,
        };
        const { projects, pulled, pushed, failures } = await syncProjects(work, { signal });
        if (failures.length > 0) throw failures[0];
        return `${counted(projects, 'project was', 'projects were')} synced: ${pulled} pulled, ${pushed} pushed.`;
      },
    },
    {
      ...{ id: 'webhook_retry', kind: 'webhook-retry', everyMs: EVERY_MINUTE_MS },
      name: 'Retry failed webhook deliveries',
      enabled: on('webhooks.retry_enabled'),
      async run() {
        return `${counted(await retryWebhooks(), 'delivery waits', 'deliveries wait')} to be repeated.`;
      },
    },
    {
      ...{ id: 'alert_evaluation', kind: 'alert-evaluation', everyMs: alertsMs },
      name: 'Evaluate alert rules',
      enabled: async () => config.alertSeconds > 0,
      async run() {
        const deadline = now() + Math.min(ALERTS_MS, alertsMs / 2);
        const { stopped, evaluated, triggered } = await evaluateAlerts({
          ...{ commands, reads: alertReads(reads), now, deadline, begin: alertsFrom },
          failed: (error, { workspace, id }) =>
            log.error({ err: error, workspace, rule: id }, 'an alert rule could not be evaluated'),
        });
        alertsFrom = stopped;
        return `${counted(evaluated, 'rule was', 'rules were')} evaluated, ${triggered} triggered.`;
      },
    },
    {
      ...{ id: 'purge_idempotency_keys', kind: 'purge-idempotency-keys', everyMs: EVERY_TEN_MINUTES_MS },
      name: 'Delete old idempotency keys',
      async run() {
        return `${counted(await purgeIdempotency(database.pool), 'key was', 'keys were')} forgotten.`;
      },
    },
    {
      ...{ id: 'purge_logs', kind: 'purge-logs', everyMs: EVERY_TEN_MINUTES_MS },
      name: 'Delete old log lines',
      async run() {
        const days = Number(await setting('retention.logs_days'));
        return `${counted(await createLogEntries(database.pool).purge(days, now()), 'line was', 'lines were')} deleted.`;
      },
    },
    {
      ...{ id: 'purge_history', kind: 'purge-history', everyMs: EVERY_TEN_MINUTES_MS },
      name: 'Remove old versions of read model rows',
      enabled: async () => config.retainHistoryDays > 0,
      async run(_asked, signal) {
        if (config.retainHistoryDays === 0) return 'The past is kept for ever: MC_RETAIN_HISTORY_DAYS is 0.';
        const index = createLogIndex({ database, eventLog, timeoutMs: config.visibleTimeoutMs });
        const from = await beginningOfPast(index, config.retainHistoryDays, now());
        const removed = await locks.holding('history', () => beginPastAt(database.db, projections, from, { signal }));
        return `${counted(removed, 'version was', 'versions were')} removed; the past begins at position ${from}.`;
      },
    },
    {
      ...{ id: 'purge_sessions', kind: 'purge-sessions', everyMs: HOUR_MS },
      name: 'Delete ended sessions',
      async run() {
        // They are no longer accepted anyway, so no cache has to be invalidated.
        const { rowCount } = await database.pool.query('DELETE FROM credentials.sessions WHERE expires_at <= $1', [
          seconds(now()),
        ]);
        return `${counted(rowCount ?? 0, 'session was', 'sessions were')} deleted.`;
      },
    },
  ];
  const cron: Definition = {
    ...{ id: 'cron', kind: 'cron-jobs', everyMs: EVERY_MINUTE_MS },
    name: 'Run scheduled jobs that are due',
    async run(_asked, signal) {
      const run = async (command: string) => {
        const task = definitions.find(({ id }) => id === command);
        if (!task) throw new Error(`There is no scheduled task ${command}.`);
        return task.run(true, signal);
      };
      const projects = projectDirectory(reads);
      const { runs, failed } = await runDueJobs({ commands, projects, run, now }, config.timeZone);
      return `${counted(runs, 'job was', 'jobs were')} run, ${failed} failed.`;
    },
  };
  return [...definitions, cron].map((definition) => schedule(runs, now, definition));
}
