/** Runs of pipelines: start, advance, cancel, show. */
import { advanceRun, cancelRun, startRun } from '../../../commands/pipelines/runs.ts';
import { listRuns, runAfter, runRecord } from '../../../queries/pipelines/runs.ts';
import { type Executed, latest } from '../../../queries/records.ts';
import * as contract from '../../../shared/contract/pipelines/runs.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { HAND_OVER_FAULTS, type HandOver } from '../../../shared/events/pipelines/runs.ts';
import { createBackOff, pause } from '../../../shared/waiting.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** How long a call waits for the runner to take a step, milliseconds. */
const SPAWN_WAIT_MS = 2_000;
const LOOK = { firstMs: 10, lastMs: 200 };

/** A step that was started, and the function that hands it over. */
interface Started {
  readonly step: number;
  readonly hand_over: HandOver;
  readonly executed: Executed;
}

const isTold = (step: contract.StepState): boolean => step.attempts > 0 || step.status !== 'running';

/** The run once the runner has responded about the step, or as it is if that takes too long. */
async function afterHandOver(
  { records, now }: Services,
  workspace: number,
  id: number,
  { step, hand_over: handOver, executed }: Started,
) {
  const backOff = createBackOff(LOOK);
  const until = now() + SPAWN_WAIT_MS;
  for (let at = executed; ; at = latest(executed.stream)) {
    const run = await runAfter(records, workspace, id, at);
    const state = run.steps_snapshot[step] as contract.StepState;
    if (handOver !== 'runner' || isTold(state) || now() >= until) {
      return { run, spawn: spawnOf(state, handOver) };
    }
    await pause(backOff.next(), undefined, { ref: true });
  }
}

function spawnOf({ spawn_id, output, last_error, retrying }: contract.StepState, handOver: HandOver): contract.Spawn {
  if (spawn_id !== null) return { success: true, stdout: output ?? '' };
  const error = handOver === 'runner' ? last_error : HAND_OVER_FAULTS[handOver];
  if (error !== null) return { success: false, error, ...(retrying && { pending: true }) };
  return { success: false, error: 'The agent runner has not responded yet; look at the run later.', pending: true };
}

const responseOf = ({ id, status, steps_snapshot }: contract.RunRecord, more: object = {}) => ({
  run: { id, status, steps_snapshot, ...more },
  run_id: id,
  status,
});

const list = defineCachedRoute({
  method: 'get',
  path: '/api/pipelines/run',
  summary: 'Runs of pipelines, the latest first; or one of them',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.runsQuery,
  refuses: [404],
  responses: { 200: { description: '`runs`; with `id`: `run`', schema: contract.runsResponse } },
  cache: { models: ['pipelines'] },
  async respond({ query, identity, services }) {
    const { id, ...filter } = query;
    if (id !== undefined)
      return { run: orNotFound(await runRecord(services.reads, identity.workspace, id), 'Pipeline run') };
    return { runs: await listRuns(services.reads, identity.workspace, filter) };
  },
});

const act = defineRoute({
  method: 'post',
  path: '/api/pipelines/run',
  summary: 'Start, advance or cancel a run',
  description:
    '`start` begins a run at its first step. `advance` ends the step that the run is at: with `success` the next one begins, without it the run fails or goes on, as the step says. `cancel` ends the run. A step that begins is handed to the agent runner; `spawn` is what is known of that within two seconds. Callers of a workspace with strict isolation can only cancel.',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'partly', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.runBody,
  refuses: [404],
  responses: {
    200: { description: 'Advanced or cancelled', schema: contract.runResponse },
    201: { description: 'Started', schema: contract.runResponse },
  },
  async handle({ body, identity, services, command, checkShared }) {
    const { commands, settings } = services;
    const { workspace } = identity;
    const hasRunner = settings.runnerUrl !== undefined;
    if (body.action === 'cancel') {
      const id = body.run_id as number;
      const executed = await cancelRun(commands, command, id);
      return { status: 200, body: responseOf(await runAfter(services.records, workspace, id, executed)) };
    }
    // Steps go to the agent runner, which serves all workspaces.
    await checkShared('pipelines');
    if (body.action === 'advance') {
      const id = body.run_id as number;
      const end = { step: body.step_index, success: body.success ?? true, error: body.error || null };
      const { started, executed } = await advanceRun(commands, command, id, end, hasRunner);
      if (!started) return { status: 200, body: responseOf(await runAfter(services.records, workspace, id, executed)) };
      const { run, spawn } = await afterHandOver(services, workspace, id, { ...started, executed });
      return { status: 200, body: responseOf(run, { current_step: run.current_step, spawn }) };
    }
    const { id, hand_over, executed } = await startRun(services, command, body.pipeline_id as number, hasRunner);
    const { run, spawn } = await afterHandOver(services, workspace, id, { step: 0, hand_over, executed });
    const { pipeline_id, current_step } = run;
    return { status: 201, body: responseOf(run, { pipeline_id, current_step, spawn }) };
  },
});

export const pipelineRunRoutes: readonly Route[] = [list, act];
