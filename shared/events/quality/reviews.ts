/** Quality reviews: verdicts about tasks. They are on the task's own stream. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { taskFailure, taskSignals } from '../tasks/outcomes.ts';
import { aboutTask, taskFields, taskPlace } from '../tasks/tasks.ts';

export const taskReviewed = defineEvent({
  type: 'TaskReviewed',
  version: 1,
  doc: 'Somebody approved a task, which is done with it, or sent it back to work.',
  schema: z.object({
    ...taskFields,
    reviewId: z.int().positive(),
    reviewer: z.string(),
    status: z.enum(['approved', 'rejected']),
    notes: z.string(),
    before: taskPlace,
    after: taskPlace,
    /** Of the task afterwards; Unix seconds. */
    completedAt: z.int().nullable(),
    /** What a rejection leaves with the task; null: what there was stays. */
    errorMessage: z.string().nullable(),
  }),
  activity: ({ data }) => ({
    type: 'quality_review',
    ...aboutTask(data.taskId),
    actor: data.reviewer,
    description: `Quality review ${data.status} for task "${data.title}"`,
    data: { status: data.status, notes: data.notes },
  }),
  signals: ({ data }) => {
    const { title, before, after, status, notes, reviewer } = data;
    const signals = taskSignals({ taskId: data.taskId, title, agent: after.assignedTo, before, after });
    if (status === 'approved' || before.assignedTo === null || signals.some(({ kind }) => kind === 'failed'))
      return signals;
    const what = `${reviewer} rejected task "${title}"`;
    return [...signals, taskFailure(before.assignedTo, 'quality_review_rejected', data, what, notes)];
  },
  frames: ({ data, meta }) => [
    {
      type: 'task.status_changed',
      data: {
        id: data.taskId,
        status: data.after.status,
        previous_status: data.before.status,
        updated_at: seconds(meta.at),
      },
    },
  ],
});

export const qualityReviewEvents = [taskReviewed];
