/**
 * The port for jobs: work that is done later, at least once, by one of the worker processes.
 *
 * A failed job is retried with growing delays; one that has used up its attempts stays on the dead-letter list until an
 * operator retries it. Callers choose the ids of jobs: two jobs with the same id are one job. While the job store is
 * unavailable, nothing can be added, so a caller that must not lose a job remembers its position and tries again
 * (`infra/jobs/policies.ts`).
 */
import type { z } from 'zod';

/** A kind of job. */
export interface JobKind<Payload extends object = object> {
  /** Lower-case words joined by `-`. Stored with each job, so it must never change its meaning. */
  readonly name: string;
  readonly schema: z.ZodType<Payload>;
  /** Time limit for one attempt, milliseconds. After that its signal aborts and the attempt counts as failed. */
  readonly timeoutMs: number;
}

/** Default time limit for an attempt, milliseconds. */
const TIMEOUT_MS = 60_000;
const KIND_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** @param definition.timeoutMs default: one minute */
export function defineJob<Payload extends object>(definition: {
  readonly name: string;
  readonly schema: z.ZodType<Payload>;
  readonly timeoutMs?: number;
}): JobKind<Payload> {
  const { name, schema, timeoutMs = TIMEOUT_MS } = definition;
  if (!KIND_NAME.test(name)) throw new Error(`invalid kind of job "${name}": use lower-case words joined by -`);
  return { name, schema, timeoutMs };
}

/** Passed to a running job. */
export interface JobRun {
  /** The same in each attempt; pass it to any service that must not do the work twice. */
  readonly id: string;
  /** Counted from 1. */
  readonly attempt: number;
  /** Whether there is no further attempt if this one fails. */
  readonly last: boolean;
  /** Aborts when the attempt takes too long or the process stops; work done after that may be repeated. */
  readonly signal: AbortSignal;
}

/** Handles the jobs of one kind. */
export interface JobHandler {
  readonly kind: Pick<JobKind, 'name' | 'timeoutMs'>;
  /**
   * Checks a stored payload.
   * @throws when it does not match this kind: the job goes straight to the dead-letter list
   */
  accept(payload: unknown): (run: JobRun) => Promise<void>;
}

/** @param run resolves when the work is done; if it throws, the attempt has failed */
export function handleJob<Payload extends object>(
  kind: JobKind<Payload>,
  run: (payload: Payload, job: JobRun) => Promise<void>,
): JobHandler {
  return {
    kind,
    accept(stored) {
      const payload = kind.schema.parse(stored);
      return (job) => run(payload, job);
    },
  };
}

export const JOB_STATES = ['waiting', 'running', 'delayed', 'dead'] as const;
/** `delayed`: due later, or between two attempts. */
export type JobState = (typeof JOB_STATES)[number];

/** A job as shown to operators. Times in Unix milliseconds. */
export interface JobRecord {
  readonly id: string;
  readonly kind: string;
  readonly state: JobState;
  readonly payload: unknown;
  /** Attempts that have ended. */
  readonly attempts: number;
  readonly addedAt: number;
  /** Due time of a delayed job. */
  readonly dueAt: number | undefined;
  /** End of the last attempt of a dead job. */
  readonly failedAt: number | undefined;
  /** Why the last attempt failed. */
  readonly reason: string | undefined;
}

export interface Page {
  /** Default 100. */
  readonly limit?: number;
  /** Default 0. */
  readonly offset?: number;
}

/** Size limit for a payload, bytes. A payload names the work and where its data is; it does not contain the data. */
export const MAX_PAYLOAD_BYTES = 16_384;

/** The job store was unreachable. Whether a job was added is unknown; adding it again is safe. */
export class JobsUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobsUnavailableError';
  }
}

export interface Jobs {
  /**
   * Adds a job. Resolves when it is stored. Adding another with the same id has no effect while the first waits, runs
   * or is dead, nor within a day of its completion.
   *
   * @param options.id letters, digits, `-`, `_` and `.`, starting with a letter; for work caused by an event, derived
   *   from that event's id
   * @param options.delayMs minimum delay; default 0
   * @param options.traceparent the trace that the job continues (`shared/ports/tracing.ts`)
   * @throws JobsUnavailableError when the store is unreachable; repeating the call is safe
   * @throws Error when the id or the payload is invalid
   */
  enqueue<Payload extends object>(
    kind: JobKind<Payload>,
    payload: Payload,
    options: { readonly id: string; readonly delayMs?: number; readonly traceparent?: string | undefined },
  ): Promise<void>;
  /**
   * Schedules a job of this kind, with an empty payload. One of the processes runs it at every multiple of the interval
   * since 1970, and at once if a run was missed. A failed run is not retried, because the next one is soon.
   */
  every(kind: JobKind, intervalMs: number): void;
  /**
   * Starts running jobs in this process, after a first attempt to store the schedules of earlier calls of `every`.
   * Returns at once; waits for an unavailable store in the background. Call it once per process.
   */
  work(handlers: readonly JobHandler[]): void;
  /** How many jobs there are. @throws JobsUnavailableError */
  counts(): Promise<Readonly<Record<JobState, number>>>;
  /**
   * Jobs of one state; `dead` is the dead-letter list. Waiting and delayed jobs in the order in which they will run, the
   * others newest first.
   *
   * @throws JobsUnavailableError
   */
  list(state: JobState, page?: Page): Promise<readonly JobRecord[]>;
  /**
   * Retries dead jobs, with all their attempts.
   *
   * @param id of one job, or `all`
   * @returns how many: 0 when there is no dead job with this id
   * @throws JobsUnavailableError
   */
  retry(id: string): Promise<number>;
  /**
   * Accepts no more jobs, waits for the running ones, then aborts them; aborted jobs are run again, elsewhere or later.
   * Idempotent.
   */
  close(): Promise<void>;
}
