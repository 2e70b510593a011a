/**
 * The event log on EventStoreDB or KurrentDB.
 *
 * Positions are the server's commit positions: byte offsets, increasing with gaps. System events, links and events of
 * other applications on the same server are left out. There is one connection per log, and one log per process.
 */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { ConflictError } from '../../shared/errors.ts';
import { BEGINNING, type EventLog, type FollowOptions } from '../../shared/ports/event-log.ts';
import { settledWithin } from '../../shared/waiting.ts';
import { prepareAppend } from '../event-log/prepared.ts';
import type { Logger } from '../logging.ts';
import { createAppender } from './append.ts';
import { connect } from './client.ts';
import { closedError } from './failure.ts';
import { follow, readByFollowing } from './follow.ts';
import { createKnownIds } from './known.ts';
import { createOwnEvents } from './own.ts';
import { createReader } from './read.ts';

export interface EventStoreLogOptions {
  /**
   * `esdb://[user:password@]host:port[,host:port…]?tls=true`, `esdb+discover://…` or the same with `kurrentdb`.
   * Includes the credentials.
   */
  readonly url: string;
  /** Prefix of all streams of this log on a server that also holds others; by default none: all streams are ours. */
  readonly prefix?: string | undefined;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn'>;
  /** Time limit for an append, milliseconds; default 10,000. */
  readonly appendTimeoutMs?: number;
  /** Time limit for one page of a read, milliseconds; default 10,000. */
  readonly readTimeoutMs?: number;
  /** Most appends that are sent and not yet answered; default 1,000. */
  readonly maxInFlight?: number;
  /** Most appends that wait to be sent; beyond that, appends fail at once; default 10,000. */
  readonly maxWaiting?: number;
  /** Approximate limit on the bytes in flight, and again on those waiting; default 16,000,000. */
  readonly maxAppendBytes?: number;
  /** Most events buffered for a slow follower; default 4,000. */
  readonly followBuffer?: number;
  /** Approximate limit on their bytes; default 16,000,000. */
  readonly followBufferBytes?: number;
  /** How often a follower that receives nothing compares its position with the head, milliseconds; default 10,000. */
  readonly followCheckMs?: number;
}

/** Separate limit each for appends in flight, for waiting appends, and for events buffered for a follower. */
const MAX_BYTES = 16_000_000;
/** Approximate size of an event in the server's log, bytes. */
const EVENT_BYTES = 1_000;
/** How many event ids are remembered to recognise repeated appends. */
const KNOWN_IDS = 20_000;
/** A stream without events, and a revision that it never has. */
const PROBE_STREAM = 'write_probe';
const PROBE_REVISION = 1_000_000_000;
/** How long closing waits for calls to end, after the last append is settled, milliseconds. */
const DISCONNECT_MS = 2_000;

/**
 * Opens the log without waiting for the server; the first calls wait, within their time-outs.
 *
 * A repeated append is recognised by its event ids. For `none` and exact expectations, the server always recognises it;
 * for `any`, or a repetition with a different expectation, the server forgets on a restart, and this process relies on
 * the last 20,000 ids that it remembers. Use `none` or a revision where a repetition may come late.
 *
 * @throws Error for a malformed connection string
 */
export async function openEventStoreLog(options: EventStoreLogOptions): Promise<EventLog> {
  const { log } = options;
  const timeoutMs = options.appendTimeoutMs ?? 10_000;
  const readTimeoutMs = options.readTimeoutMs ?? 10_000;
  const connection = connect(options.url, options.prefix ?? '', (error, what) =>
    log.debug({ err: error }, `EventStoreDB: ${what}`),
  );
  const known = createKnownIds(KNOWN_IDS);
  const own = createOwnEvents();
  const closing = new AbortController();
  // Every read and every follower adds a listener to the signal.
  setMaxListeners(0, closing.signal);
  const appender = createAppender({
    connection,
    known,
    log,
    timeoutMs,
    maxInFlight: options.maxInFlight ?? 1_000,
    maxWaiting: options.maxWaiting ?? 10_000,
    maxBytes: options.maxAppendBytes ?? MAX_BYTES,
  });
  const reader = createReader({ connection, known, timeoutMs: readTimeoutMs, closing: closing.signal });
  const bufferBytes = options.followBufferBytes ?? MAX_BYTES;
  const followHere = (followOptions: FollowOptions, maxBytes = bufferBytes) =>
    follow(
      {
        connection,
        known,
        own,
        log,
        head: () => reader.head(),
        checkPosition: (position) => reader.checkPosition(position),
        bufferSize: options.followBuffer ?? 4_000,
        bufferBytes: Math.min(bufferBytes, maxBytes),
        confirmTimeoutMs: readTimeoutMs,
        checkMs: options.followCheckMs ?? 10_000,
        closing: closing.signal,
      },
      followOptions,
    );
  let closed: Promise<void> | undefined;

  const checkOpen = () => {
    if (closed) throw closedError();
  };

  const close = async () => {
    await appender.drained();
    closing.abort();
    const disconnected = connection.close().catch((error: unknown) => {
      log.debug({ err: error }, 'EventStoreDB: disconnecting');
    });
    await settledWithin(DISCONNECT_MS, disconnected);
  };

  return {
    stride: EVENT_BYTES,
    async append(stream, events, expected, unless) {
      checkOpen();
      const append = prepareAppend(stream, events, expected, unless);
      own.sends(append);
      return appender.append(append);
    },
    readStream(stream, readOptions = {}) {
      checkOpen();
      return reader.readStream(stream, readOptions);
    },
    readAll(readOptions = {}) {
      checkOpen();
      const { direction, limit, maxBytes } = readOptions;
      // The server filters only subscriptions; a read would also return the events of all other applications.
      return options.prefix && direction !== 'backwards' && limit === undefined
        ? readByFollowing((one) => followHere(one, maxBytes), readOptions.from ?? BEGINNING, readTimeoutMs, maxBytes)
        : reader.readAll(readOptions);
    },
    follow(followOptions) {
      checkOpen();
      return followHere(followOptions);
    },
    async head() {
      checkOpen();
      return reader.head();
    },
    async checkWritable() {
      checkOpen();
      // Only a leader refuses an expectation. No event is written.
      const probe = { id: randomUUID(), type: 'probe', data: {}, meta: {} };
      const append = prepareAppend(PROBE_STREAM, [probe], PROBE_REVISION);
      await appender.append(append).catch((error: unknown) => {
        if (!(error instanceof ConflictError)) throw error;
      });
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}
