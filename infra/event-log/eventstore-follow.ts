/**
 * Following an EventStoreDB: a filtered subscription to $all, emptied at once into a bounded buffer.
 *
 * The server drops a subscriber that keeps 32 events waiting, and a subscription never resumes by itself. So the
 * consumer's speed is kept away from it: when the buffer is full the subscription is ended and taken up again from the
 * last event that was buffered; so it is after every other kind of end.
 */
import { LogUnavailableError, UnknownPositionError } from '../../shared/errors.ts';
import type { Followed, FollowOptions, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { Logger } from '../logging.ts';
import type { Connection } from './eventstore-client.ts';
import { classify, pauseMs, StoreFailure } from './eventstore-failure.ts';
import type { KnownIds } from './eventstore-known.ts';
import { inPieces, sizeOf } from './size.ts';

export interface FollowerOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  head(): Promise<Position>;
  /** @throws UnknownPositionError unless the log can be read from here */
  checkPosition(position: Position): Promise<void>;
  /** Events held for a consumer that is slower than the log, and about how many bytes of them. */
  readonly bufferSize: number;
  readonly bufferBytes: number;
  /** A subscription that the server has not confirmed after this time is given up, ms. */
  readonly confirmTimeoutMs: number;
  /** How often a quiet follower compares itself with the head; still behind the next time, it subscribes anew. */
  readonly checkMs: number;
  /** Ends every follower. */
  readonly closing: AbortSignal;
}

const BATCH = 500;
/** How often the head is compared while the end has not been reached: servers before 23.10 do not say that it has. */
const LOOK_MS = 500;

/** Waits for a promise, or for the signal: whatever the promise does then is of no interest. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = () => {};
  const aborted = new Promise<void>((resolve) => {
    stop = resolve;
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export async function* follow(options: FollowerOptions, { after, signal }: FollowOptions): AsyncGenerator<Followed> {
  const { connection, known, log } = options;
  const ended = AbortSignal.any([signal, options.closing]);
  let buffer: LoggedEvent[] = [];
  let bytes = 0;
  /** Everything up to here is in the buffer or delivered. */
  let covered = after;
  let delivered = after;
  let caughtUp = false;
  let told = false;
  let wake = () => {};
  let unsubscribe: (() => void) | undefined;
  /** The server has `covered`: one that is not asked leaves out, without a word, what is before a later end. */
  let checked = false;
  let timer: NodeJS.Timeout | undefined;
  /** Since when the head is known to be further on, ms since 1970; undefined after every move. */
  let behindSince: number | undefined;
  let failures = 0;
  /** When the next subscription may start, ms since 1970. */
  let resumeAt = 0;

  const drop = () => {
    unsubscribe?.();
    unsubscribe = undefined;
    caughtUp = false;
  };
  const broke = (failure: StoreFailure) => {
    drop();
    // What comes back may be another log, restored from a backup. Being too slow for it does not change a server.
    if (failure.kind !== 'dropped') checked = false;
    failures++;
    // The first resumption comes at once: being dropped as too slow is part of normal life.
    resumeAt = failures === 1 ? 0 : Date.now() + pauseMs(failures - 1);
    if (failures === 3) log.warn({ err: failure, position: covered }, 'the log cannot be followed; trying again');
    wake();
  };
  const moved = (position: Position) => {
    if (failures >= 3) log.info({ position }, 'the log is followed again');
    failures = 0;
    behindSince = undefined;
    covered = Math.max(covered, position);
  };
  const reached = () => {
    if (failures >= 3) log.info({ position: covered }, 'the log is followed again');
    failures = 0;
    caughtUp = true;
    wake();
  };

  /** False when the server could not be asked. */
  const check = async (): Promise<boolean> => {
    try {
      if (!checked) await unlessAborted(options.checkPosition(covered), ended);
      checked = true;
    } catch (error) {
      if (error instanceof UnknownPositionError) throw error;
      broke(classify(error));
    }
    return checked;
  };

  const subscribe = () => {
    let confirmed = false;
    const confirmBy = Date.now() + options.confirmTimeoutMs;
    behindSince = undefined;
    const current = connection.subscribe(covered, {
      confirmed: () => {
        confirmed = true;
      },
      event(event) {
        if (event.position <= covered) return;
        buffer.push(event);
        bytes += sizeOf(event);
        moved(event.position);
        if (buffer.length >= options.bufferSize || bytes >= options.bufferBytes) drop();
        wake();
      },
      checkpoint(position) {
        moved(position);
        wake();
      },
      caughtUp: reached,
      fellBehind: () => {
        caughtUp = false;
      },
      failed: broke,
    });
    unsubscribe = current;
    const look = () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => {
          compare().catch((error: unknown) => broke(classify(error)));
        },
        caughtUp ? options.checkMs : Math.min(LOOK_MS, options.checkMs),
      );
      timer.unref();
    };
    const compare = async () => {
      try {
        if (unsubscribe !== current) return;
        if (!confirmed) {
          if (Date.now() >= confirmBy) broke(new StoreFailure('unavailable', 'the subscription was not confirmed'));
        } else {
          const head = await options.head();
          if (unsubscribe !== current) return;
          if (head <= covered) {
            if (!caughtUp) reached();
          } else {
            behindSince ??= Date.now();
            if (Date.now() - behindSince >= options.checkMs) {
              broke(new StoreFailure('unavailable', 'the subscription went silent'));
            }
          }
        }
      } catch (error) {
        if (unsubscribe === current) broke(classify(error));
      }
      if (unsubscribe === current) look();
    };
    look();
  };

  /** Resolves at the next news, at the end, or when it is time to resume. */
  const news = () =>
    new Promise<void>((resolve) => {
      const resume = unsubscribe ? undefined : setTimeout(() => wake(), Math.max(resumeAt - Date.now(), 0));
      wake = () => {
        clearTimeout(resume);
        ended.removeEventListener('abort', wake);
        wake = () => {};
        // A turn later: what arrived together becomes one step.
        setImmediate(resolve);
      };
      ended.addEventListener('abort', wake, { once: true });
      if (ended.aborted) wake();
    });

  try {
    while (!ended.aborted) {
      if (!unsubscribe && buffer.length === 0 && Date.now() >= resumeAt && (await check())) subscribe();
      if (ended.aborted) return;
      const atEnd = caughtUp && buffer.length <= BATCH;
      if (buffer.length === 0 && covered === delivered && (!atEnd || told)) {
        if (!atEnd) told = false;
        await news();
        continue;
      }
      const events = buffer.slice(0, BATCH);
      buffer = buffer.slice(BATCH);
      for (const event of events) bytes -= sizeOf(event);
      const last = events.at(-1);
      delivered = buffer.length === 0 || !last ? covered : last.position;
      told = atEnd;
      known.saw(events);
      yield { events, position: delivered, caughtUp: atEnd };
    }
  } finally {
    clearTimeout(timer);
    drop();
  }
}

/**
 * The events behind a position up to the end of the log, as a follower gets them.
 *
 * @throws LogUnavailableError when nothing comes for `timeoutMs`
 */
export async function* readByFollowing(
  followFrom: (options: FollowOptions) => AsyncIterable<Followed>,
  after: Position,
  timeoutMs: number,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly LoggedEvent[]> {
  const over = new AbortController();
  const steps = followFrom({ after, signal: over.signal })[Symbol.asyncIterator]();
  try {
    for (;;) {
      // Only what we wait for counts, not what is done with a page.
      const timer = setTimeout(() => over.abort(), timeoutMs);
      const step = await steps.next().finally(() => clearTimeout(timer));
      if (step.done) throw new LogUnavailableError(`read of the log: nothing came within ${timeoutMs} ms`);
      const { events, caughtUp } = step.value;
      if (maxBytes < Number.POSITIVE_INFINITY) yield* inPieces(events, maxBytes);
      else if (events.length > 0) yield events;
      if (caughtUp) return;
    }
  } finally {
    over.abort();
    await steps.return?.();
  }
}
