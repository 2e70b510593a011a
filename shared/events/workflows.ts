/** Workflow templates: reusable prompts. Streams: `workflow-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from './define.ts';

const workflow_id = z.int().positive();

/** What a template says. */
export const workflowFields = z.object({
  name: z.string(),
  description: z.string().nullable(),
  model: z.string(),
  task_prompt: z.string(),
  timeout_seconds: z.int(),
  agent_role: z.string().nullable(),
  tags: z.array(z.string()),
});
export type WorkflowFields = z.infer<typeof workflowFields>;

export const workflowCreated = defineEvent({
  type: 'WorkflowCreated',
  doc: 'A workflow template was created.',
  schema: workflowFields.extend({ workflow_id }),
  activity: ({ data }) => ({
    type: 'workflow_created',
    entity_type: 'workflow',
    entity_id: data.workflow_id,
    description: `Workflow template created: ${data.name}`,
  }),
});

export const workflowUpdated = defineEvent({
  type: 'WorkflowUpdated',
  doc: 'Fields of a workflow template were set. Absent fields are unchanged.',
  schema: workflowFields.partial().extend({ workflow_id }),
});

export const workflowUsed = defineEvent({
  type: 'WorkflowUsed',
  doc: 'A use of a workflow template was reported.',
  schema: z.object({ workflow_id }),
});

export const workflowDeleted = defineEvent({
  type: 'WorkflowDeleted',
  doc: 'A workflow template was deleted. Pipelines that use it remain.',
  schema: z.object({ workflow_id }),
});
