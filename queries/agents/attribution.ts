/**
 * What an agent did, and what it cost, by the ids in events. The numbers of a window are composed of whole days and
 * hours, and of single rows for a partial first hour, so they are exact and cost the same however long the history is.
 */
import { sql } from 'kysely';
import { type ActionKind, agentAttributionProjection, COMMENT } from '../../projections/agents/attribution.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { taskCommentsProjection } from '../../projections/tasks/comments.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { AgentRecord } from '../../shared/contract/agents/agents.ts';
import {
  type AttributionResponse,
  type AttributionSection,
  MAX_MODELS,
} from '../../shared/contract/agents/attribution.ts';
import type { Timeframe } from '../../shared/contract/agents/scope.ts';
import type { Attribution } from '../../shared/events/agents/attribution.ts';
import type { TaskView } from '../../shared/identity.ts';
import { frontOf } from '../../shared/storable.ts';
import { seconds } from '../../shared/time.ts';
import { DAY_MS, firstFrom, startOf } from '../../shared/time-buckets.ts';
import { type Reads, tableOf } from '../reads.ts';
import { activitySeen, taskIdSeen } from '../tasks/visibility.ts';
import { added, dateOf, dollars, NO_SUMS, SUMS, type Sums, tokensOf, usageSince, withUsage } from '../tokens/usage.ts';
import { newestActions, type Source, type Sources } from './evidence.ts';
import { beatCount } from './leases.ts';
import { COUNTED_ASSIGNEE, isOf } from './names.ts';

/** Read models from which a report is built. */
export const ATTRIBUTION_MODELS = [
  'agents',
  'leases',
  agentAttributionProjection.name,
  activitiesProjection.name,
  auditProjection.name,
  tasksProjection.name,
  taskCommentsProjection.name,
  // Which activities about them an agent sees.
  notificationsProjection.name,
  'tokens',
];

const SHOWN = { activities: 200, entries: 100, taskMutations: 100, comments: 50, statusChanges: 50 };
const PREVIEW = 200;

/** Types of activities that report a change of a task. */
const TASK_MUTATIONS: ReadonlySet<string> = new Set([
  'task_created',
  'task_updated',
  'task_status_change',
  'task_assigned',
  'task_claimed',
  'task_deleted',
]);
const HEARTBEAT = 'agent_heartbeat';

export interface AttributedAgent {
  readonly workspace: number;
  readonly agent: AgentRecord;
  /** Lists only contain tasks that the caller may see. Numbers, and the events behind them, cover everything. */
  readonly view: TaskView;
}

type Report = Pick<AttributionResponse, AttributionSection>;

/** Some sections of a report, and the sources of the events behind their numbers. */
interface Part {
  readonly report: Report;
  readonly sources: ReadonlyArray<readonly [string, Source]>;
}

/** The sections of a report, and the source of the events behind each of their numbers. */
export async function attributionOf(
  reads: Reads,
  about: AttributedAgent,
  { since }: Timeframe,
  sections: ReadonlySet<AttributionSection>,
): Promise<{ readonly report: Report; readonly sources: Sources }> {
  const parts: Part[] = [];
  if (sections.has('identity')) parts.push(await identityOf(reads, about));
  if (sections.has('audit') || sections.has('mutations')) {
    const actions = await actionsSince(reads, about, since);
    if (sections.has('audit')) parts.push(await auditSection(reads, about, actions));
    if (sections.has('mutations')) parts.push(await mutationsSection(reads, about, actions));
  }
  if (sections.has('cost')) parts.push(await costSection(reads, about, since));
  return {
    report: Object.assign({}, ...parts.map(({ report }) => report)),
    sources: new Map(parts.flatMap(({ sources }) => sources)),
  };
}

const own = (reads: Reads, table: 'actions' | 'action_counts') => tableOf(reads, agentAttributionProjection, table);

// --- Identity ---------------------------------------------------------------------------------------------------------

const ACTIVE = ['assigned', 'in_progress'] as const;

async function identityOf(reads: Reads, { workspace, agent }: AttributedAgent): Promise<Part> {
  // Rows with count 0 are included, because their position shows tasks that have moved elsewhere.
  const { rows: tasks } = await sql<{ total: number; done: number; active: number; position: number }>`
    SELECT coalesce(sum(count), 0)::bigint AS total, coalesce(max(position), 0)::bigint AS position,
      coalesce(sum(count) FILTER (WHERE status = 'done'), 0)::bigint AS done,
      coalesce(sum(count) FILTER (WHERE status = ANY(${[...ACTIVE]}::text[])), 0)::bigint AS active
    FROM ${tableOf(reads, tasksProjection, 'task_counts')} c
    WHERE workspace_id = ${workspace} AND ${isOf('c', COUNTED_ASSIGNEE, agent)}`.execute(reads.db);
  const [{ total, done, active, position: upTo } = { total: 0, done: 0, active: 0, position: 0 }] = tasks;
  const { rows } = await sql<{ count: number; position: number }>`
    SELECT count, position FROM ${own(reads, 'action_counts')}
    WHERE workspace_id = ${workspace} AND agent_id = ${agent.id} AND unit = 'all' AND start = 0 AND kind = 'activity'
      AND type = ${COMMENT}`.execute(reads.db);
  const [comments = { count: 0, position: 0 }] = rows;
  const lifetime_stats = {
    tasks_total: total,
    tasks_completed: done,
    tasks_active: active,
    comments_authored: comments.count,
  };
  const { id, name, role, status, last_seen, last_activity, created_at, session_key, soul_content, config } = agent;
  return {
    report: {
      identity: {
        id,
        name,
        role,
        status,
        last_seen,
        last_activity,
        created_at,
        session_key: session_key === null ? null : '***',
        has_soul: soul_content !== null && soul_content !== '',
        config_keys: Object.keys(config),
        lifetime_stats,
      },
    },
    sources: [
      ['identity.lifetime_stats.tasks_total', { from: 'tasks', total, upTo }],
      ['identity.lifetime_stats.tasks_completed', { from: 'tasks', total: done, upTo, statuses: ['done'] }],
      ['identity.lifetime_stats.tasks_active', { from: 'tasks', total: active, upTo, statuses: ACTIVE }],
      [
        'identity.lifetime_stats.comments_authored',
        {
          from: 'actions',
          total: comments.count,
          upTo: comments.position,
          kind: 'activity',
          types: [COMMENT],
          since: 0,
        },
      ],
    ],
  };
}

// --- Actions ----------------------------------------------------------------------------------------------------------

/** How often an action occurred in a window. */
interface Group {
  readonly kind: ActionKind;
  readonly type: string;
  readonly entity_type: string;
  readonly count: number;
  /** Of the newest event. */
  readonly position: number;
}

interface Actions {
  readonly groups: readonly Group[];
  readonly since: number;
  /** Position of the newest counted event. Lists and evidence end there, so that they agree with the numbers. */
  readonly upTo: number;
}

async function actionsSince(reads: Reads, { workspace, agent }: AttributedAgent, since: number): Promise<Actions> {
  const start = since * 1_000;
  const [firstHour, firstDay] = [firstFrom('hour', start), firstFrom('day', start)];
  const whose = sql`workspace_id = ${workspace} AND agent_id = ${agent.id}`;
  const { rows } = await sql<Group>`
    SELECT kind, type, entity_type, sum(count)::bigint AS count, max(position) AS position FROM (
      SELECT b.kind, b.type, b.entity_type, a.count, a.position
      FROM ${own(reads, 'action_counts')} b CROSS JOIN LATERAL (
        SELECT count(*) AS count, max(position) AS position FROM ${own(reads, 'actions')} x
        WHERE x.workspace_id = b.workspace_id AND x.agent_id = b.agent_id AND x.kind = b.kind AND x.type = b.type
          AND x.created_at >= ${since} AND x.created_at < ${firstHour / 1_000} AND x.entity_type = b.entity_type) a
      WHERE ${whose} AND unit = 'hour' AND start = ${startOf('hour', start)} AND start < ${start}
      UNION ALL
      SELECT kind, type, entity_type, count, position FROM ${own(reads, 'action_counts')}
      WHERE ${whose} AND unit = 'hour' AND start >= ${firstHour} AND start < ${firstDay}
      UNION ALL
      SELECT kind, type, entity_type, count, position FROM ${own(reads, 'action_counts')}
      WHERE ${whose} AND unit = 'day' AND start >= ${firstDay}) all_parts
    GROUP BY kind, type, entity_type HAVING sum(count) > 0`.execute(reads.db);
  return { groups: rows, since, upTo: Math.max(0, ...rows.map(({ position }) => position)) };
}

/** The actions of some groups, as a source of evidence. */
function sourceOf(
  { since, upTo }: Actions,
  kind: ActionKind,
  groups: readonly Group[],
  entityType?: string,
): Extract<Source, { readonly from: 'actions' }> {
  return {
    from: 'actions',
    kind,
    types: [...new Set(groups.map(({ type }) => type))],
    ...(entityType !== undefined && { entity_type: entityType }),
    since,
    upTo,
    total: groups.reduce((sum, { count }) => sum + count, 0),
  };
}

/** Sums by type, the largest first. */
function byType(groups: readonly Group[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const { type, count } of groups) sums.set(type, (sums.get(type) ?? 0) + count);
  return Object.fromEntries([...sums].sort(([one, m], [other, n]) => n - m || (one < other ? -1 : 1)));
}

interface ShownActivity {
  readonly id: number;
  readonly type: string;
  readonly entity_type: string;
  readonly entity_id: number;
  readonly description: string;
  readonly data: Record<string, unknown> | null;
  readonly created_at: number;
  readonly position: number;
  readonly attributed_by: Attribution;
}

async function activitiesOf(
  reads: Reads,
  about: AttributedAgent,
  source: Extract<Source, { readonly from: 'actions' }>,
  limit: number,
) {
  if (source.total === 0) return [];
  const { rows } = await sql<ShownActivity>`
    SELECT n.id, n.type, n.entity_type, n.entity_id, a.description, a.data, n.created_at, n.position,
      n.known_by AS attributed_by
    FROM (${newestActions(reads, about, source, limit)}) n
    JOIN ${tableOf(reads, activitiesProjection, 'activities')} a
      ON a.workspace_id = n.workspace_id AND a.id = n.id
    WHERE ${activitySeen(reads, about.view, 'a')}
    ORDER BY n.created_at DESC, n.position DESC`.execute(reads.db);
  return rows.map((row) => ({ ...row, metadata: row.data }));
}

async function auditSection(reads: Reads, about: AttributedAgent, actions: Actions): Promise<Part> {
  const of = (kind: ActionKind) => actions.groups.filter((group) => group.kind === kind);
  const [activities, entries] = [of('activity'), of('audit')];
  const [allActivities, allEntries] = [
    { ...sourceOf(actions, 'activity', activities), anyType: true } as const,
    { ...sourceOf(actions, 'audit', entries), anyType: true } as const,
  ];
  type Entry = NonNullable<Report['audit']>['audit_log_entries'][number];
  const { rows } =
    allEntries.total === 0
      ? { rows: [] }
      : await sql<Entry>`
          SELECT n.id, n.type AS action, a.actor, a.detail, n.created_at, n.position, n.known_by AS attributed_by
          FROM (${newestActions(reads, about, allEntries, SHOWN.entries)}) n
          JOIN ${tableOf(reads, auditProjection, 'audit')} a
            ON a.workspace_id = n.workspace_id AND a.id = n.id
          ORDER BY n.created_at DESC, n.position DESC`.execute(reads.db);
  const { total: heartbeats } = sourceOf(
    actions,
    'activity',
    activities.filter(({ type }) => type === HEARTBEAT),
  );
  const { workspace, agent } = about;
  const { rows: counted } = await sql<{ count: number }>`
    SELECT ${beatCount(reads, workspace, agent.id, actions.since)} AS count`.execute(reads.db);
  const single = (name: string, kind: ActionKind, groups: readonly Group[]) =>
    [...new Set(groups.map(({ type }) => type))].map((type): readonly [string, Source] => [
      `audit.${name}.${type}`,
      sourceOf(
        actions,
        kind,
        groups.filter((group) => group.type === type),
      ),
    ]);
  return {
    report: {
      audit: {
        total_activities: allActivities.total,
        heartbeats: heartbeats + (counted[0]?.count ?? 0),
        by_type: byType(activities),
        activities: await activitiesOf(reads, about, allActivities, SHOWN.activities),
        total_entries: allEntries.total,
        by_action: byType(entries),
        audit_log_entries: [...rows],
      },
    },
    sources: [
      ['audit.total_activities', allActivities],
      ...single('by_type', 'activity', activities),
      ['audit.total_entries', allEntries],
      ...single('by_action', 'audit', entries),
    ],
  };
}

async function mutationsSection(reads: Reads, about: AttributedAgent, actions: Actions): Promise<Part> {
  const activities = actions.groups.filter(({ kind }) => kind === 'activity');
  const some = (is: (group: Group) => boolean, entityType?: string) =>
    sourceOf(actions, 'activity', activities.filter(is), entityType);
  const tasks = some(({ type }) => TASK_MUTATIONS.has(type));
  const comments = some(({ type }) => type === COMMENT);
  const statuses = some(({ type, entity_type }) => entity_type === 'agent' && type !== HEARTBEAT, 'agent');
  type Comment = Omit<NonNullable<Report['mutations']>['comments'][number], 'content_preview'>;
  const { rows } =
    comments.total === 0
      ? { rows: [] }
      : await sql<Comment>`
          SELECT c.id, c.task_id, c.content, n.created_at, c.mentions, t.title AS task_title, n.position,
            n.known_by AS attributed_by
          FROM (${newestActions(reads, about, comments, SHOWN.comments)}) n
          JOIN ${tableOf(reads, taskCommentsProjection, 'task_comments')} c
            ON c.workspace_id = n.workspace_id AND c.id = n.entity_id
          LEFT JOIN ${tableOf(reads, tasksProjection, 'tasks')} t
            ON t.workspace_id = c.workspace_id AND t.id = c.task_id
          WHERE ${taskIdSeen(reads, about.view, sql.ref('c.task_id'))}
          ORDER BY n.created_at DESC, n.position DESC`.execute(reads.db);
  const changes = await activitiesOf(reads, about, statuses, SHOWN.statusChanges);
  return {
    report: {
      mutations: {
        task_mutations: await activitiesOf(reads, about, tasks, SHOWN.taskMutations),
        comments: rows.map((row) => ({ ...row, content_preview: frontOf(row.content, PREVIEW) })),
        status_changes: changes.map(({ entity_type: _type, entity_id: _id, ...change }) => change),
        summary: {
          task_mutations_count: tasks.total,
          comments_count: comments.total,
          status_changes_count: statuses.total,
        },
      },
    },
    sources: [
      ['mutations.summary.task_mutations_count', tasks],
      ['mutations.summary.comments_count', comments],
      ['mutations.summary.status_changes_count', statuses],
    ],
  };
}

// --- Cost -------------------------------------------------------------------------------------------------------------

/** Sums by a part of the rows, in the order of the first occurrence. */
function summed<K extends string | number>(rows: readonly CostRow[], keyOf: (row: CostRow) => K): Map<K, Sums> {
  const sums = new Map<K, Sums>();
  for (const row of rows) sums.set(keyOf(row), added(sums.get(keyOf(row)) ?? NO_SUMS, row));
  return sums;
}

interface CostRow extends Sums {
  readonly model: string;
  /** Unix ms. */
  readonly day: number;
  readonly position: number;
}

const amounts = ({ input_tokens, output_tokens, cost, estimated }: Sums) => ({
  input_tokens,
  output_tokens,
  cost: dollars(cost),
  estimated_cost: dollars(estimated),
});

async function costSection(reads: Reads, { workspace, agent }: AttributedAgent, since: number): Promise<Part> {
  const { rows } = await withUsage(reads, workspace, (usage) =>
    sql<CostRow>`
      SELECT model, start - start % ${DAY_MS} AS day, max(position) AS position, ${SUMS}
      FROM (${usageSince(usage, 'agent', since * 1_000, { coarsest: 'day', agent: agent.id })}) u
      GROUP BY 1, 2 ORDER BY 2`.execute(usage.reads.db),
  );
  const total = rows.reduce<Sums>((sums, row) => added(sums, row), NO_SUMS);
  const models = [...summed(rows, ({ model }) => model)]
    .sort(([one, a], [other, b]) => tokensOf(b) - tokensOf(a) || (one < other ? -1 : 1))
    .slice(0, MAX_MODELS);
  const days = [...summed(rows, ({ day }) => day)];
  const upTo = Math.max(0, ...rows.map(({ position }) => position));
  const source = ({ requests }: Sums, more: { model?: string; day?: number } = {}): Source => ({
    from: 'reports',
    total: requests,
    upTo,
    since,
    ...more,
  });
  return {
    report: {
      cost: {
        by_model: models.map(([model, sums]) => ({ model, request_count: sums.requests, ...amounts(sums) })),
        total: { ...amounts(total), requests: total.requests },
        daily_trend: days.map(([day, sums]) => ({
          date: dateOf(day),
          day_bucket: seconds(day),
          ...amounts(sums),
          requests: sums.requests,
        })),
      },
    },
    sources: [
      ['cost.total', source(total)],
      ...models.map(([model, sums]) => [`cost.by_model.${model}`, source(sums, { model })] as const),
      ...days.map(([day, sums]) => [`cost.daily_trend.${dateOf(day)}`, source(sums, { day: seconds(day) })] as const),
    ],
  };
}
