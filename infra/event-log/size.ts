/** How much events take in memory, for the bounds of what is kept of them. */
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

/** Of an event besides its data, bytes. */
const OVERHEAD = 600;

const sizes = new WeakMap<LoggedEvent, number>();

/** Rough size of an event in memory, bytes. */
export function sizeOf(event: LoggedEvent): number {
  const cached = sizes.get(event);
  if (cached !== undefined) return cached;
  return rememberSize(event, JSON.stringify(event.data).length);
}

/** For events whose data has been serialised anyway: `length` is that of the text. */
export function rememberSize(event: LoggedEvent, length: number): number {
  const size = length + OVERHEAD;
  sizes.set(event, size);
  return size;
}
