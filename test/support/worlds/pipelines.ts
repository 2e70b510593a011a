/** What the tests of pipelines and their runs share. */
import { expect } from 'chai';
import { runAnswer, runsAnswer } from '../../../shared/contract/pipelines/runs.ts';
import type { Reply } from '../service.ts';
import { until } from '../until.ts';
import { type AgentsWorld, conforms, startAgentsWorld } from './agents.ts';

const RUNS = '/api/pipelines/run';

export interface PipelinesWorld extends AgentsWorld {
  /** Makes a template. Gives its id. */
  template(prompt?: string, fields?: object): Promise<number>;
  /** Makes a pipeline of these templates, of two new ones unless given. */
  pipeline(
    templates?: readonly number[],
    onFailure?: 'stop' | 'continue',
  ): Promise<{ readonly id: number } & Record<string, unknown>>;
  /** A pipeline as the list shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  listed(id: number): Promise<any>;
  start(id: number): Promise<Reply>;
  advance(run: number, more?: object): Promise<Reply>;
  cancel(run: number): Promise<Reply>;
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  run(id: number): Promise<any>;
  /** The run once this is so. */
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  runWhen(id: number, what: string, holds: (run: any) => boolean): Promise<any>;
}

export async function startPipelinesWorld(env: Record<string, string> = {}): Promise<PipelinesWorld> {
  const world = await startAgentsWorld(env);
  const act = async (body: object, status: number) => {
    const reply = await world.ask('POST', RUNS, body);
    conforms(runAnswer, reply, status);
    expect(reply.body).to.deep.include({ run_id: reply.body.run.id, status: reply.body.run.status });
    return reply;
  };
  const all: PipelinesWorld = {
    ...world,
    async template(prompt = 'Look around.', fields = {}) {
      const body = { name: world.fresh('template'), task_prompt: prompt, ...fields };
      const reply = await world.ask('POST', '/api/workflows', body);
      expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
      return reply.body.template.id;
    },
    async pipeline(templates, onFailure = 'stop') {
      const ids = templates ?? [await all.template(), await all.template()];
      const steps = ids.map((template_id) => ({ template_id, on_failure: onFailure }));
      const reply = await world.ask('POST', '/api/pipelines', { name: world.fresh('pipeline'), steps });
      expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
      return reply.body.pipeline;
    },
    async listed(id) {
      const { pipelines } = (await world.ask('GET', '/api/pipelines')).body;
      return pipelines.find((one: { id: number }) => one.id === id);
    },
    start: (id) => act({ action: 'start', pipeline_id: id }, 201),
    advance: (run, more = {}) => act({ action: 'advance', run_id: run, ...more }, 200),
    cancel: (run) => act({ action: 'cancel', run_id: run }, 200),
    async run(id) {
      const reply = await world.ask('GET', `${RUNS}?id=${id}`);
      conforms(runsAnswer, reply);
      return reply.body.run;
    },
    runWhen: (id, what, holds) =>
      until(what, async () => {
        const run = await all.run(id);
        return holds(run) && run;
      }),
  };
  return all;
}
