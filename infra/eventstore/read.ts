/**
 * Reading from EventStoreDB in pages: each page is one finite call, which is retried when it fails and starts where the
 * previous page ended.
 */
import { LogUnavailableError, UnknownPositionError } from '../../shared/errors.ts';
import type { LoggedEvent, Position, ReadAllOptions, ReadStreamOptions } from '../../shared/ports/event-log.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import type { Connection } from './client.ts';
import { repeatRead, StoreFailure } from './failure.ts';
import type { KnownIds } from './known.ts';
import type { Page, PageOptions } from './page.ts';

export interface ReaderOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  /** Time limit for one page, including retries and pauses, milliseconds. */
  readonly timeoutMs: number;
  readonly closing: AbortSignal;
}

export interface Reader {
  readStream(stream: string, options: ReadStreamOptions): AsyncGenerator<readonly LoggedEvent[]>;
  readAll(options: ReadAllOptions): AsyncGenerator<readonly LoggedEvent[]>;
  head(): Promise<Position>;
  /** @throws UnknownPositionError unless the log can be read from here */
  checkPosition(position: Position): Promise<void>;
}

const PAGE = 500;

interface SeenHead {
  readonly head: Position;
  readonly seen: Position;
}
const NOTHING_SEEN: SeenHead = { head: BEGINNING, seen: BEGINNING };

function checkLimit(limit: number | undefined): number {
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  if (!Number.isSafeInteger(limit) || limit < 0) throw new Error(`invalid limit ${limit}: use a whole number from 0`);
  return limit;
}

function checkFrom(from: number | undefined): void {
  if (from !== undefined && !(Number.isSafeInteger(from) && from >= 0)) {
    throw new Error(`invalid place to read from ${from}: use a whole number from 0`);
  }
}

export function createReader({ connection, known: knownIds, timeoutMs, closing }: ReaderOptions): Reader {
  const closed = () => connection.closed();
  /** `head` is our last event up to `seen`, so that the next search for the head can stop there. */
  let known: SeenHead = NOTHING_SEEN;

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

  const allPage = async (
    from: Position | 'start' | 'end',
    backwards: boolean,
    count: number,
    bounds: Pick<PageOptions, 'maxBytes' | 'skip'> = {},
  ): Promise<Page> => {
    try {
      return await repeatRead({ what: 'read of the log', timeoutMs, closing, closed }, (waitMs) =>
        connection.readAll({ from, backwards, count, timeoutMs: waitMs, closing, ...bounds }),
      );
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
      if (typeof from === 'number') throw new UnknownPositionError(from, { cause: error });
      throw new LogUnavailableError(`read of the log: ${error.message}`, { cause: error });
    }
  };

  /**
   * Reading forwards, the server also returns the event at the position; after its last event it returns nothing and
   * reports no error.
   */
  const pageBehind = async (position: Position, count: number, maxBytes?: number): Promise<Page> => {
    const page = await allPage(position, false, count + 1, { maxBytes, skip: position });
    if (page.received === 0) throw new UnknownPositionError(position);
    const received = page.received - (page.first?.position === position ? 1 : 0);
    return { ...page, events: page.events.filter((event) => event.position > position), received };
  };

  const lastEvent = () =>
    repeatRead({ what: 'read of the head', timeoutMs, closing, closed }, (waitMs) => connection.readLast(waitMs));

  /** The position of our last event before `position`, below which `before` is known. */
  const ourLast = async (position: Position, before: SeenHead): Promise<Position> => {
    for (let from = position; from > before.seen; ) {
      const page = await allPage(from, true, PAGE);
      const ours = page.events[0]?.position;
      if (ours !== undefined) return ours;
      if (page.received < PAGE || !page.last) return BEGINNING;
      from = page.last.position;
    }
    return before.head;
  };

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
        knownIds.saw(page.events);
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
      if (left === 0 && !backwards && typeof from === 'number') await pageBehind(from, 0);
      for (let count = Math.min(PAGE, left); left > 0; count = PAGE) {
        const page: Page =
          backwards || typeof from !== 'number'
            ? await allPage(from, backwards, count, { maxBytes: options.maxBytes })
            : await pageBehind(from, count, options.maxBytes);
        const events = page.events.length > left ? page.events.slice(0, left) : page.events;
        if (events.length > 0) yield events;
        left -= events.length;
        if ((page.received < count && !page.cut) || !page.last) return;
        from = page.last.position;
      }
    },

    async head() {
      const last = await lastEvent();
      if (!last) return BEGINNING;
      const { position, isOurs } = last;
      // A log that ends before `seen` is another one.
      const before = position < known.seen ? NOTHING_SEEN : known;
      known = { head: isOurs ? position : await ourLast(position, before), seen: position };
      return known.head;
    },

    async checkPosition(position) {
      if (position !== BEGINNING) await pageBehind(position, 0);
    },
  };
}
