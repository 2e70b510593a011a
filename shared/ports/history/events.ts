/** The port of the index over the log: looks events up by their fields, on every kind of event log. */
import type { LoggedEvent, Position } from '../event-log.ts';

/** The index's data about an event. */
export interface LogEntry {
  /** Number of the event in the log, from 0: its leaf in the tree. */
  readonly number: number;
  readonly position: Position;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly actor: { readonly type: string; readonly id: number; readonly name: string };
  /** Id of the event that caused it; an id of a request or anything else only shows that there was a cause. */
  readonly causation: string | null;
}

export interface EntryFilter {
  readonly stream?: string | undefined;
  readonly type?: string | undefined;
  /** Name of an actor, or its type and id, as in `agent:12`. */
  readonly actor?: string | undefined;
  readonly correlation?: string | undefined;
  readonly causation?: string | undefined;
  /** Only events from this time on, Unix milliseconds. */
  readonly since?: number | undefined;
  /** Not after this time. */
  readonly until?: number | undefined;
  /** Only events after this position. */
  readonly after?: Position | undefined;
}

/** A moment of the log: an event, and everything before it. */
export interface Moment {
  readonly position: Position;
  /** The latest time of any event up to here, Unix milliseconds. */
  readonly at: number;
}

export interface LogIndex {
  /** Resolves when the index has every event that the log has now. @throws AppError 503 when that takes too long */
  settled(): Promise<void>;
  find(id: string): Promise<LogEntry | undefined>;
  /** Position of the event with this number; waits for the index if it does not have the event yet. */
  positionOf(number: number): Promise<Position | undefined>;
  /** The last event up to a position or time; undefined: that is before the first event. Waits for the index. */
  momentAt(at: { readonly position: Position } | { readonly time: number }): Promise<Moment | undefined>;
  /** Ids of the events at these positions. */
  idsAt(positions: readonly Position[]): Promise<ReadonlyMap<Position, string>>;
  /** The first and the last event. */
  ends(): Promise<{ readonly first: Moment; readonly last: Moment } | undefined>;
  /**
   * For each time, how many events the log has up to it, and the position of the last of them (0 if there is none). An
   * event from a slow clock counts at the latest time before it.
   *
   * @param times Unix milliseconds
   */
  countsUpTo(times: readonly number[]): Promise<readonly { readonly count: number; readonly position: Position }[]>;
  /** In log order. */
  list(filter: EntryFilter, limit: number): Promise<readonly LogEntry[]>;
  /** Events with one of these ids as their cause, in log order. */
  causedBy(ids: readonly string[], limit: number): Promise<readonly LogEntry[]>;
  /**
   * The events themselves, as they are stored. They are limited in bytes: of many large ones, only the first are read,
   * but at least one.
   */
  read(entries: readonly LogEntry[]): Promise<readonly LoggedEvent[]>;
}
