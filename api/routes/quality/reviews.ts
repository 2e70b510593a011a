/** Quality reviews: reviews of tasks, and new verdicts. */
import { z } from 'zod';
import { reviewTask } from '../../../commands/quality/reviews.ts';
import { GATEKEEPER, readsAsGatekeeper } from '../../../commands/tasks/tasks.ts';
import { latestReviews, REVIEW_MODELS, reviewsOf } from '../../../queries/quality/reviews.ts';
import { requireSeen } from '../../../queries/tasks/visibility.ts';
import * as contract from '../../../shared/contract/quality/reviews.ts';
import { forbidden, invalid } from '../../../shared/errors.ts';
import { type Identity, TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { seconds } from '../../../shared/time.ts';
import { isBoundKey } from '../../auth/agent-keys.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { HELD, SEEN } from '../tasks/tasks.ts';

const idOf = (text: string | undefined): number | undefined => {
  const id = /^\s*\d{1,15}\s*$/.test(text ?? '') ? Number(text) : 0;
  return id > 0 ? id : undefined;
};

/** Comma-separated ids; other values are ignored. @throws AppError 400 when there is no id, or there are too many */
function idsOf(text: string): number[] {
  const ids = text.split(',').flatMap((part) => idOf(part) ?? []);
  if (ids.length === 0) throw invalid('taskIds: must contain ids of tasks, separated by commas.');
  if (ids.length > contract.MAX_REVIEWED_TASKS)
    throw invalid(`taskIds: must contain at most ${contract.MAX_REVIEWED_TASKS} ids.`);
  return ids;
}

const show = defineCachedRoute({
  method: 'get',
  path: '/api/quality-review',
  summary: 'Quality reviews of a task, or the newest of each of several',
  mcp: { tool: 'list_reviews' },
  description: `${SEEN} Of other tasks, \`taskIds\` gives null.`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.qualityReviewQuery,
  refuses: [403],
  responses: {
    200: {
      description: 'With `taskIds`: the newest review of each; with `taskId`: reviews, newest first, at most 10',
      schema: z.union([contract.reviewsResponse, contract.latestReviewsResponse]),
    },
  },
  cache: { models: REVIEW_MODELS, caller: TASK_VIEW },
  async respond({ query, identity, services }) {
    const { reads } = services;
    const view = taskViewOf(identity);
    if (query.taskIds) return { latest: await latestReviews(reads, view, idsOf(query.taskIds)) };
    const taskId = idOf(query.taskId) ?? idOf(query.task_id);
    if (taskId === undefined) throw invalid('taskId: must be the id of a task; or send taskIds.');
    return { reviews: await reviewsOf(reads, view, taskId) };
  },
});

/** Whether a caller's approval makes a task done: that of admins and the deployment's key does, never an agent's. */
const isGatekeeper = ({ kind, role }: Identity): boolean => kind !== 'agent-key' && role === 'admin';

/**
 * The reviewer name of a review: an agent reviews under its own name.
 *
 * @throws AppError 403 for the gatekeeper's name
 */
function reviewerOf(identity: Identity, asked: string | undefined): string {
  const isAgent = identity.kind === 'agent-key';
  const own = identity.agentName !== null && isAgent ? identity.agentName : identity.username;
  const counts = isGatekeeper(identity);
  const reviewer = isAgent ? own : (asked ?? (counts ? GATEKEEPER : own));
  if (counts || !readsAsGatekeeper(reviewer)) return reviewer;
  throw forbidden(
    `reviewer: only admins and the API key of the deployment review as "${GATEKEEPER}"; leave it out to review under your own name.`,
  );
}

const NO_GATE =
  'Your approval is recorded, and the task stays as it is: only an approval by an admin, or with the API key of the deployment, makes a task done.';

const review = defineRoute({
  method: 'post',
  path: '/api/quality-review',
  summary: 'Approve a task, or send it back to work',
  mcp: { tool: 'review_task', takes: ['taskId', 'status', 'notes', 'reviewer'] },
  description: `An approval by an admin, or with the API key of the deployment, makes the task done; without \`reviewer\` it is one by \`${GATEKEEPER}\`, which all other ways into \`done\` ask for. Approvals by other callers are kept and shown, under their own names, and change nothing else; \`message\` says so. Each review names the caller in \`reviewed_by\`. A rejection sends the task back to work. With the key of an agent, \`reviewer\` is the agent; it cannot review tasks that are assigned to it. ${HELD}`,
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'screened' },
  body: contract.qualityReviewBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Recorded', schema: contract.reviewedResponse } },
  async respond({ body, identity, services, command }) {
    const { status, notes } = body;
    const taskId = (body.taskId ?? body.task_id) as number;
    const counts = isGatekeeper(identity);
    const reviewer = reviewerOf(identity, body.reviewer);
    const verdict = { status, notes, reviewer, counts };
    const now = seconds(services.now());
    if (isBoundKey(identity)) await requireSeen(services.reads, taskViewOf(identity), taskId);
    const id = await reviewTask(services.commands, command, taskId, verdict, now, identity);
    const isInert = status === 'approved' && !counts;
    return { success: true, id, reviewer, opens_gate: counts, ...(isInert && { message: NO_GATE }) };
  },
});

export const qualityReviewRoutes: readonly Route[] = [show, review];
