import type { LoggedEvent } from '../../shared/ports/event-log.ts';

const sizes = new WeakMap<LoggedEvent, number>();

/** Rough size of an event in memory, bytes. */
export function sizeOf(event: LoggedEvent): number {
  const cached = sizes.get(event);
  if (cached !== undefined) return cached;
  const size = JSON.stringify(event.data).length + 600;
  sizes.set(event, size);
  return size;
}
