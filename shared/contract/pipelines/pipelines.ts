/** Pipelines: requests and responses. */
import { z } from 'zod';
import { ON_FAILURE, pipelineFields } from '../../events/pipelines/pipelines.ts';
import { changesOf } from '../../fields.ts';
import { idNumber, idValue, limitParam, offsetParam, unixSeconds } from '../common.ts';
import { text } from '../storable.ts';

const onFailure = z.enum(ON_FAILURE);

export const pipelineSchema = z
  .object({
    id: z.int(),
    ...pipelineFields.shape,
    created_by: z.string(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    use_count: z.int(),
    last_used_at: unixSeconds.nullable(),
    workspace_id: z.int(),
  })
  .meta({ id: 'Pipeline' });
export type PipelineRecord = z.infer<typeof pipelineSchema>;

export const listedPipelineSchema = pipelineSchema
  .extend({
    steps: z.array(
      z.object({
        template_id: z.int(),
        on_failure: onFailure,
        template_name: z.string().describe('`Unknown` when the template is gone'),
      }),
    ),
    runs: z.object({
      total: z.int(),
      completed: z.int(),
      failed: z.int(),
      running: z.int(),
      pipeline_id: z.int().optional().describe('when there is a run'),
    }),
  })
  .meta({ id: 'ListedPipeline' });
export type ListedPipeline = z.infer<typeof listedPipelineSchema>;

/** Maximum number of steps in a pipeline. */
export const MAX_STEPS = 50;

const fields = {
  name: text(200).min(1),
  steps: z
    .array(z.object({ template_id: idNumber, on_failure: onFailure.default('stop') }))
    .min(2)
    .max(MAX_STEPS),
  description: text(5_000).nullable().default(null),
};

export const newPipelineBody = z.object(fields);
export const pipelineChangesBody = z.object({ id: idValue, ...changesOf(fields) });

export const pipelinesQuery = z.object({ limit: limitParam(1_000, 1_000), offset: offsetParam });
export type PipelinesQuery = z.infer<typeof pipelinesQuery>;

export const pipelinesResponse = z.object({ pipelines: z.array(listedPipelineSchema) });
export const pipelineResponse = z.object({ pipeline: pipelineSchema });
