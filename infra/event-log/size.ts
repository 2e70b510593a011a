/** Estimates the memory that events take, for the bounds of caches and buffers. */
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

/** Size of an event besides its data, bytes. */
const OVERHEAD = 600;

const sizes = new WeakMap<LoggedEvent, number>();

/** Approximate size of an event in memory, bytes. */
export function sizeOf(event: LoggedEvent): number {
  const cached = sizes.get(event);
  if (cached !== undefined) return cached;
  return rememberSize(event, Buffer.byteLength(JSON.stringify(event.data)));
}

/** Splits events, in order, into pieces of at most about `maxBytes`; a larger event is a piece of its own. */
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

/**
 * Records the size of an event that has been serialised anyway; `length` is that of the text, at least approximately in
 * bytes.
 */
export function rememberSize(event: LoggedEvent, length: number): number {
  const size = length + OVERHEAD;
  sizes.set(event, size);
  return size;
}
