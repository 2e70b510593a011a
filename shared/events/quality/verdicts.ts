/** Automatic reviews: a task is handed to the agent runner for a verdict. They are on the task's own stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { handOverNo, sessionId } from '../tasks/dispatch.ts';
import { taskFailure, taskSignals } from '../tasks/outcomes.ts';
import { moveFields, moveFrame, sentBackFrames } from '../tasks/queue.ts';
import { aboutTask, taskFields } from '../tasks/tasks.ts';

export const taskReviewRequested = defineEvent({
  type: 'TaskReviewRequested',
  version: 1,
  doc: 'The agent runner is asked for a verdict about a task.',
  schema: z.object({ ...moveFields, run: handOverNo }),
  frames: (event) => [moveFrame(event, 'aegis_review')],
});

export const taskReviewAccepted = defineEvent({
  type: 'TaskReviewAccepted',
  version: 1,
  doc: 'The agent runner has taken the review of a task. The verdict comes as a quality review like any other.',
  schema: z.object({ ...taskFields, run: handOverNo, sessionId }),
});

export const taskVerdictGiven = defineEvent({
  type: 'TaskVerdictGiven',
  version: 1,
  doc: 'An automatic review ended with a verdict: the task is done, waits for its agent again, or has failed for good after too many rejections.',
  schema: z.object({
    ...moveFields,
    run: handOverNo,
    reviewId: z.int().positive(),
    reviewer: z.string(),
    status: z.enum(['approved', 'rejected']),
    notes: z.string(),
    /** Of the task afterwards; Unix seconds. */
    completedAt: z.int().nullable(),
    /** Of the task afterwards. */
    dispatchAttempts: z.int().nonnegative(),
    /** What a rejection leaves with the task; null: what there was stays. */
    errorMessage: z.string().nullable(),
  }),
  activity: ({ data: { taskId, title, reviewer, status, notes } }) => ({
    type: 'aegis_review',
    ...aboutTask(taskId),
    actor: reviewer,
    description: `Automatic review ${status} task "${title}"`,
    data: { verdict: status, notes },
  }),
  signals: ({ data }) => {
    const { taskId, title, before, after, status, reviewer, notes } = data;
    const signals = taskSignals({ taskId, title, agent: after.assignedTo, before, after, reason: data.errorMessage });
    if (status === 'approved' || before.assignedTo === null || signals.length > 0) return signals;
    const what = `${reviewer} rejected task "${title}"`;
    return [taskFailure(before.assignedTo, 'quality_review_rejected', data, what, notes)];
  },
  frames: (event) => {
    if (event.data.status === 'approved') return [moveFrame(event, 'aegis_approval')];
    return event.data.after.status === 'failed'
      ? sentBackFrames(event, 'max_aegis_retries_exceeded', 'max_aegis_rejections')
      : sentBackFrames(event, 'aegis_rejection');
  },
});

export const taskReviewAbandoned = defineEvent({
  type: 'TaskReviewAbandoned',
  version: 1,
  doc: 'An automatic review ended without a verdict: the task waits for its review again.',
  schema: z.object({ ...moveFields, run: handOverNo, error: z.string() }),
  activity: ({ data: { taskId, title, error } }) => ({
    type: 'aegis_review_failed',
    ...aboutTask(taskId),
    description: `Automatic review of task "${title}" ended without a verdict`,
    data: { error },
  }),
  frames: (event) => [moveFrame(event, 'aegis_error')],
});

export const qualityVerdictEvents = [taskReviewRequested, taskReviewAccepted, taskVerdictGiven, taskReviewAbandoned];
