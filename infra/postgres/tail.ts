/**
 * The end of a PostgreSQL log, kept in memory: one reader per process, any number of followers.
 *
 * Appends of this process arrive through `wrote` and are passed on without being read back. Events of other processes
 * are read after a notification or a poll. The window is bounded; a follower that falls behind it reads the table until
 * it has caught up.
 */
import { UnknownPositionError } from '../../shared/errors.ts';
import type { Followed, FollowOptions, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { createBackOff, createOutage, type Outage, pause } from '../../shared/waiting.ts';
import type { Listener } from '../database/listener.ts';
import { sizeOf } from '../event-log/size.ts';
import type { Logger } from '../logging.ts';

/** The window holds at most this many events and about this many bytes. */
const WINDOW = { events: 8_192, bytes: 32_000_000 };
/** Share of a full window that is kept. */
const KEPT = 7 / 8;
const BATCH = 500;

interface TailOptions {
  read(after: Position, limit: number): Promise<LoggedEvent[]>;
  head(): Promise<Position>;
  /** Undefined when the store cannot notify. */
  listener: Listener | undefined;
  /** Prefix of the notifications of this process's own appends, which need not be read. */
  writer: string;
  pollMs: number;
  log: Logger;
}

export class Tail {
  readonly #options: TailOptions;
  readonly #closing = new AbortController();
  /** Consecutive events; `#window[0]` has position `#start + 1`. */
  #window: LoggedEvent[] = [];
  #bytes = 0;
  #start: Position | undefined;
  /** Last event that this process has appended. */
  #appended: Position = 0;
  #wakers = new Set<() => void>();
  #filling: Promise<void> | undefined;
  #fillAgain = false;
  #running: Promise<void> | undefined;
  readonly #outage: Outage;

  constructor(options: TailOptions) {
    this.#options = options;
    this.#outage = createOutage(
      options.log,
      'the end of the log could not be read; the next poll tries again',
      'the end of the log can be read again',
    );
  }

  get #end(): Position {
    return (this.#start ?? 0) + this.#window.length;
  }

  /** Position of the last event that this process knows of; undefined until the end of the log is read. */
  get head(): Position | undefined {
    return this.#start === undefined ? undefined : Math.max(this.#end, this.#appended);
  }

  /** Call this with the events that this process has just appended, in order. */
  wrote(events: readonly LoggedEvent[]): void {
    this.#appended = Math.max(this.#appended, events.at(-1)?.position ?? 0);
    if (this.#start === undefined) return;
    // Positions have no gaps, so anything but the next one means that another process wrote in between.
    if (events[0]?.position === this.#end + 1) this.#push(events);
    else if ((events.at(-1)?.position ?? 0) > this.#end) this.#fill();
  }

  #push(events: readonly LoggedEvent[]): void {
    for (const event of events) {
      this.#window.push(event);
      this.#bytes += sizeOf(event);
    }
    if (this.#window.length > WINDOW.events || this.#bytes > WINDOW.bytes) this.#shorten();
    this.#wake();
  }

  /** Drops the oldest events. An eighth of the window at once, because each removal copies the rest. */
  #shorten(): void {
    let drop = 0;
    while (
      drop < this.#window.length - 1 &&
      (this.#window.length - drop > WINDOW.events * KEPT || this.#bytes > WINDOW.bytes * KEPT)
    )
      this.#bytes -= sizeOf(this.#window[drop++] as LoggedEvent);
    this.#window = this.#window.slice(drop);
    this.#start = (this.#start ?? 0) + drop;
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = new Set();
    for (const wake of wakers) wake();
  }

  /** Call this when an append may have been written although it was not acknowledged. */
  look(): void {
    if (this.#start !== undefined) this.#fill();
  }

  /** Reads what other processes appended. One read at a time; a call during a read causes one more round. */
  #fill(): void {
    this.#fillAgain = true;
    this.#filling ??= this.#fillLoop();
  }

  async #fillLoop(): Promise<void> {
    while (this.#fillAgain && !this.#closing.signal.aborted) {
      this.#fillAgain = false;
      try {
        for (;;) {
          const events = await this.#options.read(this.#end, BATCH);
          // Own appends may have arrived through `wrote` while the read was in flight.
          const fresh = events.filter((event) => event.position > this.#end);
          if (fresh.length > 0) this.#push(fresh);
          if (events.length < BATCH) break;
        }
        this.#outage.worked();
      } catch (error) {
        this.#outage.failed(error);
      }
    }
    // In the same turn as the check above, so a later call starts a new round.
    this.#filling = undefined;
  }

  async #begin(): Promise<void> {
    if (this.#start === undefined) {
      const head = await this.#options.head();
      this.#start ??= head;
    }
    this.#running ??= this.#watch();
  }

  /** Polls regardless of notifications, so a lost notification costs a delay, never an event. */
  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    const stopListening = this.#options.listener?.listen('signalbox_log', {
      heard: (writer) => {
        if (writer !== this.#options.writer) this.#fill();
      },
    });
    while (!signal.aborted) {
      this.#fill();
      await pause(this.#options.pollMs, signal);
    }
    stopListening?.();
    await this.#filling;
  }

  async *follow({ after, signal }: FollowOptions): AsyncGenerator<Followed> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    let position = after;
    let caughtUp = false;
    let known = false;
    const backOff = createBackOff({ firstMs: 50, lastMs: 5_000 });
    while (!ended.aborted) {
      try {
        await this.#begin();
        // Another process may have written events that this one has not read yet.
        known ||= after <= this.#end || after <= (await this.#options.head());
        if (!known) throw new UnknownPositionError(after);
        const events = await this.#next(position);
        backOff.reset();
        if (events.length > 0 || !caughtUp) {
          position = events.at(-1)?.position ?? position;
          caughtUp = position >= this.#end;
          yield { events, position, caughtUp };
        } else {
          await this.#changed(position, ended);
        }
      } catch (error) {
        if (ended.aborted) return;
        if (error instanceof UnknownPositionError) throw error;
        const waitMs = backOff.next();
        this.#options.log.warn({ err: error }, `following the log: trying again in ${Math.round(waitMs)} ms`);
        await pause(waitMs, ended);
      }
    }
  }

  /** Up to BATCH events after a position; from memory if the window reaches back that far. */
  async #next(after: Position): Promise<readonly LoggedEvent[]> {
    const start = this.#start ?? 0;
    if (after >= start) return this.#window.slice(after - start, after - start + BATCH);
    return this.#options.read(after, BATCH);
  }

  #changed(after: Position, signal: AbortSignal): Promise<void> {
    if (this.#end > after || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#wakers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#wakers.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }
}
