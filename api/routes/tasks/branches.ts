/** Branches and pull requests of tasks; on GitHub if it is connected. */

import { makeBranch, openPull } from '../../../commands/tasks/branches.ts';
import { repositoryOf } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { repositoryIn } from '../../../shared/contract/github/issues.ts';
import { branchBody, branchMadeResponse, branchResponse } from '../../../shared/contract/tasks/branches.ts';
import { invalid, orNotFound, unavailable } from '../../../shared/errors.ts';
import { TASK_VIEW, taskViewOf, type Viewer } from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { GITHUB_FAILURES } from '../github/issues.ts';
import { HELD, SEEN } from './tasks.ts';

/** The branch of a task, and the repository of its project. @throws AppError 403 when the caller does not see it, 404 */
const requireTask = async ({ reads }: Services, identity: Viewer, id: number) =>
  orNotFound(await repositoryOf(reads, taskViewOf(identity), id), 'Task');

const show = defineCachedRoute({
  method: 'get',
  path: '/api/tasks/{id}/branch',
  summary: 'Branch and pull request of a task',
  description: SEEN,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  refuses: [403, 404],
  responses: { 200: { description: 'What there is', schema: branchResponse } },
  cache: { models: ['tasks', 'projects'], caller: TASK_VIEW },
  async respond({ params, identity, services }) {
    const { repo, source } = await requireTask(services, identity, params.id);
    const { github_branch: branch, github_pr_number: pr_number, github_pr_state: pr_state } = source ?? {};
    return { branch: branch ?? null, pr_number: pr_number ?? null, pr_state: pr_state ?? null, repo };
  },
});

const make = defineRoute({
  method: 'post',
  path: '/api/tasks/{id}/branch',
  summary: 'Create a branch for a task, or a pull request from it',
  description:
    "For a task that the caller sees. Needs GitHub, with the deployment's token: where it is not connected, and for other tenants than the default one, a request that is right in itself gets 503. Callers of a strictly isolated workspace get 403. " +
    HELD,
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'partly', past: 'none', prompts: 'none' },
  params: idParams,
  body: branchBody,
  bodyOptional: true,
  refuses: [404],
  responses: {
    200: { description: 'The branch, or the pull request', schema: branchMadeResponse },
    ...GITHUB_FAILURES,
  },
  async respond({ params, body, identity, services, command, checkShared, isOfDeployment }) {
    const { commands, github } = services;
    const task = await requireTask(services, identity, params.id);
    if (task.repo === null)
      throw invalid('The project of this task has no repository; set its github_repo with PATCH /api/projects/{id}.');
    const repo = repositoryIn(task.repo);
    if (repo === undefined)
      throw invalid(
        'The github_repo of the project is not a repository; set it to owner/name with PATCH /api/projects/{id}.',
      );
    if (body.action === 'create-pr' && !task.source?.github_branch)
      throw invalid('This task has no branch to open a pull request from; create the branch first.');
    await checkShared('github');
    if (!github.configured || !(await isOfDeployment()))
      throw unavailable('No source host is connected to this deployment, so no branch can be created.', {
        code: 'NO_SOURCE_HOST',
      });
    const place = { repo, base: body.base ?? task.base, prefix: task.prefix };
    if (body.action !== 'create-pr') return makeBranch({ commands, github }, command, params.id, place, identity);
    const pull = { ...place, title: body.title, body: body.body };
    return openPull({ commands, github }, command, params.id, pull, identity);
  },
});

export const taskBranchRoutes: readonly Route[] = [show, make];
