/** Workflow templates: requests and answers. */
import { z } from 'zod';
import { idValue, limitParam, offsetParam, unixSeconds } from './common.ts';
import { text } from './storable.ts';

export const workflowSchema = z
  .object({
    id: z.int(),
    name: z.string(),
    description: z.string().nullable(),
    model: z.string(),
    task_prompt: z.string(),
    timeout_seconds: z.int(),
    agent_role: z.string().nullable(),
    tags: z.array(z.string()),
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
  model: text(100).transform((model) => model || DEFAULT_MODEL),
  task_prompt: filled(10_000).describe('the prompt for the agent; screened for attempts to take over the agent'),
  timeout_seconds: z.int().min(10).max(3_600),
  tags: z.array(filled(100)).max(50),
};
const description = text(5_000);
const agentRole = text(100);

export const newWorkflowBody = z.object({
  name: fields.name,
  task_prompt: fields.task_prompt,
  description: description.transform(orNull).default(null),
  model: fields.model.default(DEFAULT_MODEL),
  timeout_seconds: fields.timeout_seconds.default(300),
  agent_role: agentRole.transform(orNull).default(null),
  tags: fields.tags.default([]),
});

export const workflowChangesBody = z
  .object({
    ...fields,
    description: description.nullable().transform(orNull),
    agent_role: agentRole.nullable().transform(orNull),
  })
  .partial()
  .extend({ id: idValue });

/** Everything, for as long as there is not more than a client can take. */
export const workflowsQuery = z.object({ limit: limitParam(1_000, 1_000), offset: offsetParam });
export type WorkflowsQuery = z.infer<typeof workflowsQuery>;

export const workflowsAnswer = z.object({ templates: z.array(workflowSchema) });
export const workflowAnswer = z.object({ template: workflowSchema });
