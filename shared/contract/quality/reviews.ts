/** Quality reviews: verdicts about tasks. */
import { z } from 'zod';
import { ACTOR_TYPES } from '../../events/metadata.ts';
import { idNumber, unixSeconds } from '../common.ts';
import { text } from '../storable.ts';

export const REVIEW_STATUSES = ['approved', 'rejected'] as const;

export const reviewedBySchema = z
  .object({
    id: z.int().describe('of the user or agent; 0 for others'),
    name: z.string().describe('at the time of the review'),
    kind: z.enum(ACTOR_TYPES).describe('user, agent, api (the API key of the deployment) or system'),
  })
  .meta({ id: 'ReviewedBy' });

export const qualityReviewSchema = z
  .object({
    id: z.int(),
    task_id: z.int(),
    reviewer: z.string().describe('the name of the reviewer, or aegis: the gate, under which admins approve'),
    reviewed_by: reviewedBySchema.describe('who gave the review'),
    status: z.enum(REVIEW_STATUSES),
    notes: z.string(),
    created_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'QualityReview' });
export type QualityReview = z.infer<typeof qualityReviewSchema>;

/** Maximum number of tasks in one request for reviews. */
export const MAX_REVIEWED_TASKS = 500;
const ids = z.string().max(MAX_REVIEWED_TASKS * 17);

export const qualityReviewQuery = z.object({
  taskIds: ids
    .optional()
    .describe(`ids of at most ${MAX_REVIEWED_TASKS} tasks, with commas between them: the newest review of each`),
  taskId: z.string().optional().describe('id of a task: its newest reviews, at most 10'),
  task_id: z.string().optional().meta({ undocumented: true }),
});

export const reviewsResponse = z.object({ reviews: z.array(qualityReviewSchema) });
export const latestReviewsResponse = z.object({
  latest: z
    .record(
      z.string(),
      qualityReviewSchema.pick({ status: true, reviewer: true, reviewed_by: true, created_at: true }).nullable(),
    )
    .describe('by id of the task; null: it has none'),
});

const taskId = idNumber;

export const qualityReviewBody = z
  .object({
    taskId: taskId.optional().describe('the task; required'),
    task_id: taskId.optional().meta({ undocumented: true }),
    reviewer: text(100)
      .min(1)
      .optional()
      .describe('default for admins: aegis, whose approval opens the way to done; for others their own name'),
    status: z
      .enum(REVIEW_STATUSES)
      .describe('approved, by an admin: the task is done; rejected: it goes back into progress'),
    notes: text(10_000).min(1),
  })
  .refine((body) => body.taskId !== undefined || body.task_id !== undefined, {
    path: ['taskId'],
    message: 'is required; send the id of the task',
  });
export type QualityReviewBody = z.infer<typeof qualityReviewBody>;

export const reviewedResponse = z.object({
  success: z.literal(true),
  id: z.int(),
  reviewer: z.string(),
  opens_gate: z.boolean().describe('whether an approval by this caller makes the task done'),
  message: z.string().optional().describe('of an approval that left the task as it is: why'),
});
