/** Tasks: common fields of their events, and their creation, moves and deletion. Streams: `task-<workspace>-<id>`. */
import { z } from 'zod';
import { nullsOf } from '../../fields.ts';
import { seconds } from '../../time.ts';
import { defineEvent, type FrameDraft } from '../define.ts';
import type { Metadata } from '../metadata.ts';
import { taskSignals } from './outcomes.ts';

export const taskStream = (workspace: number, id: number): string => `task-${workspace}-${id}`;

/** The task of a stream; undefined: the stream is not a task's. */
export function taskOfStream(stream: string): number | undefined {
  const id = /^task-\d+-(\d+)$/.exec(stream)?.[1];
  return id === undefined ? undefined : Number(id);
}

/** The data of a task without id, workspace and times, which events contain elsewhere. Times in Unix seconds. */
export const taskData = z.object({
  title: z.string(),
  description: z.string().nullable(),
  status: z.string(),
  priority: z.string(),
  project_id: z.int().positive(),
  project_ticket_no: z.int().positive(),
  assigned_to: z.string().nullable(),
  /** Id of the agent that is the assignee; absent: a user, or a name that no agent had when the task was assigned. */
  assignee_id: z.int().positive().optional(),
  /** The username of a user; the name of an agent; or `scheduler` and so on. */
  created_by: z.string(),
  due_date: z.int().nullable(),
  estimated_hours: z.number().nullable(),
  actual_hours: z.number().nullable(),
  outcome: z.string().nullable(),
  error_message: z.string().nullable(),
  resolution: z.string().nullable(),
  feedback_rating: z.int().nullable(),
  feedback_notes: z.string().nullable(),
  retry_count: z.int().nonnegative(),
  completed_at: z.int().nullable(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
  /** How often it returned to the queue: its agent was silent, its dispatch failed, or its result was rejected. */
  dispatch_attempts: z.int().nonnegative(),
});
export type TaskData = z.infer<typeof taskData>;

/**
 * The fields by which tasks are counted. Each event that may change one of them has all of them before and after, so
 * that read models can maintain counts without lookups.
 */
export const taskPlace = taskData.pick({
  status: true,
  priority: true,
  assigned_to: true,
  assignee_id: true,
  project_id: true,
});
export type TaskPlace = z.infer<typeof taskPlace>;

export const placeOf = ({ status, priority, assigned_to, assignee_id, project_id }: TaskPlace): TaskPlace => ({
  status,
  priority,
  assigned_to,
  ...(assignee_id !== undefined && { assignee_id }),
  project_id,
});

/** Links of a task to GitHub, as in its record. Times in Unix seconds. */
export const taskSource = z.object({
  github_issue_number: z.int().nullable(),
  github_repo: z.string().nullable(),
  github_synced_at: z.int().nullable(),
  github_branch: z.string().nullable(),
  github_pr_number: z.int().nullable(),
  github_pr_state: z.string().nullable(),
});
export type TaskSource = z.infer<typeof taskSource>;

export const NO_SOURCE: TaskSource = nullsOf(taskSource);

/** Common fields of every event about one task. */
export const taskFields = { task_id: z.int().positive(), title: z.string() };

/** The task as the subject of an activity or an audit entry. */
export const aboutTask = (id: number) => ({ entity_type: 'task', entity_id: id });

/** Id of the agent that created a task, from its first event: by its own key, or named in `x-agent-name`; null: no agent. */
export const creatorAgentOf = ({ actor, agent }: Pick<Metadata, 'actor' | 'agent'>): number | null =>
  actor.type === 'agent' ? actor.id : (agent ?? null);

/** The name of the key that seals the secrets in a task's metadata. */
export const taskOwner = (data: { readonly task_id: number }): string => `task_metadata:${data.task_id}`;

/** The record that callers see, without `projectFields`. Times in Unix seconds. */
export const taskRecord = (
  { assignee_id: _, ...task }: TaskData,
  about: {
    readonly id: number;
    readonly workspace: number;
    readonly created_at: number;
    readonly updated_at: number;
    /** Default: the task has no GitHub data. */
    readonly source?: TaskSource | null | undefined;
  },
) => ({
  id: about.id,
  ...task,
  workspace_id: about.workspace,
  created_at: about.created_at,
  updated_at: about.updated_at,
  ...(about.source ?? NO_SOURCE),
});

/** The ticket reference of a task: `TASK-007`. */
export const ticketRef = (prefix: string, ticketNo: number): string => `${prefix}-${String(ticketNo).padStart(3, '0')}`;

/** The project's fields in a task; the project may have been deleted. */
export interface TaskProject {
  readonly name: string;
  /** First part of the ticket references of its tasks: `API` in `API-042`. */
  readonly prefix: string;
}

/** The fields of a task's record that change with its project. */
export const projectFields = (project: TaskProject | undefined, ticketNo: number) => ({
  project_name: project?.name ?? null,
  project_prefix: project?.prefix ?? null,
  ...(project && { ticket_ref: ticketRef(project.prefix, ticketNo) }),
});

/** The frame that carries a whole task. */
export const taskFrame = (
  type: string,
  data: {
    readonly task_id: number;
    readonly task: TaskData;
    readonly created_at?: number;
    readonly github?: TaskSource | undefined;
  },
  { at, workspace }: Pick<Metadata, 'at' | 'workspace'>,
): FrameDraft => {
  const updated_at = seconds(at);
  const { created_at = updated_at } = data;
  return {
    type,
    data: { ...taskRecord(data.task, { id: data.task_id, workspace, created_at, updated_at, source: data.github }) },
    people: [{ key: 'created_by', username: data.task.created_by }],
    ticket: data.task,
    secrets: ['metadata'],
  };
};

export const taskCreated = defineEvent({
  type: 'TaskCreated',
  doc: 'A task was created. Its assignee follows it, and so does its creator, unless it was created on a schedule or from a GitHub issue. `parent_task_id`: the recurring task of which it is an occurrence.',
  schema: z.object({
    task_id: z.int().positive(),
    task: taskData,
    source: z.enum(['api', 'recurrence', 'github']),
    parent_task_id: z.int().positive().optional(),
    /** The schedule of the recurring task. */
    cron: z.string().optional(),
  }),
  secrets: { fields: ['task.metadata'], owner: taskOwner },
  activity: ({ data: { task_id: taskId, task, source, parent_task_id, cron } }) => ({
    type: 'task_created',
    ...aboutTask(taskId),
    actor: task.created_by,
    description: `Created task "${task.title}"${task.assigned_to === null ? '' : ` for ${task.assigned_to}`}`,
    data:
      source === 'recurrence'
        ? { parent_task_id, cron_expr: cron }
        : source === 'github'
          ? { github_issue: task.metadata.github_issue_number, github_repo: task.metadata.github_repo }
          : {
              title: task.title,
              status: task.status,
              priority: task.priority,
              assigned_to: task.assigned_to,
              ...(task.outcome !== null && { outcome: task.outcome }),
            },
  }),
  signals: ({ data: { task_id, task, source } }) =>
    taskSignals({
      task_id,
      title: task.title,
      // Work that was completed at GitHub is not attributed to the assignee here.
      agent: source === 'github' ? null : task.assigned_to,
      before: null,
      after: task,
      reason: task.error_message,
    }),
  frames: ({ data, meta }) => [taskFrame('task.created', data, meta)],
});

export const taskMoved = defineEvent({
  type: 'TaskMoved',
  doc: 'A task moved to another project under a new number, because its project was deleted.',
  schema: z.object({ ...taskFields, before: taskPlace, after: taskPlace, project_ticket_no: z.int().positive() }),
  frames: ({ data, meta }) => [
    {
      type: 'task.updated',
      data: {
        id: data.task_id,
        project_id: data.after.project_id,
        project_ticket_no: data.project_ticket_no,
        updated_at: seconds(meta.at),
      },
      ticket: { project_id: data.after.project_id, project_ticket_no: data.project_ticket_no },
    },
  ],
});

export const taskDeleted = defineEvent({
  type: 'TaskDeleted',
  doc: 'A task was deleted, with its comments, subscriptions and reviews. Its history remains in the log.',
  schema: z.object({ ...taskFields, before: taskPlace }),
  activity: ({ data: { task_id: taskId, title, before } }) => ({
    type: 'task_deleted',
    ...aboutTask(taskId),
    description: `Deleted task "${title}"`,
    data: { title, status: before.status, assigned_to: before.assigned_to },
  }),
  frames: ({ data }) => [{ type: 'task.deleted', data: { id: data.task_id, title: data.title } }],
});
