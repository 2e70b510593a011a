/** The task: the state of its stream, what every decision about it asks, and how it comes and goes. */
import { AppError, notFound } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { taskReviewed } from '../../shared/events/quality/reviews.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskSubscribed } from '../../shared/events/tasks/subscriptions.ts';
import {
  placeOf,
  type TaskData,
  type TaskPlace,
  taskCreated,
  taskDeleted,
  taskMoved,
  taskRecord,
} from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';

/** What is kept of a task between commands: all of it, because an event of a change carries the whole task. */
export interface TaskState {
  /** 0 until created, and again once deleted. */
  readonly id: number;
  readonly task: TaskData;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Who follows it, in the order in which they came. */
  readonly subscribers: readonly string[];
  /** The newest review by the one reviewer that counts was an approval. */
  readonly approved: boolean;
  /** Characters of its texts and its metadata, about. */
  readonly size: number;
}

const NOTHING: TaskData = {
  title: '',
  description: null,
  status: 'inbox',
  priority: 'medium',
  projectId: 0,
  projectName: '',
  projectPrefix: '',
  ticketNo: 0,
  assignedTo: null,
  createdBy: '',
  dueDate: null,
  estimatedHours: null,
  actualHours: null,
  outcome: null,
  errorMessage: null,
  resolution: null,
  feedbackRating: null,
  feedbackNotes: null,
  retryCount: 0,
  completedAt: null,
  tags: [],
  metadata: {},
  dispatchAttempts: 0,
};

const initial: TaskState = {
  id: 0,
  task: NOTHING,
  createdAt: 0,
  updatedAt: 0,
  subscribers: [],
  approved: false,
  size: 0,
};

export const taskStream = (workspace: number, id: number): string => `task-${workspace}-${id}`;

/** Whose reviews open and close the way to `done`. */
export const GATEKEEPER = 'aegis';

/** A task is followed by at most this many; whoever comes later is not added. */
export const MAX_SUBSCRIBERS = 500;

const followedBy = (state: TaskState, names: readonly (string | null)[]): readonly string[] => {
  const known = new Set(state.subscribers);
  const others = new Set(names.filter((name): name is string => name !== null && name !== '' && !known.has(name)));
  return others.size === 0 ? state.subscribers : [...state.subscribers, ...others].slice(0, MAX_SUBSCRIBERS);
};

/** Characters that JSON has around the fields of a task, and the short ones. */
const BESIDES_TEXTS = 1_000;

const sizeOf = ({ title, description, errorMessage, resolution, feedbackNotes, tags, metadata }: TaskData): number =>
  JSON.stringify([title, description, errorMessage, resolution, feedbackNotes, tags, metadata]).length + BESIDES_TEXTS;

/** The state after some fields of the task changed. `at`: Unix ms. */
export const withTask = (state: TaskState, changes: Partial<TaskData>, at: number): TaskState => ({
  ...state,
  task: { ...state.task, ...changes },
  updatedAt: seconds(at),
});

/** What a place has is what the record has. */
const atPlace = ({ status, priority, assignedTo, projectId }: TaskPlace): Partial<TaskData> => ({
  status,
  priority,
  assignedTo,
  projectId,
});

export const taskDecider = defineDecider<TaskState>({
  kind: 'task',
  // Comments make these streams long.
  snapshotVersion: 1,
  initial,
  sizeOf: ({ size, subscribers }) => size + subscribers.length * 30,
  folds: [
    on(taskCreated, (_, { data: { taskId, task, source }, at }) => ({
      ...initial,
      id: taskId,
      task,
      createdAt: seconds(at),
      updatedAt: seconds(at),
      subscribers: followedBy(initial, [source === 'api' ? task.createdBy : null, task.assignedTo]),
      size: sizeOf(task),
    })),
    on(taskUpdated, (state, { data: { task, before }, at }) => ({
      ...state,
      task,
      updatedAt: seconds(at),
      subscribers: task.assignedTo === before.assignedTo ? state.subscribers : followedBy(state, [task.assignedTo]),
      size: sizeOf(task),
    })),
    on(taskStatusChanged, (state, { data: { after, completedAt }, at }) =>
      withTask(state, { ...atPlace(after), completedAt }, at),
    ),
    on(taskReviewed, (state, { data: { reviewer, status, after, completedAt, errorMessage }, at }) => {
      const changes = { ...atPlace(after), completedAt, ...(errorMessage !== null && { errorMessage }) };
      const reviewed = withTask(state, changes, at);
      const approved = reviewer === GATEKEEPER ? status === 'approved' : state.approved;
      return { ...reviewed, approved, size: sizeOf(reviewed.task) };
    }),
    on(taskSubscribed, (state, { data }) => ({ ...state, subscribers: followedBy(state, data.names) })),
    on(taskMoved, (state, { data: { after, projectName, projectPrefix, ticketNo }, at }) =>
      withTask(state, { ...atPlace(after), projectName, projectPrefix, ticketNo }, at),
    ),
    on(taskDeleted, () => initial),
  ],
});

/** The state of a task that exists. @throws AppError 404 */
export function existing(state: TaskState): TaskState {
  if (state.id === 0) throw notFound('Task');
  return state;
}

/** The record of a state, as callers see it. */
export const recordOf = (state: TaskState, workspace: number) => taskRecord(state.task, { ...state, workspace });

/**
 * Whether the task may become `done`.
 *
 * @param named names the task in the message, where a request is about several
 * @throws AppError 403
 */
export function requireApproval({ id, approved }: Pick<TaskState, 'id' | 'approved'>, named = false): void {
  if (approved) return;
  const task = named ? `Task ${id}` : 'This task';
  throw new AppError(
    403,
    `${task} cannot be done before Aegis has approved it: the newest quality review by "${GATEKEEPER}" has to be an approval.`,
  );
}

/** When a task that gets this status was completed: the first time that it became `done`. `now`: Unix seconds. */
export const completedAtOf = (task: TaskData, status: string, now: number): number | null =>
  status === 'done' ? (task.completedAt ?? now) : task.completedAt;

/** The same place, with another status, or another assignee. */
export const placedAt = (task: TaskData, changes: Partial<TaskPlace>): TaskPlace => ({ ...placeOf(task), ...changes });

/** Names that begin to follow a task; no event when all of them do. */
export function decideSubscribe(state: TaskState, names: readonly string[]): EventDraft[] {
  const { id, task } = existing(state);
  const added = followedBy(state, names).slice(state.subscribers.length);
  return added.length === 0 ? [] : [taskSubscribed.draft({ taskId: id, title: task.title, names: added })];
}

/** A notification about a task. */
export const notice = (
  taskId: number,
  told: { readonly recipient: string; readonly type: string; readonly title: string; readonly message: string },
): EventDraft => notificationRaised.draft({ ...told, sourceType: 'task', sourceId: taskId });

/** @throws AppError 404 */
export function decideDelete(state: TaskState): EventDraft[] {
  const { id, task } = existing(state);
  return [taskDeleted.draft({ taskId: id, title: task.title, before: placeOf(task) })];
}
