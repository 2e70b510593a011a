/** Events that the reader has handed out and the follower has not yet taken. */
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { sizeOf } from '../event-log/size.ts';
import { wholeUpTo } from './appends.ts';

/** Most events taken at once, if the last append among them fits. */
const BATCH = 1_000;
/** Bounds of an inbox; a follower that exceeds them reads the log instead. */
const MAX = { events: 10_000, bytes: 16_000_000 };

export class Inbox {
  #events: LoggedEvent[] = [];
  #bytes = 0;
  /** True when events had to be dropped. */
  overflowed = false;

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  get size(): number {
    return this.#events.length;
  }

  add(events: readonly LoggedEvent[]): void {
    if (this.overflowed) return;
    for (const event of events) {
      this.#events.push(event);
      this.#bytes += sizeOf(event);
    }
    if (this.#events.length <= MAX.events && this.#bytes <= MAX.bytes) return;
    this.clear();
    this.overflowed = true;
  }

  /** The next events after a position. */
  take(after: Position): readonly LoggedEvent[] {
    const count = wholeUpTo(this.#events, BATCH);
    const taken = this.#events.length === count ? this.#events : this.#events.slice(0, count);
    this.#events = taken === this.#events ? [] : this.#events.slice(count);
    for (const event of taken) this.#bytes -= sizeOf(event);
    return (taken[0]?.position ?? 0) > after ? taken : taken.filter(({ position }) => position > after);
  }

  clear(): void {
    this.#events = [];
    this.#bytes = 0;
    this.overflowed = false;
  }
}
