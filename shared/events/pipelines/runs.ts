/** Runs of pipelines, step by step. Streams: `pipeline_run-<workspace>-<id>`. Steps are counted from 0. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { breaches, securityFrame } from '../auth/security-events.ts';
import { defineEvent, type FrameDraft } from '../define.ts';
import type { Metadata } from '../metadata.ts';
import { aboutPipeline, ON_FAILURE, pipelineId } from './pipelines.ts';

const run_id = z.int().positive();
const step = z.int().nonnegative();
const ofRun = z.object({ run_id, pipeline_id: pipelineId });
const ofStep = ofRun.extend({ step });

/** Where a step is handed to, or why it is not handed over. */
export const HAND_OVERS = ['runner', 'no_runner'] as const;
export type HandOver = (typeof HAND_OVERS)[number];

/** The error of a step that was not handed to a runner. */
export const HAND_OVER_FAULTS: Readonly<Record<HandOver, string | null>> = {
  runner: null,
  no_runner: 'No agent runner is configured (RUNNER_URL); advance the run when the step is done.',
};

/** The name of a template that does not exist. */
export const UNKNOWN_TEMPLATE = 'Unknown';

/** An activity on the live stream that is not in the list of activities. */
const frame = (meta: Metadata, data: FrameDraft['data']): FrameDraft[] => [
  {
    type: 'activity.created',
    data: { id: meta.number, ...data, actor: meta.actor.name, created_at: seconds(meta.at) },
  },
];

export const pipelineRunStarted = defineEvent({
  type: 'PipelineRunStarted',
  doc: 'A run of a pipeline began. It keeps the steps and templates of that time.',
  schema: ofRun.extend({
    pipeline_name: z.string(),
    steps: z.array(
      z.object({ template_id: z.int().positive(), template_name: z.string(), on_failure: z.enum(ON_FAILURE) }),
    ),
    /** Each template of the steps once. */
    templates: z.array(
      z.object({
        template_id: z.int().positive(),
        task_prompt: z.string(),
        model: z.string(),
        timeout_seconds: z.int(),
      }),
    ),
  }),
  activity: ({ data }) => ({
    type: 'pipeline_started',
    ...aboutPipeline(data.pipeline_id),
    description: `Pipeline started: ${data.pipeline_name}`,
    data: { run_id: data.run_id },
  }),
  frames: ({ data, meta }) =>
    frame(meta, {
      type: 'pipeline_started',
      ...aboutPipeline(data.pipeline_id),
      description: `Pipeline started: ${data.pipeline_name}`,
      data: { run_id: data.run_id },
    }),
});

export const pipelineStepStarted = defineEvent({
  type: 'PipelineStepStarted',
  doc: 'A step of a run began.',
  schema: ofStep.extend({ hand_over: z.enum(HAND_OVERS) }),
});

export const pipelineStepSpawned = defineEvent({
  type: 'PipelineStepSpawned',
  doc: 'The agent runner accepted a step. It is not handed over again.',
  schema: ofStep.extend({
    /** From 1. */
    attempt: z.int().positive(),
    spawn_id: z.string(),
    /** What the runner said. */
    output: z.string().nullable(),
  }),
});

export const pipelineStepAttemptFailed = defineEvent({
  type: 'PipelineStepAttemptFailed',
  doc: 'An attempt to hand a step to the agent runner failed.',
  schema: ofStep.extend({
    /** From 1. */
    attempt: z.int().positive(),
    reason: z.string(),
    will_retry: z.boolean(),
    /** These texts kept the step from being handed over at all. */
    breaches: breaches.optional(),
  }),
  frames: (event) => {
    const { run_id, pipeline_id, step, breaches } = event.data;
    if (!breaches) return [];
    const detail = { pipeline_id, run_id, step_index: step, texts: breaches };
    return securityFrame(event, 'injection_attempt', 'warning', 'agent_runner', detail);
  },
});

const ended = ofStep.extend({ error: z.string().nullable() });

export const pipelineStepCompleted = defineEvent({
  type: 'PipelineStepCompleted',
  doc: 'A step succeeded.',
  schema: ended,
});

export const pipelineStepFailed = defineEvent({
  type: 'PipelineStepFailed',
  doc: 'A step failed. The step’s `on_failure` decides whether the run continues.',
  schema: ended,
});

export const pipelineRunCompleted = defineEvent({
  type: 'PipelineRunCompleted',
  doc: 'A run completed. Some of its steps may have failed.',
  schema: ofRun.extend({ pipeline_name: z.string() }),
  frames: ({ data, meta }) =>
    frame(meta, {
      type: 'pipeline_completed',
      ...aboutPipeline(data.pipeline_id),
      description: `Pipeline completed: ${data.pipeline_name}`,
    }),
});

export const pipelineRunFailed = defineEvent({
  type: 'PipelineRunFailed',
  doc: 'A run failed at a step. The steps after it were skipped.',
  schema: ofRun,
});

export const pipelineRunCancelled = defineEvent({
  type: 'PipelineRunCancelled',
  doc: 'A run was cancelled. Its remaining steps were skipped.',
  schema: ofRun.extend({ reason: z.enum(['asked', 'pipeline_deleted']) }),
});

export const pipelineRunRemoved = defineEvent({
  type: 'PipelineRunRemoved',
  doc: 'A run was removed, because its pipeline was deleted.',
  schema: ofRun,
});
