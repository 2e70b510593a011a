/**
 * Keeps the events that this process appended until they arrive again through its subscription, so that the
 * subscription can hand out the original objects. Decoding these need not repeat the validation and decryption.
 *
 * Only their positions have to come from the server: positions are byte offsets, and only the server knows what other
 * processes have written in between.
 */
import type { LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';

/** Bounds of what is remembered; bytes of JSON. */
const MAX = { events: 10_000, bytes: 16_000_000 };

export interface OwnEvents {
  /** Called when an append is about to be sent. */
  sends(append: PreparedAppend): void;
  /** Gives the event, with its original data and metadata if this process appended it. Works once per event. */
  instead(event: LoggedEvent): LoggedEvent;
  /** Called when somebody starts to follow. Events are remembered until the returned function is called. */
  expect(): () => void;
}

interface Sent {
  readonly event: NewEvent;
  readonly bytes: number;
}

export function createOwnEvents(): OwnEvents {
  const sent = new Map<string, Sent>();
  let bytes = 0;
  let expecting = 0;
  const keyOf = (stream: string, id: string) => `${id} ${stream}`;
  const forget = (key: string): Sent | undefined => {
    const one = sent.get(key);
    if (one && sent.delete(key)) bytes -= one.bytes;
    return one;
  };
  return {
    sends({ stream, events }) {
      if (expecting === 0) return;
      for (const { id, event, data, meta } of events) {
        const key = keyOf(stream, id);
        forget(key);
        const size = data.length + meta.length;
        sent.set(key, { event, bytes: size });
        bytes += size;
      }
      for (const oldest of sent.keys()) {
        if (sent.size <= MAX.events && bytes <= MAX.bytes) break;
        forget(oldest);
      }
    },
    instead(event) {
      const own = forget(keyOf(event.stream, event.id));
      if (own?.event.type !== event.type) return event;
      const known = { ...event, data: own.event.data, meta: own.event.meta };
      rememberSize(known, own.bytes);
      return known;
    },
    expect() {
      expecting++;
      return () => {
        if (--expecting > 0) return;
        sent.clear();
        bytes = 0;
      };
    },
  };
}
