/** Reads and writes through HTTP: the real service, seeded, driven by autocannon from this process. */
import { type ClientRequest, request } from 'node:http';
import autocannon from 'autocannon';
import { KEY, startProcess, temporaryDirectory } from '../support/service-process.ts';
import type { Combination, Deployment } from './deployment.ts';
import { quantile, table, tableLine } from './report.ts';

const AGENTS = 100;
const ACTIVITIES = 2_600;
const TASKS = 2_000;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3);
/** Names of cases to measure, as a regular expression. */
const WANTED = new RegExp(process.env.BENCH_CASES ?? '');
/** Before each measurement, so that V8 has compiled what the case needs. */
const WARM_UP_CONNECTIONS = 32;
const WARM_UP_SECONDS = Math.min(SECONDS, 2);
/** A run that has not ended so many seconds after it should have is given up. */
const GRACE_SECONDS = 30;

interface Case {
  readonly name: string;
  readonly connections: number;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string | ((n: number) => string);
  readonly body?: (n: number) => unknown;
  /** Done first. */
  readonly prepare?: (url: string) => Promise<void>;
  /** Ends the warm-up and the measurement after so many requests, where each uses something up. */
  readonly amount?: { readonly warmUp: number; readonly measured: number };
  /** Heartbeats per second that go on meanwhile. */
  readonly writes?: number;
  /** Of the reference deployment, on two cores at 32 connections, on another day: requests per second. */
  readonly reference?: number;
  /** What the goals say, of each tier. */
  readonly wanted?: Goal;
}

type Tier = Combination['tier'];
/** Times the reference, or milliseconds. */
type Goal = string | Readonly<Record<Tier, string>>;
const goal = (embedded: number, postgres: number, cluster: number, unit: '×' | 'ms'): Goal => {
  const text = (value: number) => (unit === 'ms' ? `p50 ${value} ms` : `× ${value}`);
  return { embedded: text(embedded), postgres: text(postgres), cluster: text(cluster) };
};
/** Of each write alone. */
const ALONE = goal(1, 2, 4, 'ms');
const WHILE_WRITTEN = goal(20, 15, 10, '×');
/** Heartbeats per second while lists are read. */
const WRITES = 50;

/** A heartbeat with an event: one that changes nothing only renews a lease. */
const REPORTING = { token_usage: { model: 'claude', inputTokens: 1, outputTokens: 1 } };

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };

async function post(url: string, path: string, body: unknown): Promise<Record<string, never>> {
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, never>;
}

async function seed(url: string): Promise<number[]> {
  const ids: number[] = [];
  for (let n = 0; n < AGENTS; n++) {
    const { agent } = (await post(url, '/api/agents', {
      name: `agent-${n}`,
      role: n % 3 === 0 ? 'coder' : 'reviewer',
      config: { model: { primary: 'claude' }, tools: { allow: ['read', 'write'] } },
      soul_content: `You are agent ${n}. ${'Be precise. '.repeat(20)}`,
    })) as unknown as { agent: { id: number } };
    ids.push(agent.id);
  }
  for (let done = AGENTS; done < ACTIVITIES; done += 20) {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => post(url, `/api/agents/${ids[(done + n) % AGENTS]}/heartbeat`, REPORTING)),
    );
  }
  return ids;
}

/** A key of each agent. */
async function keysOf(url: string, ids: readonly number[]): Promise<string[]> {
  const keys: string[] = [];
  for (const id of ids) {
    const made = (await post(url, `/api/agents/${id}/keys`, { name: 'stream' })) as unknown as { api_key: string };
    keys.push(made.api_key);
  }
  return keys;
}

/** Tasks that wait in the queue, and how many of them are claimed. */
const QUEUE = { waiting: 1_500, claimed: { warmUp: 400, measured: 800 } };

async function fillQueue(url: string): Promise<void> {
  for (let made = 0; made < QUEUE.waiting; made += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, one) => post(url, '/api/tasks', { title: `waiting ${made + one}` })),
    );
  }
}

/** Tasks of the agents. Gives their ids. */
async function seedTasks(url: string): Promise<number[]> {
  const ids: number[] = [];
  for (let done = 0; done < TASKS; done += 20) {
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        post(url, '/api/tasks', {
          title: `Task ${done + n}`,
          description: 'Look at it, and say what you see. '.repeat(5),
          priority: ['critical', 'high', 'medium', 'low'][n % 4],
          tags: ['bench'],
          ...(n % 3 > 0 && { assigned_to: `agent-${(done + n) % AGENTS}` }),
        }),
      ),
    );
    ids.push(...made.map((one) => (one as unknown as { task: { id: number } }).task.id));
  }
  return ids;
}

/** Counts over all cases, so that names are new each time. */
let n = 0;

interface Length {
  readonly seconds: number;
  /** Ends the run after so many requests instead. */
  readonly amount: number | undefined;
}

/** @throws when the service does not answer for so long that the run does not end */
function run(service: Deployment, one: Case, { seconds, amount }: Length): Promise<autocannon.Result> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(
      () => {
        reject(new Error(`${one.name}: the run did not end`));
        instance.stop();
      },
      (seconds + GRACE_SECONDS) * 1_000,
    );
    const instance = autocannon(
      {
        url: service.url,
        connections: one.connections,
        ...(amount === undefined ? { duration: seconds } : { amount }),
        headers,
        requests: [
          {
            method: one.method,
            setupRequest(request) {
              n++;
              return {
                ...request,
                path: typeof one.path === 'string' ? one.path : one.path(n),
                ...(one.body && { body: JSON.stringify(one.body(n)) }),
              };
            },
          },
        ],
      },
      (error, result) => {
        clearTimeout(limit);
        if (error) reject(error);
        else resolve(result);
      },
    );
    instance.on('error', reject);
  });
}

/** A steady stream of heartbeats with events until stopped. */
function writeSteadily(service: Deployment, ids: readonly number[], perSecond: number): () => Promise<number> {
  let sent = 0;
  const pending = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    const one = post(service.url, `/api/agents/${ids[sent++ % ids.length]}/heartbeat`, REPORTING);
    pending.add(one);
    one.then(
      () => pending.delete(one),
      () => pending.delete(one),
    );
  }, 1_000 / perSecond);
  return async () => {
    clearInterval(timer);
    await Promise.all(pending);
    return sent;
  };
}

/** The row of the table. */
async function measure(service: Deployment, tier: Tier, one: Case, ids: readonly number[]): Promise<string[]> {
  await one.prepare?.(service.url);
  const stop = one.writes ? writeSteadily(service, ids, one.writes) : undefined;
  // A single connection would not get V8 to optimise anything within the time.
  const warmUp = { ...one, connections: Math.max(one.connections, WARM_UP_CONNECTIONS) };
  await run(service, warmUp, { seconds: WARM_UP_SECONDS, amount: one.amount?.warmUp });
  const before = service.cpuMs();
  const result = await run(service, one, { seconds: SECONDS, amount: one.amount?.measured });
  const cpu = service.cpuMs() - before;
  await stop?.();
  const total = result.requests.total;
  // Averages of autocannon are over whole seconds, of which a run that ends early has few.
  const perSecond = total / result.duration;
  return [
    one.name,
    String(one.connections),
    perSecond.toFixed(0),
    one.reference ? `${one.reference} (× ${(perSecond / one.reference).toFixed(1)})` : '',
    typeof one.wanted === 'object' ? one.wanted[tier] : (one.wanted ?? ''),
    result.latency.p50.toFixed(0),
    result.latency.p99.toFixed(0),
    (cpu / total).toFixed(2),
    String(result.non2xx + result.errors),
    String(Math.round(result.throughput.total / total)),
  ];
}

const singly = ({ reference: _, ...one }: Case): Case => ({ ...one, connections: 1, wanted: ALONE });

/** Prints one table for one combination of stores, row by row. */
export async function benchHttp({ name, tier, start }: Combination): Promise<void> {
  const service = await start();
  try {
    const idle = service.memoryMb();
    const ids = await seed(service.url);
    const tasks = await seedTasks(service.url);
    const id = (n: number) => ids[n % ids.length];
    const list = (what: string, reference: number): Case => ({
      ...{ name: `GET ${what}`, connections: 32, method: 'GET', path: `/api/${what}`, reference },
    });
    const lists = [
      list('tasks?limit=50', 199),
      list('agents?limit=50', 298),
      list('activities?limit=50', 149),
      list('audit?limit=100', 409),
    ];
    /** By path, while heartbeats go on. */
    const referenceWhileWritten: Readonly<Record<string, number>> = {
      '/api/tasks?limit=50': 473,
      '/api/agents?limit=50': 401,
      '/api/activities?limit=50': 454,
      '/api/audit?limit=100': 761,
    };
    const cases: Case[] = [
      ...lists,
      {
        name: 'GET agents/{id}/attribution',
        connections: 32,
        method: 'GET',
        path: `/api/agents/${ids[0]}/attribution?privileged=1`,
        reference: 129,
      },
      {
        name: 'GET agents/{id}/attribution, any of 100',
        connections: 32,
        method: 'GET',
        path: (n) => `/api/agents/${id(n)}/attribution?privileged=1`,
      },
      {
        name: 'GET agents/{id}/diagnostics',
        connections: 32,
        method: 'GET',
        path: `/api/agents/${ids[0]}/diagnostics?privileged=1`,
        reference: 77,
      },
      { name: 'GET agents/{id}, any of 100', connections: 32, method: 'GET', path: (n) => `/api/agents/${id(n)}` },
      ...lists.map((one) => ({
        ...one,
        name: `${one.name}, ${WRITES} writes/s`,
        writes: WRITES,
        reference: referenceWhileWritten[one.path as string] as number,
        wanted: WHILE_WRITTEN,
      })),
      ...[8, 32, 128].map(
        (connections): Case => ({
          name: 'POST heartbeat',
          connections,
          method: 'POST',
          path: (n) => `/api/agents/${id(n)}/heartbeat`,
          body: () => ({}),
          ...(connections === 32 && { reference: 433, wanted: goal(8, 6, 2, '×') }),
        }),
      ),
      {
        name: 'POST heartbeat with tokens',
        connections: 32,
        method: 'POST',
        path: (n) => `/api/agents/${id(n)}/heartbeat`,
        body: () => REPORTING,
      },
      {
        name: 'PUT agents/{id}',
        connections: 32,
        method: 'PUT',
        path: (n) => `/api/agents/${id(n)}`,
        body: (n) => ({ role: `role ${n}` }),
        reference: 342,
        wanted: goal(8, 5, 2, '×'),
      },
      {
        name: 'POST agents',
        connections: 32,
        method: 'POST',
        path: '/api/agents',
        body: (n) => ({ name: `new-${process.pid}-${n}`, role: 'coder' }),
        reference: 349,
        wanted: goal(5, 4, 2, '×'),
      },
      {
        name: 'PUT tasks/{id}',
        connections: 32,
        method: 'PUT',
        path: (n) => `/api/tasks/${tasks[n % tasks.length]}`,
        body: (n) => ({ status: n % 2 ? 'review' : 'in_progress', priority: n % 3 ? 'high' : 'low' }),
        reference: 265,
        wanted: { embedded: '× 7, p99 40 ms', postgres: '× 5, p99 40 ms', cluster: '× 3, p99 40 ms' },
      },
      {
        name: 'POST tasks',
        connections: 32,
        method: 'POST',
        path: '/api/tasks',
        body: (n) => ({ title: `New task ${n}`, priority: 'high', assigned_to: `agent-${n % AGENTS}` }),
        reference: 364,
        wanted: goal(5, 4, 2, '×'),
      },
      {
        name: 'POST chat/messages',
        connections: 32,
        method: 'POST',
        path: '/api/chat/messages',
        body: (n) => ({ to: `agent-${n % AGENTS}`, content: `message ${n}` }),
        reference: 336,
        wanted: goal(7, 4, 2, '×'),
      },
      {
        name: 'POST agents/message',
        connections: 32,
        method: 'POST',
        path: '/api/agents/message',
        body: (n) => ({ from: 'bench', to: `agent-${n % AGENTS}`, content: `message ${n}` }),
      },
      {
        name: 'GET tasks/queue, each claims a task',
        connections: 32,
        method: 'GET',
        path: (n) => `/api/tasks/queue?agent=poller-${n}`,
        prepare: fillQueue,
        amount: QUEUE.claimed,
      },
      {
        name: 'GET tasks/queue, continues its task',
        connections: 32,
        method: 'GET',
        // The first poll claims one of the remaining tasks; there are more than agents.
        path: (n) => `/api/tasks/queue?agent=agent-${n % AGENTS}`,
      },
    ];
    console.log(`\n### HTTP, ${name}\n`);
    console.log(
      table(
        [
          ...['Case', 'connections', 'req/s', 'reference (another day)', 'wanted'],
          ...['p50 ms', 'p99 ms', 'CPU ms/req', 'non-2xx', 'bytes'],
        ],
        [],
      ),
    );
    // A write alone shows what its caller waits for.
    const alone = cases.filter(({ method, connections }) => method !== 'GET' && connections === 32);
    for (const one of [...cases, ...alone.map(singly)].filter(({ name: text }) => WANTED.test(text)))
      console.log(tableLine(await measure(service, tier, one, ids)));
    console.log(
      `\nStart to ready ${service.startedMs.toFixed(0)} ms; memory ${idle.toFixed(0)} MB idle, ${service.memoryMb().toFixed(0)} MB after the load.`,
    );
  } finally {
    await service.stop();
  }
}

/** Heartbeats whose frames are awaited one after the other. */
const STREAM_WARM_UP = 100;
const STREAM_POSTS = 200;

/**
 * Opens an event stream, and tells of the frames that come on it. With `node:http`, because `fetch` takes longer to read
 * a frame than the service to send it, and all clients share one thread.
 */
function openStream(url: string, key: string, received: (frames: number) => void): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const opened = request(url, { headers: { 'x-api-key': key }, agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`/api/events: ${response.statusCode}`));
      response.setEncoding('latin1');
      response.once('data', () => {
        response.on('data', (text: string) => received(text.split('\n\n').length - 1));
        resolve(opened);
      });
      // Destroyed at the end.
      response.on('error', () => undefined);
    });
    opened.on('error', reject).end();
  });
}

/** From the POST's start to the receipt of its frame by every open stream. */
export async function benchStream({ name, start }: Combination): Promise<void> {
  const service = await start();
  try {
    const ids = await seed(service.url);
    // An agent may have 20 streams open, and all who use the global key 200.
    const keys = await keysOf(service.url, ids);
    const rows: string[][] = [];
    for (const clients of [50, 1_000]) {
      const latencies: number[] = [];
      let expected = 0;
      let sentAt = 0;
      let arrived: (() => void) | undefined;
      const received = (frames: number): void => {
        const now = performance.now();
        for (let n = 0; n < frames; n++) latencies.push(now - sentAt);
        expected -= frames;
        if (expected === 0) arrived?.();
      };
      const streams = await Promise.all(
        Array.from({ length: clients }, (_, n) =>
          openStream(`${service.url}/api/events?kind=agent.status_changed`, keys[n % keys.length] as string, received),
        ),
      );
      for (let n = 0; n < STREAM_WARM_UP + STREAM_POSTS; n++) {
        if (n === STREAM_WARM_UP) latencies.length = 0;
        expected = clients;
        const all = new Promise<void>((resolve) => {
          arrived = resolve;
        });
        sentAt = performance.now();
        await Promise.all([post(service.url, `/api/agents/${ids[n % ids.length]}/heartbeat`, REPORTING), all]);
      }
      for (const stream of streams) stream.destroy();
      const at = (share: number) => quantile(latencies, share).toFixed(1);
      rows.push([String(clients), at(0.5), at(0.99)]);
    }
    console.log(`\n### Stream: POST to receipt, ${name}\n`);
    console.log(table(['streams', 'p50 ms', 'p99 ms'], rows));
  } finally {
    await service.stop();
  }
}

/** Process start to the first 200 of /health/ready, on fresh and on existing data. */
export async function benchStart(): Promise<void> {
  const rows: string[][] = [];
  for (let round = 0; round < 3; round++) {
    const directory = await temporaryDirectory();
    const fresh = await startProcess(directory.path);
    await fresh.stop();
    const again = await startProcess(directory.path);
    await again.stop();
    rows.push([fresh.startedMs.toFixed(0), again.startedMs.toFixed(0)]);
    await directory.remove();
  }
  console.log('\n### Start to ready, embedded\n');
  console.log(table(['fresh data ms', 'existing data ms'], rows));
}
