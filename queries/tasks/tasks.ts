/** Tasks: the list, one record, and lookups. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { taskCommentsProjection } from '../../projections/tasks/comments.ts';
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import {
  type ListedTask,
  PRIORITIES,
  priorityRank,
  type TaskRecord,
  type TasksQuery,
  taskSchema,
} from '../../shared/contract/tasks/tasks.ts';
import { type TaskSource, taskSource } from '../../shared/events/tasks/tasks.ts';
import { fieldNames } from '../../shared/fields.ts';
import type { TaskView } from '../../shared/identity.ts';
import { ASSIGNEE, agentNamed, COUNTED_ASSIGNEE, type NamedAgent, nameNow, refersTo } from '../agents/names.ts';
import { PEOPLE_MODELS } from '../names.ts';
import { inWorkspace, jsonFields, placeOfPage, prepared, type Reads, tableOf, tables, upToSize } from '../reads.ts';
import { taskSeen, unseen } from './visibility.ts';

export const taskTables = (reads: Reads) => tables(reads, tasksProjection);

/** Read models from which a task is shown. */
export const TASK_MODELS: readonly string[] = [
  tasksProjection.name,
  projectsProjection.name,
  agentsProjection.name,
  ...PEOPLE_MODELS,
];
/** Read models from which lists of tasks are built. */
export const LISTED_TASK_MODELS: readonly string[] = [...TASK_MODELS, taskCommentsProjection.name];

const isColumn = (field: keyof TaskRecord): field is keyof TaskRecord & keyof (typeof tasksTable)['columns'] =>
  field in tasksTable.columns;
/** The fields of a task record that are columns of its row. The others are in `source`, or in the row of its project. */
export const TASK_COLUMNS = fieldNames(taskSchema).filter(isColumn);

/** Fields of a task record that row `t` of tasks has, as arguments of `json_build_object`. */
const ownFields = (columns: readonly string[]) => `
  ${jsonFields('t', columns)},
  ${fieldNames(taskSource)
    .map((field) => `'${field}', t.source->'${field}'`)
    .join(', ')}`;

const PROJECT_FIELDS = sql.raw(`
  'project_name', p.name, 'project_prefix', p.ticket_prefix,
  'ticket_ref', p.ticket_prefix || '-' || CASE WHEN t.project_ticket_no < 1000
    THEN lpad(t.project_ticket_no::text, 3, '0') ELSE t.project_ticket_no::text END`);

const OWN_FIELDS = sql.raw(ownFields(TASK_COLUMNS));
const OTHER_FIELDS = sql.raw(ownFields(TASK_COLUMNS.filter((column) => column !== 'assigned_to')));

/** The name of the assignee of row `row` of tasks. Tasks that are done keep the name that it had then. */
export const assigneeNow = (reads: Reads, row: string): RawBuilder<string | null> => nameNow(reads, row, ASSIGNEE);

/** All fields of a task record, from row `t` of tasks and row `p` of projects. */
const fieldsOf = (reads: Reads) => sql`${OTHER_FIELDS}, 'assigned_to', ${assigneeNow(reads, 't')}, ${PROJECT_FIELDS}`;

/** A task record as JSON. */
const taskJson = (reads: Reads): RawBuilder<TaskRecord> => sql`json_build_object(${fieldsOf(reads)})`;
/** The same of a task that is not done: a rename of its assignee has changed its row. */
export const OPEN_TASK_JSON: RawBuilder<TaskRecord> = sql`json_build_object(${OWN_FIELDS}, ${PROJECT_FIELDS})`;
/** The same without the fields from its project. */
export const QUEUED_TASK_JSON = sql`json_build_object(${OWN_FIELDS})`;
/**
 * With the fields that only lists have. Comments are counted here: in the row of the task, each comment would leave a
 * version of the whole row.
 */
const listedTaskJson = (reads: Reads): RawBuilder<ListedTask> =>
  sql`json_build_object(${fieldsOf(reads)}, 'comment_count', (
    SELECT count(*) FROM ${tableOf(reads, taskCommentsProjection, 'task_comments')} k
    WHERE k.workspace_id = t.workspace_id AND k.task_id = t.id))`;

/** Joins row `p`, the project of row `t`. */
export const joinProject = (reads: Reads): RawBuilder<unknown> =>
  sql`LEFT JOIN ${tableOf(reads, projectsProjection, 'projects')} p
    ON p.workspace_id = t.workspace_id AND p.id = t.project_id`;

type Filters = Pick<TasksQuery, 'status' | 'priority' | 'project_id'> & {
  readonly assignee?: NamedAgent | undefined;
};

/** Number of tasks that match a filter: from the stored counts, or counted for a bound caller. */
function totalOf(reads: Reads, view: TaskView, filters: Filters) {
  const { workspace } = view;
  if (view.agent !== null) return matching(reads, view, filters).select(({ fn }) => fn.countAll<number>().as('total'));
  let counts = inWorkspace(reads, tasksProjection, 'task_counts', workspace).select(({ fn }) =>
    fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('total'),
  );
  for (const column of FILTERS) {
    const value = filters[column];
    if (value !== undefined) counts = counts.where(column, '=', value as never);
  }
  return filters.assignee ? counts.where(isAssignee(reads, 'task_counts', filters.assignee)) : counts;
}

const FILTERS = ['status', 'priority', 'project_id'] as const;

const isAssignee = (reads: Reads, row: 'tasks' | 'task_counts', agent: NamedAgent) => {
  const reference = row === 'tasks' ? ASSIGNEE : COUNTED_ASSIGNEE;
  return sql<boolean>`(${sql.join(refersTo(reads, row, reference, agent), sql` OR `)})`;
};

/** Tasks that the caller may see and a filter matches. */
function matching(reads: Reads, view: TaskView, filters: Filters) {
  let found = taskTables(reads)
    .selectFrom('tasks')
    .where('tasks.workspace_id', '=', view.workspace)
    .where(taskSeen(view, 'tasks'));
  for (const column of FILTERS) {
    const value = filters[column];
    if (value === undefined) continue;
    const rank = column === 'priority' ? priorityRank(String(value)) : undefined;
    if (rank !== undefined) found = found.where('tasks.priority_rank', '=', rank);
    // For a known priority the rank is enough; with both conditions the planner would underestimate the rows.
    if (rank === undefined || rank === PRIORITIES.length) found = found.where(`tasks.${column}`, '=', value as never);
  }
  return filters.assignee ? found.where(isAssignee(reads, 'tasks', filters.assignee)) : found;
}

type Matching = ReturnType<typeof matching>;

type Direction = 'asc' | 'desc';

/** The columns of each order, as in its index. `first`: the default direction of the index scan. */
const ORDERS: Readonly<
  Record<
    NonNullable<TasksQuery['sort']>,
    { readonly columns: readonly (readonly [string, Direction])[]; readonly first: Direction }
  >
> = {
  created_at: {
    columns: [
      ['created_at', 'desc'],
      ['id', 'desc'],
    ],
    first: 'desc',
  },
  updated_at: {
    columns: [
      ['changed_at', 'desc'],
      ['changed_position', 'desc'],
    ],
    first: 'desc',
  },
  priority: {
    columns: [
      ['priority_rank', 'asc'],
      ['created_at', 'desc'],
      ['id', 'desc'],
    ],
    first: 'desc',
  },
  due_date: {
    columns: [
      ['due_date', 'asc'],
      ['id', 'desc'],
    ],
    first: 'asc',
  },
};

const turned = (direction: Direction): Direction => (direction === 'asc' ? 'desc' : 'asc');

/** The text of an ORDER BY over columns of `table`. `backwards`: from the other end of the index. */
const orderText = (columns: readonly (readonly [string, Direction])[], backwards: boolean, table = '') =>
  sql.raw(
    columns.map(([column, direction]) => `${table}${column} ${backwards ? turned(direction) : direction}`).join(', '),
  );

/** The same, with the last change of each task. */
const withChange = (found: Matching, workspace: number) =>
  found
    .innerJoin('task_changes as c', (join) =>
      join.onRef('c.workspace_id', '=', 'tasks.workspace_id').onRef('c.id', '=', 'tasks.id'),
    )
    .select(['c.updated_at as changed_at', 'c.position as changed_position'])
    .where('c.workspace_id', '=', workspace);

/** A page of the tasks that the caller may see. */
export async function listTasks(reads: Reads, view: TaskView, query: TasksQuery) {
  const { assigned_to: assignedTo, limit, offset, sort = 'created_at', order } = query;
  const { columns, first } = ORDERS[sort];
  const backwards = order !== undefined && order !== first;
  const assignee = assignedTo === undefined ? undefined : await agentNamed(reads, view.workspace, assignedTo);
  const filters: Filters = { ...query, assignee };
  const total = totalOf(reads, view, filters);
  const { known, size, skip, fromEnd } = await placeOfPage(query, () => total.executeTakeFirst());
  const found = matching(reads, view, filters);
  const page = (sort === 'updated_at' ? withChange(found, view.workspace) : found)
    .selectAll('tasks')
    .orderBy(orderText(columns, fromEnd !== backwards))
    .limit(size)
    .offset(skip);
  // List and total in one statement, so that both show the same moment.
  const { rows } = await sql<{ tasks: ListedTask[] | null; total: number }>`${prepared}
    WITH page AS (${upToSize(page, orderText(columns, backwards))})
    SELECT json_agg(${listedTaskJson(reads)} ORDER BY ${orderText(columns, backwards, 't.')}) AS tasks,
      ${known === undefined ? sql`(${total})` : sql`${known}::bigint`} AS total
    FROM page t ${joinProject(reads)}`.execute(reads.db);
  const [row] = rows;
  return {
    tasks: row?.tasks ?? [],
    total: Number(row?.total ?? 0),
    page: Math.floor(offset / limit) + 1,
    limit,
  };
}

/**
 * A row of one task; undefined when the workspace has no such task.
 *
 * @throws AppError 403 when the caller may not see it
 */
async function rowOf<Row>(reads: Reads, view: TaskView, id: number, columns: RawBuilder<unknown>) {
  const { rows } = await sql<Row & { readonly seen: boolean | null }>`
    SELECT ${columns}, ${taskSeen(view, 't')} AS seen
    FROM ${tableOf(reads, tasksProjection, 'tasks')} t ${joinProject(reads)}
    WHERE t.workspace_id = ${view.workspace} AND t.id = ${id}`.execute(reads.db);
  const [row] = rows;
  if (row && row.seen !== true) throw unseen(view);
  return row;
}

/** One task; undefined when the workspace has no such task. @throws AppError 403 when the caller may not see it */
export const taskById = async (reads: Reads, view: TaskView, id: number): Promise<TaskRecord | undefined> =>
  (await rowOf<{ readonly task: TaskRecord }>(reads, view, id, sql`${taskJson(reads)} AS task`))?.task;

export interface TaskRepository {
  /** Repository of the task's project, as entered; null: it has none. */
  readonly repo: string | null;
  /** The branch from which others start. */
  readonly base: string;
  /** Ticket prefix of its project. */
  readonly prefix: string;
  readonly source: TaskSource | null;
}

/**
 * The repository for the branch of a task; undefined when the workspace has no such task.
 *
 * @throws AppError 403 as `taskById`
 */
export const repositoryOf = (reads: Reads, view: TaskView, id: number): Promise<TaskRepository | undefined> =>
  rowOf<TaskRepository>(
    reads,
    view,
    id,
    sql`p.github_repo AS repo, coalesce(p.github_default_branch, 'main') AS base, p.ticket_prefix AS prefix,
      t.source`,
  );
