/** Quality reviews: verdicts about tasks. They are on the task's own stream. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { taskFailure, taskSignals } from '../tasks/outcomes.ts';
import { aboutTask, taskFields, taskPlace } from '../tasks/tasks.ts';

/** The reviewer whose reviews permit or prevent `done`. */
export const GATEKEEPER = 'aegis';

export const taskReviewed = defineEvent({
  type: 'TaskReviewed',
  doc: 'A task was approved or rejected. `after` is the status that followed; a review that does not count leaves the status unchanged.',
  schema: z.object({
    ...taskFields,
    review_id: z.int().positive(),
    reviewer: z.string(),
    status: z.enum(['approved', 'rejected']),
    notes: z.string(),
    before: taskPlace,
    after: taskPlace,
    /** Of the task after the event; Unix seconds. */
    completed_at: z.int().nullable(),
    /** Error message of the task after a rejection; null: unchanged. */
    error_message: z.string().nullable(),
  }),
  activity: ({ data }) => ({
    type: 'quality_review',
    ...aboutTask(data.task_id),
    actor: data.reviewer,
    description: `Quality review ${data.status} for task "${data.title}"`,
    data: { status: data.status, notes: data.notes },
  }),
  signals: ({ data }) => {
    const { title, before, after, status, notes, reviewer } = data;
    const signals = taskSignals({ task_id: data.task_id, title, agent: after.assigned_to, before, after });
    if (status === 'approved' || before.assigned_to === null || signals.some(({ kind }) => kind === 'failed'))
      return signals;
    const what = `${reviewer} rejected task "${title}"`;
    return [...signals, taskFailure(before.assigned_to, 'quality_review_rejected', data, what, notes)];
  },
  frames: ({ data, meta }) => {
    const { task_id: id, status, before, after } = data;
    if (status === 'approved' && after.status === before.status && after.status !== 'done') return [];
    const changed = { id, status: after.status, previous_status: before.status, updated_at: seconds(meta.at) };
    return [{ type: 'task.status_changed', data: changed }];
  },
});
