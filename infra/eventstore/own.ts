/**
 * Events that this process appended, until it follows them: what comes back over the wire is given out as the very objects
 * that were handed in. Whoever decodes them then need not open and check again what was sealed and checked here.
 *
 * Only their place in the order has to come from the server: positions are places in a file, and nobody but the server
 * knows what other processes have written in between.
 */
import type { LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';

/** What is remembered at most; bytes of JSON. */
const MAX = { events: 10_000, bytes: 16_000_000 };

export interface OwnEvents {
  /** An append is about to be sent. */
  sends(append: PreparedAppend): void;
  /** An event of the log; with the data and metadata that were handed in, when it was appended here. Once each. */
  instead(event: LoggedEvent): LoggedEvent;
  /** Somebody follows: events are remembered until what this returns is called. */
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
