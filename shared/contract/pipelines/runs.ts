/** Runs of pipelines: requests and responses. */
import { z } from 'zod';
import { ON_FAILURE } from '../../events/pipelines/pipelines.ts';
import { idText, idValue, limitParam, unixSeconds } from '../common.ts';
import { text } from '../storable.ts';
import { MAX_STEPS } from './pipelines.ts';

export const stepStateSchema = z
  .object({
    step_index: z.int().describe('from 0'),
    template_id: z.int(),
    template_name: z.string().describe('as it was when the run started'),
    on_failure: z.enum(ON_FAILURE),
    status: z.enum(['pending', 'running', 'completed', 'failed', 'skipped']),
    spawn_id: z.string().nullable().describe('set once the agent runner has accepted the step'),
    started_at: unixSeconds.nullable(),
    completed_at: unixSeconds.nullable(),
    error: z.string().nullable(),
    attempts: z.int().describe('how often the step was handed to the agent runner'),
    retrying: z.boolean().describe('the last attempt failed, and there will be another'),
    last_error: z.string().nullable().describe('why the last failed attempt failed'),
    output: z.string().nullable().describe('output of the agent runner when it accepted the step'),
  })
  .meta({ id: 'PipelineStepState' });
export type StepState = z.infer<typeof stepStateSchema>;

const status = z.enum(['pending', 'running', 'completed', 'failed', 'cancelled']);

export const runSchema = z
  .object({
    id: z.int(),
    pipeline_id: z.int(),
    status,
    current_step: z.int().describe('from 0'),
    steps_snapshot: z.array(stepStateSchema),
    started_at: unixSeconds.nullable(),
    completed_at: unixSeconds.nullable(),
    triggered_by: z.string(),
    created_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'PipelineRun' });
export type RunRecord = z.infer<typeof runSchema>;

export const listedRunSchema = runSchema.extend({ pipeline_name: z.string() }).meta({ id: 'ListedPipelineRun' });
export type ListedRun = z.infer<typeof listedRunSchema>;

export const runsQuery = z.object({
  id: idText.optional().describe('gives this run alone'),
  pipeline_id: idText.optional(),
  limit: limitParam(20, 200),
});

export const runsResponse = z.union([z.object({ runs: z.array(listedRunSchema) }), z.object({ run: runSchema })]);

/** Maximum number of characters in texts of runners and callers about a step. */
export const MAX_STEP_TEXT = 2_000;

export const RUN_ACTIONS = ['start', 'advance', 'cancel'] as const;

/** @returns the name of the missing field for the action */
function missing({ action, pipeline_id, run_id }: Readonly<Record<string, unknown>>): string | undefined {
  if (action === 'advance' || action === 'cancel') return run_id === undefined ? 'run_id' : undefined;
  return pipeline_id === undefined ? (action === undefined ? 'action' : 'pipeline_id') : undefined;
}

export const runBody = z
  .object({
    action: z.enum(RUN_ACTIONS).optional().describe('start may be left out where there is a pipeline_id'),
    pipeline_id: idValue.optional().describe('for start'),
    run_id: idValue.optional().describe('for advance and cancel'),
    success: z.boolean().nullish().describe('for advance: whether the step succeeded; default true'),
    error: text(MAX_STEP_TEXT).nullish().describe('for advance: what went wrong'),
    step_index: z
      .int()
      .nonnegative()
      .max(MAX_STEPS)
      .optional()
      .describe('for advance: index of the step, from 0; refused if the run is at another step'),
  })
  .superRefine((body, context) => {
    const path = missing(body);
    if (path) context.addIssue({ code: 'custom', path: [path], message: 'is required' });
  });

export const spawnSchema = z
  .object({
    success: z.boolean().describe('whether the agent runner has accepted the step'),
    stdout: z.string().optional().describe('what it said; on success'),
    error: z.string().optional().describe('why not; otherwise'),
    pending: z.literal(true).optional().describe('not yet: it is retried in the background; the run shows the result'),
  })
  .meta({ id: 'PipelineSpawn' });
export type Spawn = z.infer<typeof spawnSchema>;

export const runResponse = z.object({
  run: z.object({
    id: z.int(),
    pipeline_id: z.int().optional().describe('start only'),
    status,
    current_step: z.int().optional().describe('while it runs'),
    steps_snapshot: z.array(stepStateSchema),
    spawn: spawnSchema.optional().describe('of the step that was started'),
  }),
  run_id: z.int().describe('the same as run.id'),
  status: status.describe('the same as run.status'),
});
