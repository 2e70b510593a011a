/** Pipelines. */
import { changePipeline, createPipeline, deletePipeline } from '../../../commands/pipelines/pipelines.ts';
import { listPipelines, pipelineAfter } from '../../../queries/pipelines/pipelines.ts';
import { idBody, successResponse } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/pipelines/pipelines.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const toStep = ({ template_id, on_failure }: contract.PipelineRecord['steps'][number]) => ({ template_id, on_failure });

const list = defineCachedRoute({
  method: 'get',
  path: '/api/pipelines',
  summary: 'Pipelines with the counts of their runs, the most used first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.pipelinesQuery,
  responses: { 200: { description: 'Pipelines', schema: contract.pipelinesResponse } },
  cache: { models: ['pipelines', 'workflows'] },
  respond: async ({ query, identity, services }) => ({
    pipelines: await listPipelines(services.reads, identity.workspace, query),
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/pipelines',
  summary: 'Create a pipeline',
  description: 'A template may be used in several steps.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'screened' },
  body: contract.newPipelineBody,
  responses: { 201: { description: 'The new pipeline', schema: contract.pipelineResponse } },
  async respond({ body, identity, services, command }) {
    const { workspace } = identity;
    const { name, description } = body;
    const steps = body.steps.map(toStep);
    const { id, executed } = await createPipeline(services, command, { name, description, steps });
    return { pipeline: await pipelineAfter(services.records, workspace, id, executed) };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/pipelines',
  summary: 'Change a pipeline, or report that it was used',
  description:
    'Omitted fields stay unchanged; runs that have started are not affected. A body with only `id` reports a use: `use_count` is incremented, and `last_used_at` is set to now.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'screened' },
  limit: 'none',
  body: contract.pipelineChangesBody,
  refuses: [404],
  responses: { 200: { description: 'The pipeline as it is now', schema: contract.pipelineResponse } },
  async respond({ body, identity, services, command }) {
    const { workspace } = identity;
    const { id, name, description } = body;
    const steps = body.steps?.map(toStep);
    const executed = await changePipeline(services, command, id, { name, description, steps });
    return { pipeline: await pipelineAfter(services.records, workspace, id, executed) };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/pipelines',
  summary: 'Delete a pipeline and its runs',
  description: 'A run in progress is cancelled. Deleting a pipeline that does not exist succeeds.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: idBody,
  responses: { 200: { description: 'Deleted', schema: successResponse } },
  async respond({ body, services, command }) {
    await deletePipeline(services.commands, command, body.id);
    return { success: true };
  },
});

export const pipelineRoutes: readonly Route[] = [list, create, change, remove];
