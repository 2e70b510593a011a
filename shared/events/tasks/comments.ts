/** Comments on tasks, and the effects of a mention. They are on the task's own stream. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields, taskPlace } from './tasks.ts';

/** Characters of a comment in activities. */
const PREVIEW = 100;

export const taskCommented = defineEvent({
  type: 'TaskCommented',
  doc: 'A comment on a task, or a reply to one, was added.',
  schema: z.object({
    ...taskFields,
    comment_id: z.int().positive(),
    /** The comment to which it replies; null: none. */
    parent_id: z.int().positive().nullable(),
    /** How many comments are above it in its thread. */
    depth: z.int().nonnegative(),
    /** The username of a user, or the name of an agent. */
    author: z.string(),
    content: z.string(),
    /** Mentions as typed, without `@`. */
    mentions: z.array(z.string()),
  }),
  activity: ({ data: { task_id, title, comment_id: commentId, parent_id, author, content, mentions } }) => ({
    type: 'comment_added',
    entity_type: 'comment',
    entity_id: commentId,
    actor: author,
    description: parent_id === null ? `Commented on task "${title}"` : `Replied to a comment on task "${title}"`,
    data: {
      task_id,
      task_title: title,
      ...(parent_id !== null && { parent_id }),
      mentions,
      content_preview: frontOf(content, PREVIEW),
    },
  }),
});

export const taskAssigned = defineEvent({
  type: 'TaskAssigned',
  doc: 'An unassigned task was assigned to the first agent that a comment mentions.',
  schema: z.object({
    ...taskFields,
    before: taskPlace,
    after: taskPlace,
    trigger: z.enum(['mention']),
    /** Who wrote the comment. */
    by: z.string(),
  }),
  activity: ({ data: { task_id: taskId, title, after, trigger, by } }) => ({
    type: 'task_assigned',
    ...aboutTask(taskId),
    actor: by,
    description: `Assigned task "${title}" to ${after.assigned_to}`,
    data: { assigned_to: after.assigned_to, trigger },
  }),
});
