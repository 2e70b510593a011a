/** Workflow templates: requests and responses. */
import { z } from 'zod';
import { workflowFields } from '../events/workflows.ts';
import { changesOf } from '../fields.ts';
import { idValue, limitParam, offsetParam, unixSeconds } from './common.ts';
import { text } from './storable.ts';

export const workflowSchema = z
  .object({
    id: z.int(),
    ...workflowFields.shape,
    created_by: z.string(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    last_used_at: unixSeconds.nullable(),
    use_count: z.int(),
    workspace_id: z.int(),
  })
  .meta({ id: 'Workflow' });
export type WorkflowRecord = z.infer<typeof workflowSchema>;

const DEFAULT_MODEL = 'sonnet';

/** Blanks around it stay. */
const filled = (max: number) => text(max).min(1);
const orNull = (value: string | null): string | null => value || null;

const fields = {
  name: filled(200),
  task_prompt: filled(10_000).describe('the prompt for the agent; screened for attempts to take over the agent'),
  description: text(5_000).transform(orNull).default(null),
  model: text(100)
    .transform((model) => model || DEFAULT_MODEL)
    .default(DEFAULT_MODEL),
  timeout_seconds: z.int().min(10).max(3_600).default(300),
  agent_role: text(100).transform(orNull).default(null),
  tags: z.array(filled(100)).max(50).default([]),
};

export const newWorkflowBody = z.object(fields);
export const workflowChangesBody = z.object({ id: idValue, ...changesOf(fields) });

/** Returns all templates, up to a limit that clients can handle. */
export const workflowsQuery = z.object({ limit: limitParam(1_000, 1_000), offset: offsetParam });
export type WorkflowsQuery = z.infer<typeof workflowsQuery>;

export const workflowsResponse = z.object({ templates: z.array(workflowSchema) });
export const workflowResponse = z.object({ template: workflowSchema });
