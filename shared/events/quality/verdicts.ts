/** Automatic reviews: a task is handed to the agent runner for a verdict. They are on the task's own stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { handOverNo, sessionId } from '../tasks/dispatch.ts';
import { taskFailure, taskSignals } from '../tasks/outcomes.ts';
import { moveFields, moveFrame, sentBackFrames } from '../tasks/queue.ts';
import { aboutTask, taskFields } from '../tasks/tasks.ts';
import { reviewedBy } from './reviews.ts';

export const taskReviewRequested = defineEvent({
  type: 'TaskReviewRequested',
  doc: 'The agent runner was asked to review a task.',
  schema: z.object({ ...moveFields, run: handOverNo }),
  frames: (event) => [moveFrame(event, 'aegis_review')],
});

export const taskReviewAccepted = defineEvent({
  type: 'TaskReviewAccepted',
  doc: 'The agent runner accepted the review of a task. The verdict is recorded as a quality review.',
  schema: z.object({ ...taskFields, run: handOverNo, session_id: sessionId }),
});

export const taskVerdictGiven = defineEvent({
  type: 'TaskVerdictGiven',
  doc: 'An automatic review ended with a verdict: the task is done, returns to its agent, or failed permanently after too many rejections.',
  schema: z.object({
    ...moveFields,
    run: handOverNo,
    review_id: z.int().positive(),
    reviewer: z.string(),
    status: z.enum(['approved', 'rejected']),
    notes: z.string(),
    /** Of the task after the event; Unix seconds. */
    completed_at: z.int().nullable(),
    /** Of the task afterwards. */
    dispatch_attempts: z.int().nonnegative(),
    /** Error message of the task after a rejection; null: unchanged. */
    error_message: z.string().nullable(),
  }),
  activity: ({ data: { task_id: taskId, title, reviewer, status, notes }, meta }) => ({
    type: 'aegis_review',
    ...aboutTask(taskId),
    actor: reviewer,
    description: `Automatic review ${status} task "${title}"`,
    data: { verdict: status, notes, reviewed_by: reviewedBy({ meta }) },
  }),
  signals: ({ data, meta }) => {
    const { task_id, title, before, after, status, reviewer, notes } = data;
    const signals = taskSignals({
      task_id,
      title,
      agent: after.assigned_to,
      before,
      after,
      reason: data.error_message,
    });
    if (status === 'approved' || before.assigned_to === null || signals.length > 0) return signals;
    const what = `${reviewer} rejected task "${title}"`;
    const failure = taskFailure(before.assigned_to, 'quality_review_rejected', data, what, notes);
    return [{ ...failure, data: { ...failure.data, reviewed_by: reviewedBy({ meta }) } }];
  },
  frames: (event) => {
    const { status, after, reviewer } = event.data;
    const by = { reviewer, reviewed_by: reviewedBy(event) };
    const frames =
      status === 'approved'
        ? [moveFrame(event, 'aegis_approval')]
        : after.status === 'failed'
          ? sentBackFrames(event, 'max_aegis_retries_exceeded', 'max_aegis_rejections')
          : sentBackFrames(event, 'aegis_rejection');
    return frames.map((frame) => ({ ...frame, data: { ...frame.data, ...by } }));
  },
});

export const taskReviewAbandoned = defineEvent({
  type: 'TaskReviewAbandoned',
  doc: 'An automatic review ended without a verdict. The task waits for a new review.',
  schema: z.object({ ...moveFields, run: handOverNo, error: z.string() }),
  activity: ({ data: { task_id: taskId, title, error } }) => ({
    type: 'aegis_review_failed',
    ...aboutTask(taskId),
    description: `Automatic review of task "${title}" ended without a verdict`,
    data: { error },
  }),
  frames: (event) => [moveFrame(event, 'aegis_error')],
});
