/**
 * The port of the event log, which every event store behind Signalbox implements.
 *
 * A log is a set of streams in one total order. Adapters know nothing of event types: they store and return envelopes.
 * One conformance suite (`test/infra/event-log/conformance.ts`) runs against every adapter.
 */

/**
 * A place in the log's total order: an increasing, non-negative safe integer; 0 is before the first event. Positions
 * may be compared, stored and used as cursors. The distance between two of them depends on the store (see
 * `EventLog.stride`).
 */
export type Position = number;

/** The position before every event. */
export const BEGINNING: Position = 0;

/**
 * What an append expects of its stream: `any` (no expectation), `none` (the stream has no events), or the
 * exact revision of the stream's last event (the first event of a stream has revision 0).
 */
export type Expectation = 'any' | 'none' | number;

/** An event to be appended. `data` and `meta` are plain JSON objects: no undefined, bigint, Date or cycle. */
export interface NewEvent {
  /**
   * UUID, unique in the whole log: callers generate it at random, or derive it from a unique value. Repeating an append
   * with known ids gives the same response as before. An id from another stream is a ConflictError if the store can
   * detect it; an event store server cannot, and the tree over the log reports it (`infra/proof/keeper.ts`).
   */
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** An event as read from the log. */
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
  /** In log order, without gaps or duplicates since the position that the follower started after. May be empty. */
  readonly events: readonly LoggedEvent[];
  /** Everything up to here has been delivered or filtered out, so this is a safe checkpoint. */
  readonly position: Position;
  /** True when the follower had reached the end of the log at the time of this step. */
  readonly caughtUp: boolean;
}

export interface ReadStreamOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** First revision to read (inclusive); default: the beginning forwards, the end backwards. */
  readonly from?: number;
  /** At most this many events; default: all. */
  readonly limit?: number;
}

export interface ReadAllOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** Exclusive cursor. Forwards: events after it (default BEGINNING). Backwards: events before it (default: the end). */
  readonly from?: Position;
  /** At most this many events; default: all. With 0, only `from` is checked. */
  readonly limit?: number;
  /**
   * Approximate limit for a batch, bytes of JSON; a larger event is a batch of its own. Default: batches are limited
   * only by their number of events. For use with many concurrent readers.
   */
  readonly maxBytes?: number;
}

export interface FollowOptions {
  /** Exclusive: the first event delivered is the one after it. */
  readonly after: Position;
  /** Aborting ends the iteration cleanly (it returns, it does not throw). */
  readonly signal: AbortSignal;
}

/** Most bytes of JSON in an append (data and meta of all its events); EventStoreDB's limit is 1 MiB per call. */
export const MAX_APPEND_BYTES = 1_000_000;
/** Most events in an append. */
export const MAX_APPEND_EVENTS = 1_000;

export interface EventLog {
  /**
   * Distance of an event's position from the previous one: always 1 if positions are consecutive; about the size of an
   * event if they are byte offsets. Only for distinguishing near from far.
   */
  readonly stride: number;

  /**
   * Appends one or more events to one stream, atomically. Resolves when they are durable and visible to every reader.
   *
   * @param unless once aborted, the append is not sent to the store, or not again: for a caller that has lost a lock
   * @throws ConflictError when the expectation is not met; nothing was written.
   * @throws EventTooLargeError over MAX_APPEND_BYTES or MAX_APPEND_EVENTS: nothing was written.
   * @throws LogUnavailableError when the store was unreachable within the adapter's time-out, or `unless` was aborted.
   *   The outcome is then unknown; repeating the call (same ids, same expectation) is safe and resolves it.
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: Expectation,
    unless?: AbortSignal | undefined,
  ): Promise<Appended>;

  /** Reads a stream's events in batches; none if the stream does not exist. */
  readStream(stream: string, options?: ReadStreamOptions): AsyncIterable<readonly LoggedEvent[]>;

  /**
   * Reads all events in log order, in batches, up to the end of the log at the time when it is reached.
   *
   * @throws UnknownPositionError when `from` is after the end of the log, or when the store detects that there is no
   *   event at `from`
   */
  readAll(options?: ReadAllOptions): AsyncIterable<readonly LoggedEvent[]>;

  /**
   * Follows the log: everything after `after`, then all events that any process appends. The consumer may be slow: the
   * adapter's buffer is bounded, and it returns to reading when the buffer is full. It survives outages of the store
   * (it resumes with back-off) and ends only by its signal or `close`.
   *
   * @throws UnknownPositionError as `readAll` does; retrying is pointless
   */
  follow(options: FollowOptions): AsyncIterable<Followed>;

  /** Position of the last event, BEGINNING for an empty log. */
  head(): Promise<Position>;

  /**
   * Position of the last event that this process knows of; undefined: it knows of none yet, or the store cannot tell.
   */
  readonly headKnown?: () => Position | undefined;

  /**
   * Fails as an append would fail now, without writing an event; undefined: a row written to the database shows it.
   */
  readonly checkWritable?: (() => Promise<void>) | undefined;

  /** Waits for appends in flight, ends followers, releases connections. Later calls throw LogUnavailableError. */
  close(): Promise<void>;
}
