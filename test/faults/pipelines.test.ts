/**
 * kill -9 while a pipeline runs: the run goes on where it was, and no step is taken twice. The same for a task.
 *
 * FAULT_SEED repeats the random choices of a run.
 */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import type { RunRecord } from '../../shared/contract/pipelines/runs.ts';
import { randomFrom } from '../support/load.ts';
import { needsServer } from '../support/needs.ts';
import { startRunner, type TestRunner } from '../support/runner.ts';
import { runs } from '../support/runs.ts';
import { call, freshDatabase } from '../support/service.ts';
import { KEY, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const random = randomFrom(seed);
/** How often the process is killed during random runs after the first kill. */
const MORE_KILLS = runs(0, 2);
const COMPLETED = { body: { status: 'completed' } };
const ACCEPTED = { body: { status: 'accepted' } };

describe(`kill -9 during pipeline runs (FAULT_SEED=${seed})`, function () {
  this.timeout(240_000);
  let runner: TestRunner;
  let directory: string;
  let env: Record<string, string>;
  let service: ServiceProcess;
  let running = false;
  let killed: Promise<void> | undefined;
  let drop: (() => Promise<void>) | undefined;

  before(async () => {
    runner = await startRunner();
    directory = await dataDirectory();
    // How long the job of a process that was killed stays with it.
    env = { RUNNER_URL: runner.url, JOB_LOCK_MS: '1000' };
  });
  // What a test leaves behind runs in the next one, until that one kills it: a start takes seconds.
  beforeEach(async () => {
    await killed;
    killed = undefined;
    runner.forget();
  });
  after(async () => {
    await service?.stop('SIGKILL');
    await runner?.close();
    await drop?.();
    await rm(directory, { recursive: true, force: true });
  });

  const start = async () => {
    service = await startProcess(directory, env);
    running = true;
  };
  /** A process of this test, or the one before it. */
  const started = async () => {
    if (!running) await start();
  };
  const kill = (): Promise<void> => {
    running = false;
    killed ??= service.stop('SIGKILL');
    return killed;
  };
  /** For callers that cannot wait: `restart` does. */
  const killSoon = (): void => {
    kill().catch((error: unknown) => console.error(error));
  };
  const restart = async () => {
    await killed;
    killed = undefined;
    await start();
  };
  const ask = (method: string, path: string, body?: unknown) => call(service, method, path, body, { 'x-api-key': KEY });
  const run = async (id: number): Promise<RunRecord> => (await ask('GET', `/api/pipelines/run?id=${id}`)).body.run;

  async function makePipeline(): Promise<number> {
    const prompt = { name: 'step', task_prompt: 'Look around.' };
    const { id: template_id } = (await ask('POST', '/api/workflows', prompt)).body.template;
    const steps = Array.from({ length: 3 }, () => ({ template_id }));
    return (await ask('POST', '/api/pipelines', { name: 'three', steps })).body.pipeline.id;
  }

  /** Every step of these runs was taken, and none twice; so were `tasks`. */
  function expectTakenOnce(ids: readonly number[], tasks = 0): void {
    const steps = new Map<string, Set<string>>();
    for (const { key, body } of runner.requests) {
      if (body.run_id === undefined) continue;
      const step = `${body.run_id}/${body.step_index}`;
      steps.set(step, (steps.get(step) ?? new Set()).add(key));
    }
    const wanted = ids.flatMap((id) => [0, 1, 2].map((step) => `${id}/${step}`));
    expect([...steps.keys()].sort()).to.deep.equal(wanted.sort());
    for (const [step, keys] of steps) expect(keys.size, `keys of step ${step}`).to.equal(1);
    expect(runner.taken.size, 'what was taken').to.equal(wanted.length + tasks);
    expect([...runner.taken.values()].every((times) => times === 1)).to.equal(true);
  }

  /** Gives a task to an agent, whose runner kills the process while it works on it. @returns the task */
  async function killedDuringTask(): Promise<number> {
    const off = { 'general.task_dispatch': false, 'general.aegis_review': false };
    expect((await ask('PUT', '/api/settings', { settings: off })).status).to.equal(200);
    const { name } = (await ask('POST', '/api/agents', { name: 'ada', role: 'roofer' })).body.agent;
    const { id } = (await ask('POST', '/api/tasks', { title: 'Mend the roof', assigned_to: name })).body.task;
    await ask('POST', '/api/scheduler', { task_id: 'task_dispatch' }).catch((error) =>
      expect(error)
        .to.have.property('code')
        .that.matches(/^ECONN/),
    );
    await until('the runner is asked, and the process is killed', () => killed !== undefined);
    return id;
  }

  it('before a response, after it, and between two steps while the runner works on a task: both continue', async () => {
    runner.react(async ({ body }) => {
      if (body.run_id === undefined) {
        await kill();
        return { body: { status: 'completed', output: 'It is dry.' } };
      }
      // The runner takes the first step and answers a process that is gone.
      if (body.step_index === 0) {
        await kill();
        return COMPLETED;
      }
      // The process may have recorded the answer or not.
      if (body.step_index === 1) return { ...COMPLETED, sent: killSoon };
      return ACCEPTED;
    });
    await started();
    const pipeline = await makePipeline();
    await ask('POST', '/api/pipelines/run', { pipeline_id: pipeline }).then(
      (reply) => expect.fail(`answered ${reply.status} by a process that was killed`),
      (error) =>
        expect(error)
          .to.have.property('code')
          .that.matches(/^ECONN/),
    );
    const id = runner.requests[0]?.body.run_id as number;

    await restart();
    await until('the second step is answered', () => killed !== undefined);
    await restart();
    await until('the third step is taken', async () => (await run(id)).steps_snapshot[2]?.spawn_id);
    const before = await run(id);
    expect(before).to.deep.include({ status: 'running', current_step: 2 });

    const taskId = await killedDuringTask();
    await restart();
    expect(await run(id)).to.deep.equal(before);
    const advanced = await ask('POST', '/api/pipelines/run', { action: 'advance', run_id: id });
    expect(advanced.body).to.deep.include({ run_id: id, status: 'completed' });
    const asked = (step: number) => runner.requests.filter(({ body }) => body.step_index === step).length;
    expect(asked(0), 'requests for the first step, whose answer was lost').to.equal(2);
    expect(asked(2), 'requests for the third step, whose answer was recorded').to.equal(1);
    expect((await run(id)).steps_snapshot.map(({ status }) => status)).to.deep.equal(Array(3).fill('completed'));

    const task = await until('the result of the task is there', async () => {
      const found = (await ask('GET', `/api/tasks/${taskId}`)).body.task;
      return found.status !== 'in_progress' && found;
    });
    expect(task).to.deep.include({ status: 'review', resolution: 'It is dry.', dispatch_attempts: 0 });
    const { comments } = (await ask('GET', `/api/tasks/${taskId}/comments`)).body;
    expect(comments).to.have.length(1);
    expect(runner.requests.filter(({ body }) => body.run_id === undefined).length).to.be.greaterThan(1);
    expectTakenOnce([id], 1);
  });

  /** Starts a run, unless the process is killed meanwhile. */
  async function begin(pipeline: number, ids: number[]): Promise<void> {
    await ask('POST', '/api/pipelines/run', { pipeline_id: pipeline }).then(
      ({ body }) => ids.push(body.run_id),
      (error) =>
        expect(error)
          .to.have.property('code')
          .that.matches(/^ECONN/),
    );
  }

  /** Ten runs under way while the process is killed at the n-th request to the runner. */
  async function killedAtRandom(): Promise<void> {
    let left = Number.POSITIVE_INFINITY;
    runner.react(() => {
      if (--left === 0) killSoon();
      return COMPLETED;
    });
    await started();
    const pipeline = await makePipeline();
    const ids: number[] = [];
    for (let n = 0; n < 10; n++) {
      await begin(pipeline, ids);
      if (n === 3) left = 1 + Math.floor(random() * 4);
      if (killed) break;
    }
    for (let round = 0; round < MORE_KILLS; round++) {
      await restart();
      await begin(pipeline, ids);
      left = 1 + Math.floor(random() * 3);
      await begin(pipeline, ids);
      await until('it is killed', () => killed !== undefined);
    }
    left = Number.POSITIVE_INFINITY;
    await restart();
    const all = async () =>
      (await ask('GET', `/api/pipelines/run?pipeline_id=${pipeline}&limit=200`)).body.runs as RunRecord[];
    await until('every run is over', async () => (await all()).every(({ status }) => status !== 'running'));
    const found = await all();
    expect(found.map(({ id }) => id)).to.include.members(ids);
    for (const one of found) expect(one.status, `run ${one.id}`).to.equal('completed');
    expectTakenOnce(found.map(({ id }) => id));
    const { pipelines } = (await ask('GET', '/api/pipelines')).body;
    expect(pipelines.find(({ id }: { id: number }) => id === pipeline).runs).to.deep.include({
      total: found.length,
      completed: found.length,
      running: 0,
      failed: 0,
    });
  }

  it('at any time, with several active runs', killedAtRandom);

  it('at any time, on PostgreSQL', async function () {
    needsServer('TEST_DATABASE_URL', this);
    const fresh = await freshDatabase();
    drop = fresh.drop;
    await kill();
    await killed;
    killed = undefined;
    env = { ...env, DATABASE_URL: fresh.url };
    await killedAtRandom();
  });
});
