/** What the tests of pipelines and their runs share. */
import { expect } from 'chai';
import { runResponse, runsResponse } from '../../../shared/contract/pipelines/runs.ts';
import { bodyOf, type Reply } from '../service.ts';
import { until } from '../until.ts';
import { conforms, startAgentsWorld } from './agents.ts';

const RUNS = '/api/pipelines/run';

export async function startPipelinesWorld(env: Record<string, string> = {}) {
  const world = await startAgentsWorld(env);
  const act = async (body: object, status: number) => {
    const reply = await world.ask('POST', RUNS, body);
    conforms(runResponse, reply, status);
    expect(reply.body).to.deep.include({ run_id: reply.body.run.id, status: reply.body.run.status });
    return reply;
  };
  /** Makes a template. Gives its id. */
  const template = async (prompt = 'Look around.', fields: object = {}): Promise<number> => {
    const body = { name: world.fresh('template'), task_prompt: prompt, ...fields };
    return bodyOf(await world.ask('POST', '/api/workflows', body), 201).template.id;
  };
  const run = async (id: number) => conforms(runsResponse, await world.ask('GET', `${RUNS}?id=${id}`)).run;
  return {
    ...world,
    template,
    /** Makes a pipeline of these templates, of two new ones unless given. */
    async pipeline(
      templates?: readonly number[],
      onFailure: 'stop' | 'continue' = 'stop',
    ): Promise<{ readonly id: number } & Record<string, unknown>> {
      const ids = templates ?? [await template(), await template()];
      const steps = ids.map((template_id) => ({ template_id, on_failure: onFailure }));
      const body = { name: world.fresh('pipeline'), steps };
      return bodyOf(await world.ask('POST', '/api/pipelines', body), 201).pipeline;
    },
    /** A pipeline as the list shows it. */
    async listed(id: number) {
      const { pipelines } = (await world.ask('GET', '/api/pipelines')).body;
      return pipelines.find((one: { id: number }) => one.id === id);
    },
    start: (id: number) => act({ action: 'start', pipeline_id: id }, 201),
    advance: (id: number, more: object = {}) => act({ action: 'advance', run_id: id, ...more }, 200),
    cancel: (id: number) => act({ action: 'cancel', run_id: id }, 200),
    run,
    /** Deletes a template. */
    remove: (id: number) => world.ask('DELETE', '/api/workflows', { id }),
    /** The run once this is so. */
    runWhen: (id: number, what: string, holds: (found: Reply['body']) => boolean): Promise<Reply['body']> =>
      until(what, async () => {
        const found = await run(id);
        return holds(found) && found;
      }),
  };
}
