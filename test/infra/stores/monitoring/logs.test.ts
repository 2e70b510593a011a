/** Log lines on their way from the logger into the database, and the bounds there. */
import { expect } from 'chai';
import { createLogger, holdLines } from '../../../../infra/logging.ts';
import { createLogEntries, entryOf, keepLines } from '../../../../infra/stores/monitoring/logs.ts';
import type { NewLogEntry } from '../../../../shared/ports/monitoring/logs.ts';
import { DAY } from '../../../../shared/time.ts';
import { fixture } from '../../../support/fixture.ts';
import { until } from '../../../support/until.ts';
import { testDatabase } from '../../../support/world.ts';

const line = (message: string, more: Partial<NewLogEntry> = {}): NewLogEntry => ({
  ...{ at: 1_000_000, level: 'info', source: 'test', session: null, message, data: null },
  ...more,
});

describe('log entries', function () {
  this.timeout(60_000);
  const place = fixture(testDatabase);

  const messagesOf = async (store: ReturnType<typeof createLogEntries>, workspace: number) =>
    (await store.recent(workspace, { limit: 200 })).map(({ message }) => message);

  it('keep the newest lines of each workspace, limited in number and bytes', async () => {
    const store = createLogEntries(place.database.pool, { lines: 30, bytes: 20_000 });
    for (let n = 1; n <= 100; n++) {
      await store.add(11, line(`short ${n}`));
      if (n % 10 === 0) await store.add(12, line('x'.repeat(3_000) + n));
    }
    expect((await messagesOf(store, 11)).length, 'between two looks there may be some more').to.be.within(30, 50);
    await store.purge(0, 0);
    const short = await messagesOf(store, 11);
    expect(short).to.have.length(30);
    expect(short[0]).to.equal('short 100');
    // 3,000 characters and 200 for the rest, six times.
    expect(await messagesOf(store, 12)).to.have.length(6);
  });

  it('are removed when they are too old', async () => {
    const store = createLogEntries(place.database.pool);
    const now = 100 * DAY * 1_000;
    await store.add(13, line('old', { at: now - 31 * DAY * 1_000 }));
    await store.add(13, line('young', { at: now - 29 * DAY * 1_000 }));
    await store.purge(0, now);
    expect(await messagesOf(store, 13)).to.deep.equal(['young', 'old']);
    await store.purge(30, now);
    expect(await messagesOf(store, 13)).to.deep.equal(['young']);
  });

  it('wait in memory in order until they can be stored', async () => {
    const taken = holdLines();
    const log = createLogger('silent', 'stdout', taken);
    const stored: string[] = [];
    let fails = 2;
    const end = keepLines(
      {
        async addOwn(entries) {
          if (fails-- > 0) throw new Error('the database is away');
          stored.push(...entries.map(({ message }) => message));
        },
      },
      taken,
      'p',
    );
    log.warn('first');
    log.error('second');
    await until('the lines are stored', () => stored.length > 0);
    log.warn('third');
    await end();
    expect(stored).to.deep.equal(['first', 'second', 'third']);
    expect(taken.first(10)).to.deep.equal([]);
  });

  it('are counted if they do not fit into memory', async () => {
    const taken = holdLines({ lines: 3, characters: 1_000 });
    for (const text of ['a', 'b', 'c', 'd', 'e']) taken.take(JSON.stringify({ level: 40, msg: text, time: 0 }));
    const stored: string[] = [];
    const addOwn = async (entries: readonly NewLogEntry[]) => {
      stored.push(...entries.map(({ message }) => message));
    };
    await keepLines({ addOwn }, taken, 'p')();
    expect(stored.slice(0, 3)).to.deep.equal(['a', 'b', 'c']);
    expect(stored[3]).to.match(/^2 lines of the log were not kept/);
    taken.take('x'.repeat(1_001));
    expect([taken.first(1).length, taken.lost()]).to.deep.equal([0, 1]);
  });

  it('of the service are truncated to what can be stored, without stacks', () => {
    const taken = holdLines();
    const log = createLogger('silent', 'stderr', taken);
    log.error({ err: new TypeError('no\0 way'), more: '\ud800'.repeat(10_000) }, 'm'.repeat(20_000));
    const entry = entryOf(taken.first(1)[0] ?? '', 'p');
    expect(entry).to.include({ level: 'error', source: 'signalbox', session: null });
    expect(entry.message).to.have.length(10_000);
    expect(Object.keys(entry.data ?? {})).to.deep.equal(['shortened']);
    log.fatal({ err: new TypeError('no\0 way') }, 'gone');
    const small = entryOf(taken.first(2)[1] ?? '', 'p');
    expect(small).to.include({ level: 'error', message: 'gone' });
    expect(JSON.stringify(small)).not.to.match(/log-entries\.test|\\u0000/);
    expect(small.data).to.deep.include({ process: 'p' });
  });
});
