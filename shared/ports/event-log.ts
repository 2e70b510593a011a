/**
 * The port of the event log: the one thing every store behind Signalbox has to be able to do.
 *
 * A log is a set of streams inside one total order. Adapters know nothing of event types: they store
 * envelopes and give them back. One conformance suite (`test/infra/event-log.conformance.ts`) runs
 * against every adapter.
 */

/**
 * A place in the log's total order: a non-negative safe integer that only grows. 0 is "before the first
 * event". Positions are compared, stored and handed out as cursors; nothing may be computed from the
 * distance of two (in PostgreSQL it is gapless, in EventStoreDB it is a byte offset).
 */
export type Position = number;

/** The position before every event. */
export const BEGINNING: Position = 0;

/**
 * What an append expects of its stream: `any` (no expectation), `none` (the stream has no events), or the
 * exact revision of the stream's last event (the first event of a stream has revision 0).
 */
export type Expectation = 'any' | 'none' | number;

/** An event on its way into the log. `data` and `meta` are plain JSON objects: no undefined, bigint, Date or cycle. */
export interface NewEvent {
  /** UUID. The log never holds two events with one id in one stream: an append with known ids is answered as before. */
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** An event as the log gives it back. */
export interface LoggedEvent extends NewEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
}

export interface Appended {
  /** Revision of the last event written. */
  readonly revision: number;
  /** Position of the last event written. */
  readonly position: Position;
}

/** A step of a follower. */
export interface Followed {
  /** In log order, without gap or double from the position the follower started after. May be empty. */
  readonly events: readonly LoggedEvent[];
  /** Everything up to here has been delivered, filtered stretches included: a safe checkpoint. */
  readonly position: Position;
  /** True when the follower had reached the end of the log at the moment of this step. */
  readonly caughtUp: boolean;
}

export interface ReadStreamOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** First revision to give (inclusive); default: the beginning forwards, the end backwards. */
  readonly from?: number;
  /** At most this many events; default: all. */
  readonly limit?: number;
}

export interface ReadAllOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** Exclusive cursor. Forwards: events after it (default BEGINNING). Backwards: events before it (default: the end). */
  readonly from?: Position;
  /** At most this many events; default: all. With 0 only `from` is looked at. */
  readonly limit?: number;
  /**
   * A batch holds at most about this many bytes of JSON, or one event that is larger; default: batches are bounded by
   * their number of events alone. For readers of which there are many at once.
   */
  readonly maxBytes?: number;
}

export interface FollowOptions {
  /** Exclusive: the first event delivered is the one behind it. */
  readonly after: Position;
  /** Aborting ends the iteration cleanly (it returns, it does not throw). */
  readonly signal: AbortSignal;
}

/** An append may carry at most this many bytes of JSON (data and meta of all its events): EventStoreDB's limit is 1 MiB a call. */
export const MAX_APPEND_BYTES = 1_000_000;
/** ... and at most this many events. */
export const MAX_APPEND_EVENTS = 1_000;

export interface EventLog {
  /**
   * Appends one or more events to one stream, all or nothing. Resolves when they are durable and visible
   * to every reader.
   *
   * @throws ConflictError when the expectation does not hold: nothing was written.
   * @throws EventTooLargeError over MAX_APPEND_BYTES or MAX_APPEND_EVENTS: nothing was written.
   * @throws LogUnavailableError when the store could not be reached within the adapter's time-out. The
   *   outcome is then unknown; the same call again (same ids, same expectation) is safe and tells.
   */
  append(stream: string, events: readonly NewEvent[], expected: Expectation): Promise<Appended>;

  /** Gives a stream's events in batches. A stream without events gives nothing. */
  readStream(stream: string, options?: ReadStreamOptions): AsyncIterable<readonly LoggedEvent[]>;

  /**
   * Gives all events in log order in batches, up to the end as it is when the read reaches it.
   *
   * @throws UnknownPositionError when `from` lies behind the end of the log, or the store can tell that no event is there
   */
  readAll(options?: ReadAllOptions): AsyncIterable<readonly LoggedEvent[]>;

  /**
   * Follows the log: everything behind `after`, then what is appended from then on, by any process.
   * Pulling slowly is allowed: the adapter's buffer is bounded and it goes back to reading. It survives the
   * store going away (resumes with back-off); it ends only by its signal or `close`.
   *
   * @throws UnknownPositionError as `readAll` does: trying again is no use
   */
  follow(options: FollowOptions): AsyncIterable<Followed>;

  /** Position of the last event, BEGINNING for an empty log. */
  head(): Promise<Position>;

  /** Waits for appends in flight, ends followers, releases connections. Later calls throw LogUnavailableError. */
  close(): Promise<void>;
}
