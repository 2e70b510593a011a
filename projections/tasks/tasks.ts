/**
 * The current tasks, and their number per kind, so that totals need no counting. Names and prefixes of projects are
 * looked up when tasks are read, because they change with the project.
 */
import { activeCron } from '../../shared/contract/tasks/recurrence.ts';
import { priorityRank } from '../../shared/contract/tasks/tasks.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { taskBefore } from '../../shared/events/tasks/changes.ts';
import { fieldsAfter, TASK_CHANGES, type TaskChange, taskChange } from '../../shared/events/tasks/evolution.ts';
import {
  creatorAgentOf,
  NO_SOURCE,
  placeOf,
  type TaskData,
  type TaskPlace,
  taskCreated,
  taskDeleted,
} from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import {
  type Change,
  defineProjection,
  defineTable,
  insert,
  on,
  type RowOf,
  remove,
  tally,
  update,
} from '../projection.ts';

/** Lists that begin with the newest read these from the end. */
const BY_TIME = 'created_at, id';

export const tasksTable = defineTable(
  'tasks',
  {
    workspace_id: 'int',
    id: 'bigint',
    title: 'text',
    description: 'text?',
    status: 'text',
    priority: 'text',
    /** `priorityRank` of the priority: 0 is the most urgent. */
    priority_rank: 'int',
    project_id: 'bigint',
    project_ticket_no: 'bigint',
    assigned_to: 'text?',
    /** Id of the agent that is the assignee. */
    assignee_id: 'bigint?',
    created_by: 'text',
    /** Id of the agent that created the task; null: another caller did. */
    creator_agent: 'bigint?',
    created_at: 'bigint',
    updated_at: 'bigint',
    due_date: 'bigint?',
    estimated_hours: 'double?',
    actual_hours: 'double?',
    outcome: 'text?',
    error_message: 'text?',
    resolution: 'text?',
    feedback_rating: 'int?',
    feedback_notes: 'text?',
    retry_count: 'bigint',
    completed_at: 'bigint?',
    tags: 'jsonb',
    metadata: 'jsonb',
    dispatch_attempts: 'int',
    /** The pending request to the agent runner: `dispatch`, `review`; `accepted`: the runner has accepted it; null. */
    asked: 'text?',
    /** Schedule of a recurring task, and since when it applies. */
    cron: 'text?',
    cron_since: 'bigint?',
    /** Of a recurring task: the last due minute, Unix seconds, and the task created for it. */
    recurred_at: 'bigint?',
    recurred_child: 'bigint?',
    /** GitHub data of the record, by its names; null if there is none. */
    source: 'jsonb?',
  },
  {
    key: ['workspace_id', 'id'],
    // No indexed column changes with every event, so a change of other columns writes no index entry. For that, each
    // page also needs room for the next version of its rows.
    fillFactor: 80,
    createdAt: 'created_at',
    sized: true,
    concerns: ({ assigned_to, assignee_id, creator_agent }) => ({
      names: [assigned_to],
      ids: [assignee_id, creator_agent],
    }),
    indexes: [
      `workspace_id, ${BY_TIME}`,
      `workspace_id, status, ${BY_TIME}`,
      `workspace_id, assigned_to, ${BY_TIME}`,
      `(workspace_id, assignee_id, ${BY_TIME}) WHERE assignee_id IS NOT NULL`,
      `workspace_id, project_id, ${BY_TIME}`,
      `workspace_id, priority_rank, created_at DESC, id DESC`,
      'workspace_id, due_date, id DESC',
      "(workspace_id, assigned_to, priority_rank, due_date, created_at, id) WHERE status IN ('assigned', 'inbox', 'in_progress')",
      "(workspace_id, completed_at) WHERE status = 'done'",
      '(workspace_id, id) WHERE cron IS NOT NULL',
      '(workspace_id, asked) WHERE asked IS NOT NULL',
      `(workspace_id, creator_agent, ${BY_TIME}) WHERE creator_agent IS NOT NULL`,
    ],
  },
);

/** Columns for looking tasks up that change often, apart from the tasks' rows. */
export const taskChangesTable = defineTable(
  'task_changes',
  { workspace_id: 'int', id: 'bigint', project_id: 'bigint', title: 'text', updated_at: 'bigint' },
  {
    key: ['workspace_id', 'id'],
    indexes: ['workspace_id, updated_at, position', 'workspace_id, project_id, md5(title)'],
  },
);

/** Number of tasks in each place. Rows stay at 0, because their position shows up to where they count. */
export const taskCountsTable = defineTable(
  'task_counts',
  {
    workspace_id: 'int',
    status: 'text',
    priority: 'text',
    /** Empty: the task is unassigned. */
    assigned_to: 'text',
    /** Id of the agent that is the assignee; 0: a user, or a name that no agent had. */
    assignee_id: 'bigint',
    project_id: 'bigint',
    count: 'bigint',
  },
  {
    key: ['workspace_id', 'status', 'priority', 'assigned_to', 'assignee_id', 'project_id'],
    indexes: ['workspace_id, assigned_to, assignee_id', 'workspace_id, assignee_id', 'workspace_id, project_id'],
  },
);

type Row = RowOf<(typeof tasksTable)['columns']>;
type AboutTask = DomainEvent<string, { readonly task_id: number }>;

const keyOf = ({ meta, data }: AboutTask) => ({ workspace_id: meta.workspace, id: data.task_id });

const columnsOf = (task: TaskData) => ({
  ...task,
  assignee_id: task.assignee_id ?? null,
  priority_rank: priorityRank(task.priority),
  cron: activeCron(task.metadata),
});

/** Adds a task to a place, or removes it. */
function counted(
  { meta }: AboutTask,
  { status, priority, assigned_to: assignedTo, assignee_id: assigneeId, project_id }: TaskPlace,
  by: 1 | -1,
): Change {
  const key = {
    workspace_id: meta.workspace,
    status,
    priority,
    assigned_to: assignedTo ?? '',
    assignee_id: assigneeId ?? 0,
    project_id,
  };
  return tally(taskCountsTable, key, by);
}

/** The counts after a task moved from one place to another. */
function moved(event: AboutTask, before: TaskPlace, after: TaskPlace): Change[] {
  const same = JSON.stringify(placeOf(before)) === JSON.stringify(placeOf(after));
  return same ? [] : [counted(event, before, -1), counted(event, after, 1)];
}

/** The row after a change. @param at Unix seconds */
function rowAfter(row: Row, change: TaskChange, at: number): Row {
  const { source, asked, recurred, quiet } = change;
  const fields = fieldsAfter(row.metadata as TaskData['metadata'], change);
  const { status = row.status, assigned_to: assignedTo = row.assigned_to, priority, metadata } = fields;
  const assigneeId = fields.assigned_to === undefined ? row.assignee_id : (fields.assignee_id ?? null);
  const same = assigneeId === null ? assignedTo === row.assigned_to : assigneeId === row.assignee_id;
  const isThere = status === row.status && same;
  const cron = metadata ? activeCron(metadata) : row.cron;
  return Object.assign({}, row, fields, {
    assignee_id: assigneeId,
    updated_at: quiet ? row.updated_at : at,
    priority_rank: priority === undefined ? row.priority_rank : priorityRank(priority),
    asked: asked === undefined ? (isThere ? row.asked : null) : asked,
    cron,
    cron_since: cron === row.cron ? row.cron_since : at,
    recurred_at: recurred?.due_at ?? row.recurred_at,
    recurred_child: recurred?.child_id ?? row.recurred_child,
    source: source ? { ...NO_SOURCE, ...row.source, ...source } : row.source,
  });
}

/** The rows after an event that changes an existing task, with the counts. */
function changed(event: AboutTask): Change[] {
  const at = seconds(event.meta.at);
  const change = taskChange({ type: event.type, data: event.data, at: event.meta.at });
  const { task = {}, quiet } = change;
  const { before } = event.data as { readonly before?: Partial<TaskPlace> };
  return [
    update(tasksTable, keyOf(event), (row) => rowAfter(row, change, at)),
    ...(quiet
      ? []
      : [
          update(taskChangesTable, keyOf(event), (row) => ({
            ...row,
            updated_at: at,
            title: task.title ?? row.title,
            project_id: task.project_id ?? row.project_id,
          })),
        ]),
    ...(before ? moved(event, taskBefore({ task: task as TaskData, before }), task as TaskPlace) : []),
  ];
}

export const tasksProjection = defineProjection({
  name: 'tasks',
  version: 1,
  tables: [tasksTable, taskChangesTable, taskCountsTable],
  handlers: [
    on(taskCreated, (event) => {
      const { task } = event.data;
      const at = seconds(event.meta.at);
      return [
        insert(tasksTable, {
          created_at: at,
          updated_at: at,
          ...keyOf(event),
          ...columnsOf(task),
          creator_agent: creatorAgentOf(event.meta),
          asked: null,
          cron_since: at,
          recurred_at: null,
          recurred_child: null,
          source: null,
        }),
        insert(taskChangesTable, {
          ...keyOf(event),
          project_id: task.project_id,
          title: task.title,
          updated_at: at,
        }),
        counted(event, task, 1),
      ];
    }),
    ...TASK_CHANGES.map((type) => ({ type, handle: changed })),
    on(taskDeleted, (event) => [
      remove(tasksTable, keyOf(event)),
      remove(taskChangesTable, keyOf(event)),
      counted(event, event.data.before, -1),
    ]),
  ],
});
