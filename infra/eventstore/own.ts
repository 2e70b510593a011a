/**
 * Keeps the events that this process appended until they arrive again through its subscription, so that the
 * subscription can return the original objects. They need not be parsed, validated and decrypted again.
 *
 * Only their positions must come from the server: positions are byte offsets, and only the server knows what other
 * processes have written in between.
 */
import { LRUCache } from 'lru-cache';
import type { NewEvent } from '../../shared/ports/event-log.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';

/** Most bytes of JSON that are remembered, and the least that an event counts for: so there are at most 10,000. */
const MAX_BYTES = 16_000_000;
const MIN_EVENT_BYTES = 1_600;

export interface OwnEvents {
  /** Call this when an append is about to be sent. */
  sends(append: PreparedAppend): void;
  /** The event as it was appended, if this process appended it. Works once per event. */
  take(stream: string, id: string, type: string): NewEvent | undefined;
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
    take(stream, id, type) {
      const key = keyOf(stream, id);
      const event = sent.get(key)?.event;
      sent.delete(key);
      return event?.type === type ? event : undefined;
    },
    expect() {
      expecting++;
      return () => {
        if (--expecting === 0) sent.clear();
      };
    },
  };
}
