/** What is appended together becomes visible together, in whatever pieces a store hands it out. */
import { expect } from 'chai';
import type { Database } from '../../../infra/database/database.ts';
import { eachAppend, endOfWhole, inWholeAppends, wholeUpTo } from '../../../infra/following/appends.ts';
import type { Subject } from '../../../infra/following/follower.ts';
import { Following } from '../../../infra/following/following.ts';
import { Inbox } from '../../../infra/following/inbox.ts';
import { createLogger } from '../../../infra/logging.ts';
import type { EventLog, Followed, LoggedEvent } from '../../../shared/ports/event-log.ts';
import { until } from '../../support/until.ts';

/** A log of appends with so many events each, every one to a stream of its own unless named. */
function logOf(...sizes: readonly (number | readonly [stream: string, size: number])[]): LoggedEvent[] {
  const revisions = new Map<string, number>();
  const events: LoggedEvent[] = [];
  for (const [index, one] of sizes.entries()) {
    const [stream, size] = typeof one === 'number' ? [`s${index}`, one] : one;
    for (let rest = size - 1; rest >= 0; rest--) {
      const revision = revisions.get(stream) ?? 0;
      revisions.set(stream, revision + 1);
      const position = events.length + 1;
      const meta = rest > 0 ? { rest } : {};
      events.push({
        id: `${position}`,
        type: position % 2 ? 'Odd' : 'Even',
        data: {},
        meta,
        stream,
        revision,
        position,
      });
    }
  }
  return events;
}
const positionsOf = (events: readonly LoggedEvent[]) => events.map(({ position }) => position);

describe('appends within a list of events', () => {
  it('are whole up to the last position where none of their events is missing', () => {
    const events = logOf(1, 3, ['t', 2], ['t', 2]);
    const ends = events.map((_, index) => endOfWhole(events.slice(0, index + 1)));
    expect(ends).to.deep.equal([1, 1, 1, 4, 4, 6, 6, 8]);
    expect(endOfWhole([])).to.equal(0);
  });

  it('are not split by a limit, unless one alone exceeds it', () => {
    const events = logOf(1, 3, 2);
    expect([1, 2, 3, 4, 5, 6, 9].map((count) => wholeUpTo(events, count))).to.deep.equal([1, 1, 1, 4, 4, 6, 6]);
    expect(wholeUpTo(logOf(5, 1), 2)).to.equal(5);
    expect(wholeUpTo([], 3)).to.equal(0);
  });

  it('are distinguished from each other, even in one stream and with omitted events', () => {
    const events = logOf(['t', 2], ['t', 3], 1);
    expect([...eachAppend(events)].map(positionsOf)).to.deep.equal([[1, 2], [3, 4, 5], [6]]);
    const odd = events.filter(({ type }) => type === 'Odd');
    expect([...eachAppend(odd)].map(positionsOf)).to.deep.equal([[1], [3, 5]]);
  });

  it('are reassembled from pages, and incomplete ones are omitted', async () => {
    const events = logOf(2, 3, 1, 4);
    async function* pages() {
      for (let at = 0; at < 9; at += 2) yield events.slice(at, Math.min(at + 2, 9));
    }
    const whole: number[][] = [];
    for await (const page of inWholeAppends(pages())) whole.push(positionsOf(page));
    expect(whole).to.deep.equal([
      [1, 2],
      [3, 4, 5, 6],
    ]);
  });

  it('leave an inbox as a whole', () => {
    const inbox = new Inbox();
    inbox.add(logOf(999, 3, 1));
    expect(inbox.take(0)).to.have.length(999);
    expect(inbox.take(0)).to.have.length(4);
    expect(inbox.isEmpty).to.equal(true);
  });
});

describe('followers of a log that delivers appends in pieces', () => {
  it('receive each append as a whole, whether they read or are sent it', async () => {
    const events = logOf(3, 1, 3);
    let handed = 3;
    let wake = () => {};
    const log = {
      head: async () => 3,
      async *readAll({ from = 0 }) {
        for (let at = from; at < handed; at++) yield events.slice(at, at + 1);
      },
      async *follow({ after, signal }: { after: number; signal: AbortSignal }): AsyncGenerator<Followed> {
        signal.addEventListener('abort', () => wake());
        for (let at = after; !signal.aborted; ) {
          if (at < handed) {
            at++;
            yield { events: events.slice(at - 1, at), position: at, caughtUp: true };
          } else {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      },
    } as unknown as EventLog;
    const following = new Following({
      database: { kind: 'embedded' } as Database,
      eventLog: log,
      log: createLogger('silent'),
    });
    const seen: number[] = [];
    following.reader.watch((position) => seen.push(position));
    const batches: number[][] = [];
    const subject: Subject = {
      name: 'one',
      types: new Set(['Odd', 'Even']),
      begin: async () => ({ position: 0, generation: 1, stuckAt: null }),
      async apply(taken) {
        batches.push(positionsOf(taken));
      },
      forget: () => undefined,
      isTransient: () => false,
      stuck: async () => undefined,
    };
    const followed = following.follow(subject, { log: createLogger('silent'), by: 'each process' });
    await until('it has read what was there', () => batches.length === 1);
    for (let more = 4; more <= 6; more++) {
      handed = more;
      wake();
      await new Promise(setImmediate);
    }
    await until('it has the second append', () => batches.length === 2);
    expect(following.reader.position, 'not within an append').to.equal(4);
    handed = 7;
    wake();
    await until('it has the third append', () => batches.length === 3);
    expect(batches).to.deep.equal([[1, 2, 3], [4], [5, 6, 7]]);
    expect(seen).to.deep.equal([3, 4, 4, 4, 7]);
    await followed.close();
    await following.close();
  });
});
