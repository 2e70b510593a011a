/** The life of a run, decision by decision. */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  decideAdvance,
  decideAttemptFailed,
  decideCancel,
  decideRemove,
  decideSpawned,
  isWaiting,
  type RunState,
  runDecider,
} from '../../../commands/pipelines/runs.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
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
import type { RunnerResponse } from '../../../shared/ports/runner.ts';
import { eventsOf, givenFor, refusalOf, sample } from '../../support/kit.ts';

const given = givenFor(runDecider);
const run = { run_id: 9, pipeline_id: 3 };
const startedWith = (...onFailure: ('stop' | 'continue')[]) => [
  sample(pipelineRunStarted, {
    ...run,
    pipeline_name: 'Survey',
    steps: onFailure.map((one, index) => ({ template_id: index + 1, template_name: `t${index}`, on_failure: one })),
  }),
  pipelineStepStarted.draft({ ...run, step: 0, hand_over: 'runner' }),
];
const started = startedWith('stop', 'continue', 'stop');
const begun = given(...started);
const end = (step: number, success = true, error: string | null = null) => ({ step, success, error });
const then = (state: RunState, drafts: readonly EventDraft[]): RunState =>
  eventsOf(drafts).reduce((now, event) => runDecider.evolve(now, { ...event, at: 0 }), state);
const response = (status: RunnerResponse['status'], more: Partial<RunnerResponse> = {}): RunnerResponse => ({
  status,
  output: null,
  error: null,
  ...more,
});
const spawn = (state: RunState, step: number, said: RunnerResponse) =>
  decideSpawned(state, { step, spawn_id: 's', response: said }, 'runner');
const spawned = (step: number, attempt = 1, output: string | null = null) =>
  pipelineStepSpawned.draft({ ...run, step, attempt, spawn_id: 's', output });

describe('commands: pipeline runs', () => {
  it('a completed step starts the next one, and the last one completes the run', () => {
    begun
      .when(decideAdvance, end(0), 'no_runner')
      .then(
        pipelineStepCompleted.draft({ ...run, step: 0, error: null }),
        pipelineStepStarted.draft({ ...run, step: 1, hand_over: 'no_runner' }),
      );
    const last = then(then(begun.state, decideAdvance(begun.state, end(0), 'runner')), [
      pipelineStepStarted.draft({ ...run, step: 2, hand_over: 'runner' }),
    ]);
    expect(decideAdvance(last, end(2, true, 'note'), 'runner')).to.deep.equal([
      pipelineStepCompleted.draft({ ...run, step: 2, error: 'note' }),
      pipelineRunCompleted.draft({ ...run, pipeline_name: 'Survey' }),
    ]);
  });

  it('a failed step ends the run or not, as configured', () => {
    begun
      .when(decideAdvance, end(0, false, 'lost'), 'runner')
      .then(pipelineStepFailed.draft({ ...run, step: 0, error: 'lost' }), pipelineRunFailed.draft(run));
    const second = then(begun.state, decideAdvance(begun.state, end(0), 'runner'));
    expect(decideAdvance(second, end(1, false), 'runner')).to.deep.equal([
      pipelineStepFailed.draft({ ...run, step: 1, error: null }),
      pipelineStepStarted.draft({ ...run, step: 2, hand_over: 'runner' }),
    ]);
    const only = given(...startedWith('continue')).state;
    expect(decideAdvance(only, end(0, false), 'runner').map(({ type }) => type)).to.deep.equal([
      'PipelineStepFailed',
      'PipelineRunCompleted',
    ]);
  });

  it('results for another step, a finished run or an unknown run are rejected', () => {
    const second = then(begun.state, decideAdvance(begun.state, end(0), 'runner'));
    const late = refusalOf(() => decideAdvance(second, end(0), 'runner'));
    expect([late.status, late.message]).to.deep.equal([400, 'This run is at step 1 by now, not at step 0.']);
    for (const [event, status] of [
      [pipelineRunCompleted.draft({ ...run, pipeline_name: 'Survey' }), 'completed'],
      [pipelineRunFailed.draft(run), 'failed'],
      [pipelineRunCancelled.draft({ ...run, reason: 'asked' }), 'cancelled'],
    ] as const) {
      const over = then(begun.state, [event]);
      for (const decide of [() => decideAdvance(over, end(0), 'runner'), () => decideCancel(over)]) {
        const refusal = refusalOf(decide);
        expect(refusal.status).to.equal(400);
        expect(refusal.message).to.include(status);
      }
    }
    for (const decide of [
      () => decideAdvance(runDecider.initial, end(0), 'runner'),
      () => decideCancel(runDecider.initial),
    ])
      expect(refusalOf(decide).status).to.equal(404);
  });

  it('a runner’s result of a step is recorded once', () => {
    begun.when(spawn, 0, response('accepted', { output: 'on it' })).then(spawned(0, 1, 'on it'));
    const taken = then(begun.state, [spawned(0)]);
    expect(isWaiting(begun.state, 0)).to.equal(true);
    expect(isWaiting(taken, 0)).to.equal(false);
    for (const status of ['accepted', 'completed', 'failed'] as const)
      expect(spawn(taken, 0, response(status)), status).to.deep.equal([]);
    expect(decideAttemptFailed(taken, 0, { reason: 'r', will_retry: true })).to.deep.equal([]);
  });

  it('a runner’s result advances the run', () => {
    begun.when(spawn, 0, response('completed')).then(spawned(0), ...decideAdvance(begun.state, end(0), 'runner'));
    begun
      .when(spawn, 0, response('failed', { error: 'no' }))
      .then(spawned(0), ...decideAdvance(begun.state, end(0, false, 'no'), 'runner'));
  });

  it('late results are ignored, except that those of a cancelled run are recorded', () => {
    const second = then(begun.state, decideAdvance(begun.state, end(0), 'runner'));
    expect(isWaiting(second, 0)).to.equal(false);
    expect(spawn(second, 0, response('completed'))).to.deep.equal([]);
    expect(decideAttemptFailed(second, 0, { reason: 'r', will_retry: true })).to.deep.equal([]);
    const cancelled = then(begun.state, decideCancel(begun.state));
    expect(isWaiting(cancelled, 0)).to.equal(false);
    expect(spawn(cancelled, 0, response('completed'))).to.deep.equal([spawned(0)]);
    expect(spawn(then(begun.state, decideRemove(begun.state)), 0, response('completed'))).to.deep.equal([]);
  });

  it('attempts are counted per step', () => {
    const failure = { reason: 'away', will_retry: true };
    begun
      .when(decideAttemptFailed, 0, failure)
      .then(pipelineStepAttemptFailed.draft({ ...run, step: 0, attempt: 1, ...failure }));
    const twice = then(then(begun.state, decideAttemptFailed(begun.state, 0, failure)), [
      pipelineStepAttemptFailed.draft({ ...run, step: 0, attempt: 2, ...failure }),
    ]);
    expect(isWaiting(twice, 0)).to.equal(true);
    expect(spawn(twice, 0, response('accepted'))).to.deep.equal([spawned(0, 3)]);
    expect(then(twice, decideAdvance(twice, end(0), 'runner')).attempts).to.equal(0);
  });

  it('a run is deleted with its pipeline, after being cancelled if it was active', () => {
    const cancelled = pipelineRunCancelled.draft({ ...run, reason: 'pipeline_deleted' });
    begun.when(decideRemove).then(cancelled, pipelineRunRemoved.draft(run));
    const over = then(begun.state, decideCancel(begun.state));
    expect(decideRemove(over)).to.deep.equal([pipelineRunRemoved.draft(run)]);
    expect(decideRemove(then(over, decideRemove(over)))).to.deep.equal([]);
  });

  it('in any sequence of requests, steps advance one by one, and each step and the run end once', () => {
    const act = fc.oneof(
      fc.record({ kind: fc.constant('advance' as const), step: fc.nat(4), success: fc.boolean() }),
      fc.record({
        kind: fc.constant('spawn' as const),
        step: fc.nat(4),
        status: fc.constantFrom('accepted', 'completed', 'failed'),
      }),
      fc.record({ kind: fc.constant('fail' as const), step: fc.nat(4) }),
      fc.record({ kind: fc.constant('cancel' as const) }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('stop' as const, 'continue' as const), { minLength: 1, maxLength: 4 }),
        fc.array(act),
        (steps, acts) => {
          const events: EventDraft[] = [...startedWith(...steps)];
          for (const one of acts) {
            const state = given(...events).state;
            try {
              if (one.kind === 'advance') events.push(...decideAdvance(state, end(one.step, one.success), 'runner'));
              else if (one.kind === 'spawn')
                events.push(...spawn(state, one.step, response(one.status as RunnerResponse['status'])));
              else if (one.kind === 'fail')
                events.push(...decideAttemptFailed(state, one.step, { reason: 'r', will_retry: true }));
              else events.push(...decideCancel(state));
            } catch (error) {
              expect((error as { status?: number }).status).to.equal(400);
            }
          }
          const stepsOf = (...types: string[]) =>
            events.filter(({ type }) => types.includes(type)).map(({ data }) => (data as { step: number }).step);
          const upwards = (count: number) => Array.from({ length: count }, (_, index) => index);
          const begunSteps = stepsOf('PipelineStepStarted');
          const endedSteps = stepsOf('PipelineStepCompleted', 'PipelineStepFailed');
          const taken = stepsOf('PipelineStepSpawned');
          expect(begunSteps).to.deep.equal(upwards(begunSteps.length));
          expect(endedSteps).to.deep.equal(upwards(endedSteps.length));
          expect(new Set(taken).size, 'a step is taken once').to.equal(taken.length);
          const ends = events.filter(({ type }) => /^PipelineRun(Completed|Failed|Cancelled)$/.test(type));
          expect(ends.length).to.be.at.most(1);
          expect(ends.length === 0).to.equal(given(...events).state.status === 'running');
        },
      ),
    );
  });
});
