/** Costs of tasks, and of their agents and projects. */
import { type RawBuilder, sql } from 'kysely';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { MAX_GROUPS, type TaskCostsResponse } from '../../shared/contract/tokens/usage.ts';
import { ticketRef } from '../../shared/events/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import { DAY_MS } from '../../shared/time-buckets.ts';
import { type Reads, tableOf } from '../reads.ts';
import { assigneeNow } from '../tasks/tasks.ts';
import { taskSeen } from '../tasks/visibility.ts';
import {
  ownedBy,
  type ReportFilter,
  type ReportNumber,
  type ReportRow,
  reportDerivations,
  type TaskFilter,
} from './evidence.ts';
import { namesOf, type Whose } from './owners.ts';
import {
  added,
  type DaySums,
  dateOf,
  grouped,
  IN_WINDOW,
  NEWEST,
  SUMS,
  type Sums,
  sinceOf,
  statsBy,
  statsOf,
  sumsSince,
  timelineOf,
  timelineSince,
  type Usage,
  usageSince,
  withUsage,
} from './usage.ts';

interface TaskRow extends Sums {
  readonly task: number;
  readonly title: string;
  readonly status: string;
  readonly priority: string;
  readonly assigned_to: string | null;
  readonly ticket_no: number;
  readonly project_id: number | null;
  readonly name: string | null;
  readonly slug: string | null;
  readonly prefix: string | null;
}

interface Shared extends Sums {
  readonly tasks: number;
  readonly ids: readonly number[];
}

interface Found {
  readonly total: Sums & { readonly position: number };
  /** Position of the newest event that changed a task. */
  readonly tasks_to: number;
  readonly attributed: Sums;
  readonly existing: Sums;
  readonly dearest: readonly TaskRow[] | null;
  readonly models: readonly (Sums & { readonly task: number; readonly model: string })[] | null;
  readonly agents: readonly (Whose & Shared)[] | null;
  readonly projects: readonly (Shared & { readonly project: number | null })[] | null;
}

const sharedOf = (row: Shared) => ({ stats: statsOf(row), taskCount: row.tasks, taskIds: [...row.ids] });

const ROW = (found: RawBuilder<unknown>) => sql`(SELECT row_to_json(one) FROM (${found}) one)`;
const ROWS = (found: RawBuilder<unknown>) => sql`(SELECT json_agg(row_to_json(one)) FROM (${found}) one)`;

/**
 * Everything derived from the sums of a window, in one statement: buckets of tasks are nearly as many as reports, so
 * they are read once.
 */
async function findCosts(usage: Usage, view: TaskView, since: number, now: number, evident: boolean): Promise<Found> {
  const { reads, workspace } = usage;
  const tasks = tableOf(reads, tasksProjection, 'tasks');
  const projects = tableOf(reads, projectsProjection, 'projects');
  const TASKS = sql`count(DISTINCT task)::int AS tasks,
    to_json((array_agg(DISTINCT task ORDER BY task))[1:${sql.lit(MAX_GROUPS)}]) AS ids`;
  const { rows } = await sql<Found>`
    WITH used AS MATERIALIZED (
        SELECT subject, agent_id, agent_name, model, ${SUMS} FROM (${sumsSince(usage, 'task', since, now)}) u
        GROUP BY 1, 2, 3, 4 ${IN_WINDOW}),
      -- Of tasks that exist and the caller sees.
      known AS MATERIALIZED (
        SELECT u.*, t.id AS task, p.id AS project
        FROM used u JOIN ${tasks} t ON t.workspace_id = ${workspace} AND t.id = u.subject::bigint AND ${taskSeen(view, 't')}
          LEFT JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id),
      dearest AS MATERIALIZED (
        SELECT task, ${SUMS} FROM known GROUP BY task ORDER BY sum(cost) DESC, task LIMIT ${MAX_GROUPS})
    SELECT ${ROW(sql`SELECT ${SUMS}, ${NEWEST} AS position FROM (${sumsSince(usage, 'model', since, now)}) u`)} AS total,
      ${evident ? tasksTo(reads, workspace) : sql`0`} AS tasks_to,
      ${ROW(sql`SELECT ${SUMS} FROM used`)} AS attributed,
      ${ROW(sql`SELECT ${SUMS} FROM known`)} AS existing,
      ${ROWS(sql`
        SELECT d.*, t.title, t.status, t.priority, ${assigneeNow(reads, 't')} AS assigned_to, t.project_ticket_no AS ticket_no, p.id AS project_id, p.name,
          p.slug, p.ticket_prefix AS prefix
        FROM dearest d JOIN ${tasks} t ON t.workspace_id = ${workspace} AND t.id = d.task
          LEFT JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
        ORDER BY d.cost DESC, d.task`)} AS dearest,
      ${ROWS(sql`
        SELECT task, model, ${SUMS} FROM known WHERE task IN (SELECT task FROM dearest) GROUP BY task, model
        ORDER BY sum(cost) DESC, model`)} AS models,
      ${ROWS(sql`
        SELECT agent_id, agent_name, ${SUMS}, ${TASKS} FROM known GROUP BY 1, 2
        ORDER BY sum(cost) DESC, 1, 2 LIMIT ${MAX_GROUPS}`)} AS agents,
      ${ROWS(sql`
        SELECT project, ${SUMS}, ${TASKS} FROM known GROUP BY 1 ORDER BY sum(cost) DESC, 1 LIMIT ${MAX_GROUPS}`)} AS projects
  `.execute(reads.db);
  const [found] = rows;
  if (!found) throw new Error('the statement gives exactly one row');
  return found;
}

/** @param now Unix ms */
export const taskCosts = (
  reads: Reads,
  view: TaskView,
  timeframe: string,
  now: number,
  most?: number,
): Promise<TaskCostsResponse> =>
  withUsage(reads, view.workspace, (usage) => costsIn(usage, view, timeframe, now, most));

async function costsIn(
  usage: Usage,
  view: TaskView,
  timeframe: string,
  now: number,
  most?: number,
): Promise<TaskCostsResponse> {
  const { reads, workspace } = usage;
  const since = sinceOf(timeframe, now);
  const { total, attributed, existing, ...found } = await findCosts(usage, view, since, now, most !== undefined);
  const dearest = found.dearest ?? [];
  const agents = found.agents ?? [];
  const subjects = dearest.map(({ task }) => String(task));
  const begin = timelineSince(since, now);
  const { rows: days } = await sql<DaySums & { subject: string; position: number }>`
    SELECT subject, start - start % ${DAY_MS} AS day, ${SUMS}, ${NEWEST} AS position
    FROM (${usageSince(usage, 'task', begin, { coarsest: 'day' })}) u
    WHERE subject = ANY(${subjects}) GROUP BY 1, 2 ORDER BY 2`.execute(reads.db);
  const modelsBy = grouped(found.models ?? [], ({ task }) => String(task));
  const daysBy = grouped(days, ({ subject }) => subject);
  const nameOf = await namesOf(reads, workspace, agents);
  const projects = (found.projects ?? []).map((row) => ({ ...row, name: String(row.project ?? 'unscoped') }));
  const modelsOf = ({ task }: TaskRow) => (modelsBy.get(String(task)) ?? []).slice(0, MAX_GROUPS);
  const response = {
    summary: statsOf(existing),
    tasks: dearest.map((row) => ({
      taskId: row.task,
      title: row.title,
      status: row.status,
      priority: row.priority,
      assignedTo: row.assigned_to,
      project: {
        id: row.project_id,
        name: row.name,
        slug: row.slug,
        ticketRef: row.prefix && row.ticket_no > 0 ? ticketRef(row.prefix, row.ticket_no) : null,
      },
      stats: statsOf(row),
      models: statsBy(modelsOf(row), ({ model }) => model),
      timeline: timelineOf(daysBy.get(String(row.task)) ?? []),
    })),
    agents: Object.fromEntries(agents.map((row) => [nameOf(row), sharedOf(row)])),
    projects: Object.fromEntries(projects.map((row) => [row.name, sharedOf(row)])),
    unattributed: statsOf(added(total, attributed, -1)),
    timeframe,
    recordCount: total.requests,
    attributedRecordCount: attributed.requests,
  };
  if (most === undefined) return response;
  const projectOf = new Map(dearest.map(({ task, project_id }) => [task, project_id]));
  const isSeen = ({ task_id }: ReportRow) => task_id !== null && projectOf.has(task_id);
  /** For existing tasks that the caller may see. */
  const existingTasks = { tasks: 'existing', tasks_until: found.tasks_to, ...seenBy(view) };
  const shared = (name: string, row: Shared, only: ReportFilter, project?: number | null): ReportNumber => [
    name,
    row.requests,
    only,
    {
      filter: { ...existingTasks, ...(project !== undefined && { project_id: project }) },
      counts: (report) =>
        isSeen(report) && (project === undefined || projectOf.get(Number(report.task_id)) === project),
    },
  ];
  const sums = await reportDerivations(reads, workspace, { since, now, to: total.position, most }, [
    ['recordCount', total.requests, {}],
    [
      'attributedRecordCount',
      attributed.requests,
      {},
      { filter: { tasks: 'any' }, counts: ({ task_id }) => task_id !== null },
    ],
    ['unattributed', total.requests - attributed.requests, { task_id: null }],
    ['summary', existing.requests, {}, { filter: existingTasks, counts: isSeen }],
    ...dearest.flatMap((row): readonly ReportNumber[] => [
      [`tasks.${row.task}`, row.requests, { task_id: row.task }],
      ...modelsOf(row).map(
        ({ model, requests }): ReportNumber => [
          `tasks.${row.task}.models.${model}`,
          requests,
          { task_id: row.task, model },
        ],
      ),
    ]),
    ...agents.map((row) => shared(`agents.${nameOf(row)}`, row, ownedBy(row))),
    ...projects.map((row) => shared(`projects.${row.name}`, row, {}, row.project)),
  ]);
  // Days are counted in a separate statement, and can be newer.
  const to = Math.max(0, ...days.map(({ position }) => position));
  const timelines = await reportDerivations(
    reads,
    workspace,
    { since: begin, now, to, most },
    days.map(({ subject, day, requests }) => [
      `tasks.${subject}.timeline.${dateOf(day)}`,
      requests,
      { task_id: Number(subject), since: Math.max(begin, day), until: day + DAY_MS },
    ]),
  );
  return { ...response, evidence: { ...sums, ...timelines } };
}

/** The counts show deletions of tasks, the rows all other changes. */
const tasksTo = (reads: Reads, workspace: number): RawBuilder<unknown> => {
  const newest = (table: 'tasks' | 'task_counts') =>
    sql`(SELECT coalesce(max(position), 0) FROM ${tableOf(reads, tasksProjection, table)} WHERE workspace_id = ${workspace})`;
  return sql`greatest(${newest('tasks')}, ${newest('task_counts')})::bigint`;
};

/** A caller bound to an agent sees the tasks that are assigned to the agent or that it created. */
const seenBy = ({ agent }: TaskView): TaskFilter['filter'] =>
  agent === null ? {} : { seen_by: agent.name, seen_by_id: agent.id };
