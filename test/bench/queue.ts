/**
 * The queue: agents that poll, finish their task and poll again, each over one connection, until the time is up. Filling
 * the queue and finishing tasks are measured alone as well, because both are part of a task's way.
 */
import { Agent, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { KEY } from '../support/service-process.ts';
import type { Combination, Deployment } from './deployment.ts';
import { quantile, table, tableLine } from './report.ts';

const AGENTS = 32;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3);
const WARM_UP_SECONDS = Math.min(SECONDS, 2);
/** Waiting tasks per second of the run, so that none of them ends early. */
const TASKS_PER_SECOND = Number(process.env.BENCH_TASKS ?? 1_500);

const http = new Agent({ keepAlive: true, maxSockets: AGENTS });
const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };

interface Measured {
  /** Milliseconds of each request. */
  readonly polls: number[];
  readonly finishes: number[];
}

/** @throws when the response is not a 2xx */
function send<T>(method: string, url: string, body?: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers, agent: http }, (response) => {
      json(response).then((read) => {
        if (response.statusCode !== undefined && response.statusCode < 300) resolve(read as T);
        else reject(new Error(`${method} ${url}: ${response.statusCode} ${JSON.stringify(read)}`));
      }, reject);
    })
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function timed<T>(into: number[], work: Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work;
  into.push(performance.now() - begun);
  return result;
}

/** Each agent does `work` again and again for so many seconds, or until it returns false. */
async function whileTime(seconds: number, work: (agent: number) => Promise<boolean>): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: AGENTS }, async (_, agent) => {
      while (performance.now() < end && (await work(agent)));
    }),
  );
}

/** Prints one table for one combination of stores. */
export async function benchQueue({ name, start }: Combination): Promise<void> {
  const service = await start();
  try {
    const call = <T>(method: string, path: string, body?: unknown) => send<T>(method, service.url + path, body);
    for (let n = 0; n < AGENTS; n++) await call('POST', '/api/agents', { name: `agent-${n}`, role: 'coder' });
    console.log(`\n### Queue, ${name}: ${AGENTS} agents\n`);
    console.log(table(['What', 'per second', 'p50 ms', 'p99 ms', 'CPU ms each'], []));

    let left = TASKS_PER_SECOND * (SECONDS + WARM_UP_SECONDS);
    const created: number[] = [];
    await measured(service, 'POST tasks', [created], () =>
      whileTime(Number.POSITIVE_INFINITY, async () => {
        if (left-- <= 0) return false;
        await timed(created, call('POST', '/api/tasks', { title: `Task ${left}`, priority: PRIORITIES[left % 4] }));
        return true;
      }),
    );

    const done: number[] = [];
    const takeTask = async (agent: number, { polls, finishes }: Measured) => {
      const { task } = await timed(
        polls,
        call<{ task: { id: number } | null }>('GET', `/api/tasks/queue?agent=agent-${agent}`),
      );
      if (!task) throw new Error('the queue is empty: set BENCH_TASKS to more tasks per second');
      await timed(finishes, call('PUT', `/api/tasks/${task.id}`, { status: 'review' }));
      done.push(task.id);
      return true;
    };
    await whileTime(WARM_UP_SECONDS, (agent) => takeTask(agent, { polls: [], finishes: [] }));
    const [polls, finishes]: [number[], number[]] = [[], []];
    await measured(service, 'poll (each claims a task), finish', [polls, finishes], () =>
      whileTime(SECONDS, (agent) => takeTask(agent, { polls, finishes })),
    );

    // The same change of a task, by agents that do nothing else.
    const alone: number[] = [];
    let next = 0;
    await measured(service, 'PUT tasks alone', [alone], () =>
      whileTime(SECONDS, async () => {
        const n = next++;
        const status = Math.floor(n / done.length) % 2 === 0 ? 'in_progress' : 'review';
        await timed(alone, call('PUT', `/api/tasks/${done[n % done.length]}`, { status }));
        return true;
      }),
    );

    const idle: number[] = [];
    await measured(service, 'poll with a task in progress', [idle], () =>
      whileTime(SECONDS, async (agent) => {
        await timed(idle, call('GET', `/api/tasks/queue?agent=agent-${agent}`));
        return true;
      }),
    );
  } finally {
    await service.stop();
  }
}

const PRIORITIES = ['critical', 'high', 'medium', 'low'];

/** Prints a row. @param times milliseconds of each kind of request, as many of each */
async function measured(
  service: Deployment,
  what: string,
  times: readonly (readonly number[])[],
  run: () => Promise<void>,
): Promise<void> {
  const [begun, cpu] = [performance.now(), service.cpuMs()];
  await run();
  const seconds = (performance.now() - begun) / 1_000;
  const [{ length: count }] = times as readonly [readonly number[]];
  const each = (service.cpuMs() - cpu) / count;
  const at = (share: number) => times.map((one) => quantile(one, share).toFixed(0)).join(', ');
  console.log(tableLine([what, (count / seconds).toFixed(0), at(0.5), at(0.99), each.toFixed(2)]));
}
