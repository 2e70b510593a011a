/**
 * How an agent fares in a window that ends now, and in the window before it. Whole hours are read from buckets, the
 * parts of hours at the edges from single rows: the numbers are exact, and cost as much as the window has hours.
 */
import { type RawBuilder, sql } from 'kysely';
import { diagnosticsProjection } from '../../projections/agents/diagnostics.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import type {
  CompletedTask,
  Diagnostics,
  DiagnosticsSection,
  Failure,
  Period,
  TypeCount,
} from '../../shared/contract/agents/diagnostics.ts';
import type { Timeframe } from '../../shared/contract/agents/scope.ts';
import { MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import type { TaskView } from '../../shared/identity.ts';
import { HOUR } from '../../shared/time.ts';
import { spansOf } from '../../shared/time-buckets.ts';
import { type Reads, tableOf } from '../reads.ts';
import { taskIdSeen, taskSeen } from '../tasks/visibility.ts';
import { NO_SUMS, SUMS, type Sums, usageSince } from '../tokens/usage.ts';
import { percentChange, percentOf, perDay, trendAlerts } from './trends.ts';

/** Read models that the answer is made from, besides the agent itself. */
export const DIAGNOSTICS_MODELS: readonly string[] = [
  diagnosticsProjection.name,
  activitiesProjection.name,
  tasksProjection.name,
  tokensProjection.name,
];

type Sql = RawBuilder<unknown>;

const RECENT_TASKS = 10;
const RECENT_ERRORS = 20;

/** A name of the agent while it had it, Unix seconds. */
interface Held {
  readonly name: string;
  readonly since: number;
  readonly until: number;
}

/**
 * The names that an agent has had since a moment. What happened in the second of a change may bear either name.
 *
 * @param since Unix seconds
 */
async function namesHeld(reads: Reads, workspace: number, agent: number, since: number): Promise<Held[]> {
  const { rows } = await sql<{ name: string; since: number; next: number | null }>`
    SELECT name, since, lead(since) OVER (ORDER BY id) AS next
    FROM ${tableOf(reads, diagnosticsProjection, 'names')}
    WHERE workspace_id = ${workspace} AND agent_id = ${agent} ORDER BY id`.execute(reads.db);
  const last = new Map<string, number>();
  return rows.flatMap(({ name, since: from, next }) => {
    const until = next === null ? Number.POSITIVE_INFINITY : next + 1;
    // A name that was given back within the second is not counted twice in it.
    const held = { name, since: Math.max(from, last.get(name) ?? 0), until };
    last.set(name, until);
    return until > since && held.since < until ? [held] : [];
  });
}

/** One of the two windows; the current one has no end. */
interface Window {
  readonly current: boolean;
  readonly since: number;
  readonly until: number;
}

/** Where something is counted by hour, and where each single one is. */
interface Counted {
  readonly hours: Sql;
  readonly rows: Sql;
  /** Whose it is: a column of both. */
  readonly whose: Sql;
  readonly where?: Sql;
}

const MS = 1_000;
const NOTHING = sql`SELECT true AS current, ''::text AS type, 0::bigint AS start, 0::bigint AS count WHERE false`;

/** Rows `current, type, start, count` that add up to everything in the windows; `start` is the beginning of an hour. */
function countsIn(workspace: number, names: readonly Held[], windows: readonly Window[], of: Counted): Sql {
  const { hours, rows, whose, where = sql`true` } = of;
  const within = (column: Sql, { from, until }: { readonly from: number; readonly until: number }) =>
    until === Number.POSITIVE_INFINITY
      ? sql`${column} >= ${from / MS}`
      : sql`${column} >= ${from / MS} AND ${column} < ${until / MS}`;
  const parts = windows.flatMap(({ current, since, until }) =>
    names.flatMap((held) => {
      const own = sql`workspace_id = ${workspace} AND ${whose} = ${held.name} AND ${where}`;
      const from = Math.max(since, held.since) * MS;
      const { buckets, rests } = spansOf(['hour'], from, Math.min(until, held.until) * MS);
      return [
        ...buckets.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, start, count
            FROM ${hours} WHERE ${own} AND ${within(sql`start`, span)}`,
        ),
        ...rests.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, created_at - created_at % ${sql.lit(HOUR)} AS start,
              1::bigint AS count
            FROM ${rows} WHERE ${own} AND ${within(sql`created_at`, span)}`,
        ),
      ];
    }),
  );
  return parts.length === 0 ? NOTHING : sql.join(parts, sql` UNION ALL `);
}

const totalOf = (counts: string, current: boolean): Sql =>
  sql`(SELECT coalesce(sum(count), 0)::bigint FROM ${sql.table(counts)} WHERE current = ${sql.lit(current)})`;

const typesOf = (counts: string): Sql => sql`
  (SELECT coalesce(json_agg(t ORDER BY t.count DESC, t.type), '[]') FROM (
    SELECT type, sum(count)::bigint AS count FROM ${sql.table(counts)} WHERE current
    GROUP BY type ORDER BY 2 DESC, 1 LIMIT ${sql.lit(MAX_GROUPS)}) t)`;

/** The failures of the window, newest first; those over tasks that the caller sees. */
function recentFailures(reads: Reads, view: TaskView, names: readonly Held[], since: number): Sql {
  const ofTask = sql`(data->>'task_id')::bigint`;
  const parts = names.map(
    (held) => sql`
      (SELECT id, type, description, data, created_at FROM ${tableOf(reads, diagnosticsProjection, 'signals')}
       WHERE workspace_id = ${view.workspace} AND agent = ${held.name} AND kind = 'failed'
         AND (${ofTask} IS NULL OR ${taskIdSeen(reads, view, ofTask)})
         AND created_at >= ${Math.max(since, held.since)}
         ${held.until === Number.POSITIVE_INFINITY ? sql`` : sql`AND created_at < ${held.until}`}
       ORDER BY created_at DESC, id DESC LIMIT ${sql.lit(RECENT_ERRORS)})`,
  );
  if (parts.length === 0) return sql`'[]'::json`;
  return sql`(SELECT coalesce(json_agg(f ORDER BY f.created_at DESC, f.id DESC), '[]') FROM (
    SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) a
    ORDER BY created_at DESC, id DESC LIMIT ${sql.lit(RECENT_ERRORS)}) f)`;
}

/** What the statement finds; columns that no section needs are missing. */
interface Found {
  readonly completed: number;
  readonly completed_before: number;
  readonly failed: number;
  readonly failed_before: number;
  readonly failures: TypeCount[];
  readonly recent_failures: Failure[];
  readonly activities: number;
  readonly activities_before: number;
  readonly activity_types: TypeCount[];
  readonly timeline: { start: number; count: number }[];
  readonly places: { status: string; priority: string; count: number }[];
  readonly recent_completed: CompletedTask[];
  readonly models: (Sums & { model: string })[];
  readonly tokens: Sums;
}

/** The columns of the answer's statement that each section needs. */
const NEEDED: Readonly<Record<DiagnosticsSection, readonly (keyof Found)[]>> = {
  summary: ['completed', 'failed', 'activities', 'places'],
  tasks: ['completed', 'places', 'recent_completed'],
  errors: ['failed', 'failures', 'recent_failures'],
  activity: ['activity_types', 'timeline'],
  trends: ['completed', 'completed_before', 'failed', 'failed_before', 'activities', 'activities_before'],
  tokens: ['models', 'tokens'],
};

interface Subject {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
}

/** Diagnostics of one agent, as of one moment. The numbers count everything; the lists have the tasks that the caller sees. */
export async function diagnosticsOf(
  reads: Reads,
  view: TaskView,
  { id, name, role, status }: Subject,
  { hours, since, until }: Timeframe,
  sections: ReadonlySet<DiagnosticsSection>,
): Promise<Diagnostics> {
  const { workspace } = view;
  const before = since - hours * HOUR;
  const names = await namesHeld(reads, workspace, id, before);
  const windows: Window[] = [
    { current: true, since, until: Number.POSITIVE_INFINITY },
    ...(sections.has('trends') ? [{ current: false, since: before, until: since }] : []),
  ];
  const signals = (kind: 'completed' | 'failed') =>
    countsIn(workspace, names, windows, {
      hours: tableOf(reads, diagnosticsProjection, 'signal_hours'),
      rows: tableOf(reads, diagnosticsProjection, 'signals'),
      whose: sql`agent`,
      where: sql`kind = ${sql.lit(kind)}`,
    });
  const activities = countsIn(workspace, names, windows, {
    hours: tableOf(reads, activitiesProjection, 'activity_hours'),
    rows: tableOf(reads, activitiesProjection, 'activities'),
    whose: sql`actor`,
  });
  const counts = tableOf(reads, tasksProjection, 'task_counts');
  const columns: Readonly<Record<keyof Found, Sql>> = {
    completed: totalOf('completed', true),
    completed_before: totalOf('completed', false),
    failed: totalOf('failed', true),
    failed_before: totalOf('failed', false),
    failures: typesOf('failed'),
    recent_failures: recentFailures(reads, view, names, since),
    activities: totalOf('activities', true),
    activities_before: totalOf('activities', false),
    activity_types: typesOf('activities'),
    timeline: sql`
      (SELECT coalesce(json_agg(h ORDER BY h.start), '[]') FROM (
        SELECT start, sum(count)::bigint AS count FROM activities WHERE current GROUP BY start) h)`,
    places: sql`
      (SELECT coalesce(json_agg(p ORDER BY p.status, p.priority), '[]') FROM (
        SELECT status, priority, sum(count)::bigint AS count FROM ${counts}
        WHERE workspace_id = ${workspace} AND assigned_to = ${name}
        GROUP BY status, priority HAVING sum(count) > 0) p)`,
    recent_completed: sql`
      (SELECT coalesce(json_agg(t ORDER BY t.updated_at DESC, t.id DESC), '[]') FROM (
        SELECT id, title, priority, updated_at, completed_at FROM ${tableOf(reads, tasksProjection, 'tasks')} own
        WHERE workspace_id = ${workspace} AND assigned_to = ${name} AND status = 'done' AND updated_at >= ${since}
          AND ${taskSeen(view, 'own')}
        ORDER BY updated_at DESC, id DESC LIMIT ${sql.lit(RECENT_TASKS)}) t)`,
    models: sql`
      (SELECT coalesce(json_agg(m ORDER BY m.input_tokens + m.output_tokens DESC, m.model), '[]') FROM (
        SELECT model, ${SUMS} FROM usage GROUP BY model
        ORDER BY sum(input_tokens + output_tokens) DESC, model LIMIT ${sql.lit(MAX_GROUPS)}) m)`,
    tokens: sql`(SELECT row_to_json(m) FROM (SELECT ${SUMS} FROM usage) m)`,
  };
  const needed = [...new Set([...sections].flatMap((section) => NEEDED[section]))];
  const { rows } = await sql<Found>`
    WITH completed AS (${signals('completed')}), failed AS (${signals('failed')}), activities AS (${activities}),
      usage AS (${usageSince(reads, workspace, 'agent', since * MS, { agent: id })})
    SELECT ${sql.join(needed.map((column) => sql`${columns[column]} AS ${sql.ref(column)}`))}`.execute(reads.db);
  const found = rows[0] as Found;
  const all: Readonly<Record<DiagnosticsSection, () => object>> = {
    summary: () => summaryOf(found),
    tasks: () => tasksOf(found, hours),
    errors: () => ({ by_type: found.failures, total: found.failed, recent: found.recent_failures }),
    activity: () => activityOf(found),
    trends: () => trendsOf(found, { before, since, until }),
    tokens: () => tokensOf(found),
  };
  return {
    agent: { id, name, role, status },
    timeframe: { hours, since, until },
    ...Object.fromEntries([...sections].map((section) => [section, all[section]()])),
  };
}

const sumOf = (rows: readonly { readonly count: number }[]): number => rows.reduce((sum, { count }) => sum + count, 0);

function summaryOf({ completed, places, activities, failed }: Found) {
  return {
    tasks_completed: completed,
    tasks_total: sumOf(places),
    activity_count: activities,
    error_count: failed,
    // What fails need not be an activity of the agent itself, so there may be more failures than activities.
    error_rate_percent: percentOf(failed, Math.max(activities, failed)),
  };
}

function countsBy<T extends { readonly count: number }>(rows: readonly T[], nameOf: (row: T) => string) {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(nameOf(row), (counts.get(nameOf(row)) ?? 0) + row.count);
  return Object.fromEntries(counts);
}

function tasksOf({ completed, places, recent_completed }: Found, hours: number) {
  return {
    by_status: countsBy(places, ({ status }) => status),
    by_priority: countsBy(places, ({ priority }) => priority),
    recent_completed,
    throughput_per_day: perDay(completed, hours),
  };
}

function activityOf({ activity_types, timeline }: Found) {
  return {
    by_type: activity_types,
    timeline: timeline.map(({ start, count }) => ({
      timestamp: start,
      hour: new Date(start * MS).toISOString(),
      count,
    })),
  };
}

function trendsOf(
  found: Found,
  { before, since, until }: { readonly before: number; readonly since: number; readonly until: number },
) {
  const current: Period = {
    since,
    until,
    activities: found.activities,
    errors: found.failed,
    tasks_completed: found.completed,
  };
  const previous: Period = {
    since: before,
    until: since,
    activities: found.activities_before,
    errors: found.failed_before,
    tasks_completed: found.completed_before,
  };
  const change = (field: 'activities' | 'errors' | 'tasks_completed') => percentChange(previous[field], current[field]);
  return {
    current_period: current,
    previous_period: previous,
    change: {
      activities_pct: change('activities'),
      errors_pct: change('errors'),
      tasks_completed_pct: change('tasks_completed'),
    },
    alerts: trendAlerts(previous, current),
  };
}

function tokensOf({ models, tokens = NO_SUMS }: Found) {
  const shown = ({ input_tokens, output_tokens }: Sums) => ({ input_tokens, output_tokens });
  return {
    by_model: models.map((one) => ({ model: one.model, ...shown(one), request_count: one.requests })),
    total: { ...shown(tokens), requests: tokens.requests },
  };
}
