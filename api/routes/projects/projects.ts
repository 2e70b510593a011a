/** Projects: list, create, show, change, archive or delete, and list a project's tasks. */
import { createProject, ensureGeneral, updateProject } from '../../../commands/projects/changes.ts';
import { archiveProject, deleteProject } from '../../../commands/projects/deletion.ts';
import type { Member, ProjectUpdate } from '../../../commands/projects/projects.ts';
import { agentIds } from '../../../queries/agents/agents.ts';
import {
  listedProject,
  listProjects,
  PROJECT_MODELS,
  projectAfter,
  projectRecord,
  tenantOf,
} from '../../../queries/projects/projects.ts';
import { listProjectTasks } from '../../../queries/projects/tasks.ts';
import { TASK_MODELS } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/projects/projects.ts';
import { invalid, OtherTenant, orNotFound } from '../../../shared/errors.ts';
import { sent } from '../../../shared/fields.ts';
import { type Identity, TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { seconds } from '../../../shared/time.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { SECRETS_HIDDEN, SEEN, tasksShownTo } from '../tasks/tasks.ts';

/**
 * The caller's workspace must belong to the caller's tenant; other calls are refused and recorded in the audit trail.
 *
 * @throws OtherTenant
 */
export async function requireOwnTenant(call: {
  readonly services: Services;
  readonly identity: Pick<Identity, 'tenant' | 'workspace'>;
}): Promise<void> {
  const { services, identity } = call;
  const tenant = await tenantOf(services.reads, identity.workspace);
  if (tenant === undefined || tenant === identity.tenant) return;
  throw new OtherTenant('Your workspace belongs to another tenant than you do; ask an admin to move you.');
}

/** @throws AppError 404 when the caller's workspace has no such project */
export const requireProject = async ({ reads }: Services, { workspace }: Pick<Identity, 'workspace'>, id: number) =>
  orNotFound(await projectRecord(reads, workspace, id), 'Project');

const list = defineCachedRoute({
  method: 'get',
  path: '/api/projects',
  summary: 'Projects, by name',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.projectsQuery,
  refuses: [403],
  responses: { 200: { description: 'Projects', schema: contract.projectsResponse } },
  cache: { models: PROJECT_MODELS, caller: ['workspace', 'tenant'] },
  async respond(call) {
    const { query, identity, services } = call;
    await requireOwnTenant(call);
    return { projects: await listProjects(services.reads, identity.workspace, query) };
  },
});

const create = defineRoute({
  method: 'post',
  path: '/api/projects',
  summary: 'Create a project',
  description:
    'Its slug and its ticket prefix are unique in the workspace, archived projects included. If omitted, they are derived from the name.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.createProjectBody,
  responses: { 201: { description: 'The new project', schema: contract.createdProjectResponse } },
  async respond(call) {
    const { body, identity, services, command } = call;
    await requireOwnTenant(call);
    // First, so that no other project can take the slug or prefix of the general project.
    await ensureGeneral(services.commands, command, services.projects);
    const { id, executed } = await createProject(services.commands, command, body);
    const at = seconds(executed.events[0]?.meta.at ?? services.now());
    return {
      project: {
        id,
        workspace_id: identity.workspace,
        ...body,
        ticket_counter: 0,
        status: 'active',
        github_sync_enabled: 0,
        github_labels_initialized: 0,
        github_default_branch: 'main',
        created_at: at,
        updated_at: at,
      },
    };
  },
});

const one = defineCachedRoute({
  method: 'get',
  path: '/api/projects/{id}',
  summary: 'One project',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  refuses: [403, 404],
  responses: { 200: { description: 'The project', schema: contract.projectResponse } },
  cache: { models: PROJECT_MODELS, caller: ['workspace', 'tenant'] },
  async respond(call) {
    const { params, identity, services } = call;
    await requireOwnTenant(call);
    return { project: orNotFound(await listedProject(services.reads, identity.workspace, params.id), 'Project') };
  },
});

const updateOf = (
  { ticketPrefix, status, assigned_agents: _, ...fields }: contract.UpdateProject,
  assignedAgents: readonly Member[] | undefined,
): ProjectUpdate =>
  sent({
    ...fields,
    ticket_prefix: fields.ticket_prefix ?? ticketPrefix,
    archived: status === undefined ? undefined : status === 'archived',
    assignedAgents,
  });

const change = defineRoute({
  method: 'patch',
  path: '/api/projects/{id}',
  summary: 'Change a project',
  description:
    'All changes are made, or none. A new ticket prefix applies to all tasks of the project at once. The general project cannot be archived.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  body: contract.updateProjectBody,
  refuses: [404, 409],
  responses: { 200: { description: 'The project as it is now', schema: contract.updatedProjectResponse } },
  async respond(call) {
    const { params, body, identity, services, command, context } = call;
    await requireOwnTenant(call);
    const before = await requireProject(services, identity, params.id);
    const agents = body.assigned_agents && (await requireAgents(services, identity, body.assigned_agents));
    const executed = await updateProject(services.commands, command, params.id, updateOf(body, agents));
    const parts = { reads: services.reads.at({ since: context.startedAt }), records: services.records };
    return { project: await projectAfter(parts, identity.workspace, before, executed) };
  },
});

/** @throws AppError 400 that names the agents that the workspace does not have */
async function requireAgents(services: Services, identity: Identity, names: readonly string[]): Promise<Member[]> {
  const known = await agentIds(services.reads, identity.workspace, names);
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length === 0) return names.map((name) => ({ agent_name: name, agent_id: known.get(name) }));
  const [agents, them] = unknown.length === 1 ? ['agent', 'it'] : ['agents', 'them'];
  throw invalid(
    `assigned_agents: the workspace has no ${agents} named ${unknown.join(', ')}; create ${them} first.`,
    unknown,
  );
}

const remove = defineRoute({
  method: 'delete',
  path: '/api/projects/{id}',
  summary: 'Archive a project, or delete it for good',
  description:
    'With `mode=delete` the project is gone at once. Its tasks move to the general project, each under a new ticket number; where there are very many, the last of them move in the background.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  query: contract.deleteProjectQuery,
  refuses: [400, 404],
  responses: { 200: { description: 'Done', schema: contract.deletedProjectResponse } },
  async respond(call) {
    const { params, query, services, command } = call;
    await requireOwnTenant(call);
    if (query.mode === 'archive') await archiveProject(services.commands, command, params.id);
    else await deleteProject(services, command, params.id);
    return { success: true, mode: query.mode };
  },
});

const tasks = defineCachedRoute({
  method: 'get',
  path: '/api/projects/{id}/tasks',
  summary: 'Tasks of a project, newest first',
  description: `${SECRETS_HIDDEN} ${SEEN}`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  query: contract.projectTasksQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The project and its tasks', schema: contract.projectTasksResponse } },
  cache: { models: [...PROJECT_MODELS, ...TASK_MODELS], caller: [...TASK_VIEW, 'tenant', 'seesSecrets'] },
  async respond(call) {
    const { params, query, identity, services } = call;
    await requireOwnTenant(call);
    const project = await requireProject(services, identity, params.id);
    const found = await listProjectTasks(services.reads, taskViewOf(identity), project, query);
    return { project: contract.projectHeader.parse(project), tasks: await tasksShownTo(services, identity, found) };
  },
});

export const projectRoutes: readonly Route[] = [list, create, one, change, remove, tasks];
