/** Branches and pull requests of tasks. No source host is connected, so none of them can be made. */

import type { Reads } from '../../../queries/reads.ts';
import { repositoryOf, TASK_MODELS } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { branchAnswer, branchBody, branchMadeAnswer } from '../../../shared/contract/tasks/branches.ts';
import { invalid, notFound, unavailable } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/** The repository of a task's project. @throws AppError 404 */
async function requireTask(reads: Reads, workspace: number, id: number): Promise<string | null> {
  const repo = await repositoryOf(reads, workspace, id);
  if (repo === undefined) throw notFound('Task');
  return repo;
}

const show = defineRoute({
  method: 'get',
  path: '/api/tasks/{id}/branch',
  tag: 'Tasks',
  summary: 'Branch and pull request of a task',
  access: 'viewer',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'What there is', schema: branchAnswer } },
  cache: { models: TASK_MODELS, scope: 'workspace' },
  async handle({ params, identity, services }) {
    const repo = await requireTask(services.reads, identity.workspace, params.id);
    return { body: { branch: null, pr_number: null, pr_state: null, repo } };
  },
});

const make = defineRoute({
  method: 'post',
  path: '/api/tasks/{id}/branch',
  tag: 'Tasks',
  summary: 'Make a branch for a task, or a pull request of it',
  description:
    'Needs a source host. This deployment has none, so a request that is right in itself is answered with 503.',
  access: 'operator',
  limit: 'mutation',
  params: idParams,
  body: branchBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'The branch, or the pull request', schema: branchMadeAnswer } },
  async handle({ params, body, identity, services }) {
    const repo = await requireTask(services.reads, identity.workspace, params.id);
    if (repo === null)
      throw invalid('The project of this task has no repository; set its github_repo with PATCH /api/projects/{id}.');
    if (body.action === 'create-pr')
      throw invalid('This task has no branch to open a pull request from; make the branch first.');
    throw unavailable('No source host is connected to this deployment, so no branch can be made.', {
      code: 'NO_SOURCE_HOST',
    });
  },
});

export const taskBranchRoutes: readonly Route[] = [show, make];
