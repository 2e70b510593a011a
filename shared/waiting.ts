/** Ways to wait: for a time, for a response that may not come, for a turn, for an unavailable store. */

/**
 * Resolves after `ms`, or when the signal aborts.
 *
 * @param options.ref keeps the process alive during the pause
 */
export function pause(ms: number, signal?: AbortSignal, { ref = false }: { ref?: boolean } = {}): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (!ref) timer.unref();
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** Ends the wait of a loop that has nothing to do. */
export interface Notice {
  /** Ends the current wait, or the next one if there is none. */
  give(): void;
  /** @returns true when the notice was given within this time; false after it, or when the signal aborts */
  within(ms: number, signal: AbortSignal): Promise<boolean>;
}

export function createNotice(): Notice {
  let given = false;
  let waiting = new AbortController();
  return {
    give() {
      given = true;
      waiting.abort();
    },
    async within(ms, signal) {
      waiting = new AbortController();
      if (!given) await pause(ms, AbortSignal.any([signal, waiting.signal]));
      const was = given;
      given = false;
      return was;
    },
  };
}

/** Resolves when the event loop has handled its current tasks. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const pieces: (() => void)[] = [];

function runPiece(): void {
  pieces.shift()?.();
  if (pieces.length > 0) setImmediate(runPiece);
}

/**
 * For long work on the main thread: await it between two pieces of at most some 10 ms. In each turn of the event loop, one
 * piece runs, for all callers together, so other requests wait for one piece, not for one of each running request.
 */
export const nextPiece = (): Promise<void> =>
  new Promise((resolve) => {
    if (pieces.push(resolve) === 1) setImmediate(runPiece);
  });

/** Milliseconds of a piece of work. */
const PIECE_MS = 4;

/** `change` of each value, in pieces between which other requests are handled. */
export async function inPieces<T, R>(values: readonly T[], change: (value: T) => R): Promise<R[]> {
  const changed: R[] = [];
  let begun = performance.now();
  for (const value of values) {
    if (performance.now() - begun > PIECE_MS) {
      await nextPiece();
      begun = performance.now();
    }
    changed.push(change(value));
  }
  return changed;
}

/** Waits for a promise; false when `ms` pass first. @throws what the promise rejects with, in time */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, Math.max(ms, 0), false);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** @throws Error that names `what` when it takes longer than `ms` */
export async function within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
  if (!(await settledWithin(ms, work))) throw new Error(`${what} did not respond within ${ms} ms`);
  return work;
}

/** Once in so many groups, one waits the whole time, which measures how many callers come. */
const GROUPS = 256;
/** After so many groups in a row for which fewer came than expected, the largest of them is expected. */
const SHORT_GROUPS = 4;

/**
 * Creates a function whose callers wait for each other, at most `ms`: until as many wait as came within that time when
 * that was last measured, or `most`. So they wait neither if no others come, nor for others that wait for their response.
 */
export function awaitingOthers(ms: number, most: number): () => Promise<void> {
  let expected = 1;
  let groups = 0;
  /** Sizes of the last groups, if fewer came than expected. */
  let short: number[] = [];
  let waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  const isMeasured = () => groups % GROUPS === 0;
  const end = () => {
    clearTimeout(timer);
    timer = undefined;
    const group = waiting;
    waiting = [];
    short = group.length < expected ? [...short, group.length] : [];
    if (isMeasured() || short.length === SHORT_GROUPS) {
      expected = isMeasured() ? group.length : Math.max(...short);
      short = [];
    }
    groups += 1;
    for (const go of group) go();
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length >= (isMeasured() ? most : expected)) end();
      else timer ??= setTimeout(end, ms);
    });
}

/** Creates a function that runs one piece of work at a time, in the order of the calls, whether or not they succeed. */
export function takingTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/**
 * Like `takingTurns`, with a separate queue for each key. When work fails with an error for which `failsAll` is true,
 * such as an unavailable store, all work that waits behind it fails as well, after one time-out instead of one each.
 */
export function takingTurnsByKey(
  failsAll: (error: unknown) => boolean,
): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** The last piece of work in the queue of each key. */
  const queues = new Map<string, Promise<{ readonly failure: unknown } | undefined>>();
  return (key, work) => {
    const mine = queues.get(key)?.then((before) => (before ? Promise.reject(before.failure) : work())) ?? work();
    const settled = mine
      .then(
        () => undefined,
        (failure: unknown) => (failsAll(failure) ? { failure } : undefined),
      )
      .finally(() => {
        if (queues.get(key) === settled) queues.delete(key);
      });
    queues.set(key, settled);
    return mine;
  };
}

/**
 * Queries that are sent together: while one is in flight, callers gather for the next. No caller gets the response to a
 * query that was sent before its call, so a response shows everything that its callers have written.
 *
 * @param options.failsAll callers that wait behind a failing query fail with it: after one time-out instead of two
 * @param options.inOneTurn calls in the same turn of the event loop share a query; by default only those before the
 *   next microtask
 * @param options.most a query for so many keys is full, and later callers gather for the next one
 */
export function askingTogether<Key, Response>(
  ask: (keys: readonly Key[]) => Promise<Response>,
  { failsAll = false, inOneTurn = false, most = Number.POSITIVE_INFINITY } = {},
): (keys: readonly Key[]) => Promise<Response> {
  let gathering: { readonly keys: Key[]; readonly response: Promise<Response> } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  return (keys) => {
    if (!gathering || gathering.keys.length >= most) {
      const all: Key[] = [];
      const send = () => {
        if (gathering === mine) gathering = undefined;
        return ask(all);
      };
      const response = (inOneTurn ? last.then(nextTurn) : last).then(send);
      const mine = { keys: all, response };
      const waits: Promise<unknown> = failsAll ? response : response.catch(() => undefined);
      const done = () => {
        // The query failed before it was sent.
        if (gathering === mine) gathering = undefined;
        if (last === waits) last = Promise.resolve();
      };
      gathering = mine;
      last = waits;
      response.then(done, done);
    }
    gathering.keys.push(...keys);
    return gathering.response;
  };
}

/**
 * A query whose response is shared by callers that called before it was sent: `askingTogether` without keys, and with
 * the newest response.
 *
 * @returns a function that returns the response to a query sent after `since` (`performance.now()`); default: after the
 *   call. Calls in the same turn of the event loop share one.
 */
export function askedSince<Response>(
  ask: () => Promise<Response>,
  options: { readonly failsAll?: boolean } = {},
): (since?: number) => Promise<Response> | Response {
  let newest: { readonly sent: number; readonly response: Response } | undefined;
  const together = askingTogether<never, Response>(
    async () => {
      const sent = performance.now();
      const response = await ask();
      newest = { sent, response };
      return response;
    },
    // Requests that arrived together are handled one after the other in a turn, and share the query.
    { ...options, inOneTurn: true },
  );
  return (since = Number.POSITIVE_INFINITY) => (newest && newest.sent > since ? newest.response : together([]));
}

export interface BackOff {
  /** Milliseconds to wait after another failure: doubling from `firstMs` up to `lastMs`. */
  next(): number;
  /** Call this after a success: the next failure starts again with the shortest wait. */
  reset(): void;
}

/** @param options.spread shortens each pause at random by up to half, so that callers do not retry in step */
export function createBackOff(options: { firstMs: number; lastMs: number; spread?: boolean }): BackOff {
  const { firstMs, lastMs, spread = false } = options;
  let wait = firstMs;
  return {
    next() {
      const now = wait;
      wait = Math.min(wait * 2, lastMs);
      return spread ? now * (0.5 + Math.random() / 2) : now;
    },
    reset() {
      wait = firstMs;
    },
  };
}

/** How often an ongoing outage is logged again, milliseconds. */
const REPEAT_MS = 30_000;

interface OutageLog {
  warn(about: object, message: string): void;
  info(about: object, message: string): void;
}

/** Logs when an operation starts to fail and when it works again, but not every failure in between. */
export interface Outage {
  /** @param about further fields of the warning */
  failed(error: unknown, about?: object): void;
  worked(): void;
}

/** @param failing text of the warning @param works text of the message when it works again */
export function createOutage(log: OutageLog, failing: string, works: string, now: () => number = Date.now): Outage {
  let since: number | undefined;
  let logged = 0;
  return {
    failed(error, about) {
      since ??= now();
      if (now() - logged < REPEAT_MS) return;
      logged = now();
      log.warn({ err: error, forMs: now() - since, ...about }, failing);
    },
    worked() {
      if (since === undefined) return;
      log.info({ afterMs: now() - since }, works);
      since = undefined;
      logged = 0;
    },
  };
}
