/** Quality reviews: an approval that counts makes a task done, a rejection sends it back to work. */
import type { QualityReviewBody } from '../../shared/contract/quality/reviews.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import { taskReviewed } from '../../shared/events/quality/reviews.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { requireReviewer, type TaskCaller } from '../tasks/access.ts';
import { completedAtOf, existing, moved, type TaskState, taskDecider, taskStream } from '../tasks/tasks.ts';
import { rejectionText } from './verdicts.ts';

export interface Review extends Pick<QualityReviewBody, 'status' | 'notes'> {
  readonly reviewer: string;
  /** Whether an approval by this caller makes a task done. Other approvals are stored and shown, but change nothing. */
  readonly counts: boolean;
}

/** @param now Unix seconds @throws AppError 404 */
export function decideReview(
  state: TaskState,
  reviewId: number,
  { reviewer, status, notes, counts }: Review,
  now: number,
): EventDraft[] {
  const { task } = existing(state);
  const approved = counts ? 'done' : task.status;
  const next = status === 'approved' ? approved : 'in_progress';
  return [
    taskReviewed.draft({
      ...moved(state, { status: next }),
      review_id: reviewId,
      reviewer,
      status,
      notes,
      completed_at: completedAtOf(task, next, now),
      error_message: status === 'approved' ? null : rejectionText(notes, reviewer),
    }),
  ];
}

/**
 * Records a review.
 *
 * @returns its id
 * @throws AppError 404, 403 for an agent's own work, 409 `HELD_BY_ANOTHER_AGENT`
 */
export async function reviewTask(
  commands: Commands,
  context: CommandContext,
  taskId: number,
  review: Review,
  now: number,
  caller: TaskCaller,
): Promise<number> {
  const reviewId = await commands.counters.take('quality_review');
  const stream = taskStream(context.origin.workspace, taskId);
  const { events } = await commands.execute(taskDecider, stream, context, (state) => {
    requireReviewer(caller, existing(state));
    return decideReview(state, reviewId, review, now);
  });
  return (firstOf(events, taskReviewed) as EventOf<typeof taskReviewed>).data.review_id;
}
