/** Workspaces of the caller's tenant. */
import { deleteWorkspace } from '../../../commands/workspaces/removal.ts';
import { createWorkspace, updateWorkspace } from '../../../commands/workspaces/workspaces.ts';
import { adminsIn } from '../../../queries/auth/users.ts';
import { isMain, listWorkspaces, workspaceAfter, workspaceDetail } from '../../../queries/workspaces/workspaces.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/workspaces/workspaces.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/workspaces',
  summary: "List the workspaces of the caller's tenant, its main one first",
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  responses: { 200: { description: 'Workspaces', schema: contract.workspacesResponse } },
  cache: { models: ['workspaces'], scope: 'all', caller: ['tenant', 'workspace'] },
  respond: async ({ services, identity: { tenant, workspace } }) => ({
    workspaces: await listWorkspaces(services.reads, tenant),
    active_workspace_id: workspace,
    tenant_id: tenant,
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/workspaces',
  summary: "Create a workspace of the caller's tenant",
  description:
    'It starts with a general project. Add users with `workspace_id` of `POST` and `PUT /api/auth/users`. Slugs are unique in the whole deployment. Callers of a strictly isolated workspace get 403.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'partly', past: 'none', prompts: 'none' },
  body: contract.newWorkspaceBody,
  refuses: [404],
  responses: { 201: { description: 'Created', schema: contract.workspaceResponse } },
  async respond({ body, services, command, checkShared }) {
    await checkShared('workspaces');
    const { id, executed } = await createWorkspace(services.commands, command, body);
    return { workspace: await workspaceAfter(services.records, id, executed) };
  },
});

const one = defineCachedRoute({
  method: 'get',
  path: '/api/workspaces/{id}',
  summary: "A workspace of the caller's tenant, with the number of its agents",
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The workspace', schema: contract.workspaceDetailResponse } },
  cache: { models: ['workspaces', 'agents'], scope: 'all', caller: ['tenant'] },
  async respond({ params, services, identity }) {
    return { workspace: orNotFound(await workspaceDetail(services.reads, identity.tenant, params.id), 'Workspace') };
  },
});

const update = defineRoute({
  method: 'put',
  path: '/api/workspaces/{id}',
  summary: "Change a workspace of the caller's tenant",
  description:
    'The slug never changes. Callers of a strictly isolated workspace can change only its name and brand; its isolation only if it is the main one of the tenant.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'partly', past: 'none', prompts: 'none' },
  params: idParams,
  body: contract.workspaceChangesBody,
  refuses: [404],
  responses: { 200: { description: 'The workspace as it is now', schema: contract.workspaceResponse } },
  async respond({ params, body, services, identity, command, checkShared }) {
    const lifts = body.isolation === 'shared' && !(await isMain(services.reads, params.id));
    if (lifts || params.id !== identity.workspace) await checkShared('workspaces');
    const executed = await updateWorkspace(services.commands, command, params.id, body);
    return { workspace: await workspaceAfter(services.records, params.id, executed) };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/workspaces/{id}',
  summary: "Delete a workspace of the caller's tenant",
  description:
    'Its users, agents and projects move to the main workspace of the tenant; agents and projects whose names are taken there get a number. Keys and connections of its agents end. Its webhooks, alert rules, recurring tasks and syncs with GitHub are switched off. Tasks, messages and everything else of the workspace stay in the event log, where no call finds them. The main workspace cannot be deleted. Callers of a strictly isolated workspace get 403.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'partly', past: 'none', prompts: 'none' },
  params: idParams,
  refuses: [404, 409],
  responses: { 200: { description: 'Deleted', schema: contract.workspaceDeletedResponse } },
  async respond({ params, services, command, checkShared }) {
    await checkShared('workspaces');
    const { commands, leases, reads } = services;
    const parts = { commands, leases, reads, admins: adminsIn(reads) };
    const { name, moves_to: movesTo } = await deleteWorkspace(parts, command, params.id);
    return { success: true, deleted: name, agents_moved_to: movesTo };
  },
});

export const workspaceRoutes: readonly Route[] = [list, create, one, update, remove];
