/** Workflow templates. */
import { changeWorkflow, createWorkflow, deleteWorkflow } from '../../commands/workflows.ts';
import { listWorkflows, workflowAfter } from '../../queries/workflows.ts';
import { idBody, successAnswer } from '../../shared/contract/common.ts';
import {
  newWorkflowBody,
  workflowAnswer,
  workflowChangesBody,
  workflowsAnswer,
  workflowsQuery,
} from '../../shared/contract/workflows.ts';
import { defineCachedRoute, defineRoute, type Route } from '../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/workflows',
  tag: 'Workflows',
  summary: 'Workflow templates, the most used first',
  access: 'viewer',
  query: workflowsQuery,
  responses: { 200: { description: 'Templates', schema: workflowsAnswer } },
  cache: { models: ['workflows'], scope: 'workspace', caller: ['workspace'] },
  respond: async ({ query, identity, services }) => ({
    body: { templates: await listWorkflows(services.reads, identity.workspace, query) },
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/workflows',
  tag: 'Workflows',
  summary: 'Create a workflow template',
  description: 'Names need not be unique. A prompt that tries to take over the agent is refused.',
  access: 'operator',
  limit: 'mutation',
  body: newWorkflowBody,
  refuses: [422],
  responses: { 201: { description: 'The new template', schema: workflowAnswer } },
  async handle({ body, identity, services, command }) {
    const { id, executed } = await createWorkflow(services.commands, command, body);
    return { status: 201, body: { template: await workflowAfter(services.records, identity.workspace, id, executed) } };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/workflows',
  tag: 'Workflows',
  summary: 'Change a workflow template, or report that it was used',
  description:
    'Omitted fields stay unchanged. A body with only `id` reports a use: `use_count` is incremented, and `last_used_at` is set to now.',
  access: 'operator',
  limit: 'mutation',
  body: workflowChangesBody,
  refuses: [404, 422],
  responses: { 200: { description: 'The template as it is now', schema: workflowAnswer } },
  async handle({ body, identity, services, command }) {
    const { id, ...changes } = body;
    const executed = await changeWorkflow(services.commands, command, id, changes);
    return { body: { template: await workflowAfter(services.records, identity.workspace, id, executed) } };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/workflows',
  tag: 'Workflows',
  summary: 'Delete a workflow template',
  description: 'Pipelines that name it stay; their steps then show `Unknown`.',
  access: 'operator',
  limit: 'mutation',
  body: idBody,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: successAnswer } },
  async handle({ body, services, command }) {
    await deleteWorkflow(services.commands, command, body.id);
    return { body: { success: true } };
  },
});

export const workflowRoutes: readonly Route[] = [list, create, change, remove];
