/**
 * Failures of EventStoreDB, classified into the few kinds that make a difference, and how calls are retried.
 *
 * Classified by the client's `type`, then by the gRPC code: messages are often empty, and the name is always "Error".
 */
import { LogUnavailableError } from '../../shared/errors.ts';
import { type BackOff, createBackOff, pause, settledWithin } from '../../shared/waiting.ts';

/**
 * - `conflict`, `too large`, `deleted`: the server's definite response to an append
 * - `no stream`: a read of a stream that has no events
 * - `no position`: a read of the log from a position without an event, or an internal error of the server
 * - `dropped`: a subscriber was too slow for the server
 * - `refused`: retrying will not help (access denied, invalid argument)
 * - `unavailable`: unreachable, starting, connection broken, no response in time
 * - `unknown`: anything else
 */
export type FailureKind =
  | 'conflict'
  | 'too large'
  | 'deleted'
  | 'no stream'
  | 'no position'
  | 'dropped'
  | 'refused'
  | 'unavailable'
  | 'unknown';

export class StoreFailure extends Error {
  readonly kind: FailureKind;
  /** With `conflict`: the stream's revision; -1 when there is no stream. */
  readonly actual: number | undefined;
  constructor(kind: FailureKind, message: string, options: { cause?: unknown; actual?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StoreFailure';
    this.kind = kind;
    this.actual = options.actual;
  }
}

const KIND_OF_TYPE: Readonly<Record<string, FailureKind>> = {
  'stream-not-found': 'no stream',
  'stream-deleted': 'deleted',
  'access-denied': 'refused',
  'invalid-argument': 'refused',
  unsupported: 'refused',
  timeout: 'dropped',
  unavailable: 'unavailable',
  cancelled: 'unavailable',
  'deadline-exceeded': 'unavailable',
  'not-leader': 'unavailable',
};

/** gRPC codes of errors without a `type`: the server is down. */
const UNAVAILABLE_CODES: ReadonlySet<unknown> = new Set([1, 4, 14]);

export function classify(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const { type, code, message } = Object(error) as { type?: unknown; code?: unknown; message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(type ?? code ?? error);
  // The server names this no better than "Unexpected ReadAllResult: Error", or "… InvalidPosition" in older versions.
  if (text.includes('ReadAllResult')) return new StoreFailure('no position', text, { cause: error });
  if (typeof type === 'string') return new StoreFailure(KIND_OF_TYPE[type] ?? 'unknown', text, { cause: error });
  // No type and no code: no node of the cluster could be found.
  const kind = code === undefined || UNAVAILABLE_CODES.has(code) ? 'unavailable' : 'unknown';
  return new StoreFailure(kind, text, { cause: error });
}

/** What an operator should do about a failure that lasts. */
export function remedyOf({ kind }: StoreFailure): string {
  if (kind === 'refused')
    return 'EventStoreDB refuses the calls of this service. Operators: check the user, the password and the rights in EVENTSTORE_URL.';
  return 'EventStoreDB is not reachable, has no leader or does not respond in time. Operators: check that a majority of its nodes run and have free disk space.';
}

/** The pauses between attempts of one call, or of all calls of a connection. */
export const createPauses = (): BackOff => createBackOff({ firstMs: 50, lastMs: 1_000, spread: true });

/** While the server cannot be reached, lets the calls of a connection through together, at growing intervals. */
export interface Gate {
  /**
   * Undefined when calls may be made; otherwise resolves when they may, for all waiting callers in order of arrival.
   */
  closed(): Promise<unknown> | undefined;
  failed(): void;
  worked(): void;
}

/**
 * The client opens a new connection after each failure. Without a gate, every caller's retry would open its own, many
 * per second, and some would stay open when the server is back. With it, callers that failed together also keep their
 * order.
 */
export function createGate(closing: AbortSignal): Gate {
  const pauses = createPauses();
  let shut: Promise<unknown> | undefined;
  return {
    closed: () => shut,
    failed() {
      // Calls that failed together count once.
      if (shut) return;
      shut = pause(pauses.next(), closing, { ref: true }).finally(() => {
        shut = undefined;
      });
    },
    worked() {
      pauses.reset();
    },
  };
}

export const closedError = () => new LogUnavailableError('the event log is closed');

const noConnection = (what: string) =>
  new LogUnavailableError(`${what}: no connection`, { remedy: remedyOf(new StoreFailure('unavailable', '')) });

/** An unknown failure may be transient (an election), but it is not worth the whole time-out. */
const MAX_UNKNOWN = 3;

interface RepeatedRead {
  /** What is being read, for error messages. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly closing: AbortSignal;
  /** See `Connection.closed`. */
  closed(): Promise<unknown> | undefined;
}

/**
 * Retries a read until it succeeds. `attempt` receives the number of milliseconds that it may take.
 *
 * @throws StoreFailure of the kinds `no stream`, `no position` and `deleted`
 * @throws LogUnavailableError when `timeoutMs` have passed, when retrying is pointless, or when `closing` aborts
 */
export async function repeatRead<T>(
  { what, timeoutMs, closing, closed }: RepeatedRead,
  attempt: (timeoutMs: number) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  const pauses = createPauses();
  let unknown = 0;
  for (;;) {
    // When the connection failed, its gate imposes the wait.
    const gate = closed();
    if (gate && !(await settledWithin(deadline - Date.now(), gate))) throw noConnection(what);
    if (closing.aborted) throw closedError();
    try {
      return await attempt(Math.max(deadline - Date.now(), 1));
    } catch (error) {
      if (closing.aborted) throw closedError();
      const failure = classify(error);
      if (failure.kind === 'no stream' || failure.kind === 'deleted') throw failure;
      if (failure.kind === 'unknown' || failure.kind === 'no position') unknown++;
      if (failure.kind === 'no position' && unknown >= MAX_UNKNOWN) throw failure;
      if (failure.kind === 'refused' || unknown >= MAX_UNKNOWN || Date.now() >= deadline) {
        throw new LogUnavailableError(`${what}: ${failure.message}`, { cause: failure, remedy: remedyOf(failure) });
      }
      if (failure.kind !== 'unavailable')
        await pause(Math.min(pauses.next(), deadline - Date.now()), closing, { ref: true });
    }
  }
}
