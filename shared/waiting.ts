/** Ways to wait: for a time, for an answer that may not come, for one's turn, for a store that is away. */

/**
 * Resolves after `ms`, or when the signal aborts.
 *
 * @param options.ref keeps the process alive meanwhile: somebody waits for what comes after the pause
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
  if (!(await settledWithin(ms, work))) throw new Error(`${what} did not answer within ${ms} ms`);
  return work;
}

/** Gives a function that runs one piece of work at a time, in the order of the calls, whether or not they succeed. */
export function takingTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/**
 * Like `takingTurns`, with a queue of its own for each key. Whoever waits for work that fails with what `failsAll` is
 * true for, such as a store that is away, fails with it: all of them wait for one time-out, not for one each.
 */
export function takingTurnsByKey(
  failsAll: (error: unknown) => boolean,
): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** The last in line of each key. */
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

export interface BackOff {
  /** Milliseconds to wait after one more failure: doubling from the first to the longest. */
  next(): number;
  /** It worked: the next failure waits as briefly as the first. */
  reset(): void;
}

/** @param options.spread takes up to half of each pause away at random, so that callers do not come in step */
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

/** While a store stays away, that is logged again this often, milliseconds. */
const REPEAT_MS = 30_000;

interface OutageLog {
  warn(about: object, message: string): void;
  info(about: object, message: string): void;
}

/** Logs that something fails and that it works again; not each of the many failures in between. */
export interface Outage {
  /** @param about what else the warning should tell */
  failed(error: unknown, about?: object): void;
  worked(): void;
}

/** @param failing the warning @param works the line that ends it */
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
