/** The comments on one task, as threads. */
import { taskCommentsProjection } from '../../projections/tasks/comments.ts';
import type { CommentRecord } from '../../shared/contract/tasks/comments.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads } from '../reads.ts';
import { requireSeen } from './visibility.ts';

/** Read models from which comments are shown. */
export const COMMENT_MODELS: readonly string[] = [taskCommentsProjection.name];

/**
 * All comments on a task, oldest first, each with its replies. A reply without its parent is only counted.
 *
 * @throws AppError 403 when the caller may not see the task
 */
export async function commentsOf(
  reads: Reads,
  view: TaskView,
  taskId: number,
): Promise<{ readonly comments: CommentRecord[]; readonly total: number }> {
  await requireSeen(reads, view, taskId);
  const rows = await inWorkspace(reads, taskCommentsProjection, 'task_comments', view.workspace)
    .where('task_id', '=', taskId)
    .orderBy('id')
    .select(['id', 'task_id', 'author', 'content', 'created_at', 'parent_id', 'mentions', 'workspace_id'])
    .execute();
  const records = rows.map((row): CommentRecord => ({ ...row, mentions: row.mentions as string[], replies: [] }));
  const byId = new Map(records.map((record) => [record.id, record]));
  const comments: CommentRecord[] = [];
  for (const record of records) {
    if (record.parent_id === null) comments.push(record);
    else byId.get(record.parent_id)?.replies.push(record);
  }
  return { comments, total: records.length };
}

/**
 * A comment on this task; undefined when it has no such comment. A comment is deleted only with its task, so one that was
 * found stays. `depth`: how many are above it in its thread.
 */
export const findComment = (
  reads: Reads,
  workspace: number,
  taskId: number,
  commentId: number,
): Promise<{ readonly depth: number } | undefined> =>
  inWorkspace(reads, taskCommentsProjection, 'task_comments', workspace)
    .where('id', '=', commentId)
    .where('task_id', '=', taskId)
    .select('depth')
    .executeTakeFirst();
