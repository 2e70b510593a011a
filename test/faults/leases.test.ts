/**
 * Heartbeats that change nothing, under kill -9, crashes of the database, backups and summaries: none that was
 * acknowledged is lost, and each is summed up once. A heartbeat without a response may have been counted or not.
 */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { missingStores, type Node, startNode, startStores } from '../support/cluster.ts';
import { runHere } from '../support/command.ts';
import { closing } from '../support/fixture.ts';
import { needs, needsServer } from '../support/needs.ts';
import { ownPostgres } from '../support/own-servers.ts';
import { runs } from '../support/runs.ts';
import { freshDatabase } from '../support/service.ts';
import { KEY, runCommand, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
const AGENTS = 6;
const ROUNDS = runs(1, 3);

interface Event {
  readonly position: number;
  readonly data: { readonly agents: readonly [number, number, number, number][] };
}

class Refused extends Error {
  status = 0;
}

async function json<T>(url: string, method = 'GET', body?: unknown): Promise<T> {
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok)
    throw Object.assign(new Refused(`${method} ${url}: ${response.status} ${text}`), { status: response.status });
  return JSON.parse(text) as T;
}

/** What callers know of the heartbeats of each agent. */
class Sent {
  readonly acknowledged = new Map<number, number>();
  readonly unknown = new Map<number, number>();

  /** One heartbeat. @returns whether it was acknowledged */
  async beat(url: string, agent: number): Promise<boolean> {
    const count = (of: Map<number, number>) => of.set(agent, (of.get(agent) ?? 0) + 1);
    try {
      const response = await fetch(`${url}/api/agents/${agent}/heartbeat`, { method: 'POST', headers, body: '{}' });
      await response.text();
      count(response.ok ? this.acknowledged : this.unknown);
      return response.ok;
    } catch {
      count(this.unknown);
      return false;
    }
  }

  total = (): number => [...this.acknowledged.values()].reduce((sum, one) => sum + one, 0);
}

/** A request to a service that may be gone, or whose database is; 500 is a defect. */
async function attempt(url: string, body: object): Promise<void> {
  try {
    await json(url, 'POST', body);
  } catch (error) {
    if (error instanceof Refused && error.status === 500) throw error;
  }
}

/** Heartbeats of all agents, and summaries and backups between them. A process that is started again has another URL. */
async function beatUntil(
  urlNow: () => string,
  sent: Sent,
  agents: readonly number[],
  isOver: () => boolean,
): Promise<void> {
  const beating = agents.map(async (agent) => {
    while (!isOver())
      if (!(await sent.beat(urlNow(), agent)) && !isOver()) await new Promise((go) => setTimeout(go, 20));
  });
  const summing = (async () => {
    for (let n = 0; !isOver(); n++) {
      await attempt(`${urlNow()}/api/scheduler`, { task_id: 'heartbeat_summary' });
      if (n % 3 === 2) await attempt(`${urlNow()}/api/backup`, {});
    }
  })();
  await Promise.all([...beating, summing]);
}

/** Heartbeats of each agent according to the events of the log alone. */
async function inLog(url: string): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>();
  const add = (agent: number, beats: number) => counts.set(agent, (counts.get(agent) ?? 0) + beats);
  for (const type of ['HeartbeatsReceived', 'AgentHeartbeatReceived']) {
    for (let after = 0; ; ) {
      const page = await json<{ events: (Event & { data: { agent_id: number } })[]; next_after: number | null }>(
        `${url}/api/history/events?type=${type}&limit=1000&after=${after}`,
      );
      for (const { data } of page.events) {
        if (type === 'AgentHeartbeatReceived') add(data.agent_id, 1);
        else for (const [agent, beats] of data.agents) add(agent, beats);
      }
      if (page.events.length === 0 || page.next_after === null) break;
      after = page.next_after;
    }
  }
  return counts;
}

/** Compares what callers, reads and the log say. */
async function check(url: string, sent: Sent, agents: readonly number[]): Promise<void> {
  const shown = async () =>
    new Map(
      await Promise.all(
        agents.map(async (agent) => {
          const { summary } = await json<{ summary: { heartbeats: number } }>(
            `${url}/api/agents/${agent}/diagnostics?privileged=1&section=summary&hours=24`,
          );
          return [agent, summary.heartbeats] as const;
        }),
      ),
    );
  const before = await shown();
  await json(`${url}/api/scheduler`, 'POST', { task_id: 'heartbeat_summary' });
  const logged = await inLog(url);
  for (const agent of agents) {
    const least = sent.acknowledged.get(agent) ?? 0;
    const most = least + (sent.unknown.get(agent) ?? 0);
    expect(logged.get(agent), `agent ${agent}: in the log`).to.be.within(least, most);
    expect(before.get(agent), `agent ${agent}: shown before the summary`).to.equal(logged.get(agent));
  }
  expect(await shown(), 'shown after the summary').to.deep.equal(before);
}

/** A rebuild gives the rows that are there. */
async function expectRebuilt(env: Readonly<Record<string, string>>): Promise<void> {
  // On a server, the program starts itself for it.
  const run = env.DATABASE_URL === undefined ? runHere : runCommand;
  const { code, out, err } = await run(['rebuild', '--check', 'leases', 'agents', 'connections'], env);
  expect(code, out + err).to.equal(0);
}

const register = (url: string) =>
  Promise.all(
    Array.from({ length: AGENTS }, async (_, n) => {
      const { agent } = await json<{ agent: { id: number } }>(`${url}/api/agents`, 'POST', {
        name: `beating-${n}`,
        role: 'coder',
      });
      return agent.id;
    }),
  );

async function killed(env: Record<string, string>): Promise<void> {
  const path = await dataDirectory();
  await using directory = closing({ path, remove: () => rm(path, { recursive: true, force: true }) });
  const sent = new Sent();
  let agents: readonly number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startProcess(directory.path, env);
    if (round === 0) agents = await register(service.url);
    const limit = sent.total() + 50 + Math.floor(Math.random() * runs(50, 150));
    let dead: Promise<void> | undefined;
    let gone = false;
    await beatUntil(
      () => service.url,
      sent,
      agents,
      () => {
        if (sent.total() >= limit) {
          dead ??= service.stop('SIGKILL').then(() => {
            gone = true;
          });
        }
        return gone;
      },
    );
    await dead;
  }
  const service = await startProcess(directory.path, env);
  await check(service.url, sent, agents);
  await service.stop();
  await expectRebuilt({ ...env, DATA_DIR: directory.path });
}

/** Two processes with the API, and a worker, which is killed and started again. */
async function twoProcesses(env: Record<string, string>, fault: (worker: { kill(): Promise<void> }) => Promise<void>) {
  const path = await dataDirectory();
  await using directory = closing({ path, remove: () => rm(path, { recursive: true, force: true }) });
  const sent = new Sent();
  const one = await startProcess(directory.path, env);
  const other = await startProcess(directory.path, env, ['--role', 'api']);
  let extra: ServiceProcess | undefined;
  try {
    const agents = await register(one.url);
    let over = false;
    const beating = Promise.all([
      beatUntil(
        () => one.url,
        sent,
        agents,
        () => over,
      ),
      beatUntil(
        () => other.url,
        sent,
        agents,
        () => over,
      ),
    ]);
    for (let n = 0; n < ROUNDS; n++) {
      extra = await startProcess(directory.path, env);
      const now = sent.total();
      await until('heartbeats go on', () => sent.total() > now + 30);
      const running = extra;
      await fault({ kill: () => running.stop('SIGKILL') });
      await running.stop('SIGKILL');
    }
    const now = sent.total();
    await until('heartbeats go on', () => sent.total() > now + 30);
    over = true;
    await beating;
    await check(one.url, sent, agents);
    await check(other.url, sent, agents);
    await expectRebuilt(env);
  } finally {
    await extra?.stop('SIGKILL');
    await other.stop();
    await one.stop();
  }
}

describe('heartbeats that change nothing, under faults', function () {
  this.timeout(180_000);

  it('survive kill -9 on the embedded default', () => killed({}));

  it('survive kill -9 on PostgreSQL', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using fresh = closing(await freshDatabase());
    await killed({ DATABASE_URL: fresh.url });
  });

  it('of several processes, one of which is killed', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using fresh = closing(await freshDatabase());
    await twoProcesses({ DATABASE_URL: fresh.url }, ({ kill }) => kill());
  });

  it('survive crashes of PostgreSQL', async function () {
    const server = await ownPostgres();
    needs('the programs of PostgreSQL', server, this);
    await using postgres = closing(server);
    await twoProcesses({ DATABASE_URL: postgres.url.href }, () => postgres.crash());
  });

  it('survive kill -9 of each process of a cluster, and crashes of its stores', async function () {
    // Eight processes start.
    this.timeout(300_000);
    const missing = missingStores();
    needs(missing ?? 'stores', missing === undefined, this);
    await using stores = closing(await startStores());
    const roles = { one: 'api', other: 'api', projector: 'projector', worker: 'worker' } as const;
    const nodes = new Map<keyof typeof roles, Node>();
    const node = (name: keyof typeof roles) => nodes.get(name) as Node;
    const start = async (name: keyof typeof roles) => {
      const started = await startNode(stores, name, roles[name]);
      nodes.set(name, started);
      await started.ready;
    };
    const sent = new Sent();
    try {
      for (const name of Object.keys(roles) as (keyof typeof roles)[]) await start(name);
      const agents = await register(node('one').url);
      let over = false;
      const beating = Promise.all([
        beatUntil(
          () => node('one').url,
          sent,
          agents,
          () => over,
        ),
        beatUntil(
          () => node('other').url,
          sent,
          agents,
          () => over,
        ),
      ]);
      const more = async () => {
        const now = sent.total();
        await until('heartbeats go on', () => sent.total() > now + 30, 60_000);
      };
      for (const name of ['other', 'projector', 'worker', 'one'] as const) {
        await more();
        const dead = node(name);
        dead.kill('SIGKILL');
        await dead.ended;
        await start(name);
      }
      await more();
      await stores.postgres.crash();
      await more();
      stores.events.proxy.cut();
      await more();
      over = true;
      await beating;
      await check(node('one').url, sent, agents);
      await check(node('other').url, sent, agents);
      await expectRebuilt(stores.env);
    } finally {
      for (const one of nodes.values()) one.kill('SIGKILL');
    }
  });
});
