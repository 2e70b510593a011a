/** Drafts of events about task 7, for pure tests. */
import { taskReviewed } from '../../shared/events/quality/reviews.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskClaimed, taskRequeued } from '../../shared/events/tasks/queue.ts';
import { placeOf, type TaskData, type TaskPlace, taskCreated, taskDeleted } from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import { timeOf } from './kit.ts';

export const TASK: TaskData = {
  title: 'Mend the roof',
  description: null,
  status: 'inbox',
  priority: 'medium',
  project_id: 1,
  project_ticket_no: 3,
  assigned_to: null,
  created_by: 'Ann',
  due_date: null,
  estimated_hours: null,
  actual_hours: null,
  outcome: null,
  error_message: null,
  resolution: null,
  feedback_rating: null,
  feedback_notes: null,
  retry_count: 0,
  completed_at: null,
  tags: [],
  metadata: {},
  dispatch_attempts: 0,
};

const about = { task_id: 7, title: TASK.title };

/** Unix seconds of the n-th event, counted from 1. */
export const at = (n: number): number => seconds(timeOf(n));

export const created = (fields: Partial<TaskData> = {}, source: 'api' | 'recurrence' | 'github' = 'api') =>
  taskCreated.draft({ task_id: 7, task: { ...TASK, ...fields }, source });

/** The same of a task with another id. */
export const createdAs = (taskId: number, fields: Partial<TaskData> = {}) =>
  taskCreated.draft({ task_id: taskId, task: { ...TASK, ...fields }, source: 'api' });

/** The task with these fields, after it was as `created(before)` says. */
export const updated = (fields: Partial<TaskData>, before: Partial<TaskData> = {}) => {
  const old = { ...TASK, ...before };
  const { assigned_to, assignee_id } = old;
  const was = Object.fromEntries(Object.keys(fields).map((field) => [field, old[field as keyof TaskData]]));
  return taskUpdated.draft({
    task_id: 7,
    created_at: at(1),
    task: { ...old, ...fields },
    given: Object.keys(fields),
    changed: Object.keys(fields),
    before: {
      ...was,
      ...('assigned_to' in fields && { assigned_to, ...(assignee_id !== undefined && { assignee_id }) }),
    },
  });
};

/** Places of a task before and after. */
export const placed = (before: Partial<TaskPlace>, after: Partial<TaskPlace>) => ({
  before: { ...placeOf(TASK), ...before },
  after: { ...placeOf(TASK), ...before, ...after },
});

export const statusSet = (from: string, to: string, completedAt: number | null = null) =>
  taskStatusChanged.draft({
    ...about,
    ...placed({ status: from }, { status: to }),
    cause: 'bulk',
    completed_at: completedAt,
  });

export const reviewed = (
  status: 'approved' | 'rejected',
  more: { reviewer?: string; notes?: string; completed_at?: number } = {},
) =>
  taskReviewed.draft({
    ...about,
    review_id: 4,
    reviewer: 'aegis',
    status,
    notes: 'as agreed',
    ...placed({}, { status: status === 'approved' ? 'done' : 'in_progress' }),
    completed_at: null,
    error_message: status === 'approved' ? null : 'no',
    ...more,
  });

export const claimed = (agent = 'ada') =>
  taskClaimed.draft({ ...about, agent, ...placed({}, { status: 'in_progress', assigned_to: agent }) });

/** `ada`, who had claimed it, has fallen silent. */
export const requeued = (attempts = 1, more: { known?: boolean } = {}) => {
  const failed = attempts >= 5;
  const { known = true } = more;
  const silence = known ? 'The agent ada went offline' : 'There is no agent ada any more';
  const to = failed ? { status: 'failed' } : { status: 'assigned', ...(!known && { assigned_to: null }) };
  return taskRequeued.draft({
    ...about,
    agent: 'ada',
    ...placed({ status: 'in_progress', assigned_to: 'ada' }, to),
    dispatch_attempts: attempts,
    error_message: failed ? `${silence} while it worked on the task; that was attempt ${attempts}.` : null,
    reason: failed ? 'stale_task_max_retries' : 'stale_task_requeue',
  });
};

export const deleted = (before: Partial<TaskPlace> = {}) =>
  taskDeleted.draft({ ...about, before: { ...placeOf(TASK), ...before } });
