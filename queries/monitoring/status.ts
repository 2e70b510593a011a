/** The state of a workspace in numbers. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { DAY } from '../../shared/time.ts';
import { countOf, inWorkspace, type Reads } from '../reads.ts';
import { countWebhooks } from '../webhooks/webhooks.ts';

const WEEK = 7 * DAY;

/** Number of agents by status, of agents with a session, and of those that are not offline. */
async function agentNumbers(reads: Reads, workspace: number) {
  const rows = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .select(({ fn }) => [
      'status',
      fn.countAll<number>().as('count'),
      fn.count<number>('session_key').as('sessions'),
      sql<number>`count(*) FILTER (WHERE session_key IS NOT NULL AND runtime_type ILIKE 'claude%')`.as('claude'),
    ])
    .groupBy('status')
    .orderBy('status')
    .execute();
  const sum = (key: 'count' | 'sessions' | 'claude', some = rows) => some.reduce((all, row) => all + row[key], 0);
  return {
    byStatus: { total: sum('count'), byStatus: Object.fromEntries(rows.map(({ status, count }) => [status, count])) },
    sessions: {
      total: sum('sessions'),
      active: sum(
        'sessions',
        rows.filter(({ status }) => status !== 'offline'),
      ),
    },
    claudeSessions: sum('claude'),
  };
}

export const sessionNumbers = async (reads: Reads, workspace: number) =>
  (await agentNumbers(reads, workspace)).sessions;
export const claudeSessions = async (reads: Reads, workspace: number) =>
  (await agentNumbers(reads, workspace)).claudeSessions;

/** @param now Unix seconds */
export async function dashboardOf(reads: Reads, workspace: number, now: number) {
  // In the past no event is later than "now", but without this limit everything since then would be read.
  const last = (time: number) =>
    reads.past === undefined
      ? sql<boolean>`created_at > ${now - time}`
      : sql<boolean>`created_at > ${now - time} AND created_at <= ${now}`;
  const [agents, tasks, audit, activities, notifications, pipelines, webhooks] = await Promise.all([
    agentNumbers(reads, workspace),
    inWorkspace(reads, tasksProjection, 'task_counts', workspace)
      .select(({ fn }) => ['status', fn.sum<number>('count').as('count')])
      .groupBy('status')
      .having(({ fn }) => fn.sum('count'), '>', 0)
      .orderBy('status')
      .execute(),
    inWorkspace(reads, auditProjection, 'audit', workspace)
      .select(({ fn }) => [
        fn.countAll<number>().as('week'),
        sql<number>`count(*) FILTER (WHERE created_at > ${now - DAY})`.as('day'),
        sql<number>`count(*) FILTER (WHERE created_at > ${now - DAY} AND action = 'login_failed')`.as('loginFailures'),
      ])
      .where(last(WEEK))
      .executeTakeFirst(),
    countOf(inWorkspace(reads, activitiesProjection, 'activities', workspace).where(last(DAY))),
    inWorkspace(reads, notificationsProjection, 'notification_totals', workspace).select('unread').executeTakeFirst(),
    inWorkspace(reads, pipelinesProjection, 'pipeline_runs', workspace)
      .select([
        sql<number>`count(*) FILTER (WHERE status = 'running')`.as('active'),
        sql<number>`count(*) FILTER (WHERE created_at > ${now - DAY})`.as('recentDay'),
      ])
      .executeTakeFirst(),
    countWebhooks(reads, workspace),
  ]);
  return {
    sessions: agents.sessions,
    db: {
      tasks: {
        total: tasks.reduce((all, { count }) => all + Number(count), 0),
        byStatus: Object.fromEntries(tasks.map(({ status, count }) => [status, Number(count)])),
      },
      agents: agents.byStatus,
      audit: {
        day: Number(audit?.day ?? 0),
        week: Number(audit?.week ?? 0),
        loginFailures: Number(audit?.loginFailures ?? 0),
      },
      activities: { day: activities },
      notifications: { unread: Number(notifications?.unread ?? 0) },
      pipelines: { active: Number(pipelines?.active ?? 0), recentDay: Number(pipelines?.recentDay ?? 0) },
      webhookCount: webhooks,
    },
  };
}

/** Bytes of the whole database. */
export async function databaseSize(reads: Reads): Promise<number> {
  const { rows } = await sql<{ size: number }>`SELECT pg_database_size(current_database()) AS size`.execute(reads.db);
  return Number(rows[0]?.size ?? 0);
}

/** Response time of the database, milliseconds. @throws when it does not respond */
export async function databaseProbe(reads: Reads): Promise<number> {
  const begin = performance.now();
  await sql`SELECT 1`.execute(reads.db);
  return performance.now() - begin;
}
