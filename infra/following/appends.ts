/**
 * Events that were appended together become visible together. A store may return them in several pieces, so each event
 * contains the number of later events of its append (`Metadata.rest`).
 */
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

const restOf = ({ meta }: LoggedEvent): number => (typeof meta.rest === 'number' ? meta.rest : 0);

/** Whether two events of a log belong to the same append, even if events between them were left out. */
const isSameAppend = (one: LoggedEvent, other: LoggedEvent): boolean =>
  one.stream === other.stream && other.revision > one.revision && other.revision <= one.revision + restOf(one);

const splitsAppend = (events: readonly LoggedEvent[], at: number): boolean =>
  at < events.length && isSameAppend(events[at - 1] as LoggedEvent, events[at] as LoggedEvent);

/** Where the complete appends among consecutive events end: the events from there on begin an incomplete one. */
export function endOfWhole(events: readonly LoggedEvent[]): number {
  const last = events.at(-1);
  if (!last || restOf(last) === 0) return events.length;
  let end = events.length - 1;
  while (end > 0 && splitsAppend(events, end)) end--;
  return end;
}

/** The length of the longest piece of at most `count` events that splits no append; at least one append. */
export function wholeUpTo(events: readonly LoggedEvent[], count: number): number {
  let end = Math.min(count, events.length);
  while (end > 0 && splitsAppend(events, end)) end--;
  if (end > 0 || events.length === 0) return end;
  for (end = count; splitsAppend(events, end); ) end++;
  return end;
}

/** Events one append at a time. */
export function* eachAppend(events: readonly LoggedEvent[]): Generator<readonly LoggedEvent[]> {
  for (let start = 0; start < events.length; ) {
    let end = start + 1;
    while (end < events.length && splitsAppend(events, end)) end++;
    yield events.slice(start, end);
    start = end;
  }
}

/** Pages of a log, split so that none ends within an append. */
export async function* inWholeAppends(
  pages: AsyncIterable<readonly LoggedEvent[]>,
): AsyncGenerator<readonly LoggedEvent[]> {
  let held: readonly LoggedEvent[] = [];
  for await (const page of pages) {
    const events = held.length > 0 ? [...held, ...page] : page;
    const end = endOfWhole(events);
    held = events.slice(end);
    if (end > 0) yield held.length > 0 ? events.slice(0, end) : events;
  }
  // The rest of an append that the log did not show completely: the next read begins before it.
}
