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
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { TaskView } from '../../shared/identity.ts';
import { HOUR } from '../../shared/time.ts';
import { spansOf } from '../../shared/time-buckets.ts';
import { derivation, type EvidenceSource, REPORT_TYPES } from '../evidence.ts';
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
/** Clocks of processes may differ by so much, seconds. */
const SKEW = 60;

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
const NOTHING = sql`
  SELECT true AS current, ''::text AS type, 0::bigint AS start, 0::bigint AS count, 0::bigint AS position WHERE false`;

/** @param column Unix seconds @param span Unix ms */
const within = (column: Sql, { from, until }: { readonly from: number; readonly until: number }): Sql =>
  until === Number.POSITIVE_INFINITY
    ? sql`${column} >= ${from / MS}`
    : sql`${column} >= ${from / MS} AND ${column} < ${until / MS}`;

/**
 * Rows `current, type, start, count` that add up to everything in the windows; `start` is the beginning of an hour,
 * `position` that of the newest event.
 */
function countsIn(workspace: number, names: readonly Held[], windows: readonly Window[], of: Counted): Sql {
  const { hours, rows, whose, where = sql`true` } = of;
  const parts = windows.flatMap(({ current, since, until }) =>
    names.flatMap((held) => {
      const own = sql`workspace_id = ${workspace} AND ${whose} = ${held.name} AND ${where}`;
      const from = Math.max(since, held.since) * MS;
      const { buckets, rests } = spansOf(['hour'], from, Math.min(until, held.until) * MS);
      return [
        ...buckets.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, start, count, position
            FROM ${hours} WHERE ${own} AND ${within(sql`start`, span)}`,
        ),
        ...rests.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, created_at - created_at % ${sql.lit(HOUR)} AS start,
              1::bigint AS count, position
            FROM ${rows} WHERE ${own} AND ${within(sql`created_at`, span)}`,
        ),
      ];
    }),
  );
  return parts.length === 0 ? NOTHING : sql.join(parts, sql` UNION ALL `);
}

/** The single events in the windows, up to one more than `most`. */
function eventsIn(
  workspace: number,
  names: readonly Held[],
  windows: readonly Window[],
  of: Counted,
  most: number,
): Sql {
  const { rows, whose, where = sql`true` } = of;
  const parts = windows.flatMap(({ current, since, until }) =>
    names.flatMap((held) => {
      const span = { from: Math.max(since, held.since) * MS, until: Math.min(until, held.until) * MS };
      if (span.from >= span.until) return [];
      return [
        sql`
          (SELECT ${sql.lit(current)} AS current, position, type, created_at AS at FROM ${rows}
           WHERE workspace_id = ${workspace} AND ${whose} = ${held.name} AND ${where}
             AND ${within(sql`created_at`, span)}
           ORDER BY created_at, position LIMIT ${sql.lit(most + 1)})`,
      ];
    }),
  );
  return parts.length === 0 ? sql`'[]'::json` : listed(sql.join(parts, sql` UNION ALL `), most);
}

/** As JSON, up to one more than `most`. */
const listed = (events: Sql, most: number): Sql =>
  sql`(SELECT coalesce(json_agg(e), '[]') FROM (SELECT * FROM (${events}) a LIMIT ${sql.lit(most + 1)}) e)`;

const newestOf = (rows: Sql): Sql => sql`(SELECT coalesce(max(position), 0)::bigint FROM ${rows})`;

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
  readonly evidence_start: number;
  readonly completed_events: CountedEvent[];
  readonly completed_to: number;
  readonly failed_events: CountedEvent[];
  readonly failed_to: number;
  readonly activity_events: CountedEvent[];
  readonly activity_to: number;
  readonly task_events: PlacedTask[];
  readonly task_to: number;
  readonly report_events: ModelReports[];
  readonly report_from: number;
  readonly report_to: number;
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

/** The columns that evidence for each section needs besides. */
const NEEDED_AS_EVIDENCE: Readonly<Record<DiagnosticsSection, readonly (keyof Found)[]>> = {
  summary: [
    ...(['completed_events', 'completed_to', 'failed_events', 'failed_to'] as const),
    ...(['activity_events', 'activity_to', 'task_events', 'task_to'] as const),
  ],
  tasks: ['completed_events', 'completed_to', 'task_events', 'task_to'],
  errors: ['failed_events', 'failed_to'],
  activity: ['activities', 'activity_events', 'activity_to'],
  trends: ['completed_events', 'completed_to', 'failed_events', 'failed_to', 'activity_events', 'activity_to'],
  tokens: ['report_events', 'report_from', 'report_to'],
};

interface Subject {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
}

/**
 * Diagnostics of one agent, as of one moment. The numbers count everything; the lists have the tasks that the caller sees.
 *
 * @param most evidence lists so many events of a kind; undefined: no evidence
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
  const countsOf = (of: Counted) => countsIn(workspace, names, windows, of);
  const eventsOf = (of: Counted) => eventsIn(workspace, names, windows, of, most ?? 0);
  const counts = tableOf(reads, tasksProjection, 'task_counts');
  // What bears the first name may be in the log before the agent: their times are whole seconds, of several clocks.
  const [first] = names;
  const firstOf = ({ rows, whose, where = sql`true` }: Counted): Sql =>
    first
      ? sql`UNION ALL
        SELECT position FROM ${rows} WHERE workspace_id = ${workspace} AND ${whose} = ${first.name} AND ${where}
          AND created_at >= ${first.since} AND created_at <= ${first.since + SKEW}`
      : sql``;
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
    evidence_start: sql`
      (SELECT coalesce(min(position), 0)::bigint FROM (
        SELECT position FROM ${tableOf(reads, diagnosticsProjection, 'names')}
        WHERE workspace_id = ${workspace} AND agent_id = ${id}
        ${sql.join([signals('completed'), signals('failed'), activities].map(firstOf), sql` `)}) a)`,
    completed_events: eventsOf(signals('completed')),
    completed_to: newestOf(sql`completed`),
    failed_events: eventsOf(signals('failed')),
    failed_to: newestOf(sql`failed`),
    activity_events: eventsOf(activities),
    activity_to: newestOf(sql`activities`),
    task_events: listed(
      sql`SELECT position, status, priority FROM ${tableOf(reads, tasksProjection, 'tasks')}
        WHERE workspace_id = ${workspace} AND assigned_to = ${name}`,
      most ?? 0,
    ),
    task_to: newestOf(sql`${counts} WHERE workspace_id = ${workspace} AND assigned_to = ${name}`),
    report_events: listed(sql`SELECT DISTINCT position, model FROM ${reported}`, most ?? 0),
    report_from: sql`(SELECT coalesce(min(position), 0)::bigint FROM ${reported})`,
    report_to: newestOf(sql`usage`),
  };
  const besides = (section: DiagnosticsSection) =>
    most === undefined ? [] : (['evidence_start', ...NEEDED_AS_EVIDENCE[section]] as const);
  const needed = [...new Set([...sections].flatMap((section) => [...NEEDED[section], ...besides(section)]))];
  const { rows } = await sql<Found>`
    WITH completed AS (${countsOf(signals('completed'))}), failed AS (${countsOf(signals('failed'))}),
      activities AS (${countsOf(activities)}),
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
    ...(most !== undefined && {
      evidence: derivationsOf(found, sections, { agent: id, name, before, since, until, most }),
    }),
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

// --- Evidence ---------------------------------------------------------------------------------------------------------

interface CountedEvent {
  readonly current: boolean;
  readonly position: number;
  readonly type: string;
  /** Unix seconds. */
  readonly at: number;
}

interface PlacedTask {
  /** Of the event that changed the task last. */
  readonly position: number;
  readonly status: string;
  readonly priority: string;
}

interface ModelReports {
  readonly position: number;
  readonly model: string;
}

interface Asked {
  readonly agent: number;
  readonly name: string;
  /** Beginnings of both windows and the end, Unix seconds. */
  readonly before: number;
  readonly since: number;
  readonly until: number;
  readonly most: number;
}

/** Events that can be signals. */
const SIGNALS = [...catalogue.values()].flatMap(({ type, signals }) => (signals ? [type] : []));

/** For each number of the sections, the events that it was derived from. */
function derivationsOf(found: Found, sections: ReadonlySet<DiagnosticsSection>, asked: Asked): Derivations {
  const { agent, name, before, since, until, most } = asked;
  const from = found.evidence_start;
  /** Undefined: there are more; or cleanup has removed some of the rows, whose events are still counted. */
  const whole = <T>(events: readonly T[] | undefined, total = 0) =>
    events && events.length <= most && events.length >= total ? events : undefined;
  const bothOf = (now = 0, earlier = 0) => now + earlier;

  interface Part {
    readonly type?: string;
    readonly hour?: number;
    readonly earlier?: true;
  }
  const windowed =
    (source: EvidenceSource<CountedEvent>, more: { readonly kind?: string }) =>
    (total: number, { type, hour, earlier }: Part = {}): Derivation => {
      const first = earlier ? before : Math.max(since, hour ?? since);
      const end = earlier ? since : hour === undefined ? Number.POSITIVE_INFINITY : hour + HOUR;
      const filter = {
        agent_id: agent,
        ...more,
        ...(type !== undefined && { type }),
        since: first,
        ...(end !== Number.POSITIVE_INFINITY && { until: end }),
      };
      return derivation(
        source,
        total,
        filter,
        (event) => (type ?? event.type) === event.type && event.at >= first && event.at < end,
      );
    };
  const signals = (kind: 'completed' | 'failed', events: readonly CountedEvent[] | undefined, to: number) =>
    windowed({ rule: 'signals', types: SIGNALS, events, from, to }, { kind });
  const completed = signals(
    'completed',
    whole(found.completed_events, bothOf(found.completed, found.completed_before)),
    found.completed_to,
  );
  const failed = signals(
    'failed',
    whole(found.failed_events, bothOf(found.failed, found.failed_before)),
    found.failed_to,
  );
  const active = windowed(
    {
      rule: 'activities',
      events: whole(found.activity_events, bothOf(found.activities, found.activities_before)),
      from,
      to: found.activity_to,
    },
    {},
  );
  const tasks = (total: number, place: { readonly status?: string; readonly priority?: string } = {}) =>
    derivation(
      // A task can be older than the agent.
      { rule: 'tasks', events: whole(found.task_events, sumOf(found.places)), from: 0, to: found.task_to },
      total,
      { assigned_to: name, ...place },
      ({ status, priority }) => (place.status ?? status) === status && (place.priority ?? priority) === priority,
    );
  const reports = (total: number, only: { readonly model?: string } = {}) =>
    derivation(
      {
        rule: 'reports',
        types: REPORT_TYPES,
        events: whole(found.report_events),
        from: found.report_from,
        to: found.report_to,
      },
      total,
      { agent_id: agent, ...only, since: since * MS, purged_until: until * MS + MS - 1 },
      ({ model }) => (only.model ?? model) === model,
    );
  const derived = (total: number, ...numbers: string[]): Derivation => ({ total, rule: 'derived', numbers });

  const all: Readonly<Record<DiagnosticsSection, () => Derivations>> = {
    summary: () => {
      const { tasks_completed, tasks_total, activity_count, error_count, error_rate_percent } = summaryOf(found);
      return {
        'summary.tasks_completed': completed(tasks_completed),
        'summary.tasks_total': tasks(tasks_total),
        'summary.activity_count': active(activity_count),
        'summary.error_count': failed(error_count),
        'summary.error_rate_percent': derived(error_rate_percent, 'summary.error_count', 'summary.activity_count'),
      };
    },
    tasks: () => {
      const { by_status, by_priority } = tasksOf(found, 1);
      return {
        ...entries('tasks.by_status', Object.entries(by_status), (total, status) => tasks(total, { status })),
        ...entries('tasks.by_priority', Object.entries(by_priority), (total, priority) => tasks(total, { priority })),
        'tasks.throughput_per_day': completed(found.completed),
      };
    },
    errors: () => ({
      'errors.total': failed(found.failed),
      ...entries('errors.by_type', byName(found.failures), (total, type) => failed(total, { type })),
    }),
    activity: () => ({
      ...entries('activity.by_type', byName(found.activity_types), (total, type) => active(total, { type })),
      ...entries(
        'activity.timeline',
        found.timeline.map(({ start, count }) => [String(start), count]),
        (total, hour) => active(total, { hour: Number(hour) }),
      ),
    }),
    trends: () => {
      const { current_period: now, previous_period: earlier, change } = trendsOf(found, { before, since, until });
      const of = (field: 'activities' | 'errors' | 'tasks_completed') => [
        `trends.current_period.${field}`,
        `trends.previous_period.${field}`,
      ];
      return {
        'trends.current_period.activities': active(now.activities),
        'trends.current_period.errors': failed(now.errors),
        'trends.current_period.tasks_completed': completed(now.tasks_completed),
        'trends.previous_period.activities': active(earlier.activities, { earlier: true }),
        'trends.previous_period.errors': failed(earlier.errors, { earlier: true }),
        'trends.previous_period.tasks_completed': completed(earlier.tasks_completed, { earlier: true }),
        'trends.change.activities_pct': derived(change.activities_pct, ...of('activities')),
        'trends.change.errors_pct': derived(change.errors_pct, ...of('errors')),
        'trends.change.tasks_completed_pct': derived(change.tasks_completed_pct, ...of('tasks_completed')),
      };
    },
    tokens: () => ({
      'tokens.total': reports((found.tokens ?? NO_SUMS).requests),
      ...entries(
        'tokens.by_model',
        found.models.map(({ model, requests }) => [model, requests]),
        (total, model) => reports(total, { model }),
      ),
    }),
  };
  return Object.assign({}, ...[...sections].map((section) => all[section]()));
}

const byName = (counts: readonly TypeCount[]) => counts.map(({ type, count }) => [type, count] as const);

const entries = (
  path: string,
  numbers: readonly (readonly [string, number])[],
  of: (total: number, name: string) => Derivation,
): Derivations => Object.fromEntries(numbers.map(([name, total]) => [`${path}.${name}`, of(total, name)]));
