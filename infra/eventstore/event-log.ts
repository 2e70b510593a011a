/**
 * The event log on EventStoreDB or KurrentDB.
 *
 * Positions are the server's commit positions: byte offsets that grow with gaps. System events, links and events of
 * other applications in the same server are left out. One connection per log; a process opens one log.
 */
import { setMaxListeners } from 'node:events';
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
   * Credentials belong in here.
   */
  readonly url: string;
  /** Of every stream of this log in the server, which may hold others beside it; default none: all streams are ours. */
  readonly prefix?: string | undefined;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn'>;
  /** An append is answered or given up after this many milliseconds; default 10,000. */
  readonly appendTimeoutMs?: number;
  /** So is a page of a read; default 10,000. */
  readonly readTimeoutMs?: number;
  /** Appends sent and not answered; default 1,000. */
  readonly maxInFlight?: number;
  /** Appends that wait for their turn; over it an append fails at once; default 10,000. */
  readonly maxWaiting?: number;
  /** About so many bytes may be in flight, and as many wait; default 16,000,000. */
  readonly maxAppendBytes?: number;
  /** Events held for a slow follower; default 4,000. */
  readonly followBuffer?: number;
  /** About so many bytes of them; default 16,000,000. */
  readonly followBufferBytes?: number;
  /** How often a quiet follower makes sure that it is not being forgotten, in milliseconds; default 10,000. */
  readonly followCheckMs?: number;
}

/** Of appends in flight, of appends that wait, and of events held for a follower: each for itself. */
const MAX_BYTES = 16_000_000;
/** Event ids remembered to recognise repeated appends. */
const KNOWN_IDS = 20_000;
/** Closing waits this long for calls to end, after the last append is settled. */
const DISCONNECT_MS = 2_000;

/**
 * Opens the log. Does not wait for the server: the first calls do, within their time-outs.
 *
 * An append is recognised as a repetition by its event ids. The server's own knowledge covers `none` and exact
 * expectations for good; for `any` and for a repetition with another expectation it ends with a restart, and this
 * process' memory of the last 20,000 ids takes over. Use `none` or a revision where a repetition may come late.
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
  // Every read and follower listens to it.
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
    async append(stream, events, expected) {
      checkOpen();
      const append = prepareAppend(stream, events, expected);
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
      // Only subscriptions are filtered by the server; a read would bring what all others have written.
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
    close() {
      closed ??= close();
      return closed;
    },
  };
}
