/**
 * Caches the end of the log: the position of the last event and the last revisions of streams this process wrote to
 * recently. Valid as long as nobody else writes, which the append statement itself checks.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { GroupMember } from './group.ts';

const MAX_STREAMS = 50_000;
/** After another process wrote, this many groups are appended without the cache. */
const SKIPPED_AFTER_MISS = 32;

export interface Start {
  readonly head: Position;
  /** Last revision of each stream of the group; -1: it must be empty. */
  readonly revisions: ReadonlyMap<string, number>;
}

export class HeadCache {
  #head: Position | undefined;
  #skip = 0;
  readonly #revisions = new LRUCache<string, number>(atMost(MAX_STREAMS));

  /** Where these appends start, when all of it is known and all expect just that. */
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
      // Of an unknown stream that is said to be empty, the table's key (stream, revision) proves the contrary.
      const fits =
        expected === 'none' ? known === undefined : known !== undefined && (expected === 'any' || expected === known);
      if (!fits) return undefined;
      revisions.set(stream, known ?? -1);
    }
    return { head: this.#head, revisions };
  }

  /** These events were written, the first of them at `base + 1`. */
  wrote(base: Position, events: readonly LoggedEvent[]): void {
    // Somebody wrote in between, perhaps to streams that are in here.
    if (base !== this.#head) this.#revisions.clear();
    for (const { stream, revision, position } of events) {
      this.#revisions.set(stream, revision);
      this.#head = position;
    }
  }

  /** The head had moved. */
  missed(): void {
    this.#head = undefined;
    this.#revisions.clear();
    this.#skip = SKIPPED_AFTER_MISS;
  }
}
