/**
 * Numbers from outside the log: record ids and event numbers. A number is taken before the append and recorded in
 * the event. A gap is harmless, a double is not.
 */
export interface Counters {
  /** The first of `count` numbers that nobody else gets. Numbers start at 1. */
  take(name: CounterName, count?: number): number | Promise<number>;
  /** Raises a counter so that its next number is above `value`; never lowers it. */
  raise(name: CounterName, value: number): Promise<void>;
}

/** `event` numbers every event; the others are ids of records of that kind. */
export type CounterName = string;
