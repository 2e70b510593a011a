/**
 * Counters in PostgreSQL. Requests that arrive while a statement is in flight share the next one; event numbers are
 * taken ahead in blocks, because every append needs one and a gap is harmless.
 */
import type pg from 'pg';
import type { Counters } from '../../shared/ports/counters.ts';

/** Numbers taken ahead per statement. */
const BLOCKS: Readonly<Record<string, number>> = { event: 512 };

interface Ask {
  readonly count: number;
  resolve(first: number): void;
  reject(error: unknown): void;
}

export function createCounters(pool: pg.Pool): Counters {
  const blocks = new Map<string, { next: number; end: number }>();
  const asks = new Map<string, Ask[]>();
  const taking = new Set<string>();

  async function serve(name: string): Promise<void> {
    taking.add(name);
    for (let waiting = asks.get(name); waiting && waiting.length > 0; waiting = asks.get(name)) {
      asks.set(name, []);
      const wanted = waiting.reduce((sum, ask) => sum + ask.count, 0);
      const extra = BLOCKS[name] ?? 0;
      try {
        const { rows } = await pool.query(
          `INSERT INTO service.counters (name, value) VALUES ($1, $2)
           ON CONFLICT (name) DO UPDATE SET value = service.counters.value + $2 RETURNING value`,
          [name, wanted + extra],
        );
        const end = (rows[0] as { value: number }).value;
        let first = end - wanted - extra + 1;
        for (const ask of waiting) {
          ask.resolve(first);
          first += ask.count;
        }
        if (extra > 0) blocks.set(name, { next: first, end });
      } catch (error) {
        for (const ask of waiting) ask.reject(error);
      }
    }
    taking.delete(name);
  }

  return {
    take(name, count = 1) {
      const block = blocks.get(name);
      if (block && block.end - block.next + 1 >= count) {
        const first = block.next;
        block.next += count;
        return first;
      }
      return new Promise((resolve, reject) => {
        asks.set(name, [...(asks.get(name) ?? []), { count, resolve, reject }]);
        if (!taking.has(name)) serve(name).catch(reject);
      });
    },
    async raise(name, value) {
      blocks.delete(name);
      await pool.query(
        `INSERT INTO service.counters (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = greatest(service.counters.value, excluded.value)`,
        [name, value],
      );
    },
  };
}
