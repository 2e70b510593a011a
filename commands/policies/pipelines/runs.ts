/**
 * Whenever a step of a pipeline run begins, it is handed to the agent runner; whenever a pipeline is deleted, its runs
 * are cancelled and removed.
 *
 * A step is handed over at least once and accepted at most once: a job retries until the run's stream says that the
 * runner has accepted the step, or that the run has moved on, and each attempt carries the same `Idempotency-Key`. If a
 * process dies between the runner's response and the event that records it, the next attempt gets the same response
 * again.
 */
import { z } from 'zod';
import type { EventStore } from '../../../shared/event-store.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { pipelineDeleted } from '../../../shared/events/pipelines/pipelines.ts';
import {
  HAND_OVER_FAULTS,
  HAND_OVERS,
  pipelineRunStarted,
  pipelineStepStarted,
} from '../../../shared/events/pipelines/runs.ts';
import { defineJob, handleJob, type JobHandler, type JobRun } from '../../../shared/ports/jobs.ts';
import type { ReadModels } from '../../../shared/ports/read-models.ts';
import { type Runner, RunnerError, type RunnerResponse, type StepRequest } from '../../../shared/ports/runner.ts';
import { type Breach, breachesIn, breachReason, type PromptPart, promptOf } from '../../agents/prompts.ts';
import type { Commands } from '../../handler.ts';
import { pipelineExists } from '../../pipelines/pipelines.ts';
import {
  decideAttemptFailed,
  decideRemove,
  decideSpawned,
  isWaiting,
  runDecider,
  runStream,
} from '../../pipelines/runs.ts';
import { cause, causedBy, causeOf, definePolicy, type Policy, wantJob, whenever } from '../policy.ts';

/** Longer than the maximum wait for the runner (`RUNNER_TIMEOUT_MS`), milliseconds. */
const STEP_MS = 660_000;

export const stepJob = defineJob({
  name: 'pipeline-step',
  schema: cause.extend({ run: z.int(), step: z.int(), handOver: z.enum(HAND_OVERS) }),
  timeoutMs: STEP_MS,
});
type StepPayload = z.infer<typeof stepJob.schema>;

/** @property position of the event: when the read model has reached it, it has all runs that started earlier */
export const removalJob = defineJob({
  name: 'pipeline-runs-removal',
  schema: cause.extend({ pipeline: z.int(), position: z.int() }),
  timeoutMs: 240_000,
});

/** A run may be started before any process has run the policies; its steps must not be missed. */
export const pipelinePolicies: readonly Policy[] = [
  definePolicy(
    'pipeline-steps',
    [
      whenever(pipelineStepStarted, (event) => [
        wantJob(stepJob, {
          ...causeOf(event),
          run: event.data.run_id,
          step: event.data.step,
          handOver: event.data.hand_over,
        }),
      ]),
    ],
    'beginning',
  ),
  definePolicy(
    'deleted-pipelines',
    [
      whenever(pipelineDeleted, (event) => [
        wantJob(removalJob, { ...causeOf(event), pipeline: event.data.pipeline_id, position: event.position }),
      ]),
    ],
    'beginning',
  ),
];

export interface PipelineWork {
  readonly commands: Commands;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly readModels: ReadModels;
  /** Undefined if no runner is configured. */
  readonly runner: Runner | undefined;
  /** Ids of a pipeline's runs in the read model, ascending, after a given id; one page. */
  readonly runsOf: (workspace: number, pipeline: number, after: number) => Promise<readonly number[]>;
  /** Unix ms */
  readonly now: () => number;
}

export const pipelineJobs = (parts: PipelineWork): readonly JobHandler[] => [
  handleJob(stepJob, (payload, job) => handOver(parts, payload, job)),
  handleJob(removalJob, (payload, { signal }) => removeRuns(parts, payload, signal)),
];

/**
 * Hands a step to the runner, unless that is done or no longer needed.
 *
 * @throws RunnerError when it should be retried
 */
async function handOver(parts: PipelineWork, payload: StepPayload, job: JobRun): Promise<void> {
  const { commands, runner, now } = parts;
  const { workspace, run, step } = payload;
  const stream = runStream(workspace, run);
  const context = causedBy(payload);
  const { state } = await commands.load(runDecider, stream);
  if (!isWaiting(state, step)) return;
  if (!(await pipelineExists(commands, workspace, state.pipeline_id))) {
    await commands.execute(runDecider, stream, context, decideRemove);
    return;
  }
  if (payload.handOver !== 'runner') return;
  const failed = (reason: string, willRetry: boolean, breaches?: readonly Breach[]) =>
    commands.execute(runDecider, stream, context, (current) =>
      decideAttemptFailed(current, step, {
        reason,
        will_retry: willRetry,
        ...(breaches && { breaches: [...breaches] }),
      }),
    );
  if (!runner) {
    // The process that started the step had a runner configured, but this one has none.
    await failed(HAND_OVER_FAULTS.no_runner ?? '', false);
    return;
  }
  const { prompt, ...request } = await requestOf(parts.store, payload);
  const breaches = breachesIn(prompt);
  if (breaches.length > 0) {
    await failed(`${breachReason(breaches)} Do the step by hand and advance the run, or cancel it.`, false, breaches);
    return;
  }
  let response: RunnerResponse;
  try {
    response = await runner.run({ ...request, prompt: promptOf(prompt) }, job.signal);
  } catch (error) {
    // An abort because this process stops says nothing about the runner.
    if (!(error instanceof RunnerError) || job.signal.aborted) throw error;
    await failed(error.message, error.retry && !job.last);
    if (error.retry) throw error;
    return;
  }
  const spawnId = `pipeline-${run}-step-${step}-${now()}`;
  await commands.execute(runDecider, stream, context, (current) =>
    decideSpawned(current, { step, spawn_id: spawnId, response }, 'runner'),
  );
}

/** The request to the runner, from the run's first event. */
async function requestOf(
  store: PipelineWork['store'],
  payload: StepPayload,
): Promise<Omit<StepRequest, 'prompt'> & { readonly prompt: readonly PromptPart[] }> {
  const { workspace, run, step, event } = payload;
  const stream = runStream(workspace, run);
  for await (const [first] of store.log.readStream(stream, { limit: 1 })) {
    if (!first) break;
    const started = (await store.decode(first)) as EventOf<typeof pipelineRunStarted>;
    const { pipeline_id: pipelineId, pipeline_name: pipelineName, steps, templates } = started.data;
    const { template_id: templateId = 0, template_name: templateName = '' } = steps[step] ?? {};
    const template = templates.find((one) => one.template_id === templateId);
    if (started.type !== pipelineRunStarted.type || !template) break;
    return {
      workspaceId: workspace,
      runId: run,
      pipelineId,
      pipelineName,
      step,
      steps: steps.length,
      templateId,
      templateName,
      prompt: [
        `[Pipeline ${pipelineId} | Step ${step + 1} of ${steps.length}]`,
        { what: 'name of the pipeline', by: `pipeline ${pipelineId}`, text: pipelineName },
        { what: 'name of the step', by: `workflow template ${templateId}`, text: templateName },
        { what: 'instructions', by: `workflow template ${templateId}`, text: template.task_prompt },
      ],
      model: template.model,
      timeoutSeconds: template.timeout_seconds,
      // The event's id distinguishes the run from one with the same number in another deployment, or in one restored
      // from a backup.
      idempotencyKey: `pipeline-run-${run}-step-${step}-${event}`,
    };
  }
  throw new Error(`${stream} does not begin with a run that has a step ${step} and its template`);
}

async function removeRuns(
  { commands, readModels, runsOf }: PipelineWork,
  payload: z.infer<typeof removalJob.schema>,
  signal: AbortSignal,
): Promise<void> {
  const { workspace, pipeline, position } = payload;
  await readModels.reach([pipelineDeleted.type], { position });
  const context = causedBy(payload);
  for (let after = 0; ; ) {
    const ids = await runsOf(workspace, pipeline, after);
    for (const id of ids) {
      signal.throwIfAborted();
      await commands.execute(runDecider, runStream(workspace, id), context, decideRemove);
    }
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
  }
}
