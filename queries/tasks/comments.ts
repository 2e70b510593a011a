/** The comments on one task, as threads. */
import { sql } from 'kysely';
import { taskCommentsProjection } from '../../projections/tasks/comments.ts';
import type { CommentRecord, CommentRow } from '../../shared/contract/tasks/comments.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads, upToSize } from '../reads.ts';
import { requireSeen } from './visibility.ts';

/** Read models from which comments are shown. */
export const COMMENT_MODELS: readonly string[] = [taskCommentsProjection.name];

const COLUMNS = ['id', 'task_id', 'author', 'content', 'created_at', 'parent_id', 'mentions', 'workspace_id'] as const;

/** A row of the page; its columns are null if the page is empty. */
type Listed = CommentRow & { readonly total: number; readonly newest: number | null };

/**
 * A page of the comments on a task, oldest first, each with its replies. A reply whose parent is on an
 * earlier page stands beside the comments; one without its parent is only counted.
 *
 * @param page.after id of the last comment of the page before
 * @throws AppError 403 when the caller may not see the task
 */
export async function commentsOf(
  reads: Reads,
  view: TaskView,
  taskId: number,
  { after, bytes }: { readonly after: number; readonly bytes?: number | undefined },
): Promise<{ readonly comments: CommentRecord[]; readonly total: number; readonly next_after: number | null }> {
  await requireSeen(reads, view, taskId);
  const all = inWorkspace(reads, taskCommentsProjection, 'task_comments', view.workspace).where('task_id', '=', taskId);
  // Names and numbers of a comment have less than 300 bytes.
  const page = all
    .where('id', '>', after)
    .select([...COLUMNS, sql<number>`octet_length(content) + octet_length(mentions::text) + 300`.as('bytes')]);
  const counted = all.select(({ fn }) => [fn.countAll<number>().as('total'), fn.max('id').as('newest')]);
  const { rows } = await sql<Listed>`
    SELECT ${sql.join(COLUMNS.map((name) => sql.ref(name)))}, total, newest
    FROM (${counted}) counted LEFT JOIN (${upToSize(page, sql`id`, bytes)}) page ON true ORDER BY id`.execute(reads.db);
  const [{ total, newest }, last] = [rows[0] as Listed, rows.at(-1) as Listed];
  const records = rows
    .filter(({ id }) => id !== null)
    .map(({ total: _, newest: __, ...row }): CommentRecord => ({ ...row, replies: [] }));
  const byId = new Map(records.map((record) => [record.id, record]));
  const comments: CommentRecord[] = [];
  for (const record of records) {
    const parent = record.parent_id === null ? undefined : byId.get(record.parent_id);
    if (parent) parent.replies.push(record);
    else if (record.parent_id === null || record.parent_id <= after) comments.push(record);
  }
  return { comments, total, next_after: last.id !== null && last.id !== newest ? last.id : null };
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
