/** Quality reviews by task, limited to those that are ever shown. They are deleted with their task. */
import { z } from 'zod';
import { type QualityReview, qualityReviewSchema } from '../../shared/contract/quality/reviews.ts';
import type { DomainEvent, EventOf } from '../../shared/events/define.ts';
import { GATEKEEPER, reviewedBy, taskReviewed } from '../../shared/events/quality/reviews.ts';
import { taskVerdictGiven } from '../../shared/events/quality/verdicts.ts';
import { taskDeleted } from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import { columnFor } from '../columns.ts';
import { change, defineProjection, defineTable, on, remove } from '../projection.ts';

/** Number of newest reviews that are kept per task. */
const KEPT = 10;

export const qualityReviewsTable = defineTable(
  'quality_reviews',
  {
    workspace_id: 'int',
    task_id: 'bigint',
    /** Newest first. */
    reviews: columnFor(z.array(qualityReviewSchema)),
    /** Notes of the gatekeeper's newest review; null when it was not a rejection, or there is none. */
    rejection: 'text?',
  },
  { key: ['workspace_id', 'task_id'] },
);

type Reviewed = DomainEvent<
  string,
  Pick<EventOf<typeof taskReviewed>['data'], 'task_id' | 'review_id' | 'reviewer' | 'status' | 'notes'>
>;

/** Whether a review is the gatekeeper's. Agents review under their own names. */
const isGatekeepers = ({ data, meta }: Reviewed): boolean =>
  data.reviewer === GATEKEEPER && meta.actor.type !== 'agent';

function reviewed(event: Reviewed) {
  const { data, meta } = event;
  const key = { workspace_id: meta.workspace, task_id: data.task_id };
  const review: QualityReview = {
    id: data.review_id,
    task_id: data.task_id,
    reviewer: data.reviewer,
    reviewed_by: reviewedBy(event),
    status: data.status,
    notes: data.notes,
    created_at: seconds(meta.at),
    workspace_id: meta.workspace,
  };
  return [
    change(qualityReviewsTable, key, (row) => ({
      rejection: isGatekeepers(event) ? (data.status === 'rejected' ? data.notes : null) : (row?.rejection ?? null),
      ...key,
      reviews: [review, ...(row?.reviews ?? [])].slice(0, KEPT),
    })),
  ];
}

export const qualityReviewsProjection = defineProjection({
  name: 'quality_reviews',
  version: 1,
  tables: [qualityReviewsTable],
  handlers: [
    on(taskReviewed, reviewed),
    on(taskVerdictGiven, reviewed),
    on(taskDeleted, ({ data, meta }) => [
      remove(qualityReviewsTable, { workspace_id: meta.workspace, task_id: data.task_id }),
    ]),
  ],
});
