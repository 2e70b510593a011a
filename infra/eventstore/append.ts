/**
 * Appending to EventStoreDB: a bounded number of appends in flight on one call, each with a definite response or none
 * within a time-out.
 *
 * When the server gives no response (connection broken, server starting, silence), the outcome is unknown. The same
 * append, with the same ids and expectation, is then repeated until the time-out.
 */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { ConflictError, EventTooLargeError, LogUnavailableError } from '../../shared/errors.ts';
import type { Appended } from '../../shared/ports/event-log.ts';
import { createOutage, pause, settledWithin } from '../../shared/waiting.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import type { Logger } from '../logging.ts';
import type { AppendResponse, BatchCall, Connection } from './client.ts';
import { classify, createPauses, remedyOf, StoreFailure } from './failure.ts';
import type { KnownIds } from './known.ts';
import { createRepeats } from './repeat.ts';

export interface AppenderOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Time limit from the call until its response or LogUnavailableError. */
  readonly timeoutMs: number;
  /** Maximum number of appends that are sent and not yet answered. */
  readonly maxInFlight: number;
  /** Maximum number of appends that wait to be sent. */
  readonly maxWaiting: number;
  /** Maximum number of bytes in flight, and again of bytes waiting. A single append may be larger. */
  readonly maxBytes: number;
}

export interface Appender {
  append(append: PreparedAppend): Promise<Appended>;
  /** Resolves when every append in progress has received its response or been given up. */
  drained(): Promise<void>;
}

/** An attempt gets a third of the time-out, so that one lost response does not use up all of it. */
const ATTEMPTS_PER_TIMEOUT = 3;
/** How many times a retry waits for the previous append if it finds a revision below the expected one. */
const PREDECESSOR_TRIES = 5;

interface Waiting {
  readonly resolve: (response: AppendResponse) => void;
  readonly reject: (failure: StoreFailure) => void;
}

/** An append that waits for its turn. */
interface Place {
  readonly bytes: number;
  enter(): void;
}

/** The current call, and the appends that wait for its responses. */
interface OpenCall {
  readonly call: BatchCall;
  readonly waiting: Map<string, Waiting>;
  lastAnswer: number;
}

export function createAppender(options: AppenderOptions): Appender {
  const { connection, known, log, timeoutMs } = options;
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  let opening: Promise<OpenCall> | undefined;
  let current: OpenCall | undefined;
  const inFlight = { appends: 0, bytes: 0 };
  const queue: Place[] = [];
  let waitingBytes = 0;
  const idle = new Set<() => void>();
  const outage = createOutage(
    log,
    'appends to EventStoreDB are failing; retrying',
    'appends to EventStoreDB work again',
  );

  const open = async (): Promise<OpenCall> => {
    const waiting = new Map<string, Waiting>();
    let over: StoreFailure | undefined;
    const call = await connection.openBatch({
      answered(correlationId, response) {
        if (current) current.lastAnswer = Date.now();
        const waiter = waiting.get(correlationId);
        waiting.delete(correlationId);
        if (response instanceof StoreFailure) waiter?.reject(response);
        else waiter?.resolve(response);
      },
      ended(failure) {
        over = failure;
        if (current?.waiting === waiting) current = undefined;
        for (const waiter of waiting.values()) waiter.reject(failure);
        waiting.clear();
      },
    });
    if (over) throw over;
    current = { call, waiting, lastAnswer: Date.now() };
    return current;
  };

  const opened = async (deadline: number): Promise<OpenCall> => {
    opening ??= open().finally(() => {
      opening = undefined;
    });
    const call = opening;
    // Finding a cluster's leader can take longer than an append may.
    if (!(await settledWithin(deadline - Date.now(), call)))
      throw new StoreFailure('unavailable', 'no connection in time');
    return call;
  };

  /** Makes one attempt. Rejects with a StoreFailure; the append may have been written nevertheless. */
  const send = async (append: PreparedAppend, waitMs: number): Promise<AppendResponse> => {
    const started = Date.now();
    const target = current ?? (await opened(started + waitMs));
    if (target !== current) throw new StoreFailure('unavailable', 'the connection broke before the append was sent');
    const { call, waiting } = target;
    return new Promise((resolve, reject) => {
      const correlationId = randomUUID();
      const timer = setTimeout(() => {
        waiting.delete(correlationId);
        reject(new StoreFailure('unavailable', `no response within ${waitMs} ms`));
        // Nothing at all was received on this call: cancel it, so that appends do not pile up in it.
        if (current === target && target.lastAnswer < started) call.cancel();
      }, waitMs);
      const settled =
        <T>(act: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          act(value);
        };
      waiting.set(correlationId, { resolve: settled(resolve), reject: settled(reject) });
      call.send(correlationId, append);
    });
  };

  const waitMs = (deadline: number) => Math.max(Math.min(deadline - Date.now(), timeoutMs / ATTEMPTS_PER_TIMEOUT), 1);
  const repeats = createRepeats({ connection, known, send, waitMs });

  const attempt = async (append: PreparedAppend, tries: number, since: number, deadline: number): Promise<Appended> => {
    // When the connection failed, its gate imposes the wait, and appends that failed together keep their order.
    const closed = connection.closed();
    if (closed && !(await settledWithin(deadline - Date.now(), closed)))
      throw new StoreFailure('unavailable', 'no connection');
    const doubted = tries > 1 ? since : known.doubtedSince(append);
    if (append.expected === 'any' && doubted !== undefined) return repeats.sendPinned(append, doubted, deadline);
    const before = await repeats.fromKnown(append, deadline);
    return before ?? repeats.done(append, await send(append, waitMs(deadline)), deadline);
  };

  const run = async (append: PreparedAppend, since: number, deadline: number): Promise<Appended> => {
    const pauses = createPauses();
    let predecessor = 0;
    for (let tries = 1; ; tries++) {
      let failure: StoreFailure;
      if (append.unless?.aborted) {
        if (tries > 1) known.doubt(append, since);
        throw new LogUnavailableError(`append to ${append.stream}: given up`);
      }
      try {
        const appended = await attempt(append, tries, since, deadline);
        outage.worked();
        return appended;
      } catch (error) {
        failure = classify(error);
      }
      const { stream, expected } = append;
      if (failure.kind === 'deleted') throw new Error(`stream ${stream} is deleted in the store`, { cause: failure });
      if (failure.kind === 'too large') throw new EventTooLargeError(failure.message, append.bytes);
      if (failure.kind === 'conflict') {
        // After a broken connection, an append can overtake the one before it in the same stream, which is also being
        // repeated: the stream has then not yet reached the expected revision.
        const overtaken = tries > 1 && typeof expected === 'number' && (failure.actual ?? expected) < expected;
        if (!overtaken || ++predecessor > PREDECESSOR_TRIES) throw new ConflictError(stream, expected, failure.actual);
      } else {
        outage.failed(failure);
      }
      if (Date.now() >= deadline) {
        known.doubt(append, since);
        throw new LogUnavailableError(`append to ${stream}: no response within ${timeoutMs} ms`, {
          cause: failure,
          remedy: remedyOf(failure),
        });
      }
      if (failure.kind !== 'unavailable')
        await pause(Math.min(pauses.next(), deadline - Date.now()), never, { ref: true });
    }
  };

  const fits = (bytes: number) =>
    inFlight.appends === 0 || (inFlight.appends < options.maxInFlight && inFlight.bytes + bytes <= options.maxBytes);

  const take = (bytes: number) => {
    inFlight.appends++;
    inFlight.bytes += bytes;
  };

  /** Waits for permission to send, in call order. */
  const place = (bytes: number, deadline: number): Promise<void> | undefined => {
    if (queue.length === 0 && fits(bytes)) {
      take(bytes);
      return undefined;
    }
    if (queue.length >= options.maxWaiting || (queue.length > 0 && waitingBytes + bytes > options.maxBytes)) {
      throw new LogUnavailableError(`${queue.length} appends are already waiting; try again later`);
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        clearTimeout(timer);
        waitingBytes -= bytes;
        resolve();
      };
      const mine = { bytes, enter };
      const timer = setTimeout(() => {
        queue.splice(queue.indexOf(mine), 1);
        waitingBytes -= bytes;
        reject(new LogUnavailableError(`the append waited ${timeoutMs} ms to be sent; nothing was written`));
        // Smaller appends may fit even if this one did not.
        admit();
      }, deadline - Date.now());
      queue.push(mine);
      waitingBytes += bytes;
    });
  };

  const admit = () => {
    for (let next = queue[0]; next && fits(next.bytes); next = queue[0]) {
      queue.shift();
      take(next.bytes);
      next.enter();
    }
  };

  const leave = (bytes: number) => {
    inFlight.appends--;
    inFlight.bytes -= bytes;
    admit();
    if (inFlight.appends > 0) return;
    for (const resolve of idle) resolve();
    idle.clear();
  };

  return {
    async append(append) {
      const since = Date.now();
      const deadline = since + timeoutMs;
      const turn = place(append.bytes, deadline);
      if (turn) await turn;
      try {
        return await run(append, since, deadline);
      } finally {
        leave(append.bytes);
      }
    },
    async drained() {
      if (inFlight.appends > 0) await new Promise<void>((resolve) => idle.add(resolve));
      current?.call.end();
    },
  };
}
