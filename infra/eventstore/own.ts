/**
 * Keeps the events that this process appended until they arrive again through its subscription, so that the
 * subscription can return the original objects. They need no second validation and decryption.
 *
 * Only their positions must come from the server: positions are byte offsets, and only the server knows what other
 * processes have written in between.
 */
import { LRUCache } from 'lru-cache';
import type { LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';

/** Most bytes of JSON that are remembered, and the least that an event counts for: so there are at most 10,000. */
const MAX_BYTES = 16_000_000;
const MIN_EVENT_BYTES = 1_600;

export interface OwnEvents {
  /** Call this when an append is about to be sent. */
  sends(append: PreparedAppend): void;
  /** Returns the event, with its original data and metadata if this process appended it. Works once per event. */
  instead(event: LoggedEvent): LoggedEvent;
  /** Call this when a follower starts. Events are remembered until the returned function is called. */
  expect(): () => void;
}

interface Sent {
  readonly event: NewEvent;
  readonly bytes: number;
}

export function createOwnEvents(): OwnEvents {
  const sent = new LRUCache<string, Sent>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => Math.max(bytes, MIN_EVENT_BYTES),
  });
  let expecting = 0;
  const keyOf = (stream: string, id: string) => `${id} ${stream}`;
  return {
    sends({ stream, events }) {
      if (expecting === 0) return;
      for (const { id, event, data, meta } of events)
        sent.set(keyOf(stream, id), { event, bytes: data.length + meta.length });
    },
    instead(event) {
      const key = keyOf(event.stream, event.id);
      const own = sent.get(key);
      sent.delete(key);
      if (own?.event.type !== event.type) return event;
      const known = { ...event, data: own.event.data, meta: own.event.meta };
      rememberSize(known, own.bytes);
      return known;
    },
    expect() {
      expecting++;
      return () => {
        if (--expecting === 0) sent.clear();
      };
    },
  };
}
