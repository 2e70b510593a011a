/** Comments on tasks. */
import { addComment } from '../../../commands/tasks/comments.ts';
import { COMMENT_MODELS, commentsOf } from '../../../queries/tasks/comments.ts';
import { TASK_MODELS, taskById } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/tasks/comments.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { authorOf, type Identity, TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { BOUND, HELD, SEEN } from './tasks.ts';

/** Comments and replies, with the display names of their authors. */
async function shown(
  { displayNames }: Services,
  { workspace }: Pick<Identity, 'workspace'>,
  comments: readonly contract.CommentRecord[],
): Promise<contract.CommentRecord[]> {
  const authorsOf = (some: readonly contract.CommentRecord[]): string[] =>
    some.flatMap(({ author, replies }) => [author, ...authorsOf(replies)]);
  const shownAs = await displayNames.of(workspace, authorsOf(comments));
  const named = (some: readonly contract.CommentRecord[]): contract.CommentRecord[] =>
    some.map((one) => ({ ...one, author: shownAs(one.author, one.created_at), replies: named(one.replies) }));
  return named(comments);
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/tasks/{id}/comments',
  summary: 'Comments on a task, as threads',
  mcp: { tool: 'list_comments' },
  description: `A page ends at 4 MB, so that a usual task has one page. ${SEEN}`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  query: contract.commentsQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'Comments, oldest first', schema: contract.commentsResponse } },
  cache: { models: [...COMMENT_MODELS, ...TASK_MODELS], caller: TASK_VIEW },
  async respond({ params, query, identity, services }) {
    const view = taskViewOf(identity);
    orNotFound(await taskById(services.reads, view, params.id), 'Task');
    const { comments, ...page } = await commentsOf(services.reads, view, params.id, {
      ...query,
      bytes: services.pageBytes,
    });
    return { comments: await shown(services, identity, comments), ...page };
  },
});

const add = defineRoute({
  method: 'post',
  path: '/api/tasks/{id}/comments',
  summary: 'Comment on a task',
  mcp: { tool: 'comment_on_task', takes: ['content', 'parent_id'] },
  description: `The author, all who are mentioned and the assignee follow the task from then on; all followers except the author are notified. An unassigned task is assigned to the first mentioned agent. ${BOUND} ${HELD}`,
  access: 'operator',
  rules: { agentKeys: 'tasks', strict: 'allowed', past: 'none', prompts: 'screened' },
  params: idParams,
  body: contract.commentBody,
  refuses: [404],
  responses: { 201: { description: 'The comment', schema: contract.commentResponse } },
  async respond({ params, body, identity, services, command }) {
    const { comment, assigned_to: assignedTo } = await addComment(
      services.commands,
      command,
      services.reads,
      params.id,
      body,
      authorOf(identity),
      identity,
    );
    const [record] = await shown(services, identity, [comment]);
    return {
      comment: record as contract.CommentRecord,
      ...(assignedTo !== undefined && { auto_assigned_to: assignedTo }),
    };
  },
});

export const taskCommentRoutes: readonly Route[] = [list, add];
