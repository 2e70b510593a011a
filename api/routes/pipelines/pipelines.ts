/** Pipelines. */
import { changePipeline, createPipeline, deletePipeline } from '../../../commands/pipelines/pipelines.ts';
import { listPipelines, missingTemplates, pipelineAfter } from '../../../queries/pipelines/pipelines.ts';
import { idBody, successAnswer } from '../../../shared/contract/common.ts';
import {
  newPipelineBody,
  type PipelineRecord,
  pipelineAnswer,
  pipelineChangesBody,
  pipelinesAnswer,
  pipelinesQuery,
} from '../../../shared/contract/pipelines/pipelines.ts';
import { invalid } from '../../../shared/errors.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** @throws AppError 400 that names the unknown templates */
async function toSteps(services: Services, workspace: number, steps: PipelineRecord['steps']) {
  const ids = [...new Set(steps.map((step) => step.template_id))];
  const missing = await missingTemplates(services.reads, workspace, ids);
  if (missing.length > 0) {
    const details = steps.flatMap(({ template_id }, index) =>
      missing.includes(template_id) ? [`steps.${index}.template_id: there is no template ${template_id}`] : [],
    );
    throw invalid(details[0] as string, details);
  }
  return steps.map(({ template_id, on_failure }) => ({ template_id, on_failure }));
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/pipelines',
  tag: 'Pipelines',
  summary: 'Pipelines with the counts of their runs, the most used first',
  access: 'viewer',
  query: pipelinesQuery,
  responses: { 200: { description: 'Pipelines', schema: pipelinesAnswer } },
  cache: { models: ['pipelines', 'workflows'], scope: 'workspace', caller: ['workspace'] },
  respond: async ({ query, identity, services }) => ({
    body: { pipelines: await listPipelines(services.reads, identity.workspace, query) },
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/pipelines',
  tag: 'Pipelines',
  summary: 'Create a pipeline',
  description: 'A template may be used in several steps.',
  access: 'operator',
  limit: 'mutation',
  body: newPipelineBody,
  responses: { 201: { description: 'The new pipeline', schema: pipelineAnswer } },
  async handle({ body, identity, services, command }) {
    const { workspace } = identity;
    const { name, description } = body;
    const steps = await toSteps(services, workspace, body.steps);
    const { id, executed } = await createPipeline(services.commands, command, { name, description, steps });
    return { status: 201, body: { pipeline: await pipelineAfter(services.records, workspace, id, executed) } };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/pipelines',
  tag: 'Pipelines',
  summary: 'Change a pipeline, or report that it was used',
  description:
    'Omitted fields stay unchanged; runs that have started are not affected. A body with only `id` reports a use: `use_count` is incremented, and `last_used_at` is set to now.',
  access: 'operator',
  body: pipelineChangesBody,
  refuses: [404],
  responses: { 200: { description: 'The pipeline as it is now', schema: pipelineAnswer } },
  async handle({ body, identity, services, command }) {
    const { workspace } = identity;
    const { id, name, description } = body;
    const steps = body.steps && (await toSteps(services, workspace, body.steps));
    const executed = await changePipeline(services.commands, command, id, { name, description, steps });
    return { body: { pipeline: await pipelineAfter(services.records, workspace, id, executed) } };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/pipelines',
  tag: 'Pipelines',
  summary: 'Delete a pipeline and its runs',
  description: 'A run in progress is cancelled. Deleting a pipeline that does not exist succeeds.',
  access: 'operator',
  body: idBody,
  responses: { 200: { description: 'Deleted', schema: successAnswer } },
  async handle({ body, services, command }) {
    await deletePipeline(services.commands, command, body.id);
    return { body: { success: true } };
  },
});

export const pipelineRoutes: readonly Route[] = [list, create, change, remove];
