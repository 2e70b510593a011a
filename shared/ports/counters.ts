/**
 * Numbers from outside the log: record ids and event numbers. A number is reserved before the append and recorded in
 * the event. A gap is harmless, a duplicate is not.
 */
export interface Counters {
  /** Reserves `count` numbers and returns the first. Numbers start at 1. */
  take(name: CounterName, count?: number): number | Promise<number>;
}

/** `event` numbers every event; the others are ids of records of that kind. */
export type CounterName = string;
