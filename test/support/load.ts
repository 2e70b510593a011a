/**
 * A load of writes and stream clients for fault tests, and the check of its results.
 *
 * Every write has a unique text, so that the log shows how often it was done. A write without a final answer (503, a
 * broken connection, an earlier request that still runs) is repeated, a POST with the same Idempotency-Key, through
 * whichever API process comes next, until it has one.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';
import { KEY } from './service-process.ts';
import { openStream } from './stream.ts';
import { until } from './until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
/** A request that has no answer after this hangs, milliseconds. */
const HANGS_MS = 30_000;

/** Random numbers from 0 to 1 that a seed repeats (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An acknowledged write, and what must be in the log. */
interface Acknowledged {
  readonly type: 'AgentRegistered' | 'AgentDetailsChanged' | 'TokensReported';
  readonly mark: string;
}

/** A request that did not succeed. */
export interface Failure {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly code: string | undefined;
  readonly ms: number;
}

export interface LoadReport {
  readonly acknowledged: readonly Acknowledged[];
  /** 503s, and nothing else: any other refusal ends the load. */
  readonly refused: readonly Failure[];
  /** Connections that broke before an answer. */
  readonly broken: number;
  /** How often a repetition was answered that the earlier request is still running. */
  readonly stillRunning: number;
  /** The longest time in which no write was acknowledged, milliseconds. */
  readonly longestPauseMs: number;
}

export interface Load {
  /** Writes acknowledged so far. */
  readonly count: number;
  readonly refusedCount: number;
  /** Waits until so many more writes are acknowledged. */
  more(count: number): Promise<void>;
  /** Ends the load when writes no longer get answers. */
  abandon(): void;
  /** Lets every write get its final answer. */
  stop(): Promise<LoadReport>;
}

/** @param urls of the API processes, asked for at each request */
export function startLoad(urls: () => readonly string[], random: () => number, writers = 6): Load {
  const run = randomUUID().slice(0, 8);
  const acknowledged: Acknowledged[] = [];
  const refused: Failure[] = [];
  let broken = 0;
  let stillRunning = 0;
  let longestPauseMs = 0;
  let lastAt = performance.now();
  let running = true;
  let failure: Error | undefined;

  /** One attempt. Undefined: there is no final answer yet. */
  async function attempt(method: string, path: string, body: object, key: string | undefined) {
    const all = urls();
    const url = all[Math.floor(random() * all.length)] as string;
    const begun = performance.now();
    let response: Response;
    let text: string;
    try {
      response = await fetch(url + path, {
        method,
        headers: { ...headers, ...(key && { 'idempotency-key': key }) },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(HANGS_MS),
      });
      text = await response.text();
    } catch (error) {
      if ((error as Error).name === 'TimeoutError')
        throw new Error(`${method} ${path} had no answer after ${HANGS_MS} ms`);
      broken++;
      return undefined;
    }
    const { status } = response;
    let answer: { readonly error?: unknown; readonly code?: string; readonly agent?: { readonly id: number } };
    try {
      answer = JSON.parse(text);
    } catch {
      throw new Error(`${method} ${path} was answered ${status} with a body that is no JSON: ${text}`);
    }
    if (status < 300) return answer;
    if (status === 503) {
      expect(answer.error, '503 without a message').to.be.a('string');
      refused.push({ method, path, status, code: answer.code, ms: performance.now() - begun });
      return undefined;
    }
    if (status === 409 && answer.code === 'IDEMPOTENCY_IN_PROGRESS') {
      stillRunning++;
      return undefined;
    }
    throw new Error(`${method} ${path} ${key ?? ''} was answered ${status}: ${text}`);
  }

  async function finally_(method: string, path: string, body: object, mark: Acknowledged) {
    const key = method === 'POST' ? randomUUID() : undefined;
    for (;;) {
      if (failure) throw failure;
      const answer = await attempt(method, path, body, key);
      if (answer) {
        acknowledged.push(mark);
        longestPauseMs = Math.max(longestPauseMs, performance.now() - lastAt);
        lastAt = performance.now();
        return answer;
      }
      // Clients that retry at once would only take CPU time from the recovery that they wait for.
      await sleep(20 + 30 * random());
    }
  }

  async function write(writer: number): Promise<void> {
    let id: number | undefined;
    for (let n = 0; running; n++) {
      const mark = `${run}-${writer}-${n}`;
      const choice = random();
      if (id === undefined || choice < 0.2) {
        const body = { name: mark, role: 'coder' };
        id = (await finally_('POST', '/api/agents', body, { type: 'AgentRegistered', mark })).agent?.id;
      } else if (choice < 0.6) {
        await finally_('PUT', `/api/agents/${id}`, { role: mark }, { type: 'AgentDetailsChanged', mark });
      } else {
        // The tokens that it reports are an event, whatever else it changes.
        const body = { token_usage: { model: mark, inputTokens: 1, outputTokens: 1 } };
        await finally_('POST', `/api/agents/${id}/heartbeat`, body, { type: 'TokensReported', mark });
      }
    }
  }

  const all = Promise.all(
    Array.from({ length: writers }, (_, writer) =>
      write(writer).catch((error: Error) => {
        failure ??= error;
        running = false;
      }),
    ),
  );
  const check = () => {
    if (failure) throw failure;
  };
  return {
    get count() {
      return acknowledged.length;
    },
    get refusedCount() {
      return refused.length;
    },
    async more(count) {
      const enough = acknowledged.length + count;
      await until(
        `${count} more writes are acknowledged`,
        () => {
          check();
          return acknowledged.length >= enough;
        },
        60_000,
      );
    },
    abandon() {
      running = false;
      failure ??= new Error('the load was abandoned');
    },
    async stop() {
      running = false;
      await all;
      check();
      return { acknowledged, refused, broken, stillRunning, longestPauseMs };
    },
  };
}

/** @throws AssertionError that names the writes that are missing in the log, or in it twice */
export function expectOnce(
  acknowledged: readonly Acknowledged[],
  events: readonly Pick<LoggedEvent, 'type' | 'data'>[],
): void {
  const counts = new Map<string, number>();
  for (const { type, data } of events) {
    const mark = {
      AgentRegistered: data.name,
      TokensReported: modelIn(data),
      AgentDetailsChanged: roleIn(data),
    }[type];
    if (typeof mark === 'string') counts.set(`${type} ${mark}`, (counts.get(`${type} ${mark}`) ?? 0) + 1);
  }
  const wrong = acknowledged
    .map(({ type, mark }) => ({ write: `${type} ${mark}`, times: counts.get(`${type} ${mark}`) ?? 0 }))
    .filter(({ times }) => times !== 1);
  expect(wrong, 'acknowledged writes that are not in the log exactly once').to.deep.equal([]);
}

const roleIn = (data: Readonly<Record<string, unknown>>): unknown =>
  (data.role ?? (data.changes as { role?: unknown } | undefined)?.role) as unknown;

const modelIn = (data: Readonly<Record<string, unknown>>): unknown =>
  (data.reports as readonly { readonly model: string }[] | undefined)?.[0]?.model;

/** A client of the event stream that resumes with Last-Event-ID whenever its stream ends. */
export interface StreamClient {
  /** Ids of all frames, in the order in which they came. */
  readonly ids: readonly string[];
  /** How often it resumed. */
  readonly resumed: number;
  /** Breaks its connection. */
  cut(): void;
  close(): Promise<void>;
}

/** Follows from the beginning of the log. */
export function startStreamClient(urls: () => readonly string[], random: () => number): StreamClient {
  const ids: string[] = [];
  let resumed = -1;
  let closed = false;
  let end = () => {};
  const running = (async () => {
    while (!closed) {
      const all = urls();
      const url = all[Math.floor(random() * all.length)] as string;
      const after = ids.at(-1) ?? '0';
      try {
        const stream = await openStream(`${url}/api/events`, { ...headers, 'last-event-id': after });
        resumed++;
        end = stream.close;
        let taken = 0;
        const take = () => {
          for (; taken < stream.frames.length; taken++) ids.push(stream.frames[taken]?.id as string);
          return closed;
        };
        await stream.until(take, 3_600_000).catch(() => undefined);
        take();
        stream.close();
      } catch {
        // Not reachable, or 503: the next attempt may go to another process.
        await sleep(20);
      }
    }
  })();
  return {
    ids,
    get resumed() {
      return resumed;
    },
    cut: () => end(),
    async close() {
      closed = true;
      end();
      await running;
    },
  };
}
