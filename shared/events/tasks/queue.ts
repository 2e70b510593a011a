/** Tasks that agents take from the queue, and how they return to it. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent, type FrameDraft } from '../define.ts';
import { taskFailure } from './outcomes.ts';
import { aboutTask, type TaskPlace, taskFields, taskPlace } from './tasks.ts';

/** Fields of every event that moves a task. */
export const moveFields = { ...taskFields, before: taskPlace, after: taskPlace };

type Moved = DomainEvent<string, { readonly task_id: number; readonly before: TaskPlace; readonly after: TaskPlace }>;

/** The frame of a task that was given to an agent or taken from one. */
export const moveFrame = ({ data: { task_id: taskId, before, after }, meta }: Moved, reason: string): FrameDraft => ({
  type: 'task.status_changed',
  data: {
    id: taskId,
    status: after.status,
    previous_status: before.status,
    assigned_to: after.assigned_to,
    updated_at: seconds(meta.at),
    reason,
  },
});

export const taskClaimed = defineEvent({
  type: 'TaskClaimed',
  doc: 'An agent claimed a task from the queue: it is the assignee, works on the task, and follows it.',
  schema: z.object({ ...moveFields, agent: z.string() }),
  activity: ({ data: { task_id: taskId, title, agent, before, after } }) => ({
    type: 'task_claimed',
    ...aboutTask(taskId),
    description: `${agent} claimed task "${title}"`,
    data: { agent, oldStatus: before.status, newStatus: after.status, previous_assignee: before.assigned_to },
  }),
  frames: (event) => [moveFrame(event, 'claimed')],
});

/** Maximum number of characters of an error message in a frame. */
const SHOWN_MESSAGE = 500;

type SentBack = Moved &
  DomainEvent<
    string,
    { readonly title: string; readonly dispatch_attempts: number; readonly error_message: string | null }
  >;

/** The frames of a task that waits again or, with an `escalation`, has failed for that reason. */
export function sentBackFrames(event: SentBack, reason: string, escalation?: string): FrameDraft[] {
  const { task_id: taskId, title, dispatch_attempts, error_message: errorMessage } = event.data;
  const moved = moveFrame(event, reason);
  if (errorMessage === null) return [moved];
  const error_message = frontOf(errorMessage, SHOWN_MESSAGE);
  const told = { ...moved, data: { ...moved.data, error_message } };
  if (escalation === undefined) return [told];
  const data = { id: taskId, title, reason: escalation, dispatch_attempts, error_message };
  return [told, { type: 'task.escalated', data }];
}

export const taskRequeued = defineEvent({
  type: 'TaskRequeued',
  doc: 'A task was taken back from an agent that stopped reporting or was deleted: it waits again, or failed permanently after too many attempts.',
  schema: z.object({
    ...moveFields,
    agent: z.string(),
    /** With this one; a deletion is no attempt. */
    dispatch_attempts: z.int().nonnegative(),
    /** Why it failed; null: it waits again. */
    error_message: z.string().nullable(),
    reason: z.enum(['stale_task_requeue', 'stale_task_max_retries', 'agent_deleted']),
  }),
  activity: ({ data: { task_id: taskId, title, agent, before, after, dispatch_attempts, reason } }) => ({
    type: 'task_requeued',
    ...aboutTask(taskId),
    description:
      after.status === 'failed'
        ? `Task "${title}" failed: ${agent} has fallen silent over it for the ${dispatch_attempts}th time`
        : `Task "${title}" returned to the queue: ${agent} ${reason === 'agent_deleted' ? 'was deleted' : 'has fallen silent'}`,
    data: { agent, oldStatus: before.status, newStatus: after.status, dispatch_attempts, reason },
  }),
  signals: ({ data }) => {
    if (data.reason === 'agent_deleted') return [];
    const { title, agent, after, error_message: errorMessage } = data;
    const failed = after.status === 'failed';
    const what = `${agent} fell silent over task "${title}"`;
    return [taskFailure(agent, failed ? 'task_failed' : 'task_stalled', data, what, errorMessage)];
  },
  frames: (event) => sentBackFrames(event, event.data.reason, event.data.reason),
});

export const taskAssigneeRenamed = defineEvent({
  type: 'TaskAssigneeRenamed',
  doc: 'The agent to which a task is assigned has another name.',
  schema: z.object(moveFields),
  frames: ({ data: { task_id: taskId, after }, meta }) => [
    { type: 'task.updated', data: { id: taskId, assigned_to: after.assigned_to, updated_at: seconds(meta.at) } },
  ],
});
