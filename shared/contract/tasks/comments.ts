/** Comments on tasks, as threads. */
import { z } from 'zod';
import { MAX_ID, unixSeconds, wholeText } from '../common.ts';
import { isStorable, UNSTORABLE_TEXT } from '../storable.ts';

/** Maximum number of characters; an event with the comment must fit into one append. */
const MAX_CONTENT = 100_000;

const comment = z.object({
  id: z.int(),
  task_id: z.int(),
  author: z.string(),
  content: z.string(),
  created_at: unixSeconds,
  parent_id: z.int().nullable().describe('the comment that it replies to'),
  mentions: z.array(z.string()).describe('as typed, without `@`'),
  workspace_id: z.int(),
});

/** A comment without its replies. */
export type CommentRow = z.infer<typeof comment>;
export type CommentRecord = CommentRow & { replies: CommentRecord[] };

export const commentSchema: z.ZodType<CommentRecord> = comment
  .extend({
    get replies(): z.ZodArray<z.ZodType<CommentRecord>> {
      return z.array(commentSchema);
    },
  })
  .meta({ id: 'Comment' });

export const commentBody = z.object({
  content: z
    .string()
    .min(1, 'must not be empty')
    .max(MAX_CONTENT)
    .refine(isStorable, UNSTORABLE_TEXT)
    .describe('`@name` mentions an agent or a user'),
  parent_id: z.int().nonnegative().max(MAX_ID).optional().describe('a comment on the same task; 0: none'),
  author: z.string().optional().describe('not used: the author is the caller'),
  task_id: z.number().min(-MAX_ID).max(MAX_ID).optional().describe('not used: the path says it'),
});
export type NewComment = z.infer<typeof commentBody>;

export const commentResponse = z.object({
  comment: commentSchema,
  auto_assigned_to: z
    .string()
    .optional()
    .describe('the task was unassigned and is now assigned to the first agent that the comment mentions'),
});

export const commentsQuery = z.object({
  after: wholeText(0, MAX_ID, 'must be the next_after of a page')
    .default(0)
    .describe('`next_after` of the page before'),
});

export const commentsResponse = z.object({
  comments: z
    .array(commentSchema)
    .describe(
      'comments that reply to none, and replies to comments of earlier pages, oldest first; other replies are inside, oldest first',
    ),
  total: z.int().describe('all comments on the task, with replies'),
  next_after: z.int().nullable().describe('`after` of the next page; null: this is the last one'),
});
