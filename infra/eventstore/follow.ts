/**
 * Following an EventStoreDB: a filtered subscription to $all, emptied at once into a bounded buffer.
 *
 * The server drops a subscriber that keeps 32 events waiting, and a subscription never resumes by itself. So a slow
 * consumer must not slow down the subscription: when the buffer is full, the subscription is ended, and later resumed
 * after the last buffered event. It is resumed in the same way whenever it ends for any other reason.
 */
import { LogUnavailableError, UnknownPositionError } from '../../shared/errors.ts';
import type { Followed, FollowOptions, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { inPieces, sizeOf } from '../event-log/size.ts';
import type { Logger } from '../logging.ts';
import type { Connection } from './client.ts';
import { classify, createPauses, StoreFailure } from './failure.ts';
import type { KnownIds } from './known.ts';
import type { OwnEvents } from './own.ts';

export interface FollowerOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  readonly own: OwnEvents;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  head(): Promise<Position>;
  /** @throws UnknownPositionError unless the log can be read from here */
  checkPosition(position: Position): Promise<void>;
  /** Most events buffered for a consumer that is slower than the log, and approximately how many bytes. */
  readonly bufferSize: number;
  readonly bufferBytes: number;
  /** How long the server may take to confirm a subscription, milliseconds. */
  readonly confirmTimeoutMs: number;
  /**
   * How often a follower that receives nothing compares its position with the head; if it is still behind the next
   * time, it resubscribes.
   */
  readonly checkMs: number;
  /** Ends every follower. */
  readonly closing: AbortSignal;
}

const BATCH = 500;
/**
 * How often the head is checked until the end has been reached, milliseconds: servers before 23.10 do not announce it.
 */
const HEAD_CHECK_MS = 500;
/** Consecutive failures before a warning is logged. */
const LOG_AFTER_FAILURES = 3;

/** Waits for a promise or for the signal; once the signal has aborted, the outcome of the promise is ignored. */
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

/** There is no subscription: the consumer must empty the buffer first, or the pause after a failure has not ended. */
interface Apart {
  readonly name: 'apart';
  /** When the next subscription may start, Unix milliseconds. */
  readonly resumeAt: number;
}

/** Requested, but not yet confirmed by the server. */
interface Asking {
  readonly name: 'asking';
  readonly end: () => void;
  /** When to give up waiting, Unix milliseconds. */
  readonly confirmBy: number;
}

/** The server is sending stored events; the end of the log has not been reached. */
interface CatchingUp {
  readonly name: 'catching up';
  readonly end: () => void;
}

/** The end of the log has been reached: events that arrive have just been appended. */
interface Live {
  readonly name: 'live';
  readonly end: () => void;
}

type State = Apart | Asking | CatchingUp | Live;

/** The subscription of one follower, with its state, and the buffer between it and its consumer. */
class Feed {
  readonly #options: FollowerOptions;
  readonly #ended: AbortSignal;
  #state: State = { name: 'apart', resumeAt: 0 };
  #buffer: LoggedEvent[] = [];
  #bytes = 0;
  /** Position up to which everything is in the buffer or has been taken. */
  #covered: Position;
  /**
   * True once the server is known to have the position `#covered`: without this check, a server whose log is shorter
   * would silently skip events.
   */
  #checked = false;
  /** Failures since a subscription last worked. */
  #failures = 0;
  readonly #pauses = createPauses();
  /** Since when the head is known to be ahead although nothing arrives, Unix milliseconds. */
  #silentSince: number | undefined;
  #comparing: NodeJS.Timeout | undefined;
  #wake = () => {};
  readonly #stop = () => this.#wake();

  constructor(options: FollowerOptions, after: Position, ended: AbortSignal) {
    this.#options = options;
    this.#ended = ended;
    this.#covered = after;
    ended.addEventListener('abort', this.#stop);
  }

  get covered(): Position {
    return this.#covered;
  }

  get isEmpty(): boolean {
    return this.#buffer.length === 0;
  }

  /** Whether the next `BATCH` events bring a consumer to the end of the log. */
  get endsWithNext(): boolean {
    return this.#state.name === 'live' && this.#buffer.length <= BATCH;
  }

  take(): readonly LoggedEvent[] {
    const events = this.#buffer.slice(0, BATCH);
    this.#buffer = this.#buffer.slice(BATCH);
    for (const event of events) this.#bytes -= sizeOf(event);
    return events;
  }

  /** Subscribes if it is due. @throws UnknownPositionError when the log does not have the position */
  async resume(): Promise<void> {
    if (this.#state.name !== 'apart' || !this.isEmpty || Date.now() < this.#state.resumeAt) return;
    try {
      if (!this.#checked) await unlessAborted(this.#options.checkPosition(this.#covered), this.#ended);
      this.#checked = true;
    } catch (error) {
      if (error instanceof UnknownPositionError) throw error;
      this.#broke(classify(error));
      return;
    }
    if (!this.#ended.aborted) this.#subscribe();
  }

  /** Resolves when something changes, when the follower ends, or when it is time to resume. */
  news(): Promise<void> {
    return new Promise((resolve) => {
      const pausedMs = this.#state.name === 'apart' ? Math.max(this.#state.resumeAt - Date.now(), 0) : undefined;
      const resume = pausedMs === undefined ? undefined : setTimeout(() => this.#wake(), pausedMs);
      this.#wake = () => {
        clearTimeout(resume);
        this.#wake = () => {};
        // One turn of the event loop later, so that events that arrived together are handed on together.
        setImmediate(resolve);
      };
      if (this.#ended.aborted) this.#wake();
    });
  }

  close(): void {
    this.#ended.removeEventListener('abort', this.#stop);
    this.#leave(0);
  }

  #subscribe(): void {
    const { connection, confirmTimeoutMs, own } = this.#options;
    this.#silentSince = undefined;
    const end = connection.subscribe(this.#covered, own, {
      confirmed: () => {
        if (this.#state.name === 'asking') this.#state = { name: 'catching up', end };
      },
      event: (event) => {
        if (event.position <= this.#covered) return;
        this.#buffer.push(event);
        this.#bytes += sizeOf(event);
        this.#moved(event.position);
        // Resumed once the consumer has emptied the buffer.
        if (this.#buffer.length >= this.#options.bufferSize || this.#bytes >= this.#options.bufferBytes) this.#leave(0);
        this.#wake();
      },
      checkpoint: (position) => {
        this.#moved(position);
        this.#wake();
      },
      caughtUp: () => this.#reachedEnd(),
      fellBehind: () => {
        if (this.#state.name === 'live') this.#state = { name: 'catching up', end };
      },
      failed: (failure) => this.#broke(failure),
    });
    this.#state = { name: 'asking', end, confirmBy: Date.now() + confirmTimeoutMs };
    this.#compareLater(end);
  }

  #leave(resumeAt: number): void {
    clearTimeout(this.#comparing);
    const state = this.#state;
    this.#state = { name: 'apart', resumeAt };
    if (state.name !== 'apart') state.end();
  }

  #broke(failure: StoreFailure): void {
    // After a failure, the server may come back with another log, restored from a backup; being dropped as too slow is
    // no such failure.
    if (failure.kind !== 'dropped') this.#checked = false;
    this.#failures++;
    // The first retry is immediate, because being dropped as too slow is normal.
    this.#leave(this.#failures === 1 ? 0 : Date.now() + this.#pauses.next());
    if (this.#failures === LOG_AFTER_FAILURES) {
      const position = this.#covered;
      this.#options.log.warn({ err: failure, position }, 'the log cannot be followed; trying again');
    }
    this.#wake();
  }

  #worked(position: Position): void {
    if (this.#failures >= LOG_AFTER_FAILURES) this.#options.log.info({ position }, 'following the log again');
    this.#failures = 0;
    this.#pauses.reset();
  }

  #moved(position: Position): void {
    this.#worked(position);
    this.#silentSince = undefined;
    this.#covered = Math.max(this.#covered, position);
  }

  #reachedEnd(): void {
    this.#worked(this.#covered);
    if (this.#state.name !== 'apart') this.#state = { name: 'live', end: this.#state.end };
    this.#wake();
  }

  #compareLater(end: () => void): void {
    const { checkMs } = this.#options;
    this.#comparing = setTimeout(
      () => {
        this.#compare(end).catch((error: unknown) => this.#broke(classify(error)));
      },
      this.#state.name === 'live' ? checkMs : Math.min(HEAD_CHECK_MS, checkMs),
    );
    this.#comparing.unref();
  }

  /**
   * Compares a quiet subscription with the head, because servers lose some subscriptions, and older ones do not
   * announce the end of the log.
   */
  async #compare(end: () => void): Promise<void> {
    const isCurrent = () => this.#state.name !== 'apart' && this.#state.end === end;
    if (!isCurrent()) return;
    if (this.#state.name === 'asking') {
      if (Date.now() >= this.#state.confirmBy) {
        this.#broke(new StoreFailure('unavailable', 'the subscription was not confirmed'));
      }
    } else {
      try {
        const head = await this.#options.head();
        if (isCurrent()) this.#sawHead(head);
      } catch (error) {
        if (isCurrent()) this.#broke(classify(error));
      }
    }
    if (isCurrent()) this.#compareLater(end);
  }

  #sawHead(head: Position): void {
    if (head <= this.#covered) {
      if (this.#state.name !== 'live') this.#reachedEnd();
      return;
    }
    this.#silentSince ??= Date.now();
    if (Date.now() - this.#silentSince >= this.#options.checkMs) {
      this.#broke(new StoreFailure('unavailable', 'the subscription went silent'));
    }
  }
}

export async function* follow(options: FollowerOptions, { after, signal }: FollowOptions): AsyncGenerator<Followed> {
  const ended = AbortSignal.any([signal, options.closing]);
  const feed = new Feed(options, after, ended);
  const leave = options.own.expect();
  let delivered = after;
  let announced = false;
  try {
    while (!ended.aborted) {
      await feed.resume();
      if (ended.aborted) return;
      const atEnd = feed.endsWithNext;
      if (feed.isEmpty && feed.covered === delivered && (!atEnd || announced)) {
        if (!atEnd) announced = false;
        await feed.news();
        continue;
      }
      const events = feed.take();
      const last = events.at(-1);
      delivered = feed.isEmpty || !last ? feed.covered : last.position;
      announced = atEnd;
      options.known.saw(events);
      yield { events, position: delivered, caughtUp: atEnd };
    }
  } finally {
    leave();
    feed.close();
  }
}

/**
 * Reads the events after a position, up to the end of the log, by following it.
 *
 * @throws LogUnavailableError when nothing arrives for `timeoutMs`
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
      // Counts only time spent waiting, not what the caller does with a page.
      const timer = setTimeout(() => over.abort(), timeoutMs);
      const step = await steps.next().finally(() => clearTimeout(timer));
      if (step.done) throw new LogUnavailableError(`read of the log: nothing arrived within ${timeoutMs} ms`);
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
