/** How much events take in memory, for the bounds of what is kept of them. */
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

/** Of an event besides its data, bytes. */
const OVERHEAD = 600;

const sizes = new WeakMap<LoggedEvent, number>();

/** Rough size of an event in memory, bytes. */
export function sizeOf(event: LoggedEvent): number {
  const cached = sizes.get(event);
  if (cached !== undefined) return cached;
  return rememberSize(event, Buffer.byteLength(JSON.stringify(event.data)));
}

/** The events in order, in pieces of at most about `maxBytes`, or of one event that is larger. */
export function* inPieces(events: readonly LoggedEvent[], maxBytes: number): Generator<readonly LoggedEvent[]> {
  let start = 0;
  let bytes = 0;
  for (const [index, event] of events.entries()) {
    bytes += sizeOf(event);
    if (bytes <= maxBytes || index === start) continue;
    yield events.slice(start, index);
    start = index;
    bytes = sizeOf(event);
  }
  if (start < events.length) yield events.slice(start);
}

/** For events whose data has been serialised anyway: `length` is that of the text, in bytes or nearly so. */
export function rememberSize(event: LoggedEvent, length: number): number {
  const size = length + OVERHEAD;
  sizes.set(event, size);
  return size;
}
