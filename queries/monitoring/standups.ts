/** Standups: the report of a day, built from the current agents and tasks, and the reports of earlier days. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { agentAttributionProjection, COMMENT } from '../../projections/agents/attribution.ts';
import { standupsProjection } from '../../projections/monitoring/standups.ts';
import { tasksProjection, type tasksTable } from '../../projections/tasks/tasks.ts';
import type { AgentReport, StandupReport, StandupsQuery } from '../../shared/contract/monitoring/standups.ts';
import type { StandupSummary } from '../../shared/events/monitoring/standups.ts';
import { NO_SOURCE, type TaskSource } from '../../shared/events/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import { masked } from '../../shared/secrets.ts';
import { DAY } from '../../shared/time.ts';
import { lastSeen } from '../agents/leases.ts';
import { countOf, inWorkspace, type Reads, type Row, tableOf } from '../reads.ts';
import { columnsOf } from '../records.ts';
import { TASK_COLUMNS } from '../tasks/tasks.ts';
import { taskSeen } from '../tasks/visibility.ts';

/** Maximum number of tasks in each list of a report, for all agents together; the summary counts all. */
const MAX_LISTED = 1_000;
const ACCOMPLISHMENTS = 10;

type Task = Row<typeof tasksTable>;
/** A task in a list, with the length of the list. */
type ListedTask = Pick<
  Task,
  'id' | 'title' | 'status' | 'priority' | 'created_at' | 'updated_at' | 'due_date' | 'metadata'
> & {
  readonly assigned_to: string;
  readonly assignee_id: number | null;
  readonly total: number;
};

interface Scope {
  readonly reads: Reads;
  readonly workspace: number;
  readonly view: TaskView;
  /** Names of agents; empty: all. */
  readonly names: readonly string[];
  /** The day, Unix seconds. */
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly isAdmin: boolean;
}

const tasksOf = ({ reads }: Scope) => tableOf(reads, tasksProjection, 'tasks');

/** The agents of the report. */
function agentsOf({ reads, workspace, names }: Scope) {
  const agents = inWorkspace(reads, agentsProjection, 'agents', workspace)
    .select(['id', 'name', 'role', 'status', 'last_activity'])
    .select(lastSeen(reads, 'agents').as('last_seen'))
    .orderBy('name');
  return names.length === 0 ? agents : agents.where(sql<boolean>`name = ANY(${names})`);
}

interface Known {
  readonly id: number;
  readonly name: string;
}

/** Tasks of these agents that meet a condition. */
async function listed(
  scope: Scope,
  agents: readonly Known[],
  condition: RawBuilder<unknown>,
  order: RawBuilder<unknown>,
) {
  const { rows } = await sql<ListedTask>`
    SELECT id, title, status, priority, assigned_to, assignee_id, created_at, updated_at, due_date, metadata,
      count(*) OVER () AS total
    FROM ${tasksOf(scope)} t
    WHERE workspace_id = ${scope.workspace} AND ${condition}
      AND (assignee_id = ANY(${agents.map(({ id }) => id)})
        OR (assignee_id IS NULL AND assigned_to = ANY(${agents.map(({ name }) => name)})))
      AND ${taskSeen(scope.view, 't')}
    ORDER BY ${order} LIMIT ${MAX_LISTED}`.execute(scope.reads.db);
  return rows;
}

const jsonText = ({ isAdmin }: Scope, value: unknown): string => JSON.stringify(isAdmin ? value : masked(value));

async function overdueOf(scope: Scope) {
  const { reads, workspace, view, now } = scope;
  const rows = await inWorkspace(reads, tasksProjection, 'tasks', workspace)
    .select([...TASK_COLUMNS, 'source'])
    .select(sql<number>`count(*) OVER ()`.as('total'))
    .select(
      sql<string | null>`(SELECT a.name FROM ${tableOf(reads, agentsProjection, 'agents')} a
        WHERE a.workspace_id = tasks.workspace_id AND CASE WHEN tasks.assignee_id IS NULL
          THEN a.name = tasks.assigned_to ELSE a.id = tasks.assignee_id END)`.as('agent_name'),
    )
    .where('due_date', '<', now)
    .where('status', '<>', sql.lit('done'))
    .where(taskSeen(view, 'tasks'))
    .orderBy('due_date')
    .orderBy('id')
    .limit(MAX_LISTED)
    .execute();
  const total = rows[0]?.total ?? 0;
  const tasks = rows.map(({ total: _, due_date, tags, metadata, source, ...row }) => ({
    ...row,
    ...NO_SOURCE,
    ...(source as TaskSource | null),
    due_date: due_date ?? 0,
    tags: JSON.stringify(tags),
    metadata: jsonText(scope, metadata),
  }));
  return { total, tasks };
}

/** The actions of each agent on that day, which are attributed to it by ids. */
async function actionsOf({ reads, workspace, from }: Scope, agents: readonly Known[]) {
  const rows = await inWorkspace(reads, agentAttributionProjection, 'action_counts', workspace)
    .select(({ fn }) => [
      'agent_id',
      fn.sum<number>('count').as('actionCount'),
      sql<number>`coalesce(sum(count) FILTER (WHERE type = ${COMMENT}), 0)::bigint`.as('commentsCount'),
    ])
    .where('unit', '=', 'day')
    .where('start', '=', from * 1_000)
    .where('kind', '=', 'activity')
    .where(sql<boolean>`agent_id = ANY(${agents.map(({ id }) => id)})`)
    .groupBy('agent_id')
    .having(sql<boolean>`sum(count) > 0`)
    .execute();
  return new Map(rows.map(({ agent_id, ...counts }) => [agent_id, counts]));
}

function byAgent(list: readonly ListedTask[], idOf: (task: ListedTask) => number | undefined) {
  const lists = new Map<number | undefined, ListedTask[]>();
  for (const task of list) {
    const id = idOf(task);
    lists.set(id, [...(lists.get(id) ?? []), task]);
  }
  return lists;
}

const BLOCKER_RANKS = ['urgent', 'high', 'medium', 'low'];
const blockerRank = ({ priority }: { readonly priority: string }): number => {
  const rank = BLOCKER_RANKS.indexOf(priority);
  return rank < 0 ? BLOCKER_RANKS.length : rank;
};

/**
 * The report of a day, without its time. Its tasks are those that the caller may see.
 *
 * @param date `YYYY-MM-DD`
 * @param now Unix seconds
 */
export async function standupOf(
  reads: Reads,
  view: TaskView,
  {
    date,
    names: only,
    isAdmin,
  }: { readonly date: string; readonly names: readonly string[]; readonly isAdmin: boolean },
  now: number,
): Promise<Omit<StandupReport, 'generatedAt'>> {
  const from = Date.parse(`${date}T00:00:00Z`) / 1000;
  const { workspace } = view;
  const scope: Scope = { reads, workspace, view, names: only, from, to: from + DAY, now, isAdmin };
  const agents = await agentsOf(scope).execute();
  const ids = new Map(agents.map(({ id, name }) => [name, id]));
  const names = new Map(agents.map(({ id, name }) => [id, name]));
  const idOf = ({ assignee_id, assigned_to }: ListedTask) => assignee_id ?? ids.get(assigned_to);
  const nameOf = (task: ListedTask) => names.get(idOf(task) ?? 0) ?? task.assigned_to;
  const completed = await listed(
    scope,
    agents,
    sql`status = 'done' AND EXISTS (
      SELECT FROM ${tableOf(reads, tasksProjection, 'task_changes')} c
      WHERE c.workspace_id = ${workspace} AND c.id = t.id AND c.updated_at >= ${from} AND c.updated_at < ${scope.to})`,
    sql`updated_at DESC, id DESC`,
  );
  const inProgress = await listed(scope, agents, sql`status = 'in_progress'`, sql`created_at, id`);
  const assigned = await listed(scope, agents, sql`status = 'assigned'`, sql`priority DESC, created_at, id`);
  const review = await listed(scope, agents, sql`status IN ('review', 'quality_review')`, sql`updated_at, id`);
  const blocked = await listed(
    scope,
    agents,
    sql`status <> 'done' AND (priority = 'urgent' OR metadata::text LIKE '%blocked%')`,
    sql`priority DESC, created_at, id`,
  );
  const overdue = await overdueOf(scope);
  const actions = await actionsOf(scope, agents);

  const completedTask = (task: ListedTask) => columnsOf(task, ['id', 'title', 'status', 'updated_at']);
  const dueTask = (task: ListedTask) => columnsOf(task, ['id', 'title', 'status', 'created_at', 'due_date']);
  const blockedTask = (task: ListedTask) => ({
    ...columnsOf(task, ['id', 'title', 'status', 'priority', 'created_at']),
    metadata: jsonText(scope, task.metadata),
  });
  const totalOf = (list: readonly ListedTask[]): number => list[0]?.total ?? 0;
  const lists = { completed, inProgress, assigned, review, blocked };
  const by = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, byAgent(list, idOf)])) as Record<
    keyof typeof lists,
    ReturnType<typeof byAgent>
  >;
  const agentReports = agents.map(({ id, ...agent }): AgentReport => {
    const of = (list: keyof typeof lists) => by[list].get(id) ?? [];
    return {
      agent,
      completedToday: of('completed').map(completedTask),
      inProgress: of('inProgress').map(dueTask),
      assigned: of('assigned').map((task) => ({ ...dueTask(task), priority: task.priority })),
      review: of('review').map(completedTask),
      blocked: of('blocked').map(blockedTask),
      activity: actions.get(id) ?? { actionCount: 0, commentsCount: 0 },
    };
  });
  const summary: StandupSummary = {
    totalAgents: agents.length,
    totalCompleted: totalOf(completed),
    totalInProgress: totalOf(inProgress),
    totalAssigned: totalOf(assigned),
    totalReview: totalOf(review),
    totalBlocked: totalOf(blocked),
    totalActivity: [...actions.values()].reduce((sum, { actionCount }) => sum + actionCount, 0),
    overdue: overdue.total,
  };
  return {
    date,
    summary,
    agentReports,
    teamAccomplishments: completed
      .slice(0, ACCOMPLISHMENTS)
      .map((task) => ({ ...completedTask(task), agent: nameOf(task) })),
    teamBlockers: [...blocked]
      .sort((one, other) => blockerRank(one) - blockerRank(other) || one.created_at - other.created_at)
      .map((task) => ({ ...blockedTask(task), agent: nameOf(task) })),
    overdueTasks: overdue.tasks,
  };
}

/** Reports of earlier days, the newest first. There is one a day, so counting them costs nothing. */
export async function listStandups(reads: Reads, workspace: number, { limit, offset }: StandupsQuery) {
  const all = inWorkspace(reads, standupsProjection, 'standups', workspace);
  const rows = await all
    .select(['date', 'summary', 'generated_at'])
    .orderBy('generated_at', 'desc')
    .orderBy('date', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return {
    history: rows.map(({ date, summary, generated_at }, index) => {
      return {
        id: `${date}-${offset + index}`,
        date,
        generatedAt: new Date(generated_at).toISOString(),
        summary,
        agentCount: summary.totalAgents,
      };
    }),
    total: await countOf(all),
    page: Math.floor(offset / limit) + 1,
    limit,
  };
}
