/**
 * The event ids that this process has seen recently, by stream. They are needed because the port guarantees that
 * repeated ids are recognised, and EventStoreDB alone does not recognise all of them.
 *
 * With an exact expectation that is met, the server does not check ids at all, and with `any` it knows an id only from
 * a cache (8 MB, empty after a restart). So the ids of events that this process appended, read from a stream or
 * followed are kept here and checked first.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';

export interface KnownEvent {
  readonly revision: number;
  /** Missing for events inside a batch of our own, because the server reports only the position of the last one. */
  readonly position: Position | undefined;
}

export interface KnownIds {
  saw(events: readonly LoggedEvent[]): void;
  wrote(append: PreparedAppend, revision: number, position: Position): void;
  /** What is known about each event of an append, in order. */
  of(append: PreparedAppend): (KnownEvent | undefined)[];
  /** Records that an append's outcome has been unknown since `since` (Unix milliseconds). */
  doubt(append: PreparedAppend, since: number): void;
  /** Since when the append's outcome has been unknown, Unix milliseconds; undefined when it is known. */
  doubtedSince(append: PreparedAppend): number | undefined;
}

/** @param limit number of ids to remember; those that were not used for longest are forgotten first */
export function createKnownIds(limit: number): KnownIds {
  const known = new LRUCache<string, KnownEvent>(atMost(limit));
  const doubted = new LRUCache<string, number>(atMost(limit));
  const keyOf = (stream: string, id: string) => `${id} ${stream}`;
  return {
    saw(events) {
      for (const { stream, id, revision, position } of events) known.set(keyOf(stream, id), { revision, position });
    },
    wrote({ stream, events }, revision, position) {
      const last = events.length - 1;
      for (let index = 0; index <= last; index++) {
        const id = events[index]?.id ?? '';
        const at = { revision: revision - last + index, position: index === last ? position : undefined };
        known.set(keyOf(stream, id), at);
        doubted.delete(keyOf(stream, id));
      }
    },
    of: ({ stream, events }) => events.map(({ id }) => known.get(keyOf(stream, id))),
    doubt({ stream, events }, since) {
      for (const { id } of events) doubted.set(keyOf(stream, id), since);
    },
    doubtedSince: ({ stream, events }) => {
      const since = events.map(({ id }) => doubted.get(keyOf(stream, id))).filter((at) => at !== undefined);
      return since.length > 0 ? Math.min(...since) : undefined;
    },
  };
}
