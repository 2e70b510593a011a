/** Reads the events of index entries from the event log: together if they follow each other, otherwise one by one. */
import type { EventLog, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import type { LogEntry } from '../../shared/ports/history/events.ts';
import { sizeOf } from '../event-log/size.ts';

/** Maximum number of bytes of events per read. */
const MAX_BYTES = 4_000_000;
/** Maximum number of concurrent reads of streams. */
const READS = 8;

/** @param positionBefore the position of the event before the one with this number; undefined if it is the first */
export function readerOfEntries(
  eventLog: EventLog,
  positionBefore: (number: number) => Promise<Position | undefined>,
): (entries: readonly LogEntry[]) => Promise<readonly LoggedEvent[]> {
  async function read(entries: readonly LogEntry[]): Promise<readonly LoggedEvent[]> {
    const [first] = entries;
    if (!first) return [];
    const events = entries.every(({ number }, n) => number === first.number + n)
      ? await readInOrder(first, entries.length)
      : await readEach(entries);
    return withinBytes(events);
  }

  /** Consecutive events of the log. */
  async function readInOrder({ number }: LogEntry, count: number): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    const from = (await positionBefore(number)) ?? BEGINNING;
    let bytes = 0;
    for await (const page of eventLog.readAll({ from, limit: count, maxBytes: MAX_BYTES })) {
      events.push(...page);
      bytes += page.reduce((sum, event) => sum + sizeOf(event), 0);
      if (bytes > MAX_BYTES) break;
    }
    return events;
  }

  async function readEach(entries: readonly LogEntry[]): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for (let n = 0; n < entries.length && bytes <= MAX_BYTES; n += READS) {
      const part = await Promise.all(entries.slice(n, n + READS).map(readOne));
      events.push(...part);
      bytes += part.reduce((sum, event) => sum + sizeOf(event), 0);
    }
    return events;
  }

  async function readOne({ stream, revision, id }: LogEntry): Promise<LoggedEvent> {
    for await (const [event] of eventLog.readStream(stream, { from: revision, limit: 1 })) {
      if (event?.id === id) return event;
    }
    throw new Error(`event ${id} is in the index, and is not in the stream ${stream} at revision ${revision}`);
  }

  return read;
}

/** The longest beginning of the list that is within the limit; at least one event. */
function withinBytes(events: readonly LoggedEvent[]): readonly LoggedEvent[] {
  let bytes = 0;
  const end = events.findIndex((event, n) => {
    bytes += sizeOf(event);
    return n > 0 && bytes > MAX_BYTES;
  });
  return end < 0 ? events : events.slice(0, end);
}
