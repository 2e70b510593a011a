/**
 * What the stand-in remembers: one log in memory with the rules of a real EventStoreDB 23.10 (its IndexWriter), the
 * odd ones included, because they are what an adapter has to cope with. For tests only.
 */

export type Expected = 'any' | 'none' | 'exists' | number;

export interface StoredEvent {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly meta: Uint8Array;
  readonly stream: string;
  readonly revision: number;
  /** Byte offset in an imagined transaction file: grows, with gaps. */
  readonly position: number;
  /** Ticks of 100 ns since 1970. */
  readonly created: string;
}

export type Proposed = Pick<StoredEvent, 'id' | 'type' | 'contentType' | 'data' | 'meta'>;

export interface Written {
  readonly revision: number;
  readonly position: number;
}

export type Refusal =
  | { readonly kind: 'conflict'; readonly expected: Expected; readonly actual: number }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'too large'; readonly limit: number }
  | { readonly kind: 'not ready' };

export type Outcome = { readonly written: Written } | { readonly refusal: Refusal };

/** Bytes of one append, on the whole call. */
const MAX_APPEND_SIZE = 1_048_576;
/** Bytes that a record takes besides its type, data and metadata. */
const RECORD_OVERHEAD = 120;

export interface Memory {
  /** All events in log order, system events included. */
  readonly all: readonly StoredEvent[];
  readonly streams: ReadonlyMap<string, readonly StoredEvent[]>;
  append(stream: string, events: readonly Proposed[], expected: Expected): Outcome;
  /** Index into `all` of the event at exactly this position, or undefined. */
  indexAt(position: number): number | undefined;
  /** Called with the events of each append after it is visible. Returns how to stop. */
  onWritten(listener: (events: readonly StoredEvent[]) => void): () => void;
  writeSystemEvents(count: number): void;
  /** Tombstones a stream: it can be neither read nor written from then on. */
  tombstone(stream: string): void;
  isDeleted(stream: string): boolean;
  /** A restart: everything written stays; the cache of event ids, on which 'any' relies, is gone. */
  restart(): void;
}

export function createMemory(): Memory {
  const all: StoredEvent[] = [];
  const streams = new Map<string, StoredEvent[]>();
  const indexes = new Map<number, number>();
  const deleted = new Set<string>();
  const listeners = new Set<(events: readonly StoredEvent[]) => void>();
  const recentIds = new Map<string, { stream: string; revision: number }>();
  let end = 0;

  const write = (stream: string, events: readonly Proposed[]): StoredEvent[] => {
    const inStream = streams.get(stream) ?? [];
    streams.set(stream, inStream);
    const written = events.map((event) => {
      const stored = {
        ...event,
        stream,
        revision: inStream.length,
        position: end,
        created: String(BigInt(Date.now()) * 10_000n),
      };
      end += RECORD_OVERHEAD + event.type.length + event.data.length + event.meta.length;
      indexes.set(stored.position, all.length);
      inStream.push(stored);
      all.push(stored);
      recentIds.set(stored.id, { stream, revision: stored.revision });
      return stored;
    });
    for (const listener of listeners) listener(written);
    return written;
  };

  const answered = (stream: string, revision: number): Outcome => {
    const event = streams.get(stream)?.[revision];
    if (!event) throw new Error(`stand-in: ${stream} has no revision ${revision}`);
    return { written: { revision, position: event.position } };
  };

  const writeSystemEvents = (count: number) => {
    for (let index = 0; index < count; index++) {
      write('$settings', [
        {
          id: crypto.randomUUID(),
          type: '$settings-written',
          contentType: 'application/json',
          data: Buffer.from('{}'),
          meta: Buffer.from('{}'),
        },
      ]);
    }
  };
  // A real log never begins with a user's event.
  writeSystemEvents(3);

  return {
    all,
    streams,
    append(stream, events, expected) {
      if (deleted.has(stream)) return { refusal: { kind: 'deleted' } };
      let size = 0;
      for (const event of events) size += event.type.length * 2 + event.data.length + event.meta.length;
      if (size > MAX_APPEND_SIZE) return { refusal: { kind: 'too large', limit: MAX_APPEND_SIZE } };
      const current = (streams.get(stream)?.length ?? 0) - 1;
      const conflict: Outcome = { refusal: { kind: 'conflict', expected, actual: current } };

      if (current >= 0 && (expected === 'any' || expected === 'exists')) {
        // Known by the cache only, and only judged by whether the first id is known.
        const found = events
          .map((event) => recentIds.get(event.id))
          .map((at) => (at?.stream === stream ? at : undefined));
        if (found[0]) {
          const last = found.at(-1);
          return last && found.every((at) => at !== undefined) ? answered(stream, last.revision) : conflict;
        }
      } else if (expected !== 'any') {
        if (expected === 'exists') return conflict;
        const revision = expected === 'none' ? -1 : expected;
        if (revision > current) return conflict;
        if (revision < current) {
          const known = events.every((event, index) => streams.get(stream)?.[revision + 1 + index]?.id === event.id);
          return known ? answered(stream, revision + events.length) : conflict;
        }
        // The expected revision is the current one: written without a look at the ids.
      }
      const last = write(stream, events).at(-1);
      if (!last) throw new Error('stand-in: an append without events');
      return { written: { revision: last.revision, position: last.position } };
    },
    indexAt: (position) => indexes.get(position),
    onWritten(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    writeSystemEvents,
    tombstone: (stream) => {
      deleted.add(stream);
    },
    isDeleted: (stream) => deleted.has(stream),
    restart: () => recentIds.clear(),
  };
}
