/** Pipelines, their runs, and tasks for agents through HTTP, on one service with an agent runner beside it. */
import { expect } from 'chai';
import { successResponse } from '../../../shared/contract/common.ts';
import { pipelineResponse, pipelinesResponse } from '../../../shared/contract/pipelines/pipelines.ts';
import { fixture } from '../../support/fixture.ts';
import { runnerSettings, startRunner } from '../../support/runner.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startPipelinesWorld } from '../../support/worlds/pipelines.ts';

const PATH = '/api/pipelines';

describe('pipelines', () => {
  const runner = fixture(startRunner);
  const world = fixture(() => startPipelinesWorld(runnerSettings(runner)));

  describe('the record', () => {
    it('is created with its steps and listed with names and counts', async () => {
      const one = await world.template('Look around.', { name: 'Scout' });
      const two = await world.template('Write it down.', { name: 'Write' });
      const steps = [{ template_id: one }, { template_id: two, on_failure: 'continue' }, { template_id: one }];
      const { pipeline } = conforms(
        pipelineResponse,
        await world.ask('POST', PATH, { name: 'Survey', description: 'all of it', steps }),
        201,
      );
      const { id, created_at } = pipeline;
      const stored = [
        { template_id: one, on_failure: 'stop' },
        { template_id: two, on_failure: 'continue' },
        { template_id: one, on_failure: 'stop' },
      ];
      expect(pipeline).to.deep.equal({
        id,
        name: 'Survey',
        description: 'all of it',
        steps: stored,
        created_by: 'api',
        created_at,
        updated_at: created_at,
        use_count: 0,
        last_used_at: null,
        workspace_id: 1,
      });
      const listed = await world.ask('GET', PATH);
      conforms(pipelinesResponse, listed);
      const names = ['Scout', 'Write', 'Scout'];
      expect(await world.listed(id)).to.deep.equal({
        ...pipeline,
        steps: stored.map((step, index) => ({ ...step, template_name: names[index] })),
        runs: { total: 0, completed: 0, failed: 0, running: 0 },
      });
      const [activity] = await world.activities('pipeline_created', id);
      expect(activity).to.deep.include({ actor: 'api', entity_type: 'pipeline', metadata: null });
      expect(activity.entity).to.deep.equal({ type: 'pipeline', id, name: 'Survey' });
    });

    it('shows the current names of its templates', async () => {
      const [one, two] = [await world.template('one', { name: 'One' }), await world.template()];
      const { id } = await world.pipeline([one, two]);
      await world.ask('PUT', '/api/workflows', { id: two, name: 'Renamed' });
      const { steps } = await world.listed(id);
      expect(steps.map((step: { template_name: string }) => step.template_name)).to.deep.equal(['One', 'Renamed']);
    });

    it('keeps its templates: one that is in use cannot be deleted', async () => {
      const [one, two] = [await world.template(), await world.template()];
      const { id, name } = await world.pipeline([one, two]);
      const { body, status } = await world.remove(two);
      expect({ status, ...body }).to.deep.include({
        status: 409,
        code: 'TEMPLATE_IN_USE',
        error: `The pipeline ${id} (“${name}”) uses this template; change its steps or delete it first.`,
      });
      // Another workspace has no such template, whatever uses it here.
      const other = await world.world.makeSession({ username: 'neighbour', role: 'operator', workspace: 6, tenant: 6 });
      expect((await world.ask('DELETE', '/api/workflows', { id: two }, other)).status).to.equal(404);
      await world.ask('PUT', PATH, { id, steps: [{ template_id: one }, { template_id: one }] });
      expect((await world.remove(two)).status).to.equal(200);
      await world.ask('DELETE', PATH, { id });
      expect((await world.remove(one)).status).to.equal(200);
    });

    it('never begins with a template that is deleted at the same time', async () => {
      const steps = (id: number) => [{ template_id: id }, { template_id: id }];
      const spare = await world.template();
      const { id: changed } = await world.pipeline([spare, spare]);
      for (let n = 0; n < 8; n++) {
        const template = await world.template();
        const [created, moved, removed] = await Promise.all([
          world.ask('POST', PATH, { name: world.fresh('pipeline'), steps: steps(template) }),
          world.ask('PUT', PATH, { id: changed, steps: steps(template) }),
          world.remove(template),
        ]);
        const uses = [created.status === 201, moved.status === 200];
        expect(removed.status, `${uses}`).to.equal(uses.includes(true) ? 409 : 200);
        const left = (await world.ask('GET', '/api/workflows?limit=200')).body.templates;
        expect(left.some((one: { id: number }) => one.id === template)).to.equal(removed.status === 409);
      }
    });

    it('is rejected without a name, without two steps, or with unknown templates', async () => {
      const template = await world.template();
      const two = [{ template_id: template }, { template_id: template }];
      for (const [fields, field] of [
        [{ name: '' }, 'name'],
        [{ name: 'x'.repeat(201) }, 'name'],
        [{ description: 'x'.repeat(5_001) }, 'description'],
        [{ steps: undefined }, 'steps'],
        [{ steps: [{ template_id: template }] }, 'steps'],
        [{ steps: Array.from({ length: 51 }, () => ({ template_id: template })) }, 'steps'],
        [{ steps: [{ template_id: template }, { template_id: 0 }] }, 'steps.1.template_id'],
        [{ steps: [{ template_id: template }, { template_id: 999_999 }] }, 'steps.1.template_id'],
        [{ steps: [{ template_id: template, on_failure: 'retry' }, two[0]] }, 'steps.0.on_failure'],
      ] as const) {
        const reply = await world.refused('POST', PATH, { name: 'p', steps: two, ...fields }, 400);
        expect(reply.body.details[0]).to.match(new RegExp(`^${field}: `));
      }
      await world.refused('POST', PATH, undefined, 400, /body required/);
    });

    it('is updated and validated by PUT; with the id alone, PUT counts a use', async () => {
      const pipeline = await world.pipeline([await world.template(), await world.template()]);
      const other = await world.template();
      const steps = [
        { template_id: other, on_failure: 'continue' },
        { template_id: other, on_failure: 'stop' },
      ];
      const body = conforms(
        pipelineResponse,
        await world.ask('PUT', PATH, { id: `${pipeline.id}`, name: 'New', steps }),
      );
      const { updated_at } = body.pipeline;
      expect(body.pipeline).to.deep.equal({ ...pipeline, name: 'New', steps, updated_at });
      const used = await world.ask('PUT', PATH, { id: pipeline.id });
      conforms(pipelineResponse, used);
      expect(used.body.pipeline).to.deep.include({ use_count: 1, last_used_at: used.body.pipeline.updated_at });
      for (const wrong of [
        { name: '' },
        { steps: [] },
        { steps: [{ template_id: 999_999 }, { template_id: other }] },
      ]) {
        await world.refused('PUT', PATH, { id: pipeline.id, ...wrong }, 400);
      }
      await world.refused('PUT', PATH, { name: 'x' }, 400);
      await world.refused('PUT', PATH, { id: 999_999, name: 'x' }, 404);
      await world.refused('PUT', PATH, { id: 999_999 }, 404);
    });

    it('is deleted by an id in the body or query, and deleting an unknown one succeeds', async () => {
      const { id } = await world.pipeline();
      await world.refused('DELETE', PATH, undefined, 400, /body required/);
      const { id: queried } = await world.pipeline();
      conforms(successResponse, await world.ask('DELETE', `${PATH}?id=${queried}`));
      expect(await world.listed(queried)).to.equal(undefined);
      await world.refused('DELETE', PATH, {}, 400);
      for (const one of [`${id}`, id, 999_999]) {
        conforms(successResponse, await world.ask('DELETE', PATH, { id: one }));
        expect(await world.listed(id)).to.equal(undefined);
      }
    });
  });
});

describe('pipelines without an agent runner', () => {
  const world = fixture(startPipelinesWorld);

  it('runs are advanced by hand, and each step reports that no runner received it', async () => {
    const { id: pipeline } = await world.pipeline();
    const { run } = (await world.start(pipeline)).body;
    expect(run).to.deep.include({ status: 'running', current_step: 0 });
    expect(run.spawn).to.have.all.keys('success', 'error');
    expect(run.spawn.success).to.equal(false);
    expect(run.spawn.error).to.include('RUNNER_URL');
    expect(run.steps_snapshot[0]).to.deep.include({ status: 'running', spawn_id: null, error: run.spawn.error });
    const next = (await world.advance(run.id)).body.run;
    expect(next).to.deep.include({ status: 'running', current_step: 1, spawn: run.spawn });
    expect((await world.advance(run.id)).body.run.status).to.equal('completed');
    expect((await world.listed(pipeline)).runs).to.deep.include({ total: 1, completed: 1 });
  });
});
