/** Agent health in a window that ends now, and in the previous window: one statement finds all of it. */
import { sql } from 'kysely';
import { diagnosticsProjection } from '../../projections/agents/diagnostics.ts';
import { leasesProjection } from '../../projections/agents/leases.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import type { Diagnostics, DiagnosticsSection } from '../../shared/contract/agents/diagnostics.ts';
import type { Timeframe } from '../../shared/contract/agents/scope.ts';
import { MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import type { TaskView } from '../../shared/identity.ts';
import { HOUR } from '../../shared/time.ts';
import { type Reads, tableOf } from '../reads.ts';
import { taskIdSeen, taskSeen } from '../tasks/visibility.ts';
import { SUMS, usageSince, withUsage } from '../tokens/usage.ts';
import { derivationsOf } from './derivations.ts';
import { beatCount } from './leases.ts';
import { ASSIGNEE, COUNTED_ASSIGNEE, isOf } from './names.ts';
import { activityOf, type Found, statusOf, summaryOf, tasksOf, tokensOf, trendsOf } from './sections.ts';
import { statusChanges, statusSeconds, statusSince } from './statuses.ts';
import {
  type Counted,
  countsIn,
  eventsIn,
  type Held,
  listed,
  MS,
  namesHeld,
  newestOf,
  type Sql,
  totalOf,
  typesOf,
  type Window,
} from './windows.ts';

/** Read models from which the response is built, besides the agent itself. */
export const DIAGNOSTICS_MODELS: readonly string[] = [
  diagnosticsProjection.name,
  activitiesProjection.name,
  tasksProjection.name,
  tokensProjection.name,
  leasesProjection.name,
];

const RECENT_TASKS = 10;
const RECENT_ERRORS = 20;

/** The failures of the window, newest first; only those of tasks that the caller may see. */
function recentFailures(reads: Reads, view: TaskView, names: readonly Held[], since: number): Sql {
  const ofTask = sql`(data->>'task_id')::bigint`;
  const parts = names.map(
    (held) => sql`
      (SELECT id, type, description, data, created_at FROM ${tableOf(reads, diagnosticsProjection, 'signals')}
       WHERE workspace_id = ${view.workspace} AND agent = ${held.name} AND kind = 'failed'
         AND (${ofTask} IS NULL OR ${taskIdSeen(reads, view, ofTask)})
         AND position >= ${held.from} AND created_at >= ${Math.max(since, held.since)}
         ${held.until === Number.POSITIVE_INFINITY ? sql`` : sql`AND created_at < ${held.until}`}
       ORDER BY created_at DESC, id DESC LIMIT ${sql.lit(RECENT_ERRORS)})`,
  );
  if (parts.length === 0) return sql`'[]'::json`;
  return sql`(SELECT coalesce(json_agg(f ORDER BY f.created_at DESC, f.id DESC), '[]') FROM (
    SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) a
    ORDER BY created_at DESC, id DESC LIMIT ${sql.lit(RECENT_ERRORS)}) f)`;
}

/** The columns of the response's statement that each section needs. */
const NEEDED: Readonly<Record<DiagnosticsSection, readonly (keyof Found)[]>> = {
  summary: ['completed', 'failed', 'activities', 'heartbeats', 'places'],
  tasks: ['completed', 'places', 'recent_completed'],
  errors: ['failed', 'failures', 'recent_failures'],
  activity: ['activity_types', 'timeline'],
  status: ['status_seconds', 'status_since', 'status_changes'],
  trends: ['completed', 'completed_before', 'failed', 'failed_before', 'activities', 'activities_before'],
  tokens: ['models', 'tokens'],
};

/** The further columns that evidence for each section needs. */
const NEEDED_AS_EVIDENCE: Readonly<Record<DiagnosticsSection, readonly (keyof Found)[]>> = {
  summary: [
    ...(['completed_events', 'completed_to', 'failed_events', 'failed_to'] as const),
    ...(['activity_events', 'activity_to', 'task_events', 'task_to'] as const),
  ],
  tasks: ['completed_events', 'completed_to', 'task_events', 'task_to'],
  errors: ['failed_events', 'failed_to'],
  activity: ['activities', 'activity_events', 'activity_to'],
  status: [],
  trends: ['completed_events', 'completed_to', 'failed_events', 'failed_to', 'activity_events', 'activity_to'],
  tokens: ['report_events', 'report_from', 'report_to'],
};

/** Columns that are read from `usage`, in a statement of their own: see `withUsage`. */
const OF_USAGE: ReadonlySet<keyof Found> = new Set(['models', 'tokens', 'report_to']);

interface Subject {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
}

/**
 * Diagnostics of one agent, as of one moment. The numbers count everything; the lists contain only tasks that the
 * caller may see.
 *
 * @param most maximum number of events per kind in the evidence; undefined: no evidence
 */
export async function diagnosticsOf(
  reads: Reads,
  view: TaskView,
  { id, name, role, status }: Subject,
  { hours, since, until }: Timeframe,
  sections: ReadonlySet<DiagnosticsSection>,
  most?: number,
): Promise<Diagnostics> {
  const { workspace } = view;
  const before = since - hours * HOUR;
  const names = await namesHeld(reads, workspace, id, before);
  const windows: Window[] = [
    { current: true, since, until: Number.POSITIVE_INFINITY },
    ...(sections.has('trends') ? [{ current: false, since: before, until: since }] : []),
  ];
  const signals = (kind: 'completed' | 'failed'): Counted => ({
    hours: tableOf(reads, diagnosticsProjection, 'signal_hours'),
    rows: tableOf(reads, diagnosticsProjection, 'signals'),
    whose: sql`agent`,
    where: sql`kind = ${sql.lit(kind)}`,
  });
  const activities: Counted = {
    hours: tableOf(reads, activitiesProjection, 'activity_hours'),
    rows: tableOf(reads, activitiesProjection, 'activities'),
    whose: sql`actor`,
  };
  const statuses = { workspace, agent: id, since, until };
  const countsOf = (of: Counted) => countsIn(workspace, names, windows, of);
  const eventsOf = (of: Counted) => eventsIn(workspace, names, windows, of, most ?? 0);
  const counts = tableOf(reads, tasksProjection, 'task_counts');
  const own = (row: string, reference = ASSIGNEE) => isOf(row, reference, { id, name });
  const reported = sql`${tableOf(reads, tokensProjection, 'reports')}
    WHERE workspace_id = ${workspace} AND agent_id = ${id} AND at >= ${since * MS}`;
  const columns: Readonly<Record<keyof Found, Sql>> = {
    completed: totalOf('completed', true),
    completed_before: totalOf('completed', false),
    failed: totalOf('failed', true),
    failed_before: totalOf('failed', false),
    failures: typesOf('failed'),
    recent_failures: recentFailures(reads, view, names, since),
    activities: totalOf('activities', true),
    // Those that changed nothing are no activities.
    heartbeats: sql`
      (SELECT coalesce(sum(count), 0)::bigint FROM activities WHERE current AND type = 'agent_heartbeat')
        + ${beatCount(reads, workspace, id, since)}`,
    activities_before: totalOf('activities', false),
    activity_types: typesOf('activities'),
    timeline: sql`
      (SELECT coalesce(json_agg(h ORDER BY h.start), '[]') FROM (
        SELECT start, sum(count)::bigint AS count FROM activities WHERE current GROUP BY start) h)`,
    places: sql`
      (SELECT coalesce(json_agg(p ORDER BY p.status, p.priority), '[]') FROM (
        SELECT status, priority, sum(count)::bigint AS count FROM ${counts} c
        WHERE workspace_id = ${workspace} AND ${own('c', COUNTED_ASSIGNEE)}
        GROUP BY status, priority HAVING sum(count) > 0) p)`,
    recent_completed: sql`
      (SELECT coalesce(json_agg(t ORDER BY t.updated_at DESC, t.id DESC), '[]') FROM (
        SELECT id, title, priority, updated_at, completed_at FROM ${tableOf(reads, tasksProjection, 'tasks')} own
        WHERE workspace_id = ${workspace} AND ${own('own')} AND status = 'done' AND updated_at >= ${since}
          AND ${taskSeen(view, 'own')}
        ORDER BY updated_at DESC, id DESC LIMIT ${sql.lit(RECENT_TASKS)}) t)`,
    status_seconds: statusSeconds(reads, statuses),
    status_since: statusSince(reads, statuses),
    status_changes: statusChanges(reads, statuses),
    models: sql`
      (SELECT coalesce(json_agg(m ORDER BY m.input_tokens + m.output_tokens DESC, m.model), '[]') FROM (
        SELECT model, ${SUMS} FROM usage GROUP BY model
        ORDER BY sum(input_tokens + output_tokens) DESC, model LIMIT ${sql.lit(MAX_GROUPS)}) m)`,
    tokens: sql`(SELECT row_to_json(m) FROM (SELECT ${SUMS} FROM usage) m)`,
    evidence_start: sql`
      (SELECT coalesce(min(position), 0)::bigint FROM ${tableOf(reads, diagnosticsProjection, 'names')}
        WHERE workspace_id = ${workspace} AND agent_id = ${id})`,
    completed_events: eventsOf(signals('completed')),
    completed_to: newestOf(sql`completed`),
    failed_events: eventsOf(signals('failed')),
    failed_to: newestOf(sql`failed`),
    activity_events: eventsOf(activities),
    activity_to: newestOf(sql`activities`),
    task_events: listed(
      sql`SELECT position, status, priority FROM ${tableOf(reads, tasksProjection, 'tasks')} t
        WHERE workspace_id = ${workspace} AND ${own('t')}`,
      most ?? 0,
    ),
    task_to: newestOf(sql`${counts} c WHERE workspace_id = ${workspace} AND ${own('c', COUNTED_ASSIGNEE)}`),
    report_events: listed(sql`SELECT DISTINCT position, model FROM ${reported}`, most ?? 0),
    report_from: sql`(SELECT coalesce(min(position), 0)::bigint FROM ${reported})`,
    report_to: newestOf(sql`usage`),
  };
  const besides = (section: DiagnosticsSection) =>
    most === undefined ? [] : (['evidence_start', ...NEEDED_AS_EVIDENCE[section]] as const);
  const needed = [...new Set([...sections].flatMap((section) => [...NEEDED[section], ...besides(section)]))];
  const listedAs = (some: readonly (keyof Found)[]) =>
    sql.join(some.map((column) => sql`${columns[column]} AS ${sql.ref(column)}`));
  const found = {} as Found;
  const ofUsage = needed.filter((column) => OF_USAGE.has(column));
  const others = needed.filter((column) => !OF_USAGE.has(column));
  if (others.length > 0) {
    const { rows } = await sql<Found>`
      WITH completed AS (${countsOf(signals('completed'))}), failed AS (${countsOf(signals('failed'))}),
        activities AS (${countsOf(activities)})
      SELECT ${listedAs(others)}`.execute(reads.db);
    Object.assign(found, rows[0]);
  }
  if (ofUsage.length > 0) {
    const { rows } = await withUsage(reads, workspace, (usage) =>
      sql<Found>`
        WITH usage AS (${usageSince(usage, 'agent', since * MS, { agent: id })})
        SELECT ${listedAs(ofUsage)}`.execute(usage.reads.db),
    );
    Object.assign(found, rows[0]);
  }
  const all: Readonly<Record<DiagnosticsSection, () => object>> = {
    summary: () => summaryOf(found),
    tasks: () => tasksOf(found, hours),
    errors: () => ({ by_type: found.failures, total: found.failed, recent: found.recent_failures }),
    activity: () => activityOf(found),
    status: () => statusOf(found, until),
    trends: () => trendsOf(found, { before, since, until }),
    tokens: () => tokensOf(found),
  };
  return {
    agent: { id, name, role, status },
    timeframe: { hours, since, until },
    ...Object.fromEntries([...sections].map((section) => [section, all[section]()])),
    ...(most !== undefined && {
      evidence: derivationsOf(found, sections, { agent: id, name, before, since, until, most }),
    }),
  };
}
