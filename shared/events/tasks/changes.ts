/** Changes of tasks by people and agents: fields of one, the status of many. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { taskSignals } from './outcomes.ts';
import {
  aboutTask,
  type TaskData,
  taskData,
  taskFields,
  taskFrame,
  taskOwner,
  taskPlace,
  taskSource,
} from './tasks.ts';

export const taskUpdated = defineEvent({
  type: 'TaskUpdated',
  doc: 'Fields of a task were set. `task` is the whole task afterwards. A new assignee follows it.',
  schema: z.object({
    task_id: z.int().positive(),
    /** Unix seconds, for the frame. */
    created_at: z.int(),
    task: taskData,
    /** Fields that the caller sent, by their names in the record. */
    given: z.array(z.string()),
    /** Fields that changed, by their names in the record. */
    changed: z.array(z.string()),
    /** The previous values of these fields. With another assignee, `assigned_to` and, if it was an agent, its id. */
    before: taskData.partial(),
    /** The names of both projects at that time, for the activity; absent: the task stayed in its project. */
    moved: z.object({ from: z.string(), to: z.string() }).optional(),
    /** For the frame; absent: the task has no GitHub data. */
    github: taskSource.optional(),
  }),
  secrets: { fields: ['task.metadata', 'before.metadata'], owner: taskOwner },
  activity: ({ data: { task_id: taskId, task, given, moved, ...data } }) => {
    const before = taskBefore({ task, before: data.before });
    const changes = entriesOf(before, task, moved);
    if (changes.length === 0) return undefined;
    const sent = (field: string) => given.includes(field);
    return {
      type: 'task_updated',
      ...aboutTask(taskId),
      description: `Updated task "${task.title}": ${changes.join(', ')}`,
      data: {
        changes,
        oldValues: {
          title: before.title,
          status: before.status,
          priority: before.priority,
          assigned_to: before.assigned_to,
        },
        newValues: {
          ...(sent('title') && { title: task.title }),
          status: task.status,
          ...(sent('priority') && { priority: task.priority }),
          ...(sent('assigned_to') && { assigned_to: task.assigned_to }),
        },
      },
    };
  },
  signals: ({ data: { task_id, task, before } }) =>
    taskSignals({
      task_id,
      title: task.title,
      agent: task.assigned_to,
      before: taskBefore({ task, before }),
      after: task,
      reason: task.error_message,
    }),
  frames: ({ data, meta }) => [taskFrame('task.updated', data, meta)],
});

/** The task before a change. An assignee is given whole: without an id, it was no agent. */
export const taskBefore = ({
  task,
  before,
}: {
  readonly task: TaskData;
  readonly before: Partial<TaskData>;
}): TaskData => ({
  ...task,
  ...(before.assigned_to !== undefined && { assignee_id: undefined }),
  ...before,
});

/** One entry for each change that an activity mentions. */
function entriesOf(
  before: TaskData,
  now: TaskData,
  moved: { readonly from: string; readonly to: string } | undefined,
): string[] {
  const entries: string[] = [];
  if (before.status !== now.status) entries.push(`status: ${before.status} → ${now.status}`);
  const renamed = now.assignee_id !== undefined && now.assignee_id === before.assignee_id;
  if (before.assigned_to !== now.assigned_to && !renamed)
    entries.push(`assigned: ${before.assigned_to ?? 'unassigned'} → ${now.assigned_to ?? 'unassigned'}`);
  if (before.title !== now.title) entries.push('title updated');
  if (before.priority !== now.priority) entries.push(`priority: ${before.priority} → ${now.priority}`);
  if (moved) entries.push(`project: ${moved.from} → ${moved.to}`);
  if (before.outcome !== now.outcome) entries.push(`outcome: ${before.outcome ?? 'unset'} → ${now.outcome ?? 'unset'}`);
  return entries;
}

export const taskStatusChanged = defineEvent({
  type: 'TaskStatusChanged',
  doc: 'The status of a task was set by a request for several tasks. It may be the same as before.',
  schema: z.object({
    ...taskFields,
    before: taskPlace,
    after: taskPlace,
    cause: z.enum(['bulk']),
    /** Afterwards. */
    completed_at: z.int().nullable(),
  }),
  activity: ({ data: { task_id: taskId, title, before, after } }) =>
    before.status === after.status
      ? undefined
      : {
          type: 'task_updated',
          ...aboutTask(taskId),
          description: `Task "${title}": ${before.status} → ${after.status}`,
          data: { oldStatus: before.status, newStatus: after.status },
        },
  signals: ({ data: { task_id, title, before, after } }) =>
    taskSignals({ task_id, title, agent: after.assigned_to, before, after }),
  frames: ({ data, meta }) => [
    {
      type: 'task.status_changed',
      data: { id: data.task_id, status: data.after.status, updated_at: seconds(meta.at) },
    },
  ],
});
