/**
 * What one agent costs in one day: CPU, disk and the time of a rebuild.
 *
 * The workload, per agent and day: a heartbeat every 30 s (2,880), five tasks from creation to done (nine requests each),
 * 50 token reports, 10 chat messages and one change of its memory. The day is divided into 288 windows of five minutes;
 * after each window the scheduled summary of heartbeats runs, as it would by itself. Requests are sent by 32 connections
 * as fast as the service responds, so a day takes minutes: costs per request do not depend on the time between them.
 *
 * `BENCH_DAY_AGENTS` sets the number of agents (default 32), `BENCH_DAY_FLEET` the size of the fleet whose heartbeats are
 * measured at the end (default 10,000).
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { KEY } from '../support/service-process.ts';
import type { Combination, Deployment } from './deployment.ts';
import { measuredApart } from './rebuild.ts';
import { type Place, table } from './report.ts';

const AGENTS = Number(process.env.BENCH_DAY_AGENTS ?? 32);
const FLEET = Number(process.env.BENCH_DAY_FLEET ?? 10_000);
const CONNECTIONS = 32;
/** Windows of five minutes in a day, and heartbeats of an agent in each. */
const WINDOWS = 288;
const BEATS = 10;
/** Windows before the measurement, so that V8 has compiled what the workload needs. */
const WARM_UP = 10;
const PER_DAY = { tasks: 5, tokens: 50, chat: 10 } as const;
/** Rounds of heartbeats of the fleet. */
const FLEET_ROUNDS = 4;
const HEARTBEAT_SECONDS = 30;

interface Agent {
  readonly id: number;
  readonly name: string;
  /** The task that it works on, and how many requests it has sent for its tasks. */
  task?: number;
  sent?: number;
}

type Call = (method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown) => Promise<Record<string, unknown>>;
type Step = (call: Call, agent: Agent) => Promise<unknown>;

const caller =
  (url: string): Call =>
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };

const heartbeat: Step = (call, { id }) => call('POST', `/api/agents/${id}/heartbeat`, {});
const comment =
  (content: string): Step =>
  (call, { name, task }) =>
    call('POST', `/api/tasks/${task}/comments`, { author: name, content });
const change =
  (fields: object): Step =>
  (call, { task }) =>
    call('PUT', `/api/tasks/${task}`, fields);

/** The requests of one task, in order. */
const TASK: readonly Step[] = [
  async (call, agent) => {
    const { task } = await call('POST', '/api/tasks', {
      title: 'Find out why the import is slow',
      description: 'Look at it, and say what you see. '.repeat(5),
      priority: 'high',
      tags: ['bench'],
      assigned_to: agent.name,
    });
    agent.task = (task as { id: number }).id;
  },
  (call, { name }) => call('GET', `/api/tasks/queue?agent=${name}`),
  comment('The import reads each row twice.'),
  change({ priority: 'critical' }),
  comment('Reading once halves the time; tests are green.'),
  comment('The change is ready for review.'),
  change({ status: 'review' }),
  (call, { task }) =>
    call('POST', '/api/quality-review', { taskId: task, reviewer: 'aegis', status: 'approved', notes: 'Looks right.' }),
  change({ status: 'done' }),
];

const nextOfTask: Step = (call, agent) => {
  const { sent = 0 } = agent;
  agent.sent = sent + 1;
  return (TASK[sent % TASK.length] as Step)(call, agent);
};

const tokens: Step = (call, { name, task }) =>
  call('POST', '/api/tokens', {
    model: 'claude-sonnet-4-5',
    sessionId: `${name}:chat`,
    inputTokens: 1_200,
    outputTokens: 400,
    ...(task !== undefined && { taskId: task }),
  });
const chat: Step = (call, { name }) =>
  call('POST', '/api/chat/messages', {
    to: name,
    content: 'Is the import faster now? Please report what you measured.',
  });
const memory: Step = (call, { id }) =>
  call('PUT', `/api/agents/${id}/memory`, { working_memory: 'The import reads each row once. '.repeat(10) });

/** How many of `count` events, spread evenly over a day, are in a window. */
const share = (count: number, window: number): number =>
  Math.floor(((window + 1) * count) / WINDOWS) - Math.floor((window * count) / WINDOWS);

/** Requests of one agent in one window, in order. */
function stepsOf(agent: number, window: number): Step[] {
  const own = (window + agent * 7) % WINDOWS;
  const steps: Step[] = Array.from({ length: BEATS }, () => heartbeat);
  for (let n = 0; n < share(PER_DAY.tasks * TASK.length, own); n++) steps.push(nextOfTask);
  for (let n = 0; n < share(PER_DAY.tokens, own); n++) steps.push(tokens);
  for (let n = 0; n < share(PER_DAY.chat, own); n++) steps.push(chat);
  if (own === WINDOWS / 2) steps.push(memory);
  return steps;
}

/** Runs work of several agents over all connections; that of one agent in order. */
async function spread<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items];
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
    }),
  );
}

async function register(call: Call, prefix: string, count: number): Promise<Agent[]> {
  const agents: Agent[] = [];
  await spread(
    Array.from({ length: count }, (_, n) => `${prefix}-${n}`),
    async (name) => {
      const { agent } = await call('POST', '/api/agents', { name, role: 'coder' });
      agents.push({ id: (agent as { id: number }).id, name });
    },
  );
  return agents;
}

const sumUp = (call: Call) => call('POST', '/api/scheduler', { task_id: 'heartbeat_summary' });

async function runWindow(call: Call, agents: readonly Agent[], window: number): Promise<number> {
  const steps = agents.map((agent, n) => ({ agent, steps: stepsOf(n, window) }));
  let requests = 0;
  // Several agents share a connection, or an agent uses one of many: either way its requests stay in order.
  const rounds = Math.max(...steps.map((one) => one.steps.length));
  for (let round = 0; round < rounds; round++) {
    const ready = steps.filter((one) => one.steps[round]);
    requests += ready.length;
    await spread(ready, (one) => (one.steps[round] as Step)(call, one.agent));
  }
  await sumUp(call);
  return requests;
}

/** Bytes of the database without its write-ahead log, which is bounded. An event store server's files are not counted. */
async function bytesOf({ url, dataDir }: Place): Promise<number> {
  if (!url) return directoryBytes(join(dataDir, 'pg'));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query('SELECT pg_database_size(current_database())::float8 AS bytes');
    return rows[0].bytes;
  } finally {
    await client.end();
  }
}

async function directoryBytes(path: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.name === 'pg_wal') continue;
    const child = join(path, entry.name);
    bytes += entry.isDirectory() ? await directoryBytes(child) : (await stat(child)).size;
  }
  return bytes;
}

interface Cost {
  readonly cpuMs: number;
  readonly bytes: number;
  readonly seconds: number;
}

async function costOf(service: Deployment, work: () => Promise<unknown>): Promise<Cost> {
  const bytes = await bytesOf(service.place);
  const cpu = service.cpuMs();
  const begun = performance.now();
  await work();
  const seconds = (performance.now() - begun) / 1_000;
  return { cpuMs: service.cpuMs() - cpu, bytes: (await bytesOf(service.place)) - bytes, seconds };
}

const MB = 1_000_000;

/** Prints the costs on one combination of stores. */
export async function benchDay({ name, start }: Combination): Promise<void> {
  const service = await start();
  try {
    const call = caller(service.url);
    const agents = await register(call, 'day', AGENTS);
    for (let window = 0; window < WARM_UP; window++) await runWindow(call, agents, window);
    let requests = 0;
    const day = await costOf(service, async () => {
      for (let window = 0; window < WINDOWS; window++) requests += await runWindow(call, agents, window);
    });
    console.log(`\n## One agent, one day: ${name}\n`);
    console.log(
      `${AGENTS} agents, ${requests.toLocaleString('en')} requests in ${day.seconds.toFixed(0)} s. Per agent and day: **${(day.bytes / AGENTS / MB).toFixed(2)} MB of disk, ${(day.cpuMs / AGENTS / 1_000).toFixed(2)} s of CPU**.\n`,
    );
    const rows: string[][] = [];
    const kind = async (text: string, each: number, work: (agent: Agent) => Promise<unknown>) => {
      const all = Array.from({ length: each }, () => agents).flat();
      const cost = await costOf(service, async () => {
        await spread(all, work);
        await sumUp(call);
      });
      rows.push([
        text,
        all.length.toLocaleString('en'),
        ((cost.cpuMs * 1_000) / all.length).toFixed(0),
        (cost.bytes / all.length).toFixed(0),
        (all.length / cost.seconds).toFixed(0),
      ]);
    };
    await kind('routine heartbeat', 500, (agent) => heartbeat(call, agent));
    await kind('token report', 50, (agent) => tokens(call, agent));
    await kind('chat message', 50, (agent) => chat(call, agent));
    await kind('task, nine requests', 10, async ({ id, name: agent }) => {
      // A copy: two tasks of one agent are worked on at once.
      const own: Agent = { id, name: agent };
      for (const step of TASK) await step(call, own);
    });
    console.log(table(['Each', 'count', 'CPU µs', 'disk bytes', 'per second'], rows));

    // A workspace has at most 10,000 agents.
    const fleet = [...agents, ...(await register(call, 'fleet', Math.max(0, FLEET - AGENTS)))];
    // The first heartbeats change the status of the agents, and what they know of their work.
    for (let round = 0; round < 2; round++) await spread(fleet, (agent) => heartbeat(call, agent));
    await sumUp(call);
    const beats = fleet.length * FLEET_ROUNDS;
    const cost = await costOf(service, async () => {
      for (let round = 0; round < FLEET_ROUNDS; round++) await spread(fleet, (agent) => heartbeat(call, agent));
      await sumUp(call);
    });
    const core = ((cost.cpuMs / beats) * fleet.length) / HEARTBEAT_SECONDS / 10;
    console.log(
      `\nA fleet of ${fleet.length.toLocaleString('en')}: ${((cost.cpuMs * 1_000) / beats).toFixed(0)} µs of CPU a heartbeat (${(beats / cost.seconds).toFixed(0)}/s), which is ${core.toFixed(1)} % of one core at one heartbeat in ${HEARTBEAT_SECONDS} s each; ${FLEET_ROUNDS} rounds and one summary took ${(cost.bytes / MB).toFixed(2)} MB of disk.`,
    );

    await service.halt();
    const rebuild = await measuredApart(service.place, 30 * 60_000);
    console.log(
      `\nRebuild of all of it: ${rebuild.events.toLocaleString('en')} events in ${rebuild.built.toFixed(1)} s (${Math.round(rebuild.events / rebuild.built).toLocaleString('en')}/s), ${rebuild.memoryMb} MB at the peak.`,
    );
  } finally {
    await service.stop();
  }
}
