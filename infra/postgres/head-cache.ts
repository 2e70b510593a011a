/**
 * Caches the end of the log: the position of the last event, and the last revisions of the streams to which this
 * process wrote recently. The cache is valid as long as no other process writes, which the append statement itself
 * checks.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { GroupMember } from './group.ts';

const MAX_STREAMS = 50_000;
/** How many groups are appended without the cache after another process has written. */
const SKIPPED_AFTER_MISS = 32;

export interface Start {
  readonly head: Position;
  /** Last revision of each stream in the group; -1: the stream must be empty. */
  readonly revisions: ReadonlyMap<string, number>;
}

export class HeadCache {
  #head: Position | undefined;
  #skip = 0;
  readonly #revisions = new LRUCache<string, number>(atMost(MAX_STREAMS));

  /** Where these appends start; undefined unless the head and all streams are known and match the expectations. */
  startOf(members: readonly GroupMember[]): Start | undefined {
    if (this.#head === undefined) return undefined;
    if (this.#skip > 0) {
      this.#skip--;
      return undefined;
    }
    const revisions = new Map<string, number>();
    for (const { stream, expected } of members) {
      // Later appends to a stream build on the first (`planGroup`).
      if (revisions.has(stream)) continue;
      const known = this.#revisions.get(stream);
      // If a stream that is expected to be empty is not, the table's unique key (stream, revision) rejects the append.
      const fits =
        expected === 'none' ? known === undefined : known !== undefined && (expected === 'any' || expected === known);
      if (!fits) return undefined;
      revisions.set(stream, known ?? -1);
    }
    return { head: this.#head, revisions };
  }

  /** Call this when these events have been written, the first at `base + 1`. */
  wrote(base: Position, events: readonly LoggedEvent[]): void {
    // Another process wrote in between, perhaps to cached streams.
    if (base !== this.#head) this.#revisions.clear();
    for (const { stream, revision, position } of events) {
      this.#revisions.set(stream, revision);
      this.#head = position;
    }
  }

  /** Call this when the head turned out to have moved. */
  missed(): void {
    this.#head = undefined;
    this.#revisions.clear();
    this.#skip = SKIPPED_AFTER_MISS;
  }
}
