/**
 * The current tasks, and their number per kind, so that totals need no counting. Names and prefixes of projects are
 * looked up when tasks are read, because they change with the project.
 */
import { SESSION } from '../../shared/contract/tasks/dispatch.ts';
import { activeCron, spawnedMetadata } from '../../shared/contract/tasks/recurrence.ts';
import { priorityRank } from '../../shared/contract/tasks/tasks.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { taskLinked, taskSynced, withIssueState } from '../../shared/events/github/links.ts';
import { taskReviewed } from '../../shared/events/quality/reviews.ts';
import {
  taskReviewAbandoned,
  taskReviewAccepted,
  taskReviewRequested,
  taskVerdictGiven,
} from '../../shared/events/quality/verdicts.ts';
import { taskBranched, taskPullOpened } from '../../shared/events/tasks/branches.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskAssigned, taskCommented } from '../../shared/events/tasks/comments.ts';
import {
  taskDispatchAccepted,
  taskDispatchCompleted,
  taskDispatched,
  taskDispatchFailed,
  taskWithheld,
} from '../../shared/events/tasks/dispatch.ts';
import { taskClaimed, taskRequeued } from '../../shared/events/tasks/queue.ts';
import { taskRecurred } from '../../shared/events/tasks/recurrence.ts';
import { taskRouted } from '../../shared/events/tasks/routing.ts';
import {
  creatorAgentOf,
  NO_SOURCE,
  placeOf,
  type TaskData,
  type TaskPlace,
  type TaskSource,
  taskCreated,
  taskDeleted,
  taskMoved,
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

const NEWEST = 'created_at DESC, id DESC';

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
    comment_count: 'int',
    /** GitHub data of the record, by its names; null if there is none. */
    source: 'jsonb?',
  },
  {
    key: ['workspace_id', 'id'],
    // No indexed column changes with every event, so a change of other columns writes no index entry. For that, each
    // page also needs room for the next version of its rows.
    fillFactor: 80,
    createdAt: 'created_at',
    indexes: [
      `workspace_id, ${NEWEST}`,
      `workspace_id, status, ${NEWEST}`,
      `workspace_id, assigned_to, ${NEWEST}`,
      `workspace_id, project_id, ${NEWEST}`,
      `workspace_id, priority_rank, ${NEWEST}`,
      'workspace_id, due_date, id DESC',
      "(workspace_id, assigned_to, priority_rank, due_date, created_at, id) WHERE status IN ('assigned', 'inbox', 'in_progress')",
      "(workspace_id, completed_at) WHERE status = 'done'",
      '(workspace_id, id) WHERE cron IS NOT NULL',
      '(workspace_id, asked) WHERE asked IS NOT NULL',
      `(workspace_id, creator_agent, ${NEWEST}) WHERE creator_agent IS NOT NULL`,
    ],
  },
);

/** Columns for looking tasks up that change often, apart from the tasks' rows. */
export const taskChangesTable = defineTable(
  'task_changes',
  { workspace_id: 'int', id: 'bigint', project_id: 'bigint', title: 'text', updated_at: 'bigint' },
  {
    key: ['workspace_id', 'id'],
    indexes: ['workspace_id, updated_at DESC, position DESC', 'workspace_id, project_id, md5(title)'],
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
    project_id: 'bigint',
    count: 'bigint',
  },
  {
    key: ['workspace_id', 'status', 'priority', 'assigned_to', 'project_id'],
    indexes: ['workspace_id, assigned_to', 'workspace_id, project_id'],
  },
);

type Row = RowOf<(typeof tasksTable)['columns']>;
export type AboutTask = DomainEvent<string, { readonly task_id: number }>;

const keyOf = ({ meta, data }: AboutTask) => ({ workspace_id: meta.workspace, id: data.task_id });

/** Columns of a task's place. */
const placed = ({ status, priority, assigned_to, project_id }: TaskPlace) => ({
  status,
  priority,
  priority_rank: priorityRank(priority),
  assigned_to,
  project_id,
});

const columnsOf = (task: TaskData) => ({
  ...task,
  priority_rank: priorityRank(task.priority),
  cron: activeCron(task.metadata),
});

/** Adds a task to a place, or removes it. */
function counted(
  { meta }: AboutTask,
  { status, priority, assigned_to: assignedTo, project_id }: TaskPlace,
  by: 1 | -1,
): Change {
  const key = {
    workspace_id: meta.workspace,
    status,
    priority,
    assigned_to: assignedTo ?? '',
    project_id,
  };
  return tally(taskCountsTable, key, by);
}

/** The counts after a task moved from one place to another. */
function moved(event: AboutTask, before: TaskPlace, after: TaskPlace): Change[] {
  const same = JSON.stringify(placeOf(before)) === JSON.stringify(placeOf(after));
  return same ? [] : [counted(event, before, -1), counted(event, after, 1)];
}

/** Sets columns of a task, and the time of its last change. */
function taskRow(event: AboutTask, columns: (row: Row) => Partial<Row>): Change[] {
  const at = seconds(event.meta.at);
  const { data } = event as DomainEvent<string, { readonly task?: TaskData; readonly after?: TaskPlace }>;
  const { project_id: projectId } = data.task ?? data.after ?? {};
  return [
    update(tasksTable, keyOf(event), (row) => Object.assign({}, row, { updated_at: at }, columns(row))),
    update(taskChangesTable, keyOf(event), (row) => ({
      ...row,
      updated_at: at,
      title: data.task?.title ?? row.title,
      project_id: projectId ?? row.project_id,
    })),
  ];
}

/** Clears the request to the runner if the task now has another status or assignee. */
const released = (before: Pick<TaskPlace, 'status' | 'assigned_to'>, after: TaskPlace): Partial<Row> =>
  before.status === after.status && before.assigned_to === after.assigned_to ? {} : { asked: null };

/** A task that moved to another place, with the counts. */
export const movedTask = (
  event: DomainEvent<string, { readonly task_id: number; readonly before: TaskPlace; readonly after: TaskPlace }>,
  columns: Partial<Row> | ((row: Row) => Partial<Row>) = {},
): Change[] => [
  ...taskRow(event, (row) =>
    Object.assign(
      placed(event.data.after),
      released(event.data.before, event.data.after),
      typeof columns === 'function' ? columns(row) : columns,
    ),
  ),
  ...moved(event, event.data.before, event.data.after),
];

/** The session id that the runner has reported for the agent. */
const sessionOf = (row: Row, sessionId: string | null): Partial<Row> =>
  sessionId === null ? {} : { metadata: { ...(row.metadata as Record<string, unknown>), [SESSION]: sessionId } };

const withError = (errorMessage: string | null): Partial<Row> =>
  errorMessage === null ? {} : { error_message: errorMessage };

/** The row with some fields of the GitHub data changed. */
const sourced = (event: AboutTask, source: Partial<TaskSource>, more: (row: Row) => Partial<Row> = () => ({})) => [
  update(tasksTable, keyOf(event), (row) => ({
    ...row,
    ...more(row),
    source: { ...NO_SOURCE, ...row.source, ...source },
  })),
];

/** A task and its issue have agreed on their state. Changes of the task itself have events of their own. */
const synced = (
  event: DomainEvent<string, { readonly task_id: number; readonly repo: string; readonly issue_number: number }>,
  state: 'open' | 'closed',
): Change[] => {
  const { data, meta } = event;
  const source = {
    github_repo: data.repo,
    github_issue_number: data.issue_number,
    github_synced_at: seconds(meta.at),
  };
  return sourced(event, source, ({ metadata }) => ({
    metadata: withIssueState(metadata as Record<string, unknown>, state, meta.at),
  }));
};

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
          comment_count: 0,
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
    on(taskUpdated, (event) => {
      const { task, before } = event.data;
      const columns = columnsOf(task);
      const rescheduled = columns.cron !== activeCron(before.metadata ?? task.metadata);
      return [
        ...taskRow(event, () => ({
          ...columns,
          ...released(before, task),
          ...(rescheduled && { cron_since: seconds(event.meta.at) }),
        })),
        ...moved(event, { ...task, ...before }, task),
      ];
    }),
    on(taskStatusChanged, (event) => movedTask(event, { completed_at: event.data.completed_at })),
    on(taskReviewed, (event) => {
      const { completed_at, error_message: errorMessage } = event.data;
      return movedTask(event, { completed_at, ...withError(errorMessage) });
    }),
    on(taskCommented, (event) => [
      update(tasksTable, keyOf(event), (row) => ({ ...row, comment_count: row.comment_count + 1 })),
    ]),
    on(taskAssigned, (event) => movedTask(event)),
    on(taskRouted, (event) => movedTask(event)),
    on(taskMoved, (event) => movedTask(event, { project_ticket_no: event.data.project_ticket_no })),
    on(taskClaimed, (event) => movedTask(event)),
    on(taskRequeued, (event) => {
      const { dispatch_attempts, error_message: errorMessage } = event.data;
      return movedTask(event, { dispatch_attempts, ...withError(errorMessage) });
    }),
    on(taskDispatched, (event) => movedTask(event, { asked: 'dispatch' })),
    on(taskDispatchAccepted, (event) =>
      taskRow(event, (row) => ({ ...sessionOf(row, event.data.session_id), asked: 'accepted' })),
    ),
    on(taskDispatchCompleted, (event) => {
      const { resolution, session_id: sessionId } = event.data;
      return movedTask(event, (row) => ({ ...sessionOf(row, sessionId), asked: null, outcome: 'success', resolution }));
    }),
    on(taskDispatchFailed, (event) => {
      const { dispatch_attempts, error_message } = event.data;
      return movedTask(event, { dispatch_attempts, error_message });
    }),
    on(taskReviewRequested, (event) => movedTask(event, { asked: 'review' })),
    on(taskReviewAccepted, (event) => [update(tasksTable, keyOf(event), (row) => ({ ...row, asked: 'accepted' }))]),
    on(taskVerdictGiven, (event) => {
      const { completed_at, dispatch_attempts, error_message: errorMessage } = event.data;
      return movedTask(event, {
        completed_at,
        dispatch_attempts,
        ...withError(errorMessage),
      });
    }),
    on(taskReviewAbandoned, (event) => movedTask(event)),
    on(taskWithheld, (event) => movedTask(event, { error_message: event.data.error_message })),
    on(taskRecurred, (event) => {
      const { due_at: dueAt, child_id: childId, spawn_count: spawnCount } = event.data;
      return taskRow(event, ({ metadata }) => ({
        metadata: spawnedMetadata(
          metadata as Row['metadata'] & Record<string, unknown>,
          seconds(event.meta.at),
          spawnCount,
        ),
        recurred_at: dueAt,
        recurred_child: childId,
      }));
    }),
    on(taskLinked, (event) => synced(event, event.data.issue.state)),
    on(taskSynced, (event) => synced(event, event.data.issue_state)),
    on(taskBranched, (event) => sourced(event, { github_branch: event.data.branch })),
    on(taskPullOpened, (event) =>
      sourced(event, { github_pr_number: event.data.pull_number, github_pr_state: 'open' }),
    ),
    on(taskDeleted, (event) => [
      remove(tasksTable, keyOf(event)),
      remove(taskChangesTable, keyOf(event)),
      counted(event, event.data.before, -1),
    ]),
  ],
});
