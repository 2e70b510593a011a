/** Quality reviews: verdicts about tasks. They are on the task's own stream. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent } from '../define.ts';
import { taskFailure, taskSignals } from '../tasks/outcomes.ts';
import { aboutTask, taskFields, taskPlace } from '../tasks/tasks.ts';

/** The reviewer whose reviews permit or prevent `done`. */
export const GATEKEEPER = 'aegis';

/** Who gave a review: `reviewer` may be the gatekeeper's name, under which several people review. */
export const reviewedBy = ({ meta: { actor } }: Pick<DomainEvent, 'meta'>) => ({
  id: actor.id,
  name: actor.name,
  kind: actor.type,
});

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
  activity: ({ data, meta }) => ({
    type: 'quality_review',
    ...aboutTask(data.task_id),
    actor: data.reviewer,
    description: `Quality review ${data.status} for task "${data.title}"`,
    data: { status: data.status, notes: data.notes, reviewed_by: reviewedBy({ meta }) },
  }),
  audit: ({ data: { task_id, title, reviewer, status }, meta }) => ({
    action: 'quality_review',
    target: ['task', task_id],
    detail: { title, status, reviewer, reviewed_by: reviewedBy({ meta }) },
  }),
  signals: ({ data, meta }) => {
    const { title, before, after, status, notes, reviewer } = data;
    const signals = taskSignals({ task_id: data.task_id, title, agent: after.assigned_to, before, after });
    if (status === 'approved' || before.assigned_to === null || signals.some(({ kind }) => kind === 'failed'))
      return signals;
    const what = `${reviewer} rejected task "${title}"`;
    const failure = taskFailure(before.assigned_to, 'quality_review_rejected', data, what, notes);
    return [...signals, { ...failure, data: { ...failure.data, reviewed_by: reviewedBy({ meta }) } }];
  },
  frames: ({ data, meta }) => {
    const { task_id: id, status, reviewer, before, after } = data;
    if (status === 'approved' && after.status === before.status && after.status !== 'done') return [];
    const changed = { id, status: after.status, previous_status: before.status, updated_at: seconds(meta.at) };
    return [{ type: 'task.status_changed', data: { ...changed, reviewer, reviewed_by: reviewedBy({ meta }) } }];
  },
});
