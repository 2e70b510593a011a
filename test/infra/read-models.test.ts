/** What the projector keeps in memory: rows, changes, positions, events that wait. Pure. */
import { expect } from 'chai';
import { z } from 'zod';
import type { Database } from '../../infra/database/database.ts';
import { createTakeUp } from '../../infra/following/checkpoints.ts';
import { Inbox } from '../../infra/following/inbox.ts';
import { createLogger } from '../../infra/logging.ts';
import { Batch, type BatchOptions } from '../../infra/read-models/batch.ts';
import { createChangeTracker } from '../../infra/read-models/change-tracker.ts';
import { createFreshness } from '../../infra/read-models/freshness.ts';
import { Positions } from '../../infra/read-models/positions.ts';
import { RowCache, RowCaches } from '../../infra/read-models/row-cache.ts';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { type AnyStoredRow, keyText } from '../../projections/apply.ts';
import { change, defineProjection, defineTable, insert, on, type Table, update } from '../../projections/projection.ts';
import { AppError } from '../../shared/errors.ts';
import { agentDetailsChanged } from '../../shared/events/agents/agents.ts';
import { defineEvent } from '../../shared/events/define.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter } from '../support/kit.ts';
import { until } from '../support/until.ts';

const put = defineEvent({ type: 'Put', version: 1, doc: 'test', schema: z.object({ id: z.int(), text: z.string() }) });
const touched = defineEvent({ type: 'Touched', version: 1, doc: 'test', schema: z.object({ id: z.int() }) });
const removed = defineEvent({ type: 'Removed', version: 1, doc: 'test', schema: z.object({ id: z.int() }) });
const noted = defineEvent({ type: 'Noted', version: 1, doc: 'test', schema: z.object({ id: z.int() }) });
const boxes = defineTable('boxes', { id: 'bigint', text: 'text' }, { key: ['id'] });
const notes = defineTable('notes', { id: 'bigint' }, { key: ['id'] });
/** Of a row in either. */
const key = (id: number) => keyText(boxes, { id });
const projection = defineProjection({
  name: 'boxes',
  version: 1,
  tables: [boxes, notes],
  handlers: [
    on(put, ({ data }) => [change(boxes, { id: data.id }, () => ({ id: data.id, text: data.text }))]),
    on(touched, ({ data }) => [update(boxes, { id: data.id }, (row) => ({ ...row, text: `${row.text}!` }))]),
    on(removed, ({ data }) => [update(boxes, { id: data.id }, () => undefined)]),
    on(noted, ({ data }) => [insert(notes, { id: data.id })]),
  ],
});

describe('rows that a runner keeps', () => {
  const row = (text = 'a'): AnyStoredRow => ({ id: 1, text, position: 1 });

  it('are found again, and so is that there is none', () => {
    const rows = new RowCache();
    expect(rows.find('boxes', key(1))).to.equal(undefined);
    rows.remember('boxes', key(1), row());
    rows.remember('boxes', key(2), undefined);
    expect(rows.find('boxes', key(1))).to.deep.equal({ row: row() });
    expect(rows.find('boxes', key(2))).to.deep.equal({ row: undefined });
    expect(rows.find('notes', key(1)), 'of another table').to.equal(undefined);
    rows.forget('boxes', key(1));
    expect(rows.find('boxes', key(1))).to.equal(undefined);
    rows.clear();
    expect(rows.find('boxes', key(2))).to.equal(undefined);
  });

  it('of tables that began empty are all known, until one is not kept', () => {
    const ways: ((rows: RowCache) => void)[] = [
      (rows) => rows.lacks('boxes'),
      (rows) => rows.forget('boxes', key(9)),
      (rows) => rows.clear(),
      // Too large to be kept.
      (rows) => rows.remember('boxes', key(9), row('x'.repeat(17_000_000))),
    ];
    for (const lose of ways) {
      const rows = new RowCache([boxes as unknown as Table]);
      expect(rows.find('boxes', key(1))).to.deep.equal({ row: undefined });
      expect(rows.find('notes', key(1))).to.equal(undefined);
      lose(rows);
      expect(rows.find('boxes', key(1)), String(lose)).to.equal(undefined);
    }
    const kept = new RowCache([boxes as unknown as Table]);
    kept.remember('boxes', key(9), row());
    kept.remember('boxes', key(8), undefined);
    expect(kept.find('boxes', key(1))).to.deep.equal({ row: undefined });
  });

  it('have a bound: the oldest go, and what is not kept is not taken for missing', () => {
    const rows = new RowCache([boxes as unknown as Table]);
    for (let n = 0; n < 20; n++) rows.remember('boxes', key(n), { ...row('x'.repeat(1_000_000)), id: n });
    expect(rows.find('boxes', key(19))?.row).to.include({ id: 19 });
    expect(rows.find('boxes', key(0))).to.equal(undefined);
    const json = new RowCache([boxes as unknown as Table]);
    for (let n = 0; n < 20; n++) json.remember('boxes', key(n), { position: 1, json: { text: 'x'.repeat(1_000_000) } });
    expect(json.find('boxes', key(0))).to.equal(undefined);
    const small = new RowCache([boxes as unknown as Table]);
    for (let n = 0; n < 200; n++) small.remember('boxes', key(n), row());
    expect(small.find('boxes', key(0))?.row).to.deep.equal(row());
    for (let n = 0; n < 80_000; n++) small.remember('boxes', `absent ${n}`, undefined);
    expect(small.find('boxes', key(0)), 'also that there is no row takes room').to.equal(undefined);
  });
});

describe('the rows of all read models of a process', () => {
  const row = (position: number, text = 'a'): AnyStoredRow => ({ id: 1, text, position });
  const tables = [boxes, notes] as unknown as Table[];

  it('are given to requests: all that were asked for, or none', () => {
    const rows = new RowCaches();
    const kept = rows.keptRows(true);
    expect(kept(projection, [boxes], { id: 1 }), 'of a projection that nobody runs').to.equal(undefined);
    const cache = rows.of('boxes_v1');
    cache.remember('boxes', key(1), row(5));
    expect(kept(projection, [boxes], { id: 1 })).to.deep.equal([row(5)]);
    expect(kept(projection, [boxes], { id: 2 })).to.equal(undefined);
    expect(kept(projection, tables, { id: 1 })).to.equal(undefined);
    cache.remember('notes', key(1), row(3));
    expect(kept(projection, tables, { id: 1 })).to.deep.equal([row(5), row(3)]);
    cache.remember('notes', key(1), undefined);
    expect(kept(projection, tables, { id: 1 }), 'one is missing').to.equal(undefined);
    rows.of('boxes_v2');
    cache.clear();
    expect(kept(projection, [boxes], { id: 1 })).to.equal(undefined);
  });

  it('count only from a position on, where another process may have replaced this one', () => {
    const rows = new RowCaches();
    const kept = rows.keptRows(false);
    rows.of('boxes_v1').remember('boxes', key(1), row(5));
    rows.of('boxes_v1').remember('notes', key(1), row(3));
    expect(kept(projection, [boxes], { id: 1 })).to.equal(undefined);
    expect(kept(projection, [boxes], { id: 1 }, 6)).to.equal(undefined);
    expect(kept(projection, [boxes], { id: 1 }, 5)).to.deep.equal([row(5)]);
    expect(kept(projection, tables, { id: 1 }, 5), 'written together').to.deep.equal([row(5), row(3)]);
  });

  it('have one bound, and clearing one leaves the others', () => {
    const rows = new RowCaches();
    const caches = Array.from({ length: 8 }, (_, n) => rows.of(`many_v${n}`));
    for (const cache of caches) cache.remember('boxes', key(1), row(1, 'x'.repeat(10_000_000)));
    const found = () => caches.map((cache) => cache.find('boxes', key(1)) !== undefined);
    expect(found()).to.deep.equal([false, false, true, true, true, true, true, true]);
    caches[3]?.clear();
    expect(found()).to.deep.equal([false, false, true, false, true, true, true, true]);
  });
});

describe('a batch', () => {
  const stored = new Map<string, AnyStoredRow>([[key(1), { id: 1, text: 'a', position: 1 }]]);
  const open = (more: Partial<BatchOptions> = {}) => {
    const loaded: unknown[] = [];
    const cache = more.cache ?? new RowCache();
    const batch = new Batch({
      projection,
      cache,
      async load(table, keys) {
        loaded.push([table.name, keys]);
        return stored;
      },
      ...more,
    });
    return { batch, cache, loaded };
  };
  /** Events from position 10 on. */
  const events = (...drafts: readonly Draft[]) =>
    eventsOf(drafts).map((event) => ({ ...event, position: event.position + 9 }));
  const writesOf = (batch: Batch) =>
    batch.writes().map(({ table, inserts, upserts, deletes }) => [table.name, inserts, upserts, deletes]);

  it('loads the rows that it touches at once, and tells new ones from those that are there', async () => {
    const { batch, loaded } = open();
    expect(
      await batch.add(events(touched.draft({ id: 1 }), put.draft({ id: 2, text: 'b' }), touched.draft({ id: 2 }))),
    ).to.equal(3);
    expect(loaded).to.deep.equal([['boxes', [{ id: 1 }, { id: 2 }]]]);
    expect(writesOf(batch)).to.deep.equal([
      ['boxes', [{ id: 2, text: 'b!', position: 12 }], [{ id: 1, text: 'a!', position: 10 }], []],
    ]);
    expect(writesOf(batch), 'asked twice').to.deep.equal(writesOf(batch));
  });

  it('of an agent’s change keeps both of its rows, which the answer shows, and reads them once', async () => {
    const rows = rowsAfter(agentsProjection, eventsOf([registeredAgent({ agentId: 7, name: 'ada' })]));
    const tables: Record<string, readonly object[]> = rows;
    const loaded: string[] = [];
    const cache = new RowCache();
    const load: BatchOptions['load'] = async (table) => {
      loaded.push(table.name);
      return new Map((tables[table.name] as AnyStoredRow[]).map((row) => [keyText(table, row), row]));
    };
    const change = (role: string) =>
      agentDetailsChanged.draft({
        ...{ agentId: 7, name: 'ada', changes: { role } },
        ...({ via: 'id', writeToGateway: false, status: null } as const),
      });
    for (const [round, role] of ['tester', 'reviewer'].entries()) {
      const batch = new Batch({ projection: agentsProjection, cache, load });
      await batch.add(events(change(role)).map((event) => ({ ...event, position: event.position + round })));
      expect(
        writesOf(batch).map(([table]) => table),
        'only the agent is written',
      ).to.deep.equal(['agents']);
      batch.written();
    }
    expect(loaded).to.deep.equal(['agents', 'agent_texts']);
    for (const table of agentsProjection.tables) {
      const found = cache.find(table.name, keyText(table as Table, { workspace_id: 1, id: 7 }));
      expect(found?.row, table.name).to.be.an('object');
    }
  });

  it('applies changes in their order, also where some rows are in memory and others are loaded', async () => {
    const order: string[] = [];
    const mark = (id: number, name: string) =>
      change(boxes, { id }, (row) => {
        order.push(name);
        return { id, text: `${row?.text ?? ''}${name}` };
      });
    const marking = defineProjection({
      ...projection,
      handlers: [on(touched, () => [mark(1, 'a'), mark(2, 'b')]), on(removed, () => [mark(2, 'c'), mark(1, 'd')])],
    });
    const cache = new RowCache();
    cache.remember('boxes', key(2), { id: 2, text: 'x', position: 1 });
    const { batch, loaded } = open({ projection: marking, cache });
    await batch.add(events(touched.draft({ id: 0 }), removed.draft({ id: 0 })));
    expect(loaded).to.deep.equal([['boxes', [{ id: 1 }]]]);
    expect(order).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(writesOf(batch)).to.deep.equal([
      [
        'boxes',
        [],
        [
          { id: 1, text: 'aad', position: 11 },
          { id: 2, text: 'xbc', position: 11 },
        ],
        [],
      ],
    ]);
  });

  it('removes rows that are there, and says nothing of those that never were', async () => {
    const { batch } = open();
    await batch.add(
      events(
        removed.draft({ id: 1 }),
        put.draft({ id: 2, text: 'b' }),
        removed.draft({ id: 2 }),
        removed.draft({ id: 3 }),
      ),
    );
    expect(writesOf(batch)).to.deep.equal([['boxes', [], [], [{ id: 1 }]]]);
  });

  it('writes nothing where nothing changes: events that the row has seen, updates of rows that are not there', async () => {
    const { batch } = open();
    const old = eventsOf([touched.draft({ id: 1 })]).map((event) => ({ ...event, position: 1 }));
    await batch.add([...old, ...events(touched.draft({ id: 3 }))]);
    expect(batch.writes()).to.deep.equal([]);
  });

  it('does not look for rows that are new', async () => {
    const { batch, loaded } = open();
    await batch.add(events(noted.draft({ id: 5 })));
    expect(loaded).to.deep.equal([]);
    expect(writesOf(batch)).to.deep.equal([['notes', [{ id: 5, position: 10 }], [], []]]);
  });

  it('lets the cache know of what was written, but not of rows that never change', async () => {
    const { batch, cache, loaded } = open();
    await batch.add(events(touched.draft({ id: 1 }), removed.draft({ id: 2 }), noted.draft({ id: 5 })));
    batch.written();
    expect(cache.find('boxes', key(1))).to.deep.equal({ row: { id: 1, text: 'a!', position: 10 } });
    expect(cache.find('boxes', key(2))).to.deep.equal({ row: undefined });
    expect(cache.find('notes', key(5))).to.equal(undefined);
    const next = open({ cache });
    await next.batch.add(events(touched.draft({ id: 1 }), touched.draft({ id: 1 })));
    expect([...loaded, ...next.loaded], 'the next batch loads nothing').to.have.length(1);
    expect(writesOf(next.batch), 'an event that the row has seen is passed over').to.deep.equal([
      ['boxes', [], [{ id: 1, text: 'a!!', position: 11 }], []],
    ]);
  });

  it('keeps new rows of tables of which rows are changed', async () => {
    const filed = defineProjection({
      name: 'files',
      version: 1,
      tables: [notes, boxes],
      handlers: [
        on(noted, ({ data }) => [insert(notes, { id: data.id }), insert(boxes, { id: data.id, text: '' })]),
        on(touched, ({ data }) => [update(boxes, { id: data.id }, (row) => ({ ...row, text: 'touched' }))]),
      ],
    });
    const cache = new RowCache();
    const apply = async (...drafts: readonly Draft[]) => {
      const { batch, loaded } = open({ cache, projection: filed as never });
      await batch.add(events(...drafts));
      batch.written();
      return loaded;
    };
    await apply(noted.draft({ id: 5 }));
    expect(await apply(touched.draft({ id: 5 })), 'nobody knew that it would be changed').to.have.length(1);
    await apply(noted.draft({ id: 6 }));
    expect(cache.find('boxes', key(6))?.row).to.include({ id: 6, text: '' });
    expect(cache.find('notes', key(6))).to.equal(undefined);
    expect(await apply(touched.draft({ id: 6 }))).to.deep.equal([]);
  });

  it('gives rows that are only added to whoever takes them, until one is changed', async () => {
    const taken: unknown[] = [];
    let refuses = false;
    const cache = new RowCache([boxes, notes] as unknown as Table[]);
    const append: BatchOptions['append'] = {
      takes: (table) => table.name === 'notes',
      take: (table, row, position) => taken.push([table.name, row, position]),
      refuses: () => refuses,
    };
    const { batch } = open({ cache, append });
    expect(await batch.add(events(noted.draft({ id: 5 }), put.draft({ id: 7, text: 'x' })))).to.equal(2);
    expect(taken).to.deep.equal([['notes', { id: 5 }, 10]]);
    expect(writesOf(batch)).to.deep.equal([['boxes', [{ id: 7, text: 'x', position: 11 }], [], []]]);
    expect(cache.find('notes', key(5)), 'nobody knows that there is none').to.equal(undefined);
    const renoted = defineProjection({
      name: 'renotes',
      version: 1,
      tables: [notes],
      handlers: [
        on(noted, ({ data }) => [insert(notes, { id: data.id })]),
        on(touched, ({ data }) => [update(notes, { id: data.id }, (row) => ({ ...row }))]),
      ],
    });
    const mixed = open({ cache, append, projection: renoted as never });
    refuses = true;
    expect(
      await mixed.batch.add(events(noted.draft({ id: 6 }), touched.draft({ id: 6 }), noted.draft({ id: 8 }))),
    ).to.equal(1);
    expect(taken).to.have.length(2);
  });

  it('refuses a change of a table that the projection does not name', async () => {
    const odd = defineProjection({
      name: 'odd',
      version: 1,
      tables: [notes],
      handlers: [on(put, ({ data }) => [change(boxes, { id: data.id }, () => ({ id: data.id, text: '' }))])],
    });
    const { batch } = open({ projection: odd as never });
    const failure = await batch.add(events(put.draft({ id: 1, text: '' }))).catch((error: Error) => error.message);
    expect(failure).to.equal('odd: table boxes is not in its list of tables');
  });
});

describe('the tracker of changes', () => {
  it('tells workspaces and read models apart', () => {
    const changes = createChangeTracker();
    const before = changes.last('a_v1', 1);
    changes.record('a_v1', 1, 10);
    changes.record('a_v1', 2, 20);
    expect(changes.last('a_v1', 1)).to.not.equal(before);
    const [one, two, all] = [changes.last('a_v1', 1), changes.last('a_v1', 2), changes.last('a_v1', 'all')];
    expect(new Set([one, two]).size).to.equal(2);
    changes.record('a_v1', 2, 30);
    expect(changes.last('a_v1', 1)).to.equal(one);
    expect(changes.last('a_v1', 2)).to.not.equal(two);
    expect(changes.last('a_v1', 'all')).to.not.equal(all);
    const other = changes.last('b_v1', 2);
    changes.record('a_v1', 2, 40);
    expect(changes.last('b_v1', 2)).to.equal(other);
  });

  it('after a reset everything of the read model is another than before', () => {
    const changes = createChangeTracker();
    changes.record('a_v1', 1, 10);
    const before = changes.last('a_v1', 1);
    changes.reset('a_v1');
    const reset = changes.last('a_v1', 1);
    expect(reset).to.not.equal(before);
    changes.record('a_v1', 1, 10);
    expect([before, reset]).to.not.include(changes.last('a_v1', 1));
  });

  it('has a bound: a workspace that was forgotten counts as changed when it was forgotten, and no earlier', () => {
    const changes = createChangeTracker();
    for (let workspace = 1; workspace <= 10_000; workspace++) changes.record('a_v1', workspace, workspace);
    const never = changes.last('a_v1', 99_999);
    const [first, second] = [changes.last('a_v1', 1), changes.last('a_v1', 2)];
    // The first has changed again, so the second is the oldest.
    changes.record('a_v1', 1, 10_001);
    expect(changes.last('a_v1', 99_999)).to.equal(never);
    changes.record('a_v1', 10_001, 10_002);
    expect(changes.last('a_v1', 1)).to.not.equal(first);
    expect(changes.last('a_v1', 2), 'what is kept of the second').to.equal(second);
    expect(changes.last('a_v1', 99_999), 'one that was never seen counts as changed then').to.equal(second);
    expect(changes.last('a_v1', 3)).to.equal('0.3');
  });
});

describe('positions of read models', () => {
  const log = createLogger('silent');
  const open = (visibleTimeoutMs = 5_000, rows: object[] = []) => {
    const database = { pool: { query: async () => ({ rows }) } } as unknown as Database;
    return new Positions({ database, projections: [projection], log, visibleTimeoutMs });
  };

  it('grow, and never go back by themselves', () => {
    const positions = open();
    expect(positions.current('boxes_v1')).to.equal(0);
    positions.advance('boxes_v1', 5);
    positions.advance('boxes_v1', 3);
    expect(positions.current('boxes_v1')).to.equal(5);
  });

  it('of one that rests are where the reader is', () => {
    const positions = open();
    positions.advance('boxes_v1', 5);
    positions.raise(9);
    expect(positions.current('boxes_v1')).to.equal(5);
    positions.rest('boxes_v1', true);
    expect(positions.current('boxes_v1')).to.equal(9);
    positions.advance('boxes_v1', 12);
    expect(positions.current('boxes_v1')).to.equal(12);
    positions.rest('boxes_v1', false);
    positions.raise(20);
    expect(positions.current('boxes_v1')).to.equal(12);
  });

  it('a write is visible when those that listen to its events have reached it, in any of three ways', async () => {
    const ways: ((positions: Positions) => void)[] = [
      (positions) => positions.advance('boxes_v1', 7),
      (positions) => {
        positions.raise(7);
        positions.rest('boxes_v1', true);
      },
      (positions) => {
        positions.rest('boxes_v1', true);
        positions.raise(7);
      },
    ];
    for (const reach of ways) {
      const positions = open();
      let shown = false;
      const seen = positions.visible([put.type], 7).then(() => {
        shown = true;
      });
      positions.advance('boxes_v1', 6);
      positions.raise(6);
      await new Promise(setImmediate);
      expect(shown, 'too early').to.equal(false);
      reach(positions);
      await seen;
    }
    const positions = open();
    await positions.visible(['NobodyListens'], 7);
    positions.advance('boxes_v1', 7);
    await positions.visible([put.type], 7);
    expect(positions.schemasFor(put.type)).to.deep.equal(['boxes_v1']);
    expect(positions.schemasFor('NobodyListens')).to.deep.equal([]);
  });

  it('a write that is not shown soon enough is stored all the same, and the answer says so', async () => {
    const positions = open(20);
    positions.advance('boxes_v1', 3);
    const error = await positions.visible([put.type], 7).catch((reason: unknown) => reason);
    if (!(error instanceof AppError)) throw error;
    expect([error.status, error.extras.code, error.extras.body]).to.deep.equal([
      503,
      'READ_MODEL_BEHIND',
      { position: 7 },
    ]);
    expect(error.message).to.match(/position 7.* boxes_v1 /);
  });

  it('are read from the database, and again while somebody waits', async () => {
    const rows = [{ schema_name: 'boxes_v1', position: 4 }];
    const positions = open(5_000, rows);
    await positions.refresh();
    expect(positions.current('boxes_v1')).to.equal(4);
    positions.watch();
    positions.watch();
    const seen = positions.visible([put.type], 8);
    rows[0] = { schema_name: 'boxes_v1', position: 8 };
    await seen;
    await positions.close();
  });

  it('are heard of from other processes, and forgotten when that was interrupted', async () => {
    let heard: { heard(payload: string): void; interrupted(): void } | undefined;
    let stopped = false;
    const database = {
      pool: { query: async () => ({ rows: [] }) },
      listener: {
        listen(channel: string, what: typeof heard) {
          expect(channel).to.equal('signalbox_positions');
          heard = what;
          return () => {
            stopped = true;
          };
        },
      },
    } as unknown as Database;
    const positions = new Positions({ database, projections: [projection], log, visibleTimeoutMs: 5_000 });
    positions.watch();
    heard?.heard('boxes_v1:6');
    for (const odd of ['boxes_v1', '', ':9', 'boxes_v1:']) heard?.heard(odd);
    expect(positions.current('boxes_v1')).to.equal(6);
    heard?.interrupted();
    expect(positions.current('boxes_v1')).to.equal(0);
    await positions.close();
    expect(stopped).to.equal(true);
  });
});

describe('taking over checkpoints', () => {
  const parts = (kind: Database['kind']) => {
    const asked: string[][] = [];
    const query = async (_text: string, [names]: [string[]]) => {
      asked.push(names);
      const known = names.filter((name) => name !== 'missing');
      return { rows: known.map((name) => ({ name, position: name.length, generation: 1, stuckAt: null })) };
    };
    return { asked, takeUp: createTakeUp({ kind, pool: { query } } as unknown as Database, 'me') };
  };

  it('takes one statement for all of a moment on the embedded database, and fails only what is missing', async () => {
    const { asked, takeUp } = parts('embedded');
    const missing = takeUp('missing').catch((error: Error) => error.message);
    expect(await Promise.all([takeUp('a'), takeUp('bb')])).to.deep.equal([
      { position: 1, generation: 1, stuckAt: null },
      { position: 2, generation: 1, stuckAt: null },
    ]);
    expect(await missing).to.include('there is no checkpoint for missing');
    expect((await takeUp('ccc')).position).to.equal(3);
    expect(asked).to.deep.equal([['missing', 'a', 'bb'], ['ccc']]);
  });

  it('takes a statement for each on a server', async () => {
    const { asked, takeUp } = parts('server');
    const [one, two] = await Promise.all([takeUp('a'), takeUp('bb')]);
    expect([one.position, two.position]).to.deep.equal([1, 2]);
    expect(asked).to.deep.equal([['a'], ['bb']]);
  });
});

describe('freshness', () => {
  const parts = (database: object) => {
    const changes = createChangeTracker();
    let credentials = 0;
    const freshness = createFreshness({
      database: database as Database,
      projections: [projection],
      changes,
      credentialChanges: () => credentials,
    });
    return {
      freshness,
      changes,
      changeCredentials: () => {
        credentials++;
      },
    };
  };

  it('of the one process of an embedded database is known without asking', async () => {
    const { freshness, changes, changeCredentials } = parts({ kind: 'embedded' });
    const before = freshness.stampNow(['boxes'], 1);
    expect(await freshness.stamp(['boxes'], 1)).to.equal(before);
    changes.record('boxes_v1', 1, 5);
    expect(freshness.stampNow(['boxes'], 1)).to.not.equal(before);
    const credentials = freshness.credentialsNow();
    changeCredentials();
    expect(freshness.credentialsNow()).to.not.equal(credentials);
    expect(await freshness.credentials()).to.equal(freshness.credentialsNow());
    expect(() => freshness.stampNow(['nothing'], 1)).to.throw('there is no projection nothing');
  });

  it('on a server is asked of the database: once for those of a moment, and never by a query that began before', async () => {
    const answers: ((rows: object[]) => void)[] = [];
    const rows = (changed: number) => [{ positions: { boxes_v1: `1.${changed}` }, credentials: '7' }];
    const { freshness } = parts({
      kind: 'server',
      pool: { query: () => new Promise((resolve) => answers.push((found) => resolve({ rows: found }))) },
    });
    expect([freshness.stampNow(['boxes'], 1), freshness.credentialsNow()]).to.deep.equal([undefined, undefined]);
    const [one, two] = [freshness.stamp(['boxes'], 1), freshness.credentials()];
    await until('the first query has begun', () => answers.length === 1);
    const later = [freshness.stamp(['boxes'], 1), freshness.stamp(['boxes'], 2)];
    answers[0]?.(rows(1));
    expect([await one, await two]).to.deep.equal(['1.1', '7']);
    await until('the second query has begun', () => answers.length === 2);
    answers[1]?.(rows(2));
    expect(await Promise.all(later)).to.deep.equal(['1.2', '1.2']);
    expect(answers).to.have.length(2);
    const unknown = freshness.stamp(['nothing'], 1).catch((error: Error) => error.message);
    await until('the third query has begun', () => answers.length === 3);
    answers[2]?.(rows(3));
    expect(await unknown).to.match(/there is no projection nothing/);
  });

  it('on a server is asked once for a request, and again for one that arrived after that', async () => {
    let version = 0;
    const { freshness } = parts({
      kind: 'server',
      pool: {
        query: async () => ({ rows: [{ positions: { boxes_v1: `1.${++version}` }, credentials: `${version}` }] }),
      },
    });
    const arrival = performance.now();
    await until('the clock goes on', () => performance.now() > arrival);
    expect(await freshness.credentials(arrival)).to.equal('1');
    expect(await freshness.stamp(['boxes'], 1, arrival)).to.equal('1.1');
    expect(await freshness.stamp(['boxes'], 'all', arrival)).to.equal('1.1');
    const later = performance.now();
    expect(await freshness.stamp(['boxes'], 1, later), 'of a request that arrived later').to.equal('1.2');
    expect(await freshness.stamp(['boxes'], 1, arrival), 'the newest will do').to.equal('1.2');
    expect(await freshness.stamp(['boxes'], 1), 'asked anew').to.equal('1.3');
    expect(await freshness.credentials()).to.equal('4');
  });

  it('on a server a query that fails fails those who asked, and no later ones', async () => {
    let queries = 0;
    const { freshness } = parts({
      kind: 'server',
      pool: {
        query: async () => {
          if (++queries === 1) throw new Error('the server is away');
          return { rows: [{ positions: { boxes_v1: '1.1' }, credentials: '7' }] };
        },
      },
    });
    const first = freshness.stamp(['boxes'], 1).catch((error: Error) => error.message);
    while (queries === 0) await Promise.resolve();
    const second = freshness.stamp(['boxes'], 1);
    expect([await first, await second]).to.deep.equal(['the server is away', '1.1']);
  });
});

describe('events that wait', () => {
  const event = (position: number, text = ''): LoggedEvent =>
    ({ id: `${position}`, type: 'A', data: { text }, meta: {}, stream: 's', revision: 0, position }) as never;
  const positions = (events: readonly LoggedEvent[]) => events.map(({ position }) => position);

  it('are taken in order, a thousand at a time, those that are known already left out', () => {
    const inbox = new Inbox();
    expect(inbox.isEmpty).to.equal(true);
    inbox.add(Array.from({ length: 1_500 }, (_, n) => event(n + 1)));
    expect(inbox.isEmpty).to.equal(false);
    expect(positions(inbox.take(990))).to.deep.equal(Array.from({ length: 10 }, (_, n) => 991 + n));
    expect(positions(inbox.take(1_000))).to.deep.equal(Array.from({ length: 500 }, (_, n) => 1_001 + n));
    expect(inbox.isEmpty).to.equal(true);
    inbox.add([event(1), event(2)]);
    expect(positions(inbox.take(1))).to.deep.equal([2]);
    expect(inbox.take(0)).to.deep.equal([]);
  });

  it('have a bound in number and in bytes; more is not kept at all', () => {
    const many = new Inbox();
    many.add(Array.from({ length: 10_000 }, (_, n) => event(n)));
    expect([many.overflowed, many.isEmpty]).to.deep.equal([false, false]);
    many.add([event(10_000)]);
    expect([many.overflowed, many.isEmpty]).to.deep.equal([true, true]);
    many.add([event(10_001)]);
    expect(many.isEmpty, 'nothing is added until it was cleared').to.equal(true);
    many.clear();
    many.add([event(1)]);
    expect([many.overflowed, many.isEmpty]).to.deep.equal([false, false]);

    const large = new Inbox();
    for (let n = 0; n < 3; n++) {
      for (let m = 0; m < 15; m++) large.add([event(n * 100 + m, 'x'.repeat(1_000_000))]);
      expect(large.overflowed, `round ${n}`).to.equal(false);
      expect(large.take(0).length, 'what was taken counts no longer').to.equal(n === 0 ? 14 : 15);
    }
    large.add(Array.from({ length: 17 }, (_, n) => event(1_000 + n, 'x'.repeat(1_000_000))));
    expect(large.overflowed).to.equal(true);
  });
});
