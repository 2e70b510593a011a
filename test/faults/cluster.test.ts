/**
 * The layout of `docker-compose.yml` in real processes, and what goes wrong in it under a load of writes. After each
 * fault: what was acknowledged is in the log once, what got 503 got it in time and got one answer when repeated, read
 * models match a rebuild, and clients of the stream that resumed have each frame once.
 *
 * FAULT_SEED repeats the random choices of a run.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import type { ProcessRole } from '../../infra/config.ts';
import {
  LIMITS,
  LONGEST_MS,
  missingStores,
  type Node,
  runCli,
  type Stores,
  startNode,
  startStores,
} from '../support/cluster.ts';
import {
  expectOnce,
  type Load,
  type LoadReport,
  randomFrom,
  type StreamClient,
  startLoad,
  startStreamClient,
} from '../support/load.ts';
import { needs } from '../support/needs.ts';
import { call, TEST_ADMIN } from '../support/service.ts';
import { KEY } from '../support/service-process.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const random = randomFrom(seed);
/** Random whole number from `min` to `max`. */
const between = (min: number, max: number): number => min + Math.floor(random() * (max - min + 1));

const headers = { 'x-api-key': KEY };
const EVENTUAL = { 'x-signalbox-consistency': 'eventual' };
/** How much later than a time-out an answer may come, because machines may be shared. */
const SLACK_MS = 2_500;

interface Status {
  readonly log: { readonly position: number };
  readonly processes: readonly { readonly role: string; readonly pid: number; readonly running: boolean }[];
  readonly projections: readonly {
    readonly schema: string;
    readonly lag: number;
    readonly leader: string | null;
    readonly stuck: unknown;
  }[];
}

describe(`the layout of docker-compose.yml (FAULT_SEED=${seed})`, function () {
  this.timeout(180_000);
  let stores: Stores;
  let database: pg.Pool;
  let directory: string;
  const nodes = new Map<string, Node>();
  const clients: StreamClient[] = [];
  const ROLES: Readonly<Record<string, ProcessRole>> = {
    'api-1': 'api',
    'api-2': 'api',
    'projector-1': 'projector',
    'projector-2': 'projector',
    'worker-1': 'worker',
  };

  const node = (name: string): Node => nodes.get(name) as Node;
  const ofRole = (role: ProcessRole): Node[] => [...nodes.values()].filter((one) => one.role === role);
  const apiUrls = (): string[] =>
    ofRole('api')
      .filter((one) => one.running)
      .map((one) => one.url);
  const start = async (name: string): Promise<Node> => {
    const started = await startNode(stores, name, ROLES[name] as ProcessRole);
    nodes.set(name, started);
    return started;
  };
  const api = (name: string, method: string, path: string, body?: unknown, more: Record<string, string> = {}) =>
    call(node(name), method, path, body, { ...headers, ...more });
  const isReady = async (one: Node) =>
    fetch(`${one.url}/health/ready`).then(
      (response) => response.ok,
      () => false,
    );
  const told = (line: string, ...parts: unknown[]) => console.log(`      ${line}`, ...parts);

  before(async function () {
    const missing = missingStores();
    needs(missing ?? 'stores', missing === undefined, this);
    stores = await startStores();
    told(`on ${stores.described}`);
    directory = await mkdtemp(join(tmpdir(), 'sbx-export-'));
    database = new pg.Pool({ connectionString: stores.databaseUrl, max: 2 });
    // A crash of the server is part of the tests.
    database.on('error', () => undefined);
  });

  after(async () => {
    for (const client of clients) await client.close();
    for (const one of nodes.values()) one.kill('SIGKILL');
    await database?.end();
    await stores?.close();
    if (directory) await rm(directory, { recursive: true, force: true });
  });

  afterEach(function () {
    if (this.currentTest?.state !== 'failed') return;
    for (const one of nodes.values()) {
      const complaints = one.complaints();
      console.log(`--- ${one.name}${one.running ? '' : ' (ended)'}: ${complaints.length} complaints`);
      for (const line of complaints.slice(-15)) console.log(line);
    }
  });

  /** Ids of all frames, as a client gets them that requests everything now. */
  async function framesOfLog(): Promise<string[]> {
    const ids: string[] = [];
    const { body } = await api('api-1', 'POST', '/api/agents', { name: `mark-${Math.random()}`, role: 'mark' });
    const stream = await openStream(`${node('api-1').url}/api/events?since=0`, headers);
    await stream.until(() =>
      stream.frames.some(({ type, data }) => type === 'agent.created' && data.id === body.agent.id),
    );
    stream.close();
    ids.push(...stream.frames.map((frame) => frame.id as string));
    return ids;
  }

  /** What must be true after each fault. */
  async function settled(report: LoadReport): Promise<void> {
    for (const one of nodes.values()) expect(one.running, `${one.name} runs`).to.equal(true);
    for (const one of ofRole('api')) {
      let answer: unknown;
      await until(`${one.name} is ready`, async () => {
        const response = await fetch(`${one.url}/health/ready`);
        answer = await response.json();
        return response.ok;
      }).catch((error: Error) => expect.fail(`${error.message}: ${JSON.stringify(answer)}`));
    }
    const events = await stores.readLog();
    expectOnce(report.acknowledged, events);
    const rebuilt = await runCli(stores, 'rebuild', '--check');
    expect(rebuilt.code, `rebuild --check: ${rebuilt.stdout}${rebuilt.stderr}`).to.equal(0);
    const frames = await framesOfLog();
    const positions = new Set(frames.map((id) => Number(id.split('.')[0])));
    const registered = events.filter((event) => event.type === 'AgentRegistered');
    expect(registered.filter((event) => !positions.has(event.position))).to.deep.equal([]);
    for (const client of clients) {
      await until(`a stream client has the last of ${frames.length} frames; it has ${client.ids.length}`, () =>
        client.ids.includes(frames.at(-1) as string),
      );
      expect(client.ids.slice(0, frames.length)).to.deep.equal(frames);
    }
  }

  /** Runs `fault` under a load, lets the load continue afterwards, and checks what must be true. */
  async function underLoad(longestMs: number, fault: (load: Load) => Promise<void>): Promise<LoadReport> {
    const load = startLoad(apiUrls, random);
    await load.more(between(20, 60));
    for (const client of clients) client.cut();
    await fault(load);
    await load.more(40);
    const report = await load.stop();
    const slowest = Math.max(0, ...report.refused.map(({ ms }) => ms));
    const codes = report.refused.reduce<Record<string, number>>((counts, { code = 'none' }) => {
      counts[code] = (counts[code] ?? 0) + 1;
      return counts;
    }, {});
    told(
      `${report.acknowledged.length} writes, longest pause ${Math.round(report.longestPauseMs)} ms; 503s, slowest after ${Math.round(slowest)} ms:`,
      codes,
      `${report.broken} broken, ${report.stillRunning} still running`,
    );
    expect(
      report.refused.filter(({ ms }) => ms > longestMs + SLACK_MS),
      `503s later than ${longestMs} ms`,
    ).to.deep.equal([]);
    await settled(report);
    return report;
  }

  /** Milliseconds until each read model is led by a process that runs. */
  async function takeOver(): Promise<number> {
    const begun = performance.now();
    const pids = () => ofRole('projector').flatMap((one) => (one.running ? [String(one.pid)] : []));
    await until('every read model is led', async () => {
      const { rows } = await database.query(
        "SELECT DISTINCT split_part(leader, ':', 2) AS pid FROM service.checkpoints WHERE schema_name NOT LIKE 'policy%'",
      );
      return (rows as { pid: string }[]).every(({ pid }) => pids().includes(pid));
    });
    return Math.round(performance.now() - begun);
  }

  it('starts in any order, even before the stores', async () => {
    const { postgres, events, redis } = stores;
    await Promise.all([postgres.proxy.stop(), events.proxy.stop(), redis.proxy.stop()]);
    // Those that need others first.
    for (const name of ['worker-1', 'api-2', 'api-1']) await start(name);
    await until('all wait for the database', () =>
      [...nodes.values()].every((one) => one.lines.some((line) => line.msg === 'waiting for the database')),
    );
    const early = await startNode(stores, 'early', 'worker');
    await until('it waits as well', () => early.lines.length > 0);
    expect(await early.stop(), 'a start that is stopped').to.equal(0);
    await postgres.proxy.start();
    await until('somebody has reached the database', () => postgres.proxy.connections() > 0);
    await events.proxy.start();
    // The first admin is created, but no read can show it without a projector.
    await Promise.all(ofRole('api').map((one) => one.ready));
    const signIn = await api('api-1', 'POST', '/api/auth/login', TEST_ADMIN);
    expect([signIn.status, signIn.body.code]).to.deep.equal([503, 'READ_MODEL_BEHIND']);
    for (const name of ['projector-1', 'projector-2']) await start(name);
    await Promise.all([...nodes.values()].map((one) => one.ready));
    for (const one of ofRole('api')) await until('its read models are built', () => isReady(one));
    await redis.proxy.start();
    for (let n = 0; n < 3; n++) clients.push(startStreamClient(apiUrls, random));
  });

  it('shows processes, leaders, positions and lag in `signalbox status`', async () => {
    const run = await runCli(stores, 'status', '--json');
    expect(run.code, run.stderr).to.equal(0);
    const status = JSON.parse(run.stdout) as Status;
    const roles = (of: readonly { readonly role: string; readonly pid: number }[]) =>
      of.map(({ role, pid }) => `${role} ${pid}`).sort();
    expect(roles(status.processes.filter((one) => one.running))).to.deep.equal(roles([...nodes.values()]));
    expect(status.log.position).to.be.greaterThan(0);
    const pidsOf = (role: ProcessRole) => ofRole(role).map((one) => String(one.pid));
    for (const one of status.projections) {
      const pids = pidsOf(one.schema.startsWith('policy_') ? 'worker' : 'projector');
      expect(one.leader?.split(':')[1], `leader of ${one.schema}`).to.be.oneOf(pids);
      expect(one.lag, `lag of ${one.schema}`).to.equal(0);
      expect(one.stuck).to.equal(null);
    }
  });

  it('shows and streams a write through one API process at once through the other', async () => {
    const streams = await Promise.all(apiUrls().map((url) => openStream(`${url}/api/events`, headers)));
    for (let n = 0; n < 20; n++) {
      const [writer, reader] = n % 2 ? ['api-1', 'api-2'] : ['api-2', 'api-1'];
      const made = await api(writer as string, 'POST', '/api/agents', { name: `basic-${n}`, role: 'coder' });
      expect(made.status, JSON.stringify(made.body)).to.equal(201);
      const read = await api(reader as string, 'GET', `/api/agents/${made.body.agent.id}`);
      expect(read.body.agent.name).to.equal(`basic-${n}`);
    }
    for (const stream of streams) {
      const names = () => stream.frames.filter(({ type }) => type === 'agent.created').map(({ data }) => data.name);
      await stream.until(() => names().length >= 20);
      expect(names()).to.deep.equal(Array.from({ length: 20 }, (_, n) => `basic-${n}`));
      stream.close();
    }
  });

  it('recovers by itself when PostgreSQL crashes and restarts', async () => {
    await underLoad(LONGEST_MS.database + LONGEST_MS.visible, async (load) => {
      for (let crash = 0; crash < 2; crash++) {
        await stores.postgres.crash();
        await load.more(between(10, 40));
      }
    });
  });

  it('returns 503 in time while PostgreSQL is down or does not respond', async () => {
    const { proxy } = stores.postgres;
    await underLoad(LONGEST_MS.database + LONGEST_MS.visible, async (load) => {
      for (const [fail, repair] of [
        [() => proxy.stop(), () => proxy.start()],
        [async () => proxy.freeze(), async () => proxy.thaw()],
      ] as const) {
        await fail();
        const before = load.refusedCount;
        await until('writes are refused', () => load.refusedCount >= before + 6);
        await repair();
        await load.more(20);
      }
    });
  });

  it('continues writes and reads while Redis is down', async () => {
    const { proxy } = stores.redis;
    const report = await underLoad(0, async (load) => {
      await proxy.stop();
      await load.more(60);
      const signIn = await api('api-1', 'POST', '/api/auth/login', TEST_ADMIN);
      expect(signIn.status).to.equal(200);
      expect((await api('api-2', 'GET', '/api/agents?limit=1')).status).to.equal(200);
      await proxy.start();
      await load.more(30);
    });
    expect(report.refused).to.deep.equal([]);
    expect(report.broken).to.equal(0);
  });

  it('replaces a killed projector', async () => {
    const times: number[] = [];
    await underLoad(LONGEST_MS.visible, async (load) => {
      for (let kill = 0; kill < 2; kill++) {
        await load.more(between(5, 40));
        const one = ofRole('projector')[between(0, 1)] as Node;
        one.kill('SIGKILL');
        await one.ended;
        times.push(await takeOver());
        await (await start(one.name)).ready;
      }
    });
    told(`taken over after ${times.join(', ')} ms`);
  });

  it('accepts writes without a projector; reads show old rows or fail in time, and later recover', async () => {
    const { body } = await api('api-1', 'POST', '/api/agents', { name: 'projected', role: 'coder' });
    const path = `/api/agents/${body.agent.id}`;
    await until('it is there', async () => (await api('api-2', 'GET', path)).status === 200);
    for (const one of ofRole('projector')) {
      one.kill('SIGKILL');
      await one.ended;
    }
    let position = 0;
    for (let n = 0; n < 10; n++) {
      const put = await api(n % 2 ? 'api-1' : 'api-2', 'PUT', path, { role: `without-${n}` });
      expect([put.status, put.body.agent.role]).to.deep.equal([200, `without-${n}`]);
      position = Number(put.headers.get('x-signalbox-position'));
    }
    for (const name of ['api-1', 'api-2']) {
      const begun = performance.now();
      const refused = await api(name, 'GET', path);
      expect([refused.status, refused.body.code]).to.deep.equal([503, 'READ_MODEL_BEHIND']);
      expect(refused.body.position).to.be.at.least(position);
      expect(refused.body.reached).to.be.below(position);
      expect(Number(refused.headers.get('retry-after'))).to.be.at.least(1);
      expect(performance.now() - begun).to.be.within(LIMITS.visible, LIMITS.visible + SLACK_MS);
      const eventual = await api(name, 'GET', path, undefined, EVENTUAL);
      expect([eventual.status, eventual.body.agent.role]).to.deep.equal([200, 'coder']);
      expect(Number(eventual.headers.get('x-signalbox-position'))).to.be.below(position);
    }
    // A process that starts now answers, and says what is missing.
    const late = await startNode(stores, 'late', 'api');
    await late.ready;
    const readiness = await fetch(`${late.url}/health/ready`);
    expect(readiness.status).to.equal(503);
    const { checks } = (await readiness.json()) as { checks: Record<string, string> };
    expect(checks).to.include({ database: 'ok', event_log: 'ok', 'projection agents': 'building' });
    expect((await fetch(`${late.url}/api/chat/conversations`, { headers })).status).to.equal(503);
    expect((await fetch(`${late.url}${path}`, { headers: { ...headers, ...EVENTUAL } })).status).to.equal(200);
    expect(await late.stop()).to.equal(0);
    for (const name of ['projector-1', 'projector-2']) await start(name);
    const shown = await until('reads are answered again', async () => {
      const read = await api('api-2', 'GET', path);
      return read.status === 200 && read;
    });
    expect(shown.body.agent.role).to.equal('without-9');
    expect(Number(shown.headers.get('x-signalbox-position'))).to.be.at.least(position);
    const at = { 'x-signalbox-min-position': String(position) };
    expect((await api('api-1', 'GET', path, undefined, at)).body.agent.role).to.equal('without-9');
    const beyond = { 'x-signalbox-min-position': String(Number.MAX_SAFE_INTEGER) };
    expect((await api('api-1', 'GET', path, undefined, beyond)).status).to.equal(400);
    for (const one of ofRole('projector')) await one.ready;
  });

  it('loses nothing acknowledged if an API process is killed', async () => {
    const report = await underLoad(LONGEST_MS.visible, async (load) => {
      const one = ofRole('api')[between(0, 1)] as Node;
      one.kill('SIGKILL');
      await one.ended;
      await load.more(20);
      await (await start(one.name)).ready;
    });
    expect(report.refused).to.deep.equal([]);
  });

  it('recovers when connections to the event store break', async () => {
    const report = await underLoad(LONGEST_MS.log + LONGEST_MS.visible, async (load) => {
      for (let cut = 0; cut < 4; cut++) {
        stores.events.proxy.cut();
        await load.more(between(5, 40));
      }
    });
    expect(report.refused).to.deep.equal([]);
  });

  it('returns 503 to writes and current reads in time while the event store is down; eventual reads continue', async () => {
    const { proxy } = stores.events;
    const { body } = await api('api-1', 'POST', '/api/agents', { name: 'popular', role: 'coder' });
    const path = `/api/agents/${body.agent.id}`;
    await underLoad(LONGEST_MS.log + LONGEST_MS.visible, async (load) => {
      await proxy.stop();
      const before = load.refusedCount;
      // Many at once on one stream must not wait for each other's time-outs.
      const begun = performance.now();
      const puts = await Promise.all(
        Array.from({ length: 12 }, (_, n) => api(n % 2 ? 'api-1' : 'api-2', 'PUT', path, { role: `r${n}` })),
      );
      const ms = performance.now() - begun;
      for (const put of puts) expect(put.status, JSON.stringify(put.body)).to.equal(503);
      told(`12 writes to one stream were refused within ${Math.round(ms)} ms`);
      expect(ms).to.be.lessThan(LONGEST_MS.log + SLACK_MS);
      for (const name of ['api-1', 'api-2']) {
        for (const read of ['/api/agents?limit=5', path]) {
          expect((await api(name, 'GET', read, undefined, EVENTUAL)).status, 'of what is there').to.equal(200);
          expect((await api(name, 'GET', read)).status, 'of an end of the log that nobody knows').to.equal(503);
        }
      }
      await until('writes are refused', () => load.refusedCount >= before + 6);
      await proxy.start();
    });
  });

  it('stops gracefully on SIGTERM: requests complete, streams end, the next process takes over', async () => {
    const load = startLoad(apiUrls, random);
    await load.more(20);
    // The proxy holds answers back, so that there is something in flight.
    stores.events.proxy.delay(50);
    const stopped = node('api-2');
    const code = stopped.stop();
    await load.more(20);
    stores.events.proxy.delay(0);
    expect(await code).to.equal(0);
    const report = await load.stop();
    expect(report.refused).to.deep.equal([]);
    await (await start('api-2')).ready;
    await settled(report);
    const file = join(directory, 'events.jsonl');
    const exported = await runCli(stores, 'export-events', '--output', file);
    expect(exported.code, exported.stderr).to.equal(0);
    const ids = (await stores.readLog()).map((event) => event.id);
    const lines = (await readFile(file, 'utf8')).split('\n').filter(Boolean);
    // Behind them stands the event of the export itself.
    expect(lines.map((line) => JSON.parse(line).id)).to.deep.equal(ids.slice(0, lines.length));
    // Stores that do not respond block no request for ever.
    const silent = node('worker-1');
    for (const { proxy } of [stores.postgres, stores.events, stores.redis]) proxy.freeze();
    await silent.stop();
    for (const { proxy } of [stores.postgres, stores.events, stores.redis]) proxy.thaw();
    nodes.delete(silent.name);
    for (const one of nodes.values()) expect(await one.stop(), one.name).to.equal(0);
    for (const client of clients) expect(client.resumed, 'times a stream was resumed').to.be.at.least(7);
    const { rows } = await database.query('SELECT id FROM service.processes WHERE pid = ANY($1)', [
      [...nodes.values()].map((one) => one.pid),
    ]);
    expect(rows, 'processes that are still listed').to.deep.equal([]);
  });
});
