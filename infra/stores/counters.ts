/**
 * Counters in PostgreSQL. All requests that arrive while a statement is in flight share the next one, whatever their
 * counters. Numbers are reserved in blocks where a gap is harmless: always for events, because every append needs one;
 * for records while many are created.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { atMost } from '../../shared/bounded.ts';
import type { Counters } from '../../shared/ports/counters.ts';

/** Event numbers reserved per statement. */
const EVENTS_AHEAD = 512;
/** Maximum number of ids reserved per statement. */
const IDS_AHEAD = 64;
/** A counter that is used again this soon after a statement is busy, milliseconds: more numbers are then reserved. */
const BUSY_MS = 50;
/** People read these numbers, so only failed requests leave gaps. */
const GAPLESS = 'ticket-';
/** Maximum number of counters whose use is remembered. */
const MAX_PACES = 1_000;

interface Ask {
  readonly name: string;
  readonly count: number;
  resolve(first: number): void;
  reject(error: unknown): void;
}

export interface CounterOptions {
  /** Each connection prepares the statement: see `PREPARED`. */
  readonly prepared?: boolean;
  /**
   * The database, with the event log in it, ends with this process and no other uses it. A crash then cannot lose a
   * number that an event has, because everything written before the event is on disk with it, so no statement of a
   * counter has to wait for the disk. Processes that survive a crash of the database, however, still hold reserved
   * numbers: on a server, these would be issued again.
   */
  readonly endsWithUs?: boolean;
  /** Unix ms. */
  readonly now?: () => number;
}

// Sorted by name, so that the statements of several processes cannot deadlock.
const TAKE = `INSERT INTO service.counters (name, value)
  SELECT name, amount FROM unnest($1::text[], $2::bigint[]) AS wanted (name, amount) ORDER BY name
  ON CONFLICT (name) DO UPDATE SET value = service.counters.value + excluded.value RETURNING name, value`;
const UNFLUSHED = `${TAKE}, set_config('synchronous_commit', 'off', true)`;

export function createCounters(
  pool: Pick<pg.Pool, 'query'>,
  { prepared = false, endsWithUs = false, now = Date.now }: CounterOptions = {},
): Counters {
  const blocks = new Map<string, { next: number; end: number }>();
  /** When a counter was last used, Unix ms, and how many numbers are reserved at a time. */
  const paces = new LRUCache<string, { at: number; ahead: number }>(atMost(MAX_PACES));
  let asks: Ask[] = [];
  let serving = false;
  const text = endsWithUs ? UNFLUSHED : TAKE;

  function aheadOf(name: string): number {
    if (name === 'event') return EVENTS_AHEAD;
    if (name.startsWith(GAPLESS)) return 0;
    const at = now();
    const pace = paces.get(name);
    const ahead = pace && at - pace.at < BUSY_MS ? Math.min(pace.ahead * 2 + 1, IDS_AHEAD) : 0;
    paces.set(name, { at, ahead });
    return ahead;
  }

  /** Never throws. */
  async function serve(waiting: readonly Ask[]): Promise<void> {
    const byName = new Map<string, Ask[]>();
    for (const ask of waiting) byName.set(ask.name, [...(byName.get(ask.name) ?? []), ask]);
    const amounts = new Map<string, number>();
    for (const [name, own] of byName)
      amounts.set(
        name,
        own.reduce((sum, { count }) => sum + count, aheadOf(name)),
      );
    try {
      const values = [[...amounts.keys()], [...amounts.values()]];
      const { rows } = await pool.query(prepared ? { name: 'take_numbers', text, values } : { text, values });
      for (const { name, value: end } of rows as { name: string; value: number }[]) {
        let next = end - (amounts.get(name) ?? 0) + 1;
        for (const { count, resolve } of byName.get(name) ?? []) {
          resolve(next);
          next += count;
        }
        if (next <= end) blocks.set(name, { next, end });
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  /** The first of `count` reserved numbers, if there are enough. */
  function fromBlock(name: string, count: number): number | undefined {
    const block = blocks.get(name);
    if (!block || block.end - block.next + 1 < count) return undefined;
    const first = block.next;
    block.next += count;
    if (block.next > block.end) blocks.delete(name);
    return first;
  }

  /** Never throws. */
  async function serveAll(): Promise<void> {
    while (asks.length > 0) {
      const waiting: Ask[] = [];
      for (const ask of asks) {
        const first = fromBlock(ask.name, ask.count);
        if (first === undefined) waiting.push(ask);
        else ask.resolve(first);
      }
      asks = [];
      if (waiting.length > 0) await serve(waiting);
    }
    serving = false;
  }

  return {
    take(name, count = 1) {
      const first = fromBlock(name, count);
      if (first !== undefined) return first;
      return new Promise((resolve, reject) => {
        asks.push({ name, count, resolve, reject });
        if (serving) return;
        serving = true;
        // Requests of the same turn share the statement.
        setImmediate(() => {
          serveAll().catch(reject);
        });
      });
    },
  };
}
