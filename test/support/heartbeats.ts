/** Heartbeats that change nothing (ADR 49): callers count theirs, and what reads and the log say is compared with them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { runHere } from './command.ts';
import { KEY, runCommand } from './service-process.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
const AGENTS = 6;
/** After a request that failed, milliseconds. */
const PAUSE_MS = 20;

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
export class Sent {
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
    await sleep(PAUSE_MS);
  }
}

/** Heartbeats of all agents, and summaries and backups between them. A process that is started again has another URL. */
export async function beatUntil(
  urlNow: () => string,
  sent: Sent,
  agents: readonly number[],
  isOver: () => boolean,
): Promise<void> {
  const beating = agents.map(async (agent) => {
    while (!isOver()) if (!(await sent.beat(urlNow(), agent)) && !isOver()) await sleep(PAUSE_MS);
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
export async function checkHeartbeats(url: string, sent: Sent, agents: readonly number[]): Promise<void> {
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
export async function expectRebuilt(env: Readonly<Record<string, string>>): Promise<void> {
  // On a server, the program starts itself for it.
  const run = env.DATABASE_URL === undefined ? runHere : runCommand;
  const { code, out, err } = await run(['rebuild', '--check', 'leases', 'agents', 'connections'], env);
  expect(code, out + err).to.equal(0);
}

/** Registers the agents. @returns their ids */
export const register = (url: string) =>
  Promise.all(
    Array.from({ length: AGENTS }, async (_, n) => {
      const { agent } = await json<{ agent: { id: number } }>(`${url}/api/agents`, 'POST', {
        name: `beating-${n}`,
        role: 'coder',
      });
      return agent.id;
    }),
  );
