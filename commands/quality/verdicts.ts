/** Automatic reviews: who is asked for a verdict, and its effects. `commands/policies/quality/verdicts.ts` asks. */
import type { EventDraft } from '../../shared/events/define.ts';
import {
  taskReviewAbandoned,
  taskReviewAccepted,
  taskReviewRequested,
  taskVerdictGiven,
} from '../../shared/events/quality/verdicts.ts';
import type { WorkResponse } from '../../shared/ports/runner.ts';
import { frontOf } from '../../shared/storable.ts';
import { MINUTE } from '../../shared/time.ts';
import type { PromptPart } from '../agents/prompts.ts';
import { commentFrom } from '../tasks/comments.ts';
import { describedTask, isAsked, quoted } from '../tasks/dispatch.ts';
import { completedAtOf, GATEKEEPER, moved, ofTask, type TaskState } from '../tasks/tasks.ts';

/** After this many rejections in a row a task has failed. */
export const MAX_REJECTIONS = 3;
/** Characters of a response without a verdict that its notes quote. */
const QUOTED = 500;
/** Maximum number of characters in notes, and in reasons. */
const MAX_NOTES = 4_000;
/** The longest wait of a task after reviews without a verdict, seconds. */
const LONGEST_WAIT = 60 * MINUTE;

export interface ReviewVerdict {
  readonly status: 'approved' | 'rejected';
  readonly notes: string;
}

/** The verdict in a reviewer's text. A text without a verdict, or with contradicting ones, is a rejection. */
export function verdictOf(text: string | null): ReviewVerdict {
  const said = [...(text ?? '').matchAll(/\bVERDICT\W+(APPROVE|REJECT)(?:D|ED)?\b/gi)].map(([, word]) =>
    word?.toUpperCase(),
  );
  const [verdict] = said;
  if (verdict === undefined || said.some((one) => one !== verdict)) {
    const answer = text === null || text.trim() === '' ? 'nothing' : frontOf(text.trim(), QUOTED);
    return { status: 'rejected', notes: `The reviewer gave no clear verdict. Its text: ${answer}` };
  }
  const notes = /\bNOTES\W*:\W*([\s\S]*)/i.exec(text ?? '')?.[1]?.trim() || 'No notes were given.';
  return { status: verdict === 'APPROVE' ? 'approved' : 'rejected', notes: frontOf(notes, MAX_NOTES) };
}

/** Whether a task may be reviewed now: the more reviews ended without a verdict, the longer it waits. */
export const isReviewable = ({ id, task, abandoned, updated_at }: TaskState, now: number): boolean =>
  id !== 0 &&
  task.status === 'review' &&
  (abandoned === 0 || now - updated_at >= Math.min(MINUTE * 2 ** Math.min(abandoned - 1, 10), LONGEST_WAIT));

/** No event when the task was deleted, or is no longer to be reviewed. @param now Unix seconds */
export function decideReviewRequest(state: TaskState, now: number): EventDraft[] {
  if (!isReviewable(state, now)) return [];
  return [taskReviewRequested.draft({ ...moved(state, { status: 'quality_review' }), run: state.runs + 1 })];
}

/**
 * Handles the response to the review with this number. No event if the task was changed in the meantime.
 *
 * @param ids for a review and a comment that may have to be written
 * @param now Unix seconds
 */
export function decideReviewResponse(
  state: TaskState,
  run: number,
  { status, output, error, sessionId }: WorkResponse,
  ids: { readonly review: number; readonly comment: number },
  now: number,
): EventDraft[] {
  const { task } = state;
  if (!isAsked(state, 'review', run)) return [];
  if (status === 'failed') return decideReviewAbandoned(state, run, error ?? output ?? 'The reviewer gave no reason.');
  if (status === 'accepted') return [taskReviewAccepted.draft({ ...ofTask(state), run, session_id: sessionId })];
  const verdict = verdictOf(output);
  const rejected = verdict.status === 'rejected';
  const next = rejected ? statusAfterRejection(state) : 'done';
  const given = taskVerdictGiven.draft({
    ...moved(state, { status: next }),
    ...verdict,
    run,
    review_id: ids.review,
    reviewer: GATEKEEPER,
    completed_at: completedAtOf(task, next, now),
    dispatch_attempts: task.dispatch_attempts + (rejected ? 1 : 0),
    error_message: rejected ? rejectionText(verdict.notes) : null,
  });
  const comment = { id: ids.comment, author: GATEKEEPER, content: verdict.notes };
  return [given, ...(rejected ? commentFrom(state, comment) : [])];
}

function statusAfterRejection({ task, rejections }: TaskState): string {
  if (rejections + 1 >= MAX_REJECTIONS) return 'failed';
  return task.assigned_to === null ? 'inbox' : 'assigned';
}

/** The error message of a task after a rejection. */
export const rejectionText = (notes: string, reviewer = GATEKEEPER): string =>
  `Quality review rejected by ${reviewer}: ${notes}`;

/** Records that the review with this number ended without a verdict. */
export function decideReviewAbandoned(state: TaskState, run: number, reason: string): EventDraft[] {
  const { asked } = state;
  if (asked?.what !== 'review' || asked.run !== run) return [];
  const error = frontOf(reason, MAX_NOTES);
  return [taskReviewAbandoned.draft({ ...moved(state, { status: 'review' }), run, error })];
}

/** What the reviewer reads. */
export const reviewPrompt = (state: TaskState, ticket: string): PromptPart[] => {
  const { assigned_to: assignedTo, resolution } = state.task;
  const result = `result${assignedTo === null ? '' : ` of ${assignedTo}`}`;
  return [
    'Review the result of a task. Approve it if it does what the task asks for, and reject it otherwise.',
    ...describedTask(state, ticket),
    resolution === null ? 'The task has no result.' : { ...quoted(state, 'resolution', resolution), what: result },
    'Answer with two lines and nothing else. The first: VERDICT: APPROVED, or VERDICT: REJECTED. The second: NOTES: and what is good, or what has to change.',
  ];
};
