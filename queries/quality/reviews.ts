/** Quality reviews of tasks. */
import { sql } from 'kysely';
import { qualityReviewsProjection } from '../../projections/quality/reviews.ts';
import type { QualityReview } from '../../shared/contract/quality/reviews.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads } from '../reads.ts';
import { requireSeen, taskIdSeen } from '../tasks/visibility.ts';

/** Read models from which reviews are shown. */
export const REVIEW_MODELS: readonly string[] = [qualityReviewsProjection.name];

const rowsOf = (reads: Reads, view: TaskView, taskIds: readonly number[]) =>
  inWorkspace(reads, qualityReviewsProjection, 'quality_reviews', view.workspace)
    .where(sql<boolean>`task_id = ANY(${taskIds})`)
    .where(taskIdSeen(reads, view, sql.ref('task_id')))
    .select(['task_id', 'reviews'])
    .execute();

/**
 * The newest reviews of a task, newest first; none for an unknown task.
 *
 * @throws AppError 403 when the caller may not see the task
 */
export async function reviewsOf(reads: Reads, view: TaskView, taskId: number): Promise<readonly QualityReview[]> {
  await requireSeen(reads, view, taskId);
  const [row] = await rowsOf(reads, view, [taskId]);
  return row?.reviews ?? [];
}

/** The newest review by task id; null if there is none, or the caller may not see the task. */
export async function latestReviews(reads: Reads, view: TaskView, taskIds: readonly number[]) {
  const rows = await rowsOf(reads, view, taskIds);
  const found = new Map(rows.map((row) => [row.task_id, row.reviews[0]]));
  return Object.fromEntries(
    taskIds.map((id) => {
      const review = found.get(id);
      if (!review) return [String(id), null];
      const { status, reviewer, reviewed_by, created_at } = review;
      return [String(id), { status, reviewer, reviewed_by, created_at }];
    }),
  );
}
