/**
 * Jobs (`shared/ports/jobs.ts`) on BullMQ: one queue, and one worker per process.
 *
 * Jobs must not delay anything else: the process waits for an unavailable store in the background, and loads BullMQ,
 * which takes a third of a second, only where it is needed.
 *
 * Retention. Completed jobs are kept for a day, because their ids make adding them again harmless. Dead jobs are kept
 * until they are retried; a job that dies is also logged as an error. Redis holds its data in memory, so it keeps only
 * the newest 50,000 completed and the newest 100,000 dead jobs. PostgreSQL has no such limit, because it would have to
 * count the jobs after each one.
 */
import type * as BullMQ from 'bullmq';
import type { Job, Queue, Worker } from 'bullmq';
import type { JobHandler, JobKind, JobRecord, JobState, Jobs, Page } from '../../shared/ports/jobs.ts';
import { JobsUnavailableError, MAX_PAYLOAD_BYTES } from '../../shared/ports/jobs.ts';
import { traced, traceparentOf } from '../../shared/ports/tracing.ts';
import { maskedAddresses } from '../../shared/secret-texts.ts';
import { DAY } from '../../shared/time.ts';
import { createBackOff, pause, settledWithin, within } from '../../shared/waiting.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import { openPostgresStore } from './postgres.ts';
import { type JobStore, PREFIX, QUEUE } from './store.ts';

export interface RetryTimes {
  /** Attempts in total. */
  readonly attempts: number;
  /**
   * Pauses after the first failure and before the last attempt, milliseconds; those in between grow by a constant
   * factor.
   */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** 1 s, 3 s, 8 s, 24 s, 71 s, 3½ min, 10 min: a quarter of an hour in total. */
const RETRY: RetryTimes = { attempts: 8, firstMs: 1_000, lastMs: 600_000 };
/** Pauses vary at random by this fraction, so that jobs that failed together are not retried together. */
const JITTER = 0.2;
/** Jobs that one process runs concurrently. */
const CONCURRENCY = 10;
const KEEP = { doneSeconds: DAY, inRedis: { done: 50_000, dead: 100_000 } };
/** How long a call may wait for the store, milliseconds. */
const CALL_MS = 5_000;
const BACK_OFF = { firstMs: 500, lastMs: 30_000 };
/** How long BullMQ may take to close, aborted jobs included, milliseconds. */
const END_MS = 2_000;
/** Minimum interval between two log lines about the same store error, milliseconds. */
const REPEAT_LOG_MS = 30_000;
/** How many jobs `retry` takes at a time when it retries all. */
const RETRY_PAGE = 200;
const ALL = 'all';
/**
 * With an offset, however small, scheduled jobs are due at fixed clock times; without one, intervals start at the first
 * call.
 */
const SLOT_OFFSET_MS = 1;
/** How often the clock is compared with the time that has passed, and how far it may go back unnoticed; milliseconds. */
const CLOCK_LOOK_MS = 15_000;
const CLOCK_STEP_MS = 1_000;
const JOB_ID = /^[A-Za-z][A-Za-z0-9_.-]{0,199}$/;

export interface JobsOptions {
  /** `redisUrl` unset: jobs are kept in the database. `shutdownTimeoutMs`: how long `close` waits for running jobs. */
  readonly config: Pick<Config, 'redisUrl' | 'databaseUrl' | 'statementTimeoutMs' | 'shutdownTimeoutMs' | 'jobLockMs'>;
  /** Not used when there is a Redis. */
  readonly database: Database | undefined;
  readonly log: Logger;
  /** Name of the queue; default `jobs`. */
  readonly queue?: string;
  readonly retry?: RetryTimes;
  /** How often to look whether the clock was set back; default 15 s. */
  readonly clockLookMs?: number;
}

type AnyQueue = Queue<unknown, void, string, unknown, void, string>;

/** @param attempt number of the attempt that failed, from 1 */
export function pauseAfter(attempt: number, times: RetryTimes, random: () => number = Math.random): number {
  const steps = Math.max(1, times.attempts - 2);
  const grown = times.firstMs * (times.lastMs / times.firstMs) ** Math.min(1, (attempt - 1) / steps);
  return Math.round(grown * (1 + JITTER * (2 * random() - 1)));
}

/** Loads BullMQ. A caller that has to wait for something else can do so in the meantime. */
export const loadBullMQ = (): Promise<typeof BullMQ> => import('bullmq');

/** Opens the jobs of a deployment. Does not contact the store yet. */
export async function openJobs(options: JobsOptions): Promise<Jobs> {
  const { log } = options;
  const bullmq = await loadBullMQ();
  const complain = complaints(log);
  return new BullJobs(bullmq, await openStore(bullmq, complain, options), complain, options);
}

async function openStore(
  bullmq: typeof BullMQ,
  complain: (error: Error) => void,
  { config: { redisUrl, databaseUrl, statementTimeoutMs }, database, log }: JobsOptions,
): Promise<JobStore> {
  if (redisUrl !== undefined) {
    const { openRedisStore } = await import('./redis.ts');
    return openRedisStore(bullmq, { url: redisUrl, log, complain });
  }
  if (!database) throw new Error('jobs need Redis or a database; set REDIS_URL or DATABASE_URL');
  return openPostgresStore(bullmq, { database, databaseUrl, statementTimeoutMs, log });
}

class BullJobs implements Jobs {
  readonly #bullmq: typeof BullMQ;
  readonly #store: JobStore;
  readonly #complain: (error: Error) => void;
  readonly #options: JobsOptions;
  readonly #retry: RetryTimes;
  readonly #name: string;
  readonly #closing = new AbortController();
  /** Aborts the running jobs at the end of the shutdown time-out. */
  readonly #aborting = new AbortController();
  readonly #schedules = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  #queue: Promise<AnyQueue> | undefined;
  #working: Promise<void> | undefined;
  #worker: Worker | undefined;
  #scheduling: Promise<void> = Promise.resolve();
  #scheduleAsked = false;
  /** Settles after the first attempt to store the schedules, whether it succeeded or not. */
  #schedulesTried: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;
  #clock: NodeJS.Timeout | undefined;

  constructor(bullmq: typeof BullMQ, store: JobStore, complain: (error: Error) => void, options: JobsOptions) {
    this.#bullmq = bullmq;
    this.#store = store;
    this.#complain = complain;
    this.#options = options;
    this.#retry = options.retry ?? RETRY;
    this.#name = options.queue ?? QUEUE;
    // Redis may have lost its schedules while it was unavailable.
    store.onReturn(() => this.#schedule());
  }

  async enqueue<Payload extends object>(
    kind: JobKind<Payload>,
    payload: Payload,
    { id, delayMs = 0, traceparent }: Parameters<Jobs['enqueue']>[2],
  ): Promise<void> {
    if (!JOB_ID.test(id) || id === ALL)
      throw new Error(`invalid job id "${id}": use letters, digits, -, _ and ., starting with a letter`);
    const data = kind.schema.parse(payload);
    if (Buffer.byteLength(JSON.stringify(data)) > MAX_PAYLOAD_BYTES)
      throw new Error(
        `job ${id}: the payload is larger than ${MAX_PAYLOAD_BYTES} bytes; pass ids and let the handler load the data`,
      );
    const inRedis = this.#store.kind === 'redis';
    await this.#call((queue) =>
      queue.add(kind.name, data, {
        jobId: id,
        delay: delayMs,
        attempts: this.#retry.attempts,
        backoff: { type: 'growing' },
        removeOnComplete: { age: KEEP.doneSeconds, ...(inRedis && { count: KEEP.inRedis.done }) },
        removeOnFail: inRedis && { count: KEEP.inRedis.dead },
        stackTraceLimit: 1,
        ...(traceparent !== undefined && { telemetry: { metadata: traceparent } }),
      }),
    );
  }

  every(kind: JobKind, intervalMs: number): void {
    kind.schema.parse({});
    this.#schedules.set(kind.name, intervalMs);
    this.#schedule();
    this.#clock ??= this.#watchClock();
  }

  /** Stores the schedules anew when the clock was set back: their next jobs would wait for the old time. */
  #watchClock(): NodeJS.Timeout {
    const ahead = () => Date.now() - performance.now();
    let before = ahead();
    const look = () => {
      const now = ahead();
      if (now < before - CLOCK_STEP_MS) {
        this.#options.log.warn({ seconds: Math.round((before - now) / 1_000) }, 'the clock was set back');
        this.#schedule();
      }
      before = now;
    };
    return setInterval(look, this.#options.clockLookMs ?? CLOCK_LOOK_MS).unref();
  }

  /** Stores all schedules. */
  #schedule(): void {
    if (this.#schedules.size === 0 || this.#scheduleAsked) return;
    this.#scheduleAsked = true;
    this.#schedulesTried = new Promise((tried) => {
      this.#scheduling = this.#scheduling.then(() => {
        this.#scheduleAsked = false;
        return this.#until('the schedules', () => this.#storeSchedules().finally(tried));
      });
    });
  }

  async #storeSchedules(): Promise<void> {
    for (const [name, every] of this.#schedules) {
      // An unchanged schedule is not stored again: that would replace its next job and notify all workers.
      const known = await this.#call((queue) => queue.getJobScheduler(name));
      const next = known?.next ?? 0;
      const now = Date.now();
      // BullMQ keeps the next job of a schedule that it knows, even if the clock was set back since it was planned.
      const isFar = next > now + every;
      if (known?.every === every && next > now - every && !isFar) continue;
      if (isFar) await this.#call((queue) => queue.removeJobScheduler(name));
      const template = { name, data: {}, opts: { attempts: 1, removeOnComplete: true, removeOnFail: true } };
      await this.#call((queue) => queue.upsertJobScheduler(name, { every, offset: SLOT_OFFSET_MS }, template));
    }
  }

  work(handlers: readonly JobHandler[]): void {
    const byKind = new Map(handlers.map((handler) => [handler.kind.name, handler]));
    if (byKind.size !== handlers.length) throw new Error('two handlers for the same kind of job');
    // Each stored schedule wakes the worker, which then queries the store five times.
    this.#working ??= this.#schedulesTried.then(() => this.#until('the worker', () => this.#startWorker(byKind)));
  }

  async #startWorker(handlers: ReadonlyMap<string, JobHandler>): Promise<void> {
    await this.#store.prepare();
    if (this.#closing.signal.aborted) return;
    const { jobLockMs: lockDuration } = this.#options.config;
    const worker = new this.#bullmq.Worker(
      this.#name,
      (job: Job) => this.#run(job, handlers.get(job.name)),
      {
        connection: this.#store.consumer(),
        prefix: PREFIX,
        concurrency: CONCURRENCY,
        lockDuration,
        stalledInterval: lockDuration,
        // A job that kills its process each time must not be retried for ever.
        maxStalledCount: this.#retry.attempts,
        drainDelay: 10,
        runRetryDelay: 1_000,
        settings: { backoffStrategy: (attempt) => pauseAfter(attempt, this.#retry) },
      },
      this.#store.factory,
    ) as Worker;
    this.#worker = worker;
    worker.on('error', this.#complain);
    worker.on('failed', (job, error) => this.#tell(job, error));
    try {
      await worker.waitUntilReady();
    } catch (error) {
      this.#worker = undefined;
      await worker.close(true);
      throw error;
    }
  }

  /** Makes one attempt. */
  async #run(job: Job, handler: JobHandler | undefined): Promise<void> {
    // A newer process may know this kind, so the remaining attempts are worth making.
    if (!handler) throw new Error(`this process has no handler for jobs of the kind ${job.name}`);
    let start: ReturnType<JobHandler['accept']>;
    try {
      start = handler.accept(job.data);
    } catch (error) {
      throw new this.#bullmq.UnrecoverableError(
        `the payload does not match this kind of job: ${(error as Error).message}`,
      );
    }
    const { timeoutMs } = handler.kind;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`it took longer than ${timeoutMs} ms`)), timeoutMs);
    const signal = AbortSignal.any([late.signal, this.#aborting.signal]);
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
    const attemptNumber = job.attemptsMade + 1;
    const run = { id: job.id ?? '', attempt: attemptNumber, last: attemptNumber >= (job.opts.attempts ?? 1), signal };
    // The async function makes sure that the race is entered even if `start` throws, so that a rejection of `aborted`
    // is always handled.
    const options = {
      kind: 'consumer' as const,
      parent: traceparentOf(job.opts.telemetry?.metadata),
      attributes: { 'signalbox.job.id': run.id, 'signalbox.job.attempt': attemptNumber },
    };
    const attempt = traced(`job ${job.name}`, options, () => Promise.race([(async () => start(run))(), aborted]));
    const settled = attempt.then(
      () => undefined,
      () => undefined,
    );
    this.#running.add(settled);
    try {
      await attempt;
    } finally {
      clearTimeout(timer);
      this.#running.delete(settled);
    }
  }

  #tell(job: Job | undefined, error: Error): void {
    const about = { err: error, job: job?.id, kind: job?.name, attempt: job?.attemptsMade };
    const { log } = this.#options;
    if (job?.repeatJobKey) log.error(about, 'a scheduled job failed; the next run tries again');
    else if (job === undefined || job.finishedOn !== undefined)
      log.error(
        about,
        'a job has used up its attempts and is on the dead-letter list; `signalbox jobs retry` retries it',
      );
    else log.warn(about, 'a job failed and will be retried');
  }

  async counts(): Promise<Readonly<Record<JobState, number>>> {
    const counts = await this.#call((queue) => queue.getJobCounts('waiting', 'active', 'delayed', 'failed'));
    return {
      waiting: counts.waiting ?? 0,
      running: counts.active ?? 0,
      delayed: counts.delayed ?? 0,
      dead: counts.failed ?? 0,
    };
  }

  async list(state: JobState, { limit = 100, offset = 0 }: Page = {}): Promise<readonly JobRecord[]> {
    const jobs = await this.#call((queue) =>
      queue.getJobs([STATES[state]], offset, offset + limit - 1, state === 'waiting' || state === 'delayed'),
    );
    // BullMQ gives undefined for a job that moved on after it was listed.
    return (jobs as (Job | undefined)[]).filter((job) => job !== undefined).map((job) => recordOf(job, state));
  }

  async retry(id: string): Promise<number> {
    if (id !== ALL) return (await this.#retryOne(id)) ? 1 : 0;
    let count = 0;
    for (;;) {
      const page = await this.list('dead', { limit: RETRY_PAGE });
      const retried = await Promise.all(page.map((job) => this.#retryOne(job.id)));
      const done = retried.filter(Boolean).length;
      count += done;
      // No job was retried: other processes were faster, or none is left.
      if (done === 0) return count;
    }
  }

  async #retryOne(id: string): Promise<boolean> {
    const job = await this.#call((queue) => queue.getJob(id));
    if (!job || (await this.#call(() => job.getState())) !== 'failed') return false;
    await this.#call(() => job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true }));
    return true;
  }

  /** Calls the queue, within a time limit. @throws JobsUnavailableError */
  async #call<T>(work: (queue: AnyQueue) => Promise<T>): Promise<T> {
    try {
      return await within(CALL_MS, this.#openQueue().then(work), 'it');
    } catch (error) {
      throw new JobsUnavailableError(`the job store is unavailable: ${(error as Error).message}`, { cause: error });
    }
  }

  #openQueue(): Promise<AnyQueue> {
    if (this.#closing.signal.aborted) return Promise.reject(new Error('the queue is closed'));
    this.#queue ??= this.#makeQueue().catch((error) => {
      // BullMQ never forgets that its first connection check failed, so the next call creates a new queue.
      this.#queue = undefined;
      throw error;
    });
    return this.#queue;
  }

  async #makeQueue(): Promise<AnyQueue> {
    await this.#store.prepare();
    const queue = new this.#bullmq.Queue(
      this.#name,
      {
        connection: this.#store.producer(),
        prefix: PREFIX,
        // No process reads these events.
        streams: { events: { maxLen: 1_000 } },
      },
      this.#store.factory,
    ) as AnyQueue;
    queue.on('error', this.#complain);
    try {
      await queue.waitUntilReady();
    } catch (error) {
      // The connection is shared and stays open, so the listeners that this queue added must be removed.
      await ended(END_MS, queue.close());
      throw error;
    }
    return queue;
  }

  /** Repeats `work` until it succeeds or the queue is closed. */
  async #until(what: string, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    const backOff = createBackOff(BACK_OFF);
    while (!signal.aborted) {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted) return;
        this.#options.log.warn({ err: error }, `${what} could not be started; trying again`);
        await pause(backOff.next(), signal);
      }
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { log, config } = this.#options;
    this.#closing.abort();
    clearInterval(this.#clock);
    // Takes no more jobs, and closes when the running ones have ended.
    const worker = this.#worker?.close();
    if (worker) {
      const over = new AbortController();
      await ended(config.shutdownTimeoutMs, Promise.race([worker, this.#idle(over.signal)]));
      over.abort();
      if (this.#running.size > 0) {
        log.warn({ jobs: this.#running.size }, 'jobs did not finish before the shutdown and were aborted');
        this.#aborting.abort(new Error('the process is shutting down'));
      }
    }
    // If the store is unavailable, both would wait for it; nothing is lost by abandoning them.
    await ended(END_MS, Promise.all([worker, this.#queue?.then((queue) => queue.close())]));
    await this.#store.close();
  }

  /** Resolves when no job has run for a moment: long enough for the store to have recorded the last one. */
  async #idle(signal: AbortSignal): Promise<void> {
    do {
      await Promise.all(this.#running);
      await pause(END_MS, signal);
    } while (this.#running.size > 0 && !signal.aborted);
  }
}

const STATES = { waiting: 'waiting', running: 'active', delayed: 'delayed', dead: 'failed' } as const;

function recordOf(job: Job, state: JobState): JobRecord {
  return {
    id: job.id ?? '',
    kind: job.name,
    state,
    payload: job.data,
    attempts: job.attemptsMade,
    addedAt: job.timestamp,
    dueAt: state === 'delayed' ? (job.processedOn ?? job.timestamp) + job.delay : undefined,
    failedAt: state === 'dead' ? job.finishedOn : undefined,
    reason: job.failedReason ? maskedAddresses(job.failedReason) : undefined,
  };
}

/** Waits until the work has succeeded or failed, but no longer than this. */
const ended = (ms: number, work: Promise<unknown>): Promise<boolean> => settledWithin(ms, work).catch(() => true);

/** Logs errors of the store, the same error only once per interval. */
function complaints(log: Logger): (error: Error) => void {
  const loggedAt = new Map<string, number>();
  return (error) => {
    const what = (error as { code?: string }).code ?? error.message;
    const now = Date.now();
    if (now - (loggedAt.get(what) ?? 0) < REPEAT_LOG_MS) return;
    if (loggedAt.size > 100) loggedAt.clear();
    loggedAt.set(what, now);
    log.warn({ err: error }, 'the job store is failing; jobs are delayed');
  };
}
