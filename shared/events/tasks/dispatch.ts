/** Tasks that are handed to the agent runner for their assignee, and the outcomes. On the task's own stream. */
import { z } from 'zod';
import { breaches, securityFrame } from '../auth/security-events.ts';
import { defineEvent } from '../define.ts';
import { taskFailure } from './outcomes.ts';
import { moveFields, moveFrame, sentBackFrames } from './queue.ts';
import { aboutTask, taskFields } from './tasks.ts';

/** Number of the hand-over among all hand-overs of the task, from 1. */
export const handOverNo = z.int().positive();
/** Id of the runner's session with the agent; null: the runner has reported none. */
export const sessionId = z.string().nullable();

export const taskDispatched = defineEvent({
  type: 'TaskDispatched',
  doc: 'A task was handed to the agent runner, for its assignee.',
  schema: z.object({ ...moveFields, agent_id: z.int().positive(), agent: z.string(), run: handOverNo }),
  activity: ({ data: { task_id: taskId, title, agent, after } }) => ({
    type: 'task_dispatched',
    ...aboutTask(taskId),
    description: `Dispatched task "${title}" to ${agent}`,
    data: { agent, priority: after.priority },
  }),
  frames: (event) => [moveFrame(event, 'dispatched')],
});

export const taskDispatchAccepted = defineEvent({
  type: 'TaskDispatchAccepted',
  doc: 'The agent runner accepted a task. The agent reports when it is done.',
  schema: z.object({ ...taskFields, agent: z.string(), run: handOverNo, session_id: sessionId }),
  activity: ({ data: { task_id: taskId, title, agent, session_id: sessionId } }) => ({
    type: 'task_deferred_dispatch',
    ...aboutTask(taskId),
    description: `${agent} works on task "${title}"`,
    data: { dispatch_session_id: sessionId, async_state: 'accepted' },
  }),
  frames: ({ data: { task_id: taskId, agent, session_id: sessionId } }) => [
    {
      type: 'task.updated',
      data: {
        id: taskId,
        status: 'in_progress',
        assigned_to: agent,
        dispatch_session_id: sessionId,
        async_state: 'accepted',
      },
    },
  ],
});

export const taskDispatchCompleted = defineEvent({
  type: 'TaskDispatchCompleted',
  doc: 'The agent runner sent the result of a task, which now waits for review.',
  schema: z.object({
    ...moveFields,
    agent_id: z.int().positive(),
    agent: z.string(),
    run: handOverNo,
    session_id: sessionId,
    /** The agent's answer; null: none. */
    resolution: z.string().nullable(),
  }),
  // A response on behalf of the runner counts as the agent's work.
  self: ({ data }) => data.agent_id,
  activity: ({ data: { task_id: taskId, title, agent, session_id: sessionId, resolution } }) => ({
    type: 'task_agent_completed',
    ...aboutTask(taskId),
    actor: agent,
    description: `${agent} completed task "${title}", which waits for its review`,
    data: { response_length: resolution?.length ?? 0, dispatch_session_id: sessionId },
  }),
  frames: (event) => {
    const { task_id: taskId, after, session_id: sessionId } = event.data;
    return [
      moveFrame(event, 'dispatch_completed'),
      {
        type: 'task.updated',
        data: {
          id: taskId,
          status: after.status,
          outcome: 'success',
          assigned_to: after.assigned_to,
          dispatch_session_id: sessionId,
        },
      },
    ];
  },
});

export const taskDispatchFailed = defineEvent({
  type: 'TaskDispatchFailed',
  doc: 'A task could not be handed to the agent runner, or the agent failed. The task waits again, or failed permanently after too many attempts.',
  schema: z.object({
    ...moveFields,
    agent: z.string(),
    run: handOverNo,
    /** With this one. */
    dispatch_attempts: z.int().positive(),
    error_message: z.string(),
  }),
  activity: ({ data: { task_id: taskId, title, agent, after, error_message: errorMessage } }) => ({
    type: 'task_dispatch_failed',
    ...aboutTask(taskId),
    description:
      after.status === 'failed'
        ? `Task "${title}" failed: it could not be dispatched to ${agent}`
        : `Task "${title}" could not be dispatched to ${agent}`,
    data: { error: errorMessage },
  }),
  signals: ({ data }) => {
    const type = data.after.status === 'failed' ? 'task_failed' : 'task_dispatch_failed';
    return [taskFailure(data.agent, type, data, `Dispatch of task "${data.title}" failed`, data.error_message)];
  },
  frames: (event) =>
    event.data.after.status === 'failed'
      ? sentBackFrames(event, 'max_dispatch_retries_exceeded', 'max_dispatch_retries')
      : sentBackFrames(event, 'dispatch_failed'),
});

export const taskWithheld = defineEvent({
  type: 'TaskWithheld',
  doc: 'A task was not handed to the agent runner, for work or for review, because one of its texts tries to take over the agent. It waits until the text is changed.',
  schema: z.object({
    ...moveFields,
    what: z.enum(['dispatch', 'review']),
    /** The assignee; null: unassigned. */
    agent: z.string().nullable(),
    run: handOverNo,
    breaches,
    error_message: z.string(),
  }),
  activity: ({ data: { task_id: taskId, title, what, breaches, error_message: errorMessage } }) => ({
    type: 'task_withheld',
    ...aboutTask(taskId),
    description: `Task "${title}" was not handed to the agent runner ${what === 'review' ? 'for a verdict' : 'for work'}`,
    data: { error: errorMessage, rules: [...new Set(breaches.flatMap(({ rules }) => rules))] },
  }),
  frames: (event) => {
    const { task_id, what, agent, breaches } = event.data;
    const detail = { task_id, kind: what, agent, texts: breaches };
    return [
      moveFrame(event, 'withheld'),
      ...securityFrame(event, 'injection_attempt', 'warning', 'agent_runner', detail),
    ];
  },
});
