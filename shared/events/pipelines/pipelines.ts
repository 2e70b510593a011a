/** Pipelines: sequences of workflow templates. Streams: `pipeline-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const pipelineId = z.int().positive();

/** How a run continues when one of its steps fails. */
export const ON_FAILURE = ['stop', 'continue'] as const;

/** What a pipeline says. */
export const pipelineFields = z.object({
  name: z.string(),
  description: z.string().nullable(),
  steps: z.array(z.object({ template_id: z.int().positive(), on_failure: z.enum(ON_FAILURE) })),
});
export type PipelineFields = z.infer<typeof pipelineFields>;

export const aboutPipeline = (id: number) => ({ entity_type: 'pipeline', entity_id: id });

export const pipelineCreated = defineEvent({
  type: 'PipelineCreated',
  doc: 'A pipeline was created.',
  schema: pipelineFields.extend({ pipeline_id: pipelineId }),
  activity: ({ data }) => ({
    type: 'pipeline_created',
    ...aboutPipeline(data.pipeline_id),
    description: `Pipeline created: ${data.name}`,
  }),
});

export const pipelineUpdated = defineEvent({
  type: 'PipelineUpdated',
  doc: 'Fields of a pipeline were set. Absent fields are unchanged, and so are runs that have started.',
  schema: pipelineFields.partial().extend({ pipeline_id: pipelineId }),
});

export const pipelineUsed = defineEvent({
  type: 'PipelineUsed',
  doc: 'A use of a pipeline was reported. Runs are counted separately.',
  schema: z.object({ pipeline_id: pipelineId }),
});

export const pipelineDeleted = defineEvent({
  type: 'PipelineDeleted',
  doc: 'A pipeline was deleted. Its runs are then cancelled and removed.',
  schema: z.object({ pipeline_id: pipelineId }),
});
