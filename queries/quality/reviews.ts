/** Quality reviews of tasks. */
import { sql } from 'kysely';
import { qualityReviewsProjection } from '../../projections/quality/reviews.ts';
import type { QualityReview } from '../../shared/contract/quality/reviews.ts';
import { type Reads, tables } from '../reads.ts';

/** Read models that reviews are shown from. */
export const REVIEW_MODELS: readonly string[] = [qualityReviewsProjection.name];

const rowsOf = (reads: Reads, workspace: number, taskIds: readonly number[]) =>
  tables(reads, qualityReviewsProjection)
    .selectFrom('quality_reviews')
    .where('workspace_id', '=', workspace)
    .where(sql<boolean>`task_id = ANY(${taskIds})`)
    .select(['task_id', 'reviews'])
    .execute();

/** The newest reviews of a task, newest first; none of one that does not exist. */
export async function reviewsOf(reads: Reads, workspace: number, taskId: number): Promise<readonly QualityReview[]> {
  const [row] = await rowsOf(reads, workspace, [taskId]);
  return (row?.reviews ?? []) as unknown as readonly QualityReview[];
}

/** By id of the task: its newest review; null where it has none. */
export async function latestReviews(reads: Reads, workspace: number, taskIds: readonly number[]) {
  const rows = await rowsOf(reads, workspace, taskIds);
  const found = new Map(rows.map((row) => [row.task_id, (row.reviews as unknown as readonly QualityReview[])[0]]));
  return Object.fromEntries(
    taskIds.map((id) => {
      const review = found.get(id);
      return [
        String(id),
        review ? { status: review.status, reviewer: review.reviewer, created_at: review.created_at } : null,
      ];
    }),
  );
}
