/** Comments on tasks, and what a mention in one may do. They are on the task's own stream. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields, taskPlace } from './tasks.ts';

/** Characters of a comment that activities show. */
const PREVIEW = 100;

export const taskCommented = defineEvent({
  type: 'TaskCommented',
  version: 2,
  doc: 'Somebody commented on a task, or replied to a comment on it.',
  schema: z.object({
    ...taskFields,
    commentId: z.int().positive(),
    /** The comment that it replies to; null: none. */
    parentId: z.int().positive().nullable(),
    /** How many comments stand above it in its thread. */
    depth: z.int().nonnegative(),
    /** The username, if it was a user; or the name of an agent. */
    author: z.string(),
    content: z.string(),
    /** Mentions as typed, without `@`. */
    mentions: z.array(z.string()),
  }),
  formerNames: { before: 2, fields: () => ['author'] },
  activity: ({ data: { taskId, title, commentId, parentId, author, content, mentions } }) => ({
    type: 'comment_added',
    entity_type: 'comment',
    entity_id: commentId,
    actor: author,
    description: parentId === null ? `Commented on task "${title}"` : `Replied to a comment on task "${title}"`,
    data: {
      task_id: taskId,
      task_title: title,
      ...(parentId !== null && { parent_id: parentId }),
      mentions,
      content_preview: frontOf(content, PREVIEW),
    },
  }),
});

export const taskAssigned = defineEvent({
  type: 'TaskAssigned',
  version: 2,
  doc: 'A task that belonged to nobody was assigned to the first agent that a comment mentions.',
  schema: z.object({
    ...taskFields,
    before: taskPlace,
    after: taskPlace,
    trigger: z.enum(['mention']),
    /** Who wrote the comment. */
    by: z.string(),
  }),
  formerNames: { before: 2, fields: () => ['by'] },
  activity: ({ data: { taskId, title, after, trigger, by } }) => ({
    type: 'task_assigned',
    ...aboutTask(taskId),
    actor: by,
    description: `Assigned task "${title}" to ${after.assignedTo}`,
    data: { assigned_to: after.assignedTo, trigger },
  }),
});

export const taskCommentEvents = [taskCommented, taskAssigned];
