/** The end of a PostgreSQL log in memory: what followers receive once the window is full. */
import { expect } from 'chai';
import { createLogger } from '../../../infra/logging.ts';
import { Tail } from '../../../infra/postgres/tail.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import { until } from '../../support/until.ts';

const eventAt = (position: Position, text: string): LoggedEvent => ({
  stream: 'one',
  revision: position - 1,
  position,
  id: `id-${position}`,
  type: 'Happened',
  data: { text },
  meta: {},
});

/** A tail over a table in memory, and the positions after which followers read the table. */
function tailOver() {
  const table: LoggedEvent[] = [];
  const reads: Position[] = [];
  const tail = new Tail({
    async read(after, limit) {
      reads.push(after);
      return table.slice(after, after + limit);
    },
    head: async () => table.length,
    listener: undefined,
    writer: 'this process',
    pollMs: 60_000,
    log: createLogger('silent'),
  });
  function append(count: number, text: string): void {
    const events = Array.from({ length: count }, (_, n) => eventAt(table.length + n + 1, text));
    table.push(...events);
    tail.wrote(events);
  }
  return { tail, reads, append };
}

/** Follows until the signal aborts. @returns the positions received so far */
function follow(tail: Tail, after: Position, signal: AbortSignal): Position[] {
  const received: Position[] = [];
  const run = async () => {
    for await (const { events } of tail.follow({ after, signal })) received.push(...events.map((one) => one.position));
  };
  run().catch(() => received.push(Number.NaN));
  return received;
}

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

describe('tail of the log', () => {
  for (const { what, groups, size, text } of [
    { what: 'many events', groups: 200, size: 100, text: '' },
    { what: 'many bytes', groups: 100, size: 1, text: 'x'.repeat(1_000_000) },
  ]) {
    it(`gives every event once, in order, after ${what}, and the newest from memory`, async () => {
      const { tail, reads, append } = tailOver();
      const ending = new AbortController();
      const live = follow(tail, 0, ending.signal);
      await until('the tail has begun', () => tail.head === 0);
      const total = groups * size;
      for (let group = 0; group < groups; group++) {
        append(size, text);
        // Now and then the live follower gets a turn.
        if (group % 10 === 0) await until('the live follower has them', () => live.length === (group + 1) * size);
      }
      await until('the live follower has all', () => live.length === total);
      expect(live).to.deep.equal(upTo(total));
      reads.length = 0;
      const recent = follow(tail, total - 20, ending.signal);
      await until('a follower near the end has the rest', () => recent.length === 20);
      expect(recent).to.deep.equal(upTo(total, total - 19));
      expect(reads).to.deep.equal([]);
      const late = follow(tail, 0, ending.signal);
      await until('a late follower has all', () => late.length === total);
      expect(late).to.deep.equal(upTo(total));
      expect(reads[0]).to.equal(0);
      ending.abort();
      await tail.close();
    });
  }
});
