/**
 * The port of jobs: work that is done later, at least once, by one of the processes that take jobs.
 *
 * A job that fails is tried again with growing delays; one that has failed for good waits in the dead-letter list until
 * somebody retries it. Whoever makes a job names it: two jobs with one id are one job. While the store of jobs is away
 * nothing can be added, so whoever must not lose a job keeps where it was and comes again (`infra/jobs/policies.ts`).
 */
import type { z } from 'zod';

/** One kind of job. */
export interface JobKind<Payload extends object = object> {
  /** Lower case words with `-`. It stands in stored jobs: it never changes its meaning. */
  readonly name: string;
  readonly schema: z.ZodType<Payload>;
  /** How long one attempt may take, milliseconds. Then its signal aborts and the attempt has failed. */
  readonly timeoutMs: number;
}

/** An attempt that says nothing else may take this long, milliseconds. */
const TIMEOUT_MS = 60_000;
const KIND_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** @param definition.timeoutMs default: one minute */
export function defineJob<Payload extends object>(definition: {
  readonly name: string;
  readonly schema: z.ZodType<Payload>;
  readonly timeoutMs?: number;
}): JobKind<Payload> {
  const { name, schema, timeoutMs = TIMEOUT_MS } = definition;
  if (!KIND_NAME.test(name)) throw new Error(`${name} is no name for a kind of job: lower case words with - are`);
  return { name, schema, timeoutMs };
}

/** What a running job is told. */
export interface JobRun {
  /** The same in each attempt: hand it to whoever must not do a thing twice. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  /** Aborts when the attempt has taken too long and when the process stops; what is done after that may be done again. */
  readonly signal: AbortSignal;
}

/** Does the jobs of one kind. */
export interface JobHandler {
  readonly kind: Pick<JobKind, 'name' | 'timeoutMs'>;
  /**
   * Takes a payload as it was stored.
   * @throws when it is none of this kind: the job goes to the dead-letter list at once
   */
  accept(payload: unknown): (run: JobRun) => Promise<void>;
}

/** @param run resolves when the work is done; whatever it throws makes the attempt a failed one */
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
/** `delayed`: for a later time, or between two attempts. */
export type JobState = (typeof JOB_STATES)[number];

/** A job as it is shown. Times in Unix milliseconds. */
export interface JobRecord {
  readonly id: string;
  readonly kind: string;
  readonly state: JobState;
  readonly payload: unknown;
  /** Attempts that have ended. */
  readonly attempts: number;
  readonly addedAt: number;
  /** When it is tried, for delayed ones. */
  readonly dueAt: number | undefined;
  /** When the last attempt ended, for dead ones. */
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

/** Jobs of at most this size: a payload says what to do and where the data is, it does not carry the data. */
export const MAX_PAYLOAD_BYTES = 16_384;

/** The store of jobs could not be reached in time. Whether a job was added is not known; adding it again is safe. */
export class JobsUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobsUnavailableError';
  }
}

export interface Jobs {
  /**
   * Adds a job. Resolves when it is stored. A second one with the same id changes nothing while the first waits, runs
   * or is dead, and for a day after it was done.
   *
   * @param options.id letters, digits, `-`, `_` and `.`, starting with a letter; for work that follows from an event,
   *   made of that event's id
   * @param options.delayMs not before this time has passed; default 0
   * @throws JobsUnavailableError when the store cannot be reached; the same call again is safe
   * @throws Error when the id or the payload is not acceptable
   */
  enqueue<Payload extends object>(
    kind: JobKind<Payload>,
    payload: Payload,
    options: { readonly id: string; readonly delayMs?: number },
  ): Promise<void>;
  /**
   * Sees to it that a job of this kind, with an empty payload, is run every so often, by one of all processes: at the
   * multiples of the interval since 1970, and at once when a turn was missed. It is not tried again: its next turn is
   * near.
   */
  every(kind: JobKind, intervalMs: number): void;
  /** Starts to take jobs in this process. Returns at once; a store that is away is waited for. Once per process. */
  work(handlers: readonly JobHandler[]): void;
  /** How many jobs there are. @throws JobsUnavailableError */
  counts(): Promise<Readonly<Record<JobState, number>>>;
  /** Jobs of one state. Waiting and delayed ones in the order they are taken, the others newest first. @throws JobsUnavailableError */
  list(state: JobState, page?: Page): Promise<readonly JobRecord[]>;
  /** The dead-letter list, newest first. @throws JobsUnavailableError */
  dead(page?: Page): Promise<readonly JobRecord[]>;
  /**
   * Gives dead jobs all their attempts again.
   *
   * @param id of one job, or `all`
   * @returns how many: 0 when there is no dead job with this id
   * @throws JobsUnavailableError
   */
  retry(id: string): Promise<number>;
  /** Takes no more jobs and waits for those that run, then aborts them; they are done again elsewhere or later. Idempotent. */
  close(): Promise<void>;
}
