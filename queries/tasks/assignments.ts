/** Tasks per agent: counts by status, and the tasks that wait for an agent. */
import { type RawBuilder, sql } from 'kysely';
import { taskCountsTable, tasksProjection } from '../../projections/tasks/tasks.ts';
import type { TaskStats } from '../../shared/contract/agents/agents.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import { askingTogether } from '../../shared/waiting.ts';
import { prepared, type Reads, tableOf } from '../reads.ts';
import { URGENT_FIRST, waitingTasks } from './queue.ts';
import { joinProject, OPEN_TASK_JSON } from './tasks.ts';
import { taskSeen } from './visibility.ts';

export const NO_TASKS: TaskStats = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

/** An agent in its workspace. Id 0: it is being created, so only tasks that were assigned to its name before are its own. */
type Place = readonly [workspace: number, agent: { readonly id: number; readonly name: string }];

interface TaskCount {
  /** Index of the agent. */
  readonly agent: number;
  readonly status: string;
  readonly count: number;
}

/** Number of tasks by status, for each agent; undefined: it has none. */
async function countTasks(reads: Reads, agents: readonly Place[]): Promise<readonly (TaskStats | undefined)[]> {
  const asked = agents.map(([workspace, { id, name }], agent) => ({ agent, workspace, id, name }));
  const counted = (which: RawBuilder<unknown>) => sql`
    SELECT q.agent, c.status, c.count FROM json_to_recordset(${JSON.stringify(asked)}::json)
      AS q (agent int, workspace int, id bigint, name text)
    JOIN ${tableOf(reads, tasksProjection, taskCountsTable.name)} c ON c.workspace_id = q.workspace AND ${which}
    WHERE c.count > 0`;
  const { rows } = await sql<TaskCount>`${prepared}
    SELECT agent, status, sum(count) AS count FROM (
      ${counted(sql`c.assignee_id = q.id AND q.id > 0`)} UNION ALL
      ${counted(sql`c.assigned_to = q.name AND c.assignee_id = 0`)}) counted GROUP BY agent, status`.execute(reads.db);
  const stats: (TaskStats | undefined)[] = agents.map(() => undefined);
  for (const { agent, status, count } of rows) {
    const known = stats[agent] ?? NO_TASKS;
    const more = { ...known, total: known.total + Number(count) };
    if (status === 'done') Object.assign(more, { done: Number(count), completed: Number(count) });
    else if (status in NO_TASKS) Object.assign(more, { [status]: Number(count) });
    stats[agent] = more;
  }
  return stats;
}

/**
 * Task counts of agents that are being created, for the responses of writes, which do not wait for them. Concurrently
 * created agents share one query.
 */
export function createTaskStats(reads: Reads): (workspace: number, name: string) => Promise<TaskStats> {
  const there = reads.at({});
  const count = askingTogether(async (agents: readonly Place[]) => {
    const stats = await countTasks(there, agents);
    return new Map(agents.map((agent, n) => [agent, stats[n]]));
  });
  return async (workspace, name) => {
    const agent: Place = [workspace, { id: 0, name }];
    return (await count([agent])).get(agent) ?? NO_TASKS;
  };
}

/** Number of tasks by status of each of these agents. */
export async function taskStatsOf(
  reads: Reads,
  workspace: number,
  agents: readonly { readonly id: number; readonly name: string }[],
): Promise<readonly TaskStats[]> {
  const stats = await countTasks(
    reads,
    agents.map((agent) => [workspace, agent] as const),
  );
  return stats.map((own) => own ?? NO_TASKS);
}

const tasksTable = (reads: Reads) => tableOf(reads, tasksProjection, 'tasks');

/** Maximum number of tasks in the response to a heartbeat. */
const SHOWN_TASKS = 10;

/**
 * Tasks assigned to an agent that are assigned or in progress, most urgent and oldest first, as a subquery with the
 * column `tasks`: a list of records, or null.
 *
 * @param agent columns `workspace_id` and `name` of the row that it is joined to
 */
export const tasksOf = (reads: Reads, agent: string): RawBuilder<unknown> => sql`
  SELECT json_agg(${OPEN_TASK_JSON} ORDER BY t.priority_rank, t.created_at, t.id) AS tasks
  FROM (
    SELECT * FROM ${tasksTable(reads)} x
    WHERE x.workspace_id = ${sql.ref(`${agent}.workspace_id`)} AND x.assigned_to = ${sql.ref(`${agent}.name`)}
      AND (x.assignee_id IS NULL OR x.assignee_id = ${sql.ref(`${agent}.id`)})
      AND x.status IN ('assigned', 'in_progress')
    ORDER BY x.priority_rank, x.created_at, x.id LIMIT ${sql.lit(SHOWN_TASKS)}
  ) t ${joinProject(reads)}`;

/** The first field with a text. */
const textIn = (metadata: TaskRecord['metadata'], ...names: string[]) =>
  names.map((name) => metadata[name]).find((value) => typeof value === 'string' && value !== '');

/** A task as a work item shows it. Clients have several names for where its code is. */
export function workItemOf({ id, title, status, priority, due_date, metadata }: TaskRecord) {
  const implementation_repo = textIn(metadata, 'implementation_repo', 'implementationRepo', 'github_repo');
  const code_location = textIn(metadata, 'code_location', 'codeLocation', 'path');
  return {
    id,
    title,
    status,
    priority,
    ...(due_date !== null && { due_date }),
    ...(implementation_repo !== undefined && { implementation_repo }),
    ...(code_location !== undefined && { code_location }),
  };
}

/** A task that an adapter offers to an agent of its framework. */
export interface Assignment {
  readonly taskId: string;
  readonly description: string;
  /** 0 critical, 1 high, 2 medium, 3 others. */
  readonly priority: number;
}

/** Maximum number of tasks that are offered to an adapter. */
const OFFERED_TASKS = 5;

/** Visible tasks of a bound caller that wait for an agent, or are unassigned: few, with an index of their own. */
const waitingAmongOwn = (reads: Reads, view: TaskView, agent: string): RawBuilder<unknown> => sql`(
  SELECT * FROM ${tasksTable(reads)} t
  WHERE workspace_id = ${view.workspace} AND status IN ('assigned', 'inbox') AND (assigned_to = ${agent} OR assigned_to IS NULL)
    AND ${taskSeen(view, 't')}
  ORDER BY ${URGENT_FIRST} LIMIT ${sql.lit(OFFERED_TASKS)})`;

/** Visible tasks that wait for an agent, or are unassigned: most urgent first, then by due date and age. */
export async function assignmentsFor(reads: Reads, view: TaskView, agentId: string): Promise<readonly Assignment[]> {
  const waiting =
    view.agent === null
      ? waitingTasks(reads, view.workspace, agentId, OFFERED_TASKS)
      : waitingAmongOwn(reads, view, agentId);
  const { rows } = await sql<{ id: number; title: string; description: string | null; rank: number }>`
    SELECT id, title, description, priority_rank AS rank FROM ${waiting} waiting ORDER BY ${URGENT_FIRST}`.execute(
    reads.db,
  );
  return rows.map(({ id, title, description, rank }) => ({
    taskId: String(id),
    description: description ? `${title}\n${description}` : title,
    priority: Math.min(rank, 3),
  }));
}
