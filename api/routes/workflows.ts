/** Workflow templates. */
import { changeWorkflow, createWorkflow, deleteWorkflow } from '../../commands/workflows.ts';
import { listWorkflows, workflowAfter } from '../../queries/workflows.ts';
import { idBody, successResponse } from '../../shared/contract/common.ts';
import * as contract from '../../shared/contract/workflows.ts';
import { defineCachedRoute, defineRoute, type Route } from '../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/workflows',
  summary: 'Workflow templates, the most used first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.workflowsQuery,
  responses: { 200: { description: 'Templates', schema: contract.workflowsResponse } },
  cache: { models: ['workflows'] },
  respond: async ({ query, identity, services }) => ({
    templates: await listWorkflows(services.reads, identity.workspace, query),
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/workflows',
  summary: 'Create a workflow template',
  description: 'Names need not be unique. A prompt that tries to take over the agent is refused.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'refused' },
  body: contract.newWorkflowBody,
  refuses: [422],
  responses: { 201: { description: 'The new template', schema: contract.workflowResponse } },
  async respond({ body, identity, services, command }) {
    const { id, executed } = await createWorkflow(services.commands, command, body);
    return { template: await workflowAfter(services.records, identity.workspace, id, executed) };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/workflows',
  summary: 'Change a workflow template, or report that it was used',
  description:
    'Omitted fields stay unchanged. A body with only `id` reports a use: `use_count` is incremented, and `last_used_at` is set to now.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'refused' },
  body: contract.workflowChangesBody,
  refuses: [404, 422],
  responses: { 200: { description: 'The template as it is now', schema: contract.workflowResponse } },
  async respond({ body, identity, services, command }) {
    const { id, ...changes } = body;
    const executed = await changeWorkflow(services.commands, command, id, changes);
    return { template: await workflowAfter(services.records, identity.workspace, id, executed) };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/workflows',
  summary: 'Delete a workflow template',
  description:
    'A template that a pipeline or a run in progress uses is not deleted: 409 with the code `TEMPLATE_IN_USE`, which names one of them.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: idBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Deleted', schema: successResponse } },
  async respond({ body, services, command }) {
    await deleteWorkflow(services, command, body.id);
    return { success: true };
  },
});

export const workflowRoutes: readonly Route[] = [list, create, change, remove];
