/** Quality reviews: what was said about tasks, and a new verdict. */
import { z } from 'zod';
import { reviewTask } from '../../../commands/quality/reviews.ts';
import { GATEKEEPER } from '../../../commands/tasks/tasks.ts';
import { latestReviews, REVIEW_MODELS, reviewsOf } from '../../../queries/quality/reviews.ts';
import {
  latestReviewsAnswer,
  MAX_REVIEWED_TASKS,
  qualityReviewBody,
  qualityReviewQuery,
  reviewedAnswer,
  reviewsAnswer,
} from '../../../shared/contract/quality/reviews.ts';
import { invalid } from '../../../shared/errors.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const idOf = (text: string | undefined): number | undefined => {
  const id = /^\s*\d{1,15}\s*$/.test(text ?? '') ? Number(text) : 0;
  return id > 0 ? id : undefined;
};

/** Ids between commas; what is none is left out. @throws AppError 400 when there is none, or there are too many */
function idsOf(text: string): number[] {
  const ids = text.split(',').flatMap((part) => idOf(part) ?? []);
  if (ids.length === 0) throw invalid('taskIds: must contain ids of tasks, separated by commas.');
  if (ids.length > MAX_REVIEWED_TASKS) throw invalid(`taskIds: must contain at most ${MAX_REVIEWED_TASKS} ids.`);
  return ids;
}

const show = defineRoute({
  method: 'get',
  path: '/api/quality-review',
  tag: 'Quality',
  summary: 'Quality reviews of a task, or the newest of each of several',
  access: 'viewer',
  query: qualityReviewQuery,
  responses: {
    200: {
      description: 'With `taskIds`: the newest review of each; with `taskId`: reviews, newest first, at most 10',
      schema: z.union([reviewsAnswer, latestReviewsAnswer]),
    },
  },
  cache: { models: REVIEW_MODELS, scope: 'workspace' },
  async handle({ query, identity, services }) {
    const { reads } = services;
    if (query.taskIds)
      return { body: { latest: await latestReviews(reads, identity.workspace, idsOf(query.taskIds)) } };
    const taskId = idOf(query.taskId) ?? idOf(query.task_id);
    if (taskId === undefined) throw invalid('taskId: must be the id of a task; or send taskIds.');
    return { body: { reviews: await reviewsOf(reads, identity.workspace, taskId) } };
  },
});

const review = defineRoute({
  method: 'post',
  path: '/api/quality-review',
  tag: 'Quality',
  summary: 'Approve a task, or send it back to work',
  description: `An approval makes the task done, whoever gives it. Other ways into \`done\` ask for the newest review by \`${GATEKEEPER}\`.`,
  access: 'operator',
  limit: 'mutation',
  body: qualityReviewBody,
  refuses: [404],
  responses: { 200: { description: 'Recorded', schema: reviewedAnswer } },
  async handle({ body, services, command }) {
    const { status, notes, reviewer = GATEKEEPER } = body;
    const taskId = (body.taskId ?? body.task_id) as number;
    const verdict = { status, notes, reviewer };
    const id = await reviewTask(services.commands, command, taskId, verdict, seconds(services.now()));
    return { body: { success: true, id } };
  },
});

export const qualityReviewRoutes: readonly Route[] = [show, review];
