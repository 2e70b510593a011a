/** A page of a read: the complete result of one call to the server, or a failure within a time limit. */
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { sizeOf } from '../event-log/size.ts';
import { classify, type Gate, StoreFailure } from './failure.ts';

export interface Place {
  readonly revision: number;
  readonly position: Position;
  /** Time of the append by the server's clock. */
  readonly created: Date;
}

export interface Page {
  /** Without system events, links and events of other applications (data or metadata that is not a JSON object). */
  readonly events: readonly LoggedEvent[];
  /** Number of events that the server sent, including those left out. */
  readonly received: number;
  /** Places of the first and the last event that the server sent. */
  readonly first: Place | undefined;
  readonly last: Place | undefined;
  /** True when the page was cut short by `maxBytes`. */
  readonly cut: boolean;
}

export interface PageOptions {
  /**
   * The start, the end, or a number, which is inclusive in streams; in $all it is inclusive forwards and exclusive
   * backwards.
   */
  readonly from: number | 'start' | 'end';
  readonly backwards: boolean;
  /** Number of events to ask for, at least 1. */
  readonly count: number;
  /** Approximate limit in bytes, but at least one event is read; default: no limit. */
  readonly maxBytes?: number | undefined;
  /** The event at this position is left out and does not count towards `maxBytes`. */
  readonly skip?: Position | undefined;
  /** The read fails when no event arrives for this long, milliseconds. */
  readonly timeoutMs: number;
  readonly closing: AbortSignal;
}

/** The client's stream for a read. */
interface Source<T> {
  on(event: 'data', listener: (item: T) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  cancel(): Promise<void>;
}

interface Conversion<T> {
  /** Converts an item; undefined when it is to be left out. */
  event(item: T): LoggedEvent | undefined;
  place(item: T): Place | undefined;
}

export function gatherPage<T>(
  source: Source<T>,
  convert: Conversion<T>,
  { timeoutMs, closing, maxBytes = Number.POSITIVE_INFINITY, skip }: Omit<PageOptions, 'from' | 'backwards' | 'count'>,
  gate: Gate,
  late: (error: unknown, what: string) => void,
): Promise<Page> {
  return new Promise((resolve, reject) => {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    let received = 0;
    let first: Place | undefined;
    let last: Place | undefined;
    let settled = false;
    const settle = (act: () => void) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      closing.removeEventListener('abort', abandon);
      act();
    };
    const abandon = () => {
      settle(() => reject(new StoreFailure('unavailable', 'the server did not respond to the read in time')));
      source.cancel().catch((error: unknown) => late(error, 'cancel a read'));
    };
    const cut = () => {
      gate.worked();
      settle(() => resolve({ events, received, first, last, cut: true }));
      source.cancel().catch((error: unknown) => late(error, 'end a read'));
    };
    const timer = setTimeout(abandon, timeoutMs);
    closing.addEventListener('abort', abandon, { once: true });
    if (closing.aborted) abandon();
    source.on('data', (item) => {
      if (settled) return;
      timer.refresh();
      try {
        const event = convert.event(item);
        if (event && event.position !== skip) {
          if (maxBytes < Number.POSITIVE_INFINITY) bytes += sizeOf(event);
          if (bytes > maxBytes && events.length > 0) {
            cut();
            return;
          }
          events.push(event);
        }
        last = convert.place(item) ?? last;
        first ??= last;
        received++;
      } catch (error) {
        settle(() => reject(error));
      }
    });
    // Never removed, because an error after the end would otherwise be uncaught.
    source.on('error', (error) => {
      const failure = classify(error);
      if (settled) late(error, 'a read that was over');
      else if (failure.kind === 'unavailable') gate.failed();
      settle(() => reject(failure));
    });
    source.on('end', () => {
      gate.worked();
      settle(() => resolve({ events, received, first, last, cut: false }));
    });
  });
}
