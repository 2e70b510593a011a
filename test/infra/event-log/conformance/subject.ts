/** What the conformance tests share: the log under test, events to append, and ways to gather what it gives. */
import { randomUUID } from 'node:crypto';
import { ConflictError } from '../../../../shared/errors.ts';
import type { EventLog, Followed, LoggedEvent, NewEvent, Position } from '../../../../shared/ports/event-log.ts';

export interface OpenedLog {
  readonly log: EventLog;
  /** A second process's view of the same store. */
  other?(): Promise<EventLog>;
  /** Most events that the log buffers for a follower; default 4,000. */
  readonly followBuffer?: number;
  /** The store keeps ids unique within a stream only. */
  readonly idsPerStream?: true;
  /** Closes `log` and whatever was started for it. */
  close(): Promise<void>;
}

export type OpenLog = () => Promise<OpenedLog>;

/** Filled before the first test. `other` is the log itself where an adapter has no second view. */
export interface Subject {
  readonly log: EventLog;
  readonly other: EventLog;
  readonly followBuffer: number;
  readonly idsPerStream: boolean;
}

/** Longest wait for a condition before a test fails, milliseconds. */
const PATIENCE_MS = 20_000;

/** A stream name that no other test has. */
export const newStream = (): string => `conformance-${randomUUID()}`;

export function newEvent(n = 0, overrides: Partial<NewEvent> = {}): NewEvent {
  return { id: randomUUID(), type: 'ConformanceTested', data: { n }, meta: {}, ...overrides };
}

export const newEvents = (count: number, from = 0): NewEvent[] =>
  Array.from({ length: count }, (_, index) => newEvent(from + index));

export async function gather(batches: AsyncIterable<readonly LoggedEvent[]>): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for await (const batch of batches) events.push(...batch);
  return events;
}

/** A predicate for the events of these streams. */
export function inStreams(...streams: readonly string[]): (event: LoggedEvent) => boolean {
  const names = new Set(streams);
  return (event) => names.has(event.stream);
}

/** The events of these streams after `after`, by `readAll`. */
export async function readAfter(log: EventLog, after: Position, streams: readonly string[]): Promise<LoggedEvent[]> {
  return (await gather(log.readAll({ from: after }))).filter(inStreams(...streams));
}

export const idsOf = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id);
export const positionsOf = (events: readonly LoggedEvent[]): Position[] => events.map(({ position }) => position);
export const revisionsOf = (events: readonly LoggedEvent[]): number[] => events.map(({ revision }) => revision);

/** The error that a promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it succeeded; an error was expected');
}

/** Rejects unless the promise rejects with a ConflictError whose `actual`, where the store says it, is this. */
export async function expectConflict(promise: Promise<unknown>, actual?: number): Promise<void> {
  const error = await errorOf(promise);
  if (!(error instanceof ConflictError)) throw new Error('a ConflictError was expected', { cause: error });
  if (actual !== undefined && error.actual !== undefined && error.actual !== actual) {
    throw new Error(`a conflict with revision ${actual} was expected, not with ${error.actual}`);
  }
}

/**
 * Follows until `enough` says so of all steps so far, and gives the steps. Fails after PATIENCE_MS.
 *
 * @param pulled called before each further step is pulled; what it returns is waited for
 */
export async function followUntil(
  log: EventLog,
  after: Position,
  enough: (steps: readonly Followed[]) => boolean,
  pulled?: (steps: readonly Followed[]) => Promise<void> | undefined,
): Promise<Followed[]> {
  const steps: Followed[] = [];
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const done = new AbortController();
  for await (const step of log.follow({ after, signal: AbortSignal.any([patience, done.signal]) })) {
    steps.push(step);
    if (enough(steps)) done.abort();
    else await pulled?.(steps);
  }
  if (!done.signal.aborted) {
    const events = steps.reduce((sum, step) => sum + step.events.length, 0);
    throw new Error(`the follower ended or waited ${PATIENCE_MS} ms after ${steps.length} steps with ${events} events`);
  }
  return steps;
}

export const eventsOf = (steps: readonly Followed[]): LoggedEvent[] => steps.flatMap(({ events }) => events);

/** True as soon as `count` events of these streams have been followed. */
export function sawEvents(count: number, ...streams: readonly string[]): (steps: readonly Followed[]) => boolean {
  const mine = inStreams(...streams);
  let seen = 0;
  return (steps) => {
    seen += steps.at(-1)?.events.filter(mine).length ?? 0;
    return seen >= count;
  };
}
