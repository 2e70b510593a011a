/** The event log on PostgreSQL and on PGlite: the conformance suite, and what only this adapter promises. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Database } from '../../../infra/database/database.ts';
import { createLogger } from '../../../infra/logging.ts';
import { openPostgresLog } from '../../../infra/postgres/event-log.ts';
import { planGroup } from '../../../infra/postgres/group.ts';
import { ConflictError, LogUnavailableError } from '../../../shared/errors.ts';
import type { Expectation } from '../../../shared/ports/event-log.ts';
import { nextTurn } from '../../../shared/waiting.ts';
import { fixture } from '../../support/fixture.ts';
import { outcomeText } from '../../support/kit.ts';
import { gate } from '../../support/memory-world.ts';
import { describeWith } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { databaseOnServer, embeddedDatabase } from '../../support/world.ts';
import { describeEventLog } from '../event-log/conformance.ts';

const log = createLogger('silent');

async function refusesChanges(database: Database): Promise<void> {
  for (const table of ['events', 'origins']) {
    for (const change of [`UPDATE log.${table} SET id = id`, `DELETE FROM log.${table}`, `TRUNCATE log.${table}`])
      expect(await outcomeText(database.pool.query(change)), change).to.match(/append-only/);
  }
}

describe('event log on PGlite', () => {
  const place = fixture(embeddedDatabase);
  it('refuses to change or remove events', () => refusesChanges(place.database));

  it('rejects a known conflict without a transaction, and returns the result of a repeated append', async () => {
    const transactions: string[] = [];
    const { pool } = place.database;
    async function connect() {
      const client = await pool.connect();
      const query = (asked: never, values: never) => {
        if (asked === 'BEGIN') transactions.push(asked);
        return client.query(asked, values);
      };
      return { query, release: (error?: Error) => client.release(error) };
    }
    const watched = { ...place.database, pool: { connect, query: pool.query.bind(pool) } } as unknown as Database;
    const eventLog = openPostgresLog({ database: watched, log });
    const one = () => [{ id: randomUUID(), type: 'Raced', data: {}, meta: {} }];
    const append = (events: ReturnType<typeof one>, expected: Expectation) =>
      eventLog.append('certain', events, expected).then(
        ({ revision }) => revision,
        (error: unknown) => (error instanceof ConflictError ? `found ${error.actual}` : error),
      );
    const [first, second] = [one(), one()];
    expect([await append(first, 'none'), await append(second, 0)]).to.deep.equal([0, 1]);
    expect([await append(one(), 'none'), await append(one(), 0)]).to.deep.equal(['found 1', 'found 1']);
    expect(transactions).to.deep.equal([]);
    expect([await append(first, 'none'), await append(second, 0)]).to.deep.equal([0, 1]);
    // The stream may still get there.
    expect(await append(one(), 7)).to.equal('found 1');
    expect(transactions).to.have.length(3);
    await eventLog.close();
  });

  describeEventLog('PGlite', async () => {
    const eventLog = openPostgresLog({ database: place.database, log });
    return { log: eventLog, close: () => eventLog.close() };
  });
});

describeWith('TEST_DATABASE_URL', 'event log on PostgreSQL', () => {
  const place = fixture(databaseOnServer);
  const other = fixture(() => place.other?.() as Promise<Database>);
  it('refuses to change or remove events', () => refusesChanges(place.database));
  describeEventLog('PostgreSQL', async () => {
    const eventLog = openPostgresLog({ database: place.database, log });
    return {
      log: eventLog,
      other: async () => openPostgresLog({ database: other, log }),
      close: () => eventLog.close(),
    };
  });

  it('serves followers own events from memory, and reads those of other processes', async () => {
    let reads = 0;
    let rows = 0;
    const counted = Object.assign(Object.create(place.database.pool) as Database['pool'], {
      query: async (text: string, values: unknown[]) => {
        const result = await place.database.pool.query(text, values);
        if (text.includes('FROM log.events')) {
          reads++;
          rows += result.rows.length;
        }
        return result;
      },
    });
    // Only notifications make it read: the next poll is far off.
    const mine = openPostgresLog({ database: { ...place.database, pool: counted }, log, pollMs: 600_000 });
    const theirs = openPostgresLog({ database: other, log });
    const stop = new AbortController();
    const seen: string[] = [];
    const after = await mine.head();
    const following = (async () => {
      for await (const { events } of mine.follow({ after, signal: stop.signal }))
        for (const { id } of events) seen.push(id);
    })();
    const one = () => ({ id: crypto.randomUUID(), type: 'Counted', data: {}, meta: {} });
    const first = one();
    await mine.append(`own-${after}`, [first], 'any');
    await until('it follows', () => seen.includes(first.id));
    // It is notified: what another process appends is there at once.
    const far = one();
    await theirs.append(`other-${after}`, [far], 'any');
    await until('it hears of others', () => seen.includes(far.id));
    [reads, rows] = [0, 0];
    const own = Array.from({ length: 300 }, one);
    for (let n = 0; n < own.length; n += 3) {
      await Promise.all(
        own.slice(n, n + 3).map((event, index) => mine.append(`own-${after}-${index}`, [event], 'any')),
      );
    }
    await until('it has followed all', () => own.every(({ id }) => seen.includes(id)));
    expect({ reads, rows }).to.deep.equal({ reads: 0, rows: 0 });
    const last = one();
    await theirs.append(`other-${after}`, [last], 'any');
    await until('it hears of others still', () => seen.includes(last.id));
    expect(rows).to.equal(1);
    stop.abort();
    await following;
    await mine.close();
    await theirs.close();
  });

  it('assigns positions without gaps while two processes race', async () => {
    const logs = [openPostgresLog({ database: place.database, log }), openPostgresLog({ database: other, log })];
    const start = await (logs[0] as (typeof logs)[0]).head();
    const one = () => ({ id: crypto.randomUUID(), type: 'Raced', data: {}, meta: {} });
    const done = await Promise.allSettled(
      Array.from({ length: 400 }, (_, n) =>
        (logs[n % 2] as (typeof logs)[0]).append(`race-${n % 7}-${start}`, [one()], 'any'),
      ),
    );
    expect(done.filter((result) => result.status === 'rejected')).to.deep.equal([]);
    const { rows } = await place.database.pool.query(
      'SELECT position FROM log.events WHERE position > $1 ORDER BY position',
      [start],
    );
    expect(rows.map((row) => row.position)).to.deep.equal(Array.from({ length: 400 }, (_, n) => start + n + 1));
    for (const one of logs) await one.close();
  });
});

describe('waiting appends', () => {
  it('are limited in bytes: more are refused until some have settled', async () => {
    let broken = (_reason: Error): void => {};
    const gate = new Promise<never>((_, reject) => {
      broken = reject;
    });
    // It breaks before anybody asks for a connection.
    gate.catch(() => undefined);
    const database = { kind: 'embedded', pool: { connect: () => gate } } as unknown as Database;
    const events = openPostgresLog({ database, log });
    const text = 'x'.repeat(900_000);
    const append = (n: number) =>
      outcomeText(events.append(`s-${n}`, [{ id: randomUUID(), type: 'Large', data: { text }, meta: {} }], 'none'));
    const asked = Array.from({ length: 80 }, (_, n) => append(n));
    broken(new Error('the disk is full'));
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer === 'too many appends are waiting')).to.have.length(80 - 71);
    expect(answers.filter((answer) => answer === 'the disk is full')).to.have.length(71);
    expect(await append(80), 'there is room again').to.equal('the disk is full');
    await events.close();
  });
});

describe('cancelled appends', () => {
  it('are not sent once the database is back', async () => {
    const giving = new AbortController();
    let away = true;
    let connections = 0;
    const connect = async () => {
      connections++;
      if (away) throw Object.assign(new Error('starting'), { code: '57P03' });
      expect.fail('it was sent');
    };
    const database = { kind: 'embedded', pool: { connect } } as unknown as Database;
    const events = openPostgresLog({ database, log });
    const append = events.append('s', [{ id: randomUUID(), type: 'Late', data: {}, meta: {} }], 'none', giving.signal);
    const refused = append.catch((error) => error);
    await until('it was tried again', () => connections >= 3);
    giving.abort();
    away = false;
    expect(await refused).to.be.instanceOf(LogUnavailableError);
    await events.close();
  });
});

describe('groups of appends', () => {
  /** A log that writes down the streams of each statement. */
  function open(options: Partial<Parameters<typeof openPostgresLog>[0]> = {}) {
    const statements: string[][] = [];
    const revisions = new Map<string, number>();
    const query = async ({ name, values }: { readonly name: string; readonly values: readonly unknown[] }) => {
      const streams = values[4] as string[];
      const base = statements.flat().length;
      statements.push(streams);
      const taken = streams.map((stream) => {
        const revision = (revisions.get(stream) ?? -1) + 1;
        revisions.set(stream, revision);
        return revision;
      });
      return {
        rows: [name === 'append_group' ? { base, bad: null, revisions: taken } : { head: base + streams.length }],
      };
    };
    const client = { query, release: () => undefined };
    const database = { kind: 'embedded', pool: { connect: async () => client } } as unknown as Database;
    const eventLog = openPostgresLog({ database, log, ...options });
    const append = (stream: string, expected: Expectation = 'none') =>
      eventLog.append(stream, [{ id: randomUUID(), type: 'Waited', data: {}, meta: {} }], expected);
    return { statements, append, close: () => eventLog.close() };
  }

  it('keep appends that do not fit at the front of the queue', async () => {
    const { statements, append, close } = open();
    // All are asked for in the same turn. Of the first 256 one is held back: what it expects cannot be known in one
    // statement with an append that expects nothing.
    const asked = [append('first', 'none'), append('held', 'any'), append('held', 0)];
    for (let n = 0; n < 300; n++) asked.push(append(`other-${n}`, 'none'));
    asked.push(append('held', 'any'));
    await Promise.all(asked);
    const others = Array.from({ length: 300 }, (_, n) => `other-${n}`);
    expect(statements).to.deep.equal([
      ['first', 'held', ...others.slice(0, 253)],
      ['held', ...others.slice(253), 'held'],
    ]);
    await close();
  });

  it('grow while the rows of the previous group are written', async () => {
    const rows: { inFlight: Promise<void> | undefined } = { inFlight: undefined };
    const { statements, append, close } = open({ rowsInFlight: () => rows.inFlight, rowsFirstMs: 60_000 });
    await append('first');
    const written = gate();
    rows.inFlight = written.wait();
    const asked = [append('second')];
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    asked.push(append('third'));
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(statements).to.deep.equal([['first']]);
    rows.inFlight = undefined;
    written.open();
    await Promise.all(asked);
    expect(statements).to.deep.equal([['first'], ['second', 'third']]);
    await close();
  });

  it('do not wait long for slow rows', async () => {
    const { statements, append, close } = open({ rowsInFlight: () => new Promise(() => {}), rowsFirstMs: 5 });
    await Promise.all([append('first'), append('second')]);
    expect(statements).to.deep.equal([['first', 'second']]);
    await close();
  });
});

describe('grouping of appends', () => {
  const append = (stream: string, expected: 'any' | 'none' | number, count = 1) => ({
    stream,
    expected,
    events: Array.from({ length: count }, () => ({ id: crypto.randomUUID(), type: 'A', data: {}, meta: {} })),
  });
  it('groups appends that build on each other', () => {
    const waiting = [append('a', 'none', 2), append('b', 4), append('a', 1), append('a', 'any')];
    expect(planGroup(waiting)).to.deep.equal({ members: waiting, rest: [] });
  });
  it('holds back an append whose revision is unknown, and all later ones to its stream', () => {
    const waiting = [append('a', 'any'), append('a', 7), append('a', 'any'), append('b', 'none')];
    const { members, rest } = planGroup(waiting);
    expect(members).to.deep.equal([waiting[0], waiting[3]]);
    expect(rest).to.deep.equal([waiting[1], waiting[2]]);
  });
});
