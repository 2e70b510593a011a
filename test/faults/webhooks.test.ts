/**
 * A receiver that fails, hangs, cuts connections and answers 500, as a seed has it: it gets every event at least
 * once, under one id, and never more often than configured. Processes that are killed or share the work change nothing
 * about that.
 *
 * FAULT_SEED repeats the random choices of a run.
 */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { webhooksProjection } from '../../projections/webhooks/webhooks.ts';
import { closing } from '../support/fixture.ts';
import { randomFrom } from '../support/load.ts';
import { needsServer } from '../support/needs.ts';
import { OK, type Reaction, type Receiver, startReceiver } from '../support/receiver.ts';
import { runs } from '../support/runs.ts';
import { call, serverStores, startTestService } from '../support/service.ts';
import { KEY, startProcess, temporaryDirectory } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const random = randomFrom(seed);

const ATTEMPTS = 4;
const ENV = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  // On a slow machine an attempt that nothing fails must not time out: the receiver fails all but the last one.
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_RETRY_SECONDS: '0.02,0.05',
  MC_WEBHOOK_MAX_RETRIES: String(ATTEMPTS),
};
const FAULTS: readonly Reaction[] = ['hang', 'drop', 'drop', { status: 500 }, { status: 503, body: 'busy' }];

type Ask = (method: string, path: string, body?: unknown) => ReturnType<typeof call>;

describe(`webhooks with a failing receiver (FAULT_SEED=${seed})`, function () {
  this.timeout(240_000);
  let receiver: Receiver;
  beforeEach(async () => {
    receiver = await startReceiver();
  });
  afterEach(() => receiver.close());

  const makeHook = async (ask: Ask) => {
    const body = { name: 'faulty', url: receiver.url, events: ['activity.task_created'] };
    const reply = await ask('POST', '/api/webhooks', body);
    expect(reply.status, JSON.stringify(reply.body)).to.equal(200);
    return reply.body.id as number;
  };
  const makeTasks = async (ask: Ask, count: number) => {
    const made: number[] = [];
    for (let n = 0; n < count; n++) {
      const reply = await ask('POST', '/api/tasks', { title: `task ${n}` });
      expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
      made.push(reply.body.task.id);
    }
    return made;
  };
  /** The ids of delivered tasks, by id of the message, in the order of the first attempts. */
  const told = () =>
    new Map(receiver.requests.map(({ headers, body }) => [headers['webhook-id'], body.data.id as number]));
  const attemptsOf = (message: unknown) => receiver.requests.filter(({ headers }) => headers['webhook-id'] === message);

  /** Fails each message as the seed has it, but never in its last attempt. Gives the messages that were accepted. */
  function faulty(): Map<unknown, number> {
    const accepted = new Map<unknown, number>();
    const failures = new Map<unknown, number>();
    receiver.react(({ headers }) => {
      const id = headers['webhook-id'];
      const failed = failures.get(id) ?? 0;
      if (failed < ATTEMPTS - 1 && random() < 0.6) {
        failures.set(id, failed + 1);
        return FAULTS[Math.floor(random() * FAULTS.length)] as Reaction;
      }
      accepted.set(id, (accepted.get(id) ?? 0) + 1);
      return OK;
    });
    return accepted;
  }

  it('deliver every event under one id, no more often than configured, and nothing on a rebuild', async () => {
    await using service = closing(await startTestService(ENV));
    const ask: Ask = (...asked) => call(service, ...asked);
    const accepted = faulty();
    const id = await makeHook(ask);
    const made = await makeTasks(ask, runs(8, 15));
    await until('every event has been accepted', () => accepted.size === made.length, 120_000);
    expect(
      [...told().values()].sort((a, b) => a - b),
      'one id for each event',
    ).to.deep.equal(made);
    for (const message of accepted.keys()) expect(attemptsOf(message).length).to.be.at.most(ATTEMPTS);
    const deliveries = async () =>
      (await ask('GET', `/api/webhooks/deliveries?webhook_id=${id}&limit=200`)).body as {
        deliveries: { attempt: number; next_retry_at: number | null; message_id: string; status_code: number | null }[];
        total: number;
      };
    const { deliveries: all, total } = await until('every attempt is recorded', async () => {
      const page = await deliveries();
      return page.total === receiver.requests.length && page;
    });
    expect(all.filter(({ next_retry_at }) => next_retry_at !== null)).to.deep.equal([]);
    expect(Math.max(...all.map(({ attempt }) => attempt))).to.be.below(ATTEMPTS);
    // A response may take longer than the time-out here, and is then asked for again.
    for (const { message_id, attempt } of all.filter(({ status_code }) => status_code === 200)) {
      const later = all.filter((one) => one.message_id === message_id && one.attempt > attempt);
      expect(later, 'what has been delivered is not sent again').to.deep.equal([]);
    }
    const before = (await ask('GET', '/api/webhooks')).body;
    const [report] = await rebuildProjections(service.service.core, [webhooksProjection], {
      check: false,
      fresh: false,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    expect(report, JSON.stringify(report)).to.include({ compared: true, equal: true });
    // Whatever the rebuild had sent would be in front of this.
    receiver.react(() => OK);
    await makeTasks(ask, 1);
    await until('the next event is delivered', () => receiver.requests.length > total);
    expect(receiver.requests.length).to.equal(total + 1);
    expect((await ask('GET', '/api/webhooks')).body.webhooks[0]).to.include({
      id: before.webhooks[0].id,
      created_at: before.webhooks[0].created_at,
    });
  });

  it('are resumed by the next process with the same ids if a process is killed during deliveries', async () => {
    const directory = await dataDirectory();
    const env = { ...ENV, JOB_LOCK_MS: '1000' };
    const one = await startProcess(directory, env);
    try {
      const askOne: Ask = (method, path, body) => call(one, method, path, body, { 'x-api-key': KEY });
      const accepted = faulty();
      await makeHook(askOne);
      const made = await makeTasks(askOne, 8);
      await until('some have been delivered', () => accepted.size >= 3);
      await one.stop('SIGKILL');
      await using two = closing(await startTestService({ ...env, DATA_DIR: directory }));
      made.push(...(await makeTasks((...asked) => call(two, ...asked), 3)));
      await until('every event has been accepted', () => accepted.size === made.length, 120_000);
      expect([...told().values()].sort((a, b) => a - b)).to.deep.equal(made);
      // The attempt that the kill has cut off is made again.
      for (const message of accepted.keys()) expect(attemptsOf(message).length).to.be.at.most(ATTEMPTS + 1);
    } finally {
      await one.stop('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('are delivered by two processes once each, one at a time and in order', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using stores = closing(await serverStores());
    // On a busy machine the first answer may take longer than the others' time-out, and would be asked for again.
    const env = { ...ENV, WEBHOOK_TIMEOUT_MS: '30000', ...stores.env };
    await using one = closing(await startTestService(env));
    await using two = closing(await startTestService(env));
    let atOnce = 0;
    let most = 0;
    receiver.react(() => {
      most = Math.max(most, ++atOnce);
      setImmediate(() => atOnce--);
      return OK;
    });
    await makeHook((...asked) => call(one, ...asked));
    const made: number[] = [];
    for (let n = 0; n < 15; n++) {
      for (const service of [one, two]) made.push(...(await makeTasks((...asked) => call(service, ...asked), 1)));
    }
    await until('every event is delivered', () => told().size >= made.length);
    expect(receiver.requests.map(({ body }) => body.data.id)).to.deep.equal(made);
    expect(most).to.equal(1);
  });

  it('are taken over from a worker that is killed during an attempt, once its lease has ended', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using stores = closing(await serverStores());
    const env = { ...ENV, WEBHOOK_TIMEOUT_MS: '5000', ...stores.env };
    const directory = await temporaryDirectory();
    const one = await startProcess(directory.path, env);
    try {
      const ask: Ask = (method, path, body) => call(one, method, path, body, { 'x-api-key': KEY });
      await makeHook(ask);
      receiver.react(() => 'hang');
      const [made] = await makeTasks(ask, 1);
      await until('the attempt has started', () => receiver.requests.length === 1);
      await one.stop('SIGKILL');
      receiver.react(() => OK);
      await using two = closing(await startTestService(env));
      const { pool } = two.service.core.database;
      const left = await pool.query('SELECT lease FROM service.webhooks WHERE lease IS NOT NULL');
      expect(left.rows, 'the claim of the killed worker').to.have.length(1);
      expect(receiver.requests, 'it is not sent while the lease lasts').to.have.length(1);
      await pool.query('UPDATE service.webhooks SET leased_until = 0');
      await makeTasks((...asked) => call(two, ...asked), 1);
      await until('the other worker has sent it', () => receiver.requests.length >= 3);
      const [first, again] = receiver.requests;
      expect(again?.headers['webhook-id']).to.equal(first?.headers['webhook-id']);
      expect(again?.body.data.id).to.equal(made);
    } finally {
      await one.stop('SIGKILL');
      await directory.remove();
    }
  });

  it('end cleanly on SIGTERM: the attempt is recorded, the claim released, the rest left to the next worker', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using stores = closing(await serverStores());
    const env = { ...ENV, WEBHOOK_TIMEOUT_MS: '1000', ...stores.env };
    const directory = await temporaryDirectory();
    const one = await startProcess(directory.path, env);
    try {
      const ask: Ask = (method, path, body) => call(one, method, path, body, { 'x-api-key': KEY });
      await makeHook(ask);
      receiver.react(() => 'hang');
      const made = await makeTasks(ask, 1);
      await until('the attempt has started', () => receiver.requests.length === 1);
      await one.stop('SIGTERM');
      expect(one.child.exitCode).to.equal(0);
      receiver.react(() => OK);
      await using two = closing(await startTestService(env));
      const { deliveries } = (await call(two, 'GET', '/api/webhooks/deliveries')).body;
      const first = deliveries.find(({ attempt }: { attempt: number }) => attempt === 0);
      expect(first).to.include({ status_code: null, error: 'The receiver did not respond within 1000 ms.' });
      await until('the next worker has sent it', () => receiver.requests.length === 2);
      expect(receiver.requests.map(({ body }) => body.data.id)).to.deep.equal([...made, ...made]);
    } finally {
      await one.stop('SIGKILL');
      await directory.remove();
    }
  });
});
