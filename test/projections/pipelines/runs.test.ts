import { expect } from 'chai';
import { pipelinesProjection } from '../../../projections/pipelines/pipelines.ts';
import type { StepState } from '../../../shared/contract/pipelines/runs.ts';
import { pipelineCreated, pipelineDeleted } from '../../../shared/events/pipelines/pipelines.ts';
import {
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
} from '../../../shared/events/pipelines/runs.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, sample, timeOf } from '../../support/kit.ts';

const run = { run_id: 9, pipeline_id: 3 };
const before: Draft[] = [
  sample(pipelineCreated, {
    pipeline_id: 3,
    name: 'Survey',
    steps: [
      { template_id: 1, on_failure: 'stop' },
      { template_id: 2, on_failure: 'continue' },
    ],
  }),
  sample(pipelineRunStarted, {
    ...run,
    pipeline_name: 'Survey',
    steps: [
      { template_id: 1, template_name: 'one', on_failure: 'stop' },
      { template_id: 2, template_name: 'two', on_failure: 'continue' },
    ],
  }),
  pipelineStepStarted.draft({ ...run, step: 0, hand_over: 'runner' }),
];
const rows = (...drafts: Draft[]) => rowsAfter(pipelinesProjection, eventsOf([...before, ...drafts]));
const runAfter = (...drafts: Draft[]) => rows(...drafts).pipeline_runs[0];
const stepsAfter = (...drafts: Draft[]) => runAfter(...drafts)?.steps as unknown as StepState[];
const countsAfter = (...drafts: Draft[]) => {
  const row = rows(...drafts).pipelines[0];
  return [row?.runs_total, row?.runs_running, row?.runs_completed, row?.runs_failed];
};
const at = (n: number) => seconds(timeOf(n));

describe('projection: pipeline runs', () => {
  it('a new run is at its first step, and counts as a use of its pipeline', () => {
    expect(runAfter()).to.deep.include({
      id: 9,
      pipeline_id: 3,
      status: 'running',
      current_step: 0,
      started_at: at(2),
      completed_at: null,
      triggered_by: 'admin',
    });
    expect(stepsAfter()).to.deep.equal([
      {
        step_index: 0,
        template_id: 1,
        template_name: 'one',
        on_failure: 'stop',
        status: 'running',
        spawn_id: null,
        started_at: at(3),
        completed_at: null,
        error: null,
        attempts: 0,
        retrying: false,
        last_error: null,
        output: null,
      },
      {
        step_index: 1,
        template_id: 2,
        template_name: 'two',
        on_failure: 'continue',
        status: 'pending',
        spawn_id: null,
        started_at: null,
        completed_at: null,
        error: null,
        attempts: 0,
        retrying: false,
        last_error: null,
        output: null,
      },
    ]);
    expect(countsAfter()).to.deep.equal([1, 1, 0, 0]);
    expect(rows().pipelines[0]).to.deep.include({ use_count: 1, last_used_at: at(2), updated_at: at(2) });
  });

  it('a failed attempt has a reason, which stays in last_error after a later success', () => {
    const failed = pipelineStepAttemptFailed.draft({ ...run, step: 0, attempt: 1, reason: 'away', will_retry: true });
    expect(stepsAfter(failed)[0]).to.deep.include({ attempts: 1, error: 'away', last_error: 'away', retrying: true });
    const last = pipelineStepAttemptFailed.draft({ ...run, step: 0, attempt: 2, reason: 'gone', will_retry: false });
    expect(stepsAfter(failed, last)[0]).to.deep.include({ attempts: 2, error: 'gone', retrying: false });
    const spawned = pipelineStepSpawned.draft({ ...run, step: 0, attempt: 2, spawn_id: 's', output: 'on it' });
    expect(stepsAfter(failed, spawned)[0]).to.deep.include({
      attempts: 2,
      error: null,
      last_error: 'away',
      retrying: false,
      spawn_id: 's',
      output: 'on it',
    });
  });

  it('a step without a runner gives the reason', () => {
    const next = pipelineStepStarted.draft({ ...run, step: 1, hand_over: 'no_runner' });
    expect(runAfter(next)).to.deep.include({ current_step: 1 });
    expect(stepsAfter(next)[1]).to.deep.include({ status: 'running', started_at: at(4) });
    expect(stepsAfter(next)[1]?.error).to.include('No agent runner');
  });

  it('a finished step keeps the earlier error, unless it has an error of its own', () => {
    const failed = pipelineStepAttemptFailed.draft({ ...run, step: 0, attempt: 1, reason: 'away', will_retry: true });
    const done = (error: string | null) => pipelineStepCompleted.draft({ ...run, step: 0, error });
    expect(stepsAfter(failed, done(null))[0]).to.deep.include({
      status: 'completed',
      completed_at: at(5),
      error: 'away',
      retrying: false,
    });
    expect(stepsAfter(failed, done('mine'))[0]?.error).to.equal('mine');
  });

  it('a completed run is counted', () => {
    const done = [0, 1].map((step) => pipelineStepCompleted.draft({ ...run, step, error: null }));
    const over = [...done, pipelineRunCompleted.draft({ ...run, pipeline_name: 'Survey' })];
    expect(runAfter(...over)).to.deep.include({ status: 'completed', completed_at: at(6) });
    expect(countsAfter(...over)).to.deep.equal([1, 0, 1, 0]);
  });

  it('a failed run skips the steps after it', () => {
    const over = [pipelineStepFailed.draft({ ...run, step: 0, error: 'lost' }), pipelineRunFailed.draft(run)];
    expect(runAfter(...over)).to.deep.include({ status: 'failed', completed_at: at(5) });
    expect(stepsAfter(...over).map(({ status, completed_at }) => [status, completed_at])).to.deep.equal([
      ['failed', at(4)],
      ['skipped', null],
    ]);
    expect(countsAfter(...over)).to.deep.equal([1, 0, 0, 1]);
  });

  it('a cancelled run skips the remaining steps at that time', () => {
    const over = pipelineRunCancelled.draft({ ...run, reason: 'asked' });
    expect(stepsAfter(over).map(({ status, completed_at }) => [status, completed_at])).to.deep.equal([
      ['skipped', at(4)],
      ['skipped', at(4)],
    ]);
    expect(countsAfter(over)).to.deep.equal([1, 0, 0, 0]);
  });

  it('a run is removed shortly after its pipeline', () => {
    const gone = pipelineDeleted.draft({ pipeline_id: 3 });
    expect(rows(gone).pipelines).to.deep.equal([]);
    expect(runAfter(gone)?.id).to.equal(9);
    const cancelled = pipelineRunCancelled.draft({ ...run, reason: 'pipeline_deleted' });
    expect(rows(gone, cancelled, pipelineRunRemoved.draft(run))).to.deep.equal({ pipelines: [], pipeline_runs: [] });
  });
});
