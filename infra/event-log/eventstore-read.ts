/**
 * Reading an EventStoreDB in pages: each page is one call that ends by itself, is repeated when it fails, and starts
 * where the one before it ended.
 */
import type { LoggedEvent, Position, ReadAllOptions, ReadStreamOptions } from '../../shared/ports/event-log.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import type { Connection } from './eventstore-client.ts';
import { repeatRead, StoreFailure } from './eventstore-failure.ts';
import type { KnownIds } from './eventstore-known.ts';
import type { Page } from './eventstore-page.ts';

export interface ReaderOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  /** For one page, attempts and pauses included. */
  readonly timeoutMs: number;
  readonly closing: AbortSignal;
}

export interface Reader {
  readStream(stream: string, options: ReadStreamOptions): AsyncGenerator<readonly LoggedEvent[]>;
  readAll(options: ReadAllOptions): AsyncGenerator<readonly LoggedEvent[]>;
  head(): Promise<Position>;
}

const PAGE = 500;
/** The head is mostly among the last few events; system events behind it make the look longer. */
const HEAD_PAGE = 16;

function checkLimit(limit: number | undefined): number {
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  if (!Number.isSafeInteger(limit) || limit < 0) throw new Error(`${limit} is no limit: a whole number from 0`);
  return limit;
}

function checkFrom(from: number | undefined): void {
  if (from !== undefined && !(Number.isSafeInteger(from) && from >= 0)) {
    throw new Error(`${from} is no place to read from: a whole number from 0`);
  }
}

export function createReader({ connection, known, timeoutMs, closing }: ReaderOptions): Reader {
  const closed = () => connection.closed();
  /** Below this there is nothing to look for when the head is sought: a position that had an event. */
  let floor: Position = BEGINNING;

  const streamPage = async (stream: string, from: number | 'start' | 'end', backwards: boolean, count: number) => {
    try {
      return await repeatRead({ what: `read of ${stream}`, timeoutMs, closing, closed }, (waitMs) =>
        connection.readStream(stream, { from, backwards, count, timeoutMs: waitMs, closing }),
      );
    } catch (error) {
      if (error instanceof StoreFailure && error.kind === 'no stream') return undefined;
      if (error instanceof StoreFailure) throw new Error(`stream ${stream} is deleted in the store`, { cause: error });
      throw error;
    }
  };

  const allPage = (from: Position | 'start' | 'end', backwards: boolean, count: number): Promise<Page> =>
    repeatRead({ what: 'read of the log', timeoutMs, closing, closed }, (waitMs) =>
      connection.readAll({ from, backwards, count, timeoutMs: waitMs, closing }),
    );

  return {
    async *readStream(stream, options) {
      checkFrom(options.from);
      let left = checkLimit(options.limit);
      const backwards = options.direction === 'backwards';
      let from: number | 'start' | 'end' = options.from ?? (backwards ? 'end' : 'start');
      while (left > 0) {
        const count = Math.min(PAGE, left);
        const page: Page | undefined = await streamPage(stream, from, backwards, count);
        if (!page?.last) return;
        known.saw(page.events);
        if (page.events.length > 0) yield page.events;
        left -= page.events.length;
        from = page.last.revision + (backwards ? -1 : 1);
        if (page.received < count || from < 0) return;
      }
    },

    async *readAll(options) {
      checkFrom(options.from);
      let left = checkLimit(options.limit);
      const backwards = options.direction === 'backwards';
      if (backwards && options.from === BEGINNING) return;
      let from: Position | 'start' | 'end' = options.from || (backwards ? 'end' : 'start');
      while (left > 0) {
        // Forwards the server gives the event at the cursor as well.
        const again = !backwards && from !== 'start';
        const count = Math.min(PAGE, left) + (again ? 1 : 0);
        const page: Page = await allPage(from, backwards, count);
        const events = again ? page.events.filter(({ position }) => position > Number(from)) : page.events;
        if (events.length > 0) yield events;
        left -= events.length;
        if (page.received < count || !page.last) return;
        from = page.last.position;
      }
    },

    async head() {
      let from: Position | 'end' = 'end';
      for (let count = HEAD_PAGE; ; count = PAGE) {
        const page: Page = await allPage(from, true, count);
        const last = page.events[0];
        if (last) {
          floor = Math.max(floor, last.position);
          return last.position;
        }
        if (page.received < count || !page.last) return BEGINNING;
        if (page.last.position <= floor) return floor;
        from = page.last.position;
      }
    },
  };
}
