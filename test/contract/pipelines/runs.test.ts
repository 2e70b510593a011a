/** Runs of pipelines: by hand, by the agent runner, cancelled, deleted with their pipeline. */
import { expect } from 'chai';
import { type RunRecord, runsResponse, type StepState } from '../../../shared/contract/pipelines/runs.ts';
import { fixture } from '../../support/fixture.ts';
import { runnerSettings, startRunner } from '../../support/runner.ts';
import { ATTACK } from '../../support/screening-cases.ts';
import { bodyOf } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startPipelinesWorld } from '../../support/worlds/pipelines.ts';

const PATH = '/api/pipelines/run';
const ACCEPTED = { body: { status: 'accepted', output: 'on it' } };

const statuses = (run: Pick<RunRecord, 'steps_snapshot'>) => run.steps_snapshot.map(({ status }) => status);

describe('runs of pipelines', () => {
  const runner = fixture(startRunner);
  const world = fixture(() => startPipelinesWorld(runnerSettings(runner)));
  beforeEach(() => runner.react(() => ACCEPTED));

  const handed = (run: number, step: number) =>
    runner.requests.filter(({ body }) => body.run_id === run && body.step_index === step);
  const frames = (type: string, pipeline: number) =>
    world.stream.frames.filter(
      (frame) => frame.type === 'activity.created' && frame.data.type === type && frame.data.entity_id === pipeline,
    );

  it('starts with its first step, which the runner accepts, counts use and run, and sends a frame', async () => {
    const template = await world.template('Look around.', { model: 'opus', timeout_seconds: 60 });
    const pipeline = await world.pipeline([template, template, template]);
    const { body } = await world.start(pipeline.id);
    const { id, spawn, steps_snapshot } = body.run;
    expect(body.run).to.deep.include({ pipeline_id: pipeline.id, status: 'running', current_step: 0 });
    expect(spawn).to.deep.equal({ success: true, stdout: 'on it' });
    const [first, second] = steps_snapshot as StepState[];
    expect(first?.spawn_id).to.match(new RegExp(`^pipeline-${id}-step-0-\\d{13}$`));
    expect(first?.started_at).to.be.a('number');
    expect(second).to.deep.equal({
      step_index: 1,
      template_id: template,
      template_name: first?.template_name,
      on_failure: 'stop',
      status: 'pending',
      spawn_id: null,
      started_at: null,
      completed_at: null,
      error: null,
      attempts: 0,
      retrying: false,
      last_error: null,
      output: null,
    });
    const run = await world.run(id);
    expect(run.steps_snapshot).to.deep.equal(steps_snapshot);
    expect(run).to.deep.include({ triggered_by: 'api', completed_at: null, started_at: run.created_at });

    const [request] = handed(id, 0);
    expect(request?.headers.authorization).to.equal('Bearer runner-token');
    expect(request?.body).to.deep.equal({
      workspace_id: 1,
      run_id: id,
      pipeline_id: pipeline.id,
      pipeline_name: pipeline.name,
      step_index: 0,
      step_count: 3,
      template_id: template,
      template_name: first?.template_name,
      prompt: request?.body.prompt,
      model: 'opus',
      timeout_seconds: 60,
    });

    const prompt = String(request?.body.prompt);
    const code = /\[begin ([0-9a-f]{16}) /.exec(prompt)?.[1];
    expect(prompt).to.include(`[Pipeline ${pipeline.id} | Step 1 of 3]`);
    for (const [what, by, text] of [
      ['name of the pipeline', `pipeline ${pipeline.id}`, pipeline.name],
      ['name of the step', `workflow template ${template}`, first?.template_name],
      ['instructions', `workflow template ${template}`, 'Look around.'],
    ])
      expect(prompt).to.include(`[begin ${code}: ${what}, by ${by}]\n${text}\n[end ${code}]`);

    const listed = await world.listed(pipeline.id);
    expect(listed).to.deep.include({ use_count: 1, last_used_at: run.started_at });
    expect(listed.runs).to.deep.equal({ total: 1, completed: 0, failed: 0, running: 1, pipeline_id: pipeline.id });
    const [activity, ...others] = await world.activities('pipeline_started', pipeline.id);
    expect(others).to.deep.equal([]);
    expect(activity).to.deep.include({ actor: 'api', entity_type: 'pipeline', metadata: { run_id: id } });
    await world.stream.until(() => frames('pipeline_started', pipeline.id).length === 2);
    const [extra, stored] = frames('pipeline_started', pipeline.id);
    const { description } = activity;
    expect(extra?.data).to.deep.equal({
      id: activity.id,
      actor: 'api',
      created_at: activity.created_at,
      type: 'pipeline_started',
      entity_type: 'pipeline',
      entity_id: pipeline.id,
      description,
      data: { run_id: id },
      workspace_id: 1,
    });
    expect(stored?.data).to.deep.include({ id: activity.id, actor: 'api', metadata: { run_id: id } });
  });

  it('is advanced by hand to its end, and sends a frame', async () => {
    const { id: pipeline } = await world.pipeline();
    const { id } = (await world.start(pipeline)).body.run;
    const next = (await world.advance(id)).body.run;
    expect(next).to.deep.include({ id, status: 'running', current_step: 1 });
    await world.refused('POST', PATH, { action: 'advance', run_id: id, step_index: 0 }, 400, /at step 1/);
    expect(next.spawn).to.deep.equal({ success: true, stdout: 'on it' });
    expect(statuses(next)).to.deep.equal(['completed', 'running']);
    const end = (await world.advance(id, { success: null, error: 'with a note' })).body.run;
    expect(end).to.have.all.keys('id', 'status', 'steps_snapshot');
    expect(end.status).to.equal('completed');
    expect(statuses(end)).to.deep.equal(['completed', 'completed']);
    expect(end.steps_snapshot[1]).to.deep.include({ error: 'with a note' });
    const run = await world.run(id);
    expect(run).to.deep.include({ status: 'completed', current_step: 1 });
    expect(run.completed_at).to.be.a('number');
    expect((await world.listed(pipeline)).runs).to.deep.include({ total: 1, completed: 1, running: 0 });
    await world.stream.until(() => frames('pipeline_completed', pipeline).length > 0);
    const [frame] = frames('pipeline_completed', pipeline);
    const { id: event, description, created_at, ...rest } = frame?.data ?? {};
    expect(rest).to.deep.equal({
      actor: 'api',
      type: 'pipeline_completed',
      entity_type: 'pipeline',
      entity_id: pipeline,
      workspace_id: 1,
    });
    expect(description).to.be.a('string');
    expect(event).to.be.a('number');
    expect(created_at).to.be.closeTo(run.completed_at, 1);
    expect(await world.activities('pipeline_completed', pipeline)).to.deep.equal([]);
  });

  it('fails or continues after a failed step, as the step defines', async () => {
    for (const [onFailure, ...expected] of [
      ['stop', 'failed', 'failed', 'skipped'],
      ['continue', 'running', 'failed', 'running'],
    ] as const) {
      const { run } = (await world.start((await world.pipeline(undefined, onFailure)).id)).body;
      const after = (await world.advance(run.id, { success: false })).body.run;
      expect([after.status, ...statuses(after)]).to.deep.equal(expected);
    }
  });

  it('can be cancelled, and the remaining steps are skipped', async () => {
    const { id: pipeline } = await world.pipeline([
      await world.template(),
      await world.template(),
      await world.template(),
    ]);
    const { id } = (await world.start(pipeline)).body.run;
    await world.advance(id);
    const { run } = (await world.cancel(id)).body;
    expect(run).to.have.all.keys('id', 'status', 'steps_snapshot');
    expect(run.status).to.equal('cancelled');
    expect(statuses(run)).to.deep.equal(['completed', 'skipped', 'skipped']);
    expect(run.steps_snapshot[2].completed_at).to.be.a('number');
    expect((await world.run(id)).completed_at).to.be.a('number');
    expect((await world.listed(pipeline)).runs).to.deep.include({ total: 1, running: 0 });
    await world.refused('POST', PATH, { action: 'cancel', run_id: id }, 400, /cancelled/);
    await world.refused('POST', PATH, { action: 'advance', run_id: id }, 400, /cancelled/);
  });

  it('rejects missing, invalid and unknown values with the reason', async () => {
    for (const body of [
      {},
      { action: 'stop' },
      { action: 'start' },
      { action: 'advance' },
      { action: 'cancel' },
      { run_id: 1 },
    ]) {
      await world.refused('POST', PATH, body, 400);
    }
    await world.refused('POST', PATH, { action: 'start', pipeline_id: 999_999 }, 404);
    await world.refused('POST', PATH, { action: 'advance', run_id: 999_999 }, 404);
    await world.refused('POST', PATH, { action: 'cancel', run_id: 999_999 }, 404);
    await world.refused('GET', `${PATH}?id=999999`, undefined, 404);
    await world.refused('GET', `${PATH}?id=x`, undefined, 400);
    await world.refused('GET', `${PATH}?pipeline_id=x`, undefined, 400);
  });

  it('is started by a pipeline_id without an action', async () => {
    const { id } = await world.pipeline();
    const body = bodyOf(await world.ask('POST', PATH, { pipeline_id: `${id}`, params: { any: 1 } }), 201);
    expect(body).to.deep.include({ run_id: body.run.id, status: 'running' });
  });

  it('are listed latest first with their pipeline’s name, for all pipelines or one', async () => {
    const pipeline = await world.pipeline();
    const ids: number[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await world.start(pipeline.id)).body.run.id);
    const body = conforms(runsResponse, await world.ask('GET', `${PATH}?pipeline_id=${pipeline.id}`));
    const idsOf = (runs: RunRecord[]) => runs.map(({ id }) => id);
    expect(idsOf(body.runs)).to.deep.equal(ids);
    expect(body.runs[0].pipeline_name).to.equal(pipeline.name);
    expect(idsOf((await world.ask('GET', `${PATH}?limit=2`)).body.runs)).to.deep.equal(ids.slice(0, 2));
    expect(await world.run(ids[0] as number)).not.to.have.property('pipeline_name');
  });

  it('continues to its end when the runner completes each step', async () => {
    runner.react(() => ({ body: { status: 'completed', output: 'done' } }));
    const { id: pipeline } = await world.pipeline();
    const { run } = (await world.start(pipeline)).body;
    expect(run.spawn).to.deep.equal({ success: true, stdout: 'done' });
    const end = await world.runWhen(run.id, 'the run is over', ({ status }) => status !== 'running');
    expect(end.status).to.equal('completed');
    expect(statuses(end)).to.deep.equal(['completed', 'completed']);
    expect(end.steps_snapshot.map(({ output }: StepState) => output)).to.deep.equal(['done', 'done']);
  });

  it('shows why an attempt failed while it is running, and retries with the same key', async () => {
    let attempts = 0;
    runner.react(() => (++attempts === 1 ? { status: 503, body: 'overloaded' } : ACCEPTED));
    const { id: pipeline } = await world.pipeline();
    const { run } = (await world.start(pipeline)).body;
    expect(run.status).to.equal('running');
    expect(run.spawn).to.deep.equal({
      success: false,
      error: 'The agent runner responded with status 503: overloaded',
      pending: true,
    });
    expect(run.steps_snapshot[0]).to.deep.include({
      status: 'running',
      attempts: 1,
      retrying: true,
      error: run.spawn.error,
    });
    const later = await world.runWhen(
      run.id,
      'the step is taken',
      ({ steps_snapshot: [step] }) => step.spawn_id !== null,
    );
    expect(later.steps_snapshot[0]).to.deep.include({
      status: 'running',
      attempts: 2,
      retrying: false,
      error: null,
      last_error: run.spawn.error,
    });
    const keys = handed(run.id, 0).map(({ key }) => key);
    expect(keys).to.have.length(2);
    expect(new Set(keys).size).to.equal(1);
  });

  it('returns the known state if the runner does not respond, redirects or refuses', async () => {
    for (const [reaction, error, pending] of [
      [undefined, /did not respond within 300 ms/, true],
      [{ status: 307, headers: { location: `${runner.url}/elsewhere` }, taken: false }, /redirect \(307\)/, true],
      [{ body: 'x'.repeat(70_000), taken: false }, /more than 65536 bytes/, true],
      [{ body: { status: 'maybe' }, taken: false }, /without a status/, true],
      [{ status: 422, body: 'not for me' }, /status 422: not for me/, undefined],
    ] as const) {
      runner.react(() => reaction);
      const { id: pipeline } = await world.pipeline();
      const { run } = (await world.start(pipeline)).body;
      expect(run.spawn.success).to.equal(false);
      expect(run.spawn.error).to.match(error);
      expect(run.spawn.pending).to.equal(pending);
      expect(run.steps_snapshot[0]).to.deep.include({ status: 'running', error: run.spawn.error, spawn_id: null });
      // It can be advanced by hand all the same.
      runner.react(() => ACCEPTED);
      const next = (await world.advance(run.id)).body.run;
      expect(next).to.deep.include({ status: 'running', current_step: 1 });
      expect(next.steps_snapshot[0]).to.deep.include({ status: 'completed', retrying: false });
      await world.cancel(run.id);
    }
  });

  it('keeps its templates until it has ended, also those that its pipeline no longer has', async () => {
    const [one, two] = [await world.template(), await world.template()];
    const { id: pipeline, name } = await world.pipeline([one, two]);
    const { run } = (await world.start(pipeline)).body;
    await world.ask('PUT', '/api/pipelines', { id: pipeline, steps: [{ template_id: one }, { template_id: one }] });
    const { status, body } = await world.remove(two);
    expect({ status, ...body }).to.deep.include({
      status: 409,
      code: 'TEMPLATE_IN_USE',
      error: `Run ${run.id} of pipeline ${pipeline} (“${name}”) uses this template; wait until it has ended, or cancel it.`,
    });
    expect((await world.advance(run.id)).body.run).to.deep.include({ status: 'running', current_step: 1 });
    expect((await world.advance(run.id)).body.run.status).to.equal('completed');
    expect((await world.remove(two)).status).to.equal(200);
  });

  it('starts with no template that is deleted at the same time', async () => {
    const spare = await world.template();
    const without = [{ template_id: spare }, { template_id: spare }];
    for (let n = 0; n < 8; n++) {
      const template = await world.template();
      const { id: pipeline } = await world.pipeline([template, template]);
      const changed = world.ask('PUT', '/api/pipelines', { id: pipeline, steps: without });
      const [started, removed] = await Promise.all([world.start(pipeline), changed.then(() => world.remove(template))]);
      const { run } = started.body;
      const uses = run.steps_snapshot.some((step: StepState) => step.template_id === template);
      expect(removed.status, `run ${run.id}`).to.equal(uses ? 409 : 200);
      await world.cancel(run.id);
    }
  });

  it('keeps the prompts and steps with which it started', async () => {
    const [one, two] = [await world.template('first'), await world.template('second')];
    const { id: pipeline } = await world.pipeline([one, two]);
    const { id } = (await world.start(pipeline)).body.run;
    await world.ask('PUT', '/api/workflows', { id: two, task_prompt: 'changed', name: 'Renamed' });
    await world.ask('PUT', '/api/pipelines', { id: pipeline, steps: [{ template_id: one }, { template_id: one }] });
    const { run } = (await world.advance(id)).body;
    expect(run.steps_snapshot[1]).to.deep.include({ template_id: two });
    expect(handed(id, 1)[0]?.body.prompt).to.match(/\]\nsecond\n\[end [0-9a-f]{16}\]$/);
  });

  it('is not sent to the runner under a name that attacks the agent', async () => {
    const { id: pipeline } = await world.pipeline();
    await world.ask('PUT', '/api/pipelines', { id: pipeline, name: `${ATTACK}, please` });
    const { id } = (await world.start(pipeline)).body.run;
    const run = await until('the step says why', async () => {
      const found = await world.run(id);
      return found.steps_snapshot[0].error !== null && found;
    });
    expect(run.status).to.equal('running');
    expect(run.steps_snapshot[0].error).to.include('the name of the pipeline').and.include('prompt-override');
    expect(runner.requests.filter(({ body }) => body.run_id === id)).to.deep.equal([]);
    const securityEvent = () =>
      world.stream.frames.find(
        ({ type, data }) => type === 'security.event' && String(data.detail).includes(`"run_id":${id},`),
      );
    await world.stream.until(() => securityEvent() !== undefined);
    expect(securityEvent()?.data).to.include({ event_type: 'injection_attempt', source: 'agent_runner' });
    expect((await world.advance(id)).body.run).to.include({ status: 'running', current_step: 1 });
    await world.cancel(id);
  });

  it('disappears with its pipeline, is cancelled if active, and is removed in the background', async () => {
    const { id: pipeline } = await world.pipeline();
    const over = (await world.start(pipeline)).body.run.id;
    await world.cancel(over);
    const running = (await world.start(pipeline)).body.run.id;
    await world.ask('DELETE', '/api/pipelines', { id: pipeline });
    for (const id of [over, running]) {
      await world.refused('GET', `${PATH}?id=${id}`, undefined, 404);
      await world.refused('POST', PATH, { action: 'advance', run_id: id }, 404);
      await world.refused('POST', PATH, { action: 'cancel', run_id: id }, 404);
    }
    expect((await world.ask('GET', `${PATH}?pipeline_id=${pipeline}`)).body.runs).to.deep.equal([]);
    const { eventLog, database } = world.world.service.core;
    const typesOf = async (id: number) => {
      const types: string[] = [];
      for await (const page of eventLog.readStream(`pipeline_run-1-${id}`)) types.push(...page.map(({ type }) => type));
      return types;
    };
    await until('both are removed', async () => {
      const { rows } = await database.pool.query('SELECT id FROM pipelines_v1.pipeline_runs WHERE pipeline_id = $1', [
        pipeline,
      ]);
      return rows.length === 0;
    });
    expect((await typesOf(running)).slice(-2)).to.deep.equal(['PipelineRunCancelled', 'PipelineRunRemoved']);
    expect((await typesOf(over)).slice(-2)).to.deep.equal(['PipelineRunCancelled', 'PipelineRunRemoved']);
    expect((await typesOf(over)).filter((type) => type === 'PipelineRunCancelled')).to.have.length(1);
  });
});
