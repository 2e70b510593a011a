/**
 * Runs of pipelines. The stream of a run is the state of its process: the current step, whether the agent runner has
 * accepted it, and how the earlier steps ended. `commands/policies/pipelines/runs.ts` hands the steps over.
 */
import { pipelineToRun } from '../../queries/pipelines/pipelines.ts';
import { invalid, notFound, orNotFound } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import {
  type HandOver,
  pipelineRunCancelled,
  pipelineRunCompleted,
  pipelineRunFailed,
  pipelineRunRemoved,
  pipelineRunStarted,
  pipelineStepAttemptFailed,
  pipelineStepCompleted,
  pipelineStepFailed,
  pipelineStepSpawned,
  pipelineStepStarted,
} from '../../shared/events/pipelines/runs.ts';
import type { RunnerResponse } from '../../shared/ports/runner.ts';
import type { Breach } from '../agents/prompts.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { reserveId } from '../record-ids.ts';
import { holdingTemplates, type TemplateParts } from '../workflows.ts';
import { pipelineExists } from './pipelines.ts';

type StartedRun = EventOf<typeof pipelineRunStarted>['data'];

/** The state omits prompts, outputs and errors: they stay in the events. */
export interface RunState {
  /** `none` before the run is started and after it is removed. */
  readonly status: 'none' | 'running' | 'completed' | 'failed' | 'cancelled';
  readonly id: number;
  readonly pipeline_id: number;
  readonly pipeline_name: string;
  readonly steps: readonly { readonly template_id: number; readonly stops: boolean }[];
  /** Index of the current step, from 0. */
  readonly current: number;
  /** Whether the runner has accepted the current step. */
  readonly spawned: boolean;
  /** Failed attempts to hand the current step over. */
  readonly attempts: number;
}

const NONE: RunState = {
  status: 'none',
  id: 0,
  pipeline_id: 0,
  pipeline_name: '',
  steps: [],
  current: 0,
  spawned: false,
  attempts: 0,
};

export const runStream = (workspace: number, id: number): string => `pipeline_run-${workspace}-${id}`;

export const runDecider = defineDecider<RunState>({
  kind: 'pipeline run',
  initial: NONE,
  folds: [
    on(pipelineRunStarted, (_state, { data: { run_id: runId, pipeline_id, pipeline_name, steps } }) => ({
      ...NONE,
      status: 'running',
      id: runId,
      pipeline_id,
      pipeline_name,
      steps: steps.map(({ template_id, on_failure: onFailure }) => ({ template_id, stops: onFailure === 'stop' })),
    })),
    on(pipelineStepStarted, (state, { data }) => ({ ...state, current: data.step, spawned: false, attempts: 0 })),
    on(pipelineStepSpawned, (state) => ({ ...state, spawned: true })),
    on(pipelineStepAttemptFailed, (state, { data }) => ({ ...state, attempts: data.attempt })),
    on(pipelineRunCompleted, (state) => ({ ...state, status: 'completed' })),
    on(pipelineRunFailed, (state) => ({ ...state, status: 'failed' })),
    on(pipelineRunCancelled, (state) => ({ ...state, status: 'cancelled' })),
    on(pipelineRunRemoved, () => NONE),
  ],
});

const ofRun = ({ id, pipeline_id }: RunState) => ({ run_id: id, pipeline_id });

/** @throws AppError 404; 400 with the status when the run is not running */
function running(state: RunState): RunState {
  if (state.status === 'none') throw notFound('Pipeline run');
  if (state.status !== 'running')
    throw invalid(`This run is ${state.status}; only one that is running can be changed.`);
  return state;
}

/** How a step ended. */
export interface StepEnd {
  readonly step: number;
  readonly success: boolean;
  readonly error: string | null;
}

/**
 * Ends the current step, and begins the next one or ends the run.
 *
 * @param next who the next step would be handed to
 * @throws AppError 404; 400 when the run is not running, or at another step
 */
export function decideAdvance(state: RunState, { step, success, error }: StepEnd, next: HandOver): EventDraft[] {
  const { steps, current, pipeline_name } = running(state);
  if (step !== current) throw invalid(`This run is at step ${current} by now, not at step ${step}.`);
  const run = ofRun(state);
  const end = (success ? pipelineStepCompleted : pipelineStepFailed).draft({ ...run, step, error });
  if (!success && steps[step]?.stops) return [end, pipelineRunFailed.draft(run)];
  if (step + 1 === steps.length) return [end, pipelineRunCompleted.draft({ ...run, pipeline_name })];
  return [end, pipelineStepStarted.draft({ ...run, step: step + 1, hand_over: next })];
}

/** @throws AppError 404; 400 when it is over */
export function decideCancel(state: RunState): EventDraft[] {
  return [pipelineRunCancelled.draft({ ...ofRun(running(state)), reason: 'asked' })];
}

/** Removes the run of a deleted pipeline. */
export function decideRemove(state: RunState): EventDraft[] {
  if (state.status === 'none') return [];
  const run = ofRun(state);
  const cancelled = pipelineRunCancelled.draft({ ...run, reason: 'pipeline_deleted' });
  return [...(state.status === 'running' ? [cancelled] : []), pipelineRunRemoved.draft(run)];
}

/** Whether this step still has to be handed over. */
export const isWaiting = (state: RunState, step: number): boolean =>
  state.status === 'running' && state.current === step && !state.spawned;

/**
 * Records that the runner has accepted a step, and possibly ended it. For a cancelled run, it records only that.
 *
 * @param spawnId of this attempt
 * @param next who the next step would be handed to
 */
export function decideSpawned(
  state: RunState,
  { step, spawn_id, response }: { readonly step: number; readonly spawn_id: string; readonly response: RunnerResponse },
  next: HandOver,
): EventDraft[] {
  if (state.status === 'none' || state.current !== step || state.spawned) return [];
  const { status, output, error } = response;
  const attempt = state.attempts + 1;
  const spawned = pipelineStepSpawned.draft({ ...ofRun(state), step, attempt, spawn_id, output });
  if (state.status !== 'running' || status === 'accepted') return [spawned];
  return [spawned, ...decideAdvance(state, { step, success: status === 'completed', error }, next)];
}

export function decideAttemptFailed(
  state: RunState,
  step: number,
  failure: { readonly reason: string; readonly will_retry: boolean; readonly breaches?: Breach[] },
): EventDraft[] {
  if (!isWaiting(state, step)) return [];
  return [pipelineStepAttemptFailed.draft({ ...ofRun(state), step, attempt: state.attempts + 1, ...failure })];
}

/** A run that was started, and who its first step is handed to. */
interface BegunRun {
  readonly id: number;
  readonly hand_over: HandOver;
  readonly executed: Executed;
}

/** Starts a run of a pipeline, with its templates as they are now. @throws AppError 404; 400 without steps */
export function startRun(
  parts: TemplateParts,
  context: CommandContext,
  pipelineId: number,
  hasRunner: boolean,
): Promise<BegunRun> {
  const { workspace } = context.origin;
  return holdingTemplates(parts, workspace, async (reads, lost) => {
    const pipeline = orNotFound(await pipelineToRun(reads, workspace, pipelineId), 'Pipeline');
    return beginRun(parts.commands, context, pipeline, { hasRunner, lost });
  });
}

async function beginRun(
  commands: Commands,
  context: CommandContext,
  pipeline: Omit<StartedRun, 'run_id'>,
  { hasRunner, lost }: { readonly hasRunner: boolean; readonly lost: AbortSignal },
): Promise<BegunRun> {
  const { pipeline_id, steps } = pipeline;
  if (steps.length === 0) throw invalid('This pipeline has no steps; add some first.');
  const { workspace } = context.origin;
  const handOver = handOverOf(hasRunner);
  const id = await reserveId(commands, context, 'pipeline_run', (one) => runStream(workspace, one));
  const begin = () => [
    pipelineRunStarted.draft({ run_id: id, ...pipeline }),
    pipelineStepStarted.draft({ run_id: id, pipeline_id, step: 0, hand_over: handOver }),
  ];
  const executed = await commands.execute(runDecider, runStream(workspace, id), context, begin, { unless: lost });
  return { id, hand_over: handOver, executed };
}

const handOverOf = (hasRunner: boolean): HandOver => (hasRunner ? 'runner' : 'no_runner');

/** A run whose pipeline still exists. @throws AppError 404 */
async function loadRun(commands: Commands, workspace: number, id: number): Promise<RunState> {
  const { state } = await commands.load(runDecider, runStream(workspace, id));
  if (state.status === 'none' || !(await pipelineExists(commands, workspace, state.pipeline_id)))
    throw notFound('Pipeline run');
  return state;
}

/** The result of an advance. */
export interface Advanced {
  /** The step that was started; undefined when the run has ended. */
  readonly started: { readonly step: number; readonly hand_over: HandOver } | undefined;
  readonly executed: Executed;
}

/**
 * Ends the current step of a run. If two callers end the same step concurrently, one is refused.
 *
 * @param end.step the step to end; undefined: the current one
 * @throws AppError 404; 400 when the run is not running, or at another step
 */
export async function advanceRun(
  commands: Commands,
  context: CommandContext,
  id: number,
  end: Omit<StepEnd, 'step'> & { readonly step: number | undefined },
  hasRunner: boolean,
): Promise<Advanced> {
  const { workspace } = context.origin;
  const state = running(await loadRun(commands, workspace, id));
  const step = end.step ?? state.current;
  const executed = await commands.execute(runDecider, runStream(workspace, id), context, (now) =>
    decideAdvance(now, { ...end, step }, handOverOf(hasRunner)),
  );
  const started = executed.events.find(({ type }) => type === pipelineStepStarted.type) as
    | EventOf<typeof pipelineStepStarted>
    | undefined;
  return { started: started?.data, executed };
}

/** @throws AppError 404; 400 when it is over */
export async function cancelRun(commands: Commands, context: CommandContext, id: number): Promise<Executed> {
  const { workspace } = context.origin;
  await loadRun(commands, workspace, id);
  return commands.execute(runDecider, runStream(workspace, id), context, decideCancel);
}
