/**
 * The log cache of webhook deliveries. An event usually concerns several webhooks at the same position. A page that one
 * of them has read is kept for the others, so a process reads and decodes it once.
 */
import type { EventLog, LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import { takingTurns } from '../../../shared/waiting.ts';

/** Size of a page of the log, bytes. */
const PAGE_BYTES = 1_000_000;
/** Number of the newest pages that are kept. */
const PAGES = 4;

export interface LogCache {
  /**
   * Events after a position, oldest first: some of them, or none at the end of the log.
   *
   * @throws what `EventLog.readAll` throws
   */
  after(position: Position): Promise<readonly LoggedEvent[]>;
  /** Drops all pages, because the log has been replaced. */
  forget(): void;
}

/** All events after `from`, up to `until`. */
interface Page {
  readonly from: Position;
  readonly until: Position;
  readonly events: readonly LoggedEvent[];
}

export function createLogCache(log: Pick<EventLog, 'readAll'>): LogCache {
  const pages: Page[] = [];
  // Concurrent readers use the page that the first of them has read.
  const reading = takingTurns();
  const kept = (position: Position): readonly LoggedEvent[] | undefined => {
    const page = pages.find(({ from, until }) => from <= position && position < until);
    return page?.events.slice(page.events.findIndex((event) => event.position > position));
  };
  async function read(from: Position): Promise<readonly LoggedEvent[]> {
    for await (const events of log.readAll({ from, maxBytes: PAGE_BYTES })) {
      const last = events.at(-1);
      if (!last) continue;
      pages.unshift({ from, until: last.position, events });
      pages.length = Math.min(pages.length, PAGES);
      return events;
    }
    return [];
  }
  return {
    after: async (position) => kept(position) ?? reading(async () => kept(position) ?? read(position)),
    forget() {
      pages.length = 0;
    },
  };
}
