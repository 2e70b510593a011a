/** Comments on tasks. */
import { addComment } from '../../../commands/tasks/comments.ts';
import { COMMENT_MODELS, commentsOf } from '../../../queries/tasks/comments.ts';
import { TASK_MODELS, taskById } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { commentAnswer, commentBody, commentsAnswer } from '../../../shared/contract/tasks/comments.ts';
import { notFound } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { BOUND, displayNameOf, requireTaskAccess, taskAccess, taskViewOf } from './tasks.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/tasks/{id}/comments',
  tag: 'Tasks',
  summary: 'Comments on a task, as threads',
  description: BOUND,
  access: 'viewer',
  params: idParams,
  refuses: [403, 404],
  responses: { 200: { description: 'All comments, oldest first', schema: commentsAnswer } },
  cache: { models: [...COMMENT_MODELS, ...TASK_MODELS], scope: 'workspace', per: taskViewOf },
  async handle({ params, identity, services }) {
    const task = await taskById(services.reads, identity.workspace, params.id);
    if (!task) throw notFound('Task');
    requireTaskAccess(identity, task.assigned_to);
    return { body: await commentsOf(services.reads, identity.workspace, params.id) };
  },
});

const add = defineRoute({
  method: 'post',
  path: '/api/tasks/{id}/comments',
  tag: 'Tasks',
  summary: 'Comment on a task',
  description: `The author, everybody mentioned and the assignee follow the task from then on; all who follow it but the author are notified. A task that belongs to nobody is assigned to the first agent that is mentioned. ${BOUND}`,
  access: 'operator',
  limit: 'mutation',
  params: idParams,
  body: commentBody,
  refuses: [404],
  responses: { 201: { description: 'The comment', schema: commentAnswer } },
  async handle({ params, body, identity, services, command }) {
    const { comment, assignedTo } = await addComment(
      services.commands,
      command,
      services,
      params.id,
      body,
      displayNameOf(identity),
      taskAccess(identity),
    );
    return { status: 201, body: { comment, ...(assignedTo !== undefined && { auto_assigned_to: assignedTo }) } };
  },
});

export const taskCommentRoutes: readonly Route[] = [list, add];
