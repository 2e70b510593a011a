/** Comments on tasks. */
import { taskCommented } from '../../shared/events/tasks/comments.ts';
import { seconds } from '../../shared/time.ts';
import { defineProjection, defineTable, insert, on } from '../projection.ts';

export const taskCommentsTable = defineTable(
  'task_comments',
  {
    workspace_id: 'int',
    id: 'bigint',
    task_id: 'bigint',
    parent_id: 'bigint?',
    depth: 'int',
    author: 'text',
    content: 'text',
    mentions: 'jsonb',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: ['workspace_id, task_id, id', 'workspace_id, author, created_at'],
  },
);

/** Rows of a deleted task stay: no query finds them any more, and its id is never used again. */
export const taskCommentsProjection = defineProjection({
  name: 'task_comments',
  version: 1,
  tables: [taskCommentsTable],
  handlers: [
    on(taskCommented, ({ data: { comment_id: id, title: _, ...fields }, meta }) => [
      insert(taskCommentsTable, {
        workspace_id: meta.workspace,
        id,
        ...fields,
        created_at: seconds(meta.at),
      }),
    ]),
  ],
});
