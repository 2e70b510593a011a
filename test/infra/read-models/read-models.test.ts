/** What the projector keeps in memory: rows, batches, events that wait. Pure. */
import { expect } from 'chai';
import { z } from 'zod';
import { Inbox } from '../../../infra/following/inbox.ts';
import { Batch, type BatchOptions } from '../../../infra/read-models/batch.ts';
import { RowCache, RowCaches } from '../../../infra/read-models/row-cache.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { type AnyStoredRow, keyText } from '../../../projections/apply.ts';
import {
  change,
  defineProjection,
  defineTable,
  insert,
  on,
  type Table,
  update,
} from '../../../projections/projection.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { testEvent } from '../../support/boxes.ts';
import { type Draft, eventsOf, failureOf, registeredAgent, rowsAfter } from '../../support/kit.ts';

const put = testEvent('Put', z.object({ id: z.int(), text: z.string() }));
const touched = testEvent('Touched', z.object({ id: z.int() }));
const removed = testEvent('Removed', z.object({ id: z.int() }));
const noted = testEvent('Noted', z.object({ id: z.int() }));
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

describe('the row cache', () => {
  const row = (text = 'a'): AnyStoredRow => ({ id: 1, text, position: 1 });

  it('returns cached rows, and cached absence of rows', () => {
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

  it('has a limit: the oldest rows go, and an uncached row does not count as missing', () => {
    const rows = new RowCache();
    for (let n = 0; n < 20; n++) rows.remember('boxes', key(n), { ...row('x'.repeat(1_000_000)), id: n });
    expect(rows.find('boxes', key(19))?.row).to.include({ id: 19 });
    expect(rows.find('boxes', key(0))).to.equal(undefined);
    const json = new RowCache();
    for (let n = 0; n < 20; n++) json.remember('boxes', key(n), { position: 1, json: { text: 'x'.repeat(1_000_000) } });
    expect(json.find('boxes', key(0))).to.equal(undefined);
    const small = new RowCache();
    for (let n = 0; n < 200; n++) small.remember('boxes', key(n), row());
    expect(small.find('boxes', key(0))?.row).to.deep.equal(row());
    for (let n = 0; n < 80_000; n++) small.remember('boxes', `absent ${n}`, undefined);
    expect(small.find('boxes', key(0)), 'also that there is no row takes room').to.equal(undefined);
  });
});

describe('the row caches of a process', () => {
  const row = (position: number, text = 'a'): AnyStoredRow => ({ id: 1, text, position });

  it('share one limit, and clearing one leaves the others', () => {
    const rows = new RowCaches();
    const caches = Array.from({ length: 8 }, (_, n) => rows.of(`many_v${n}`));
    for (const cache of caches) cache.remember('boxes', key(1), row(1, 'x'.repeat(10_000_000)));
    const found = () => caches.map((cache) => cache.find('boxes', key(1)) !== undefined);
    expect(found()).to.deep.equal([false, false, true, true, true, true, true, true]);
    caches[3]?.clear();
    expect(found()).to.deep.equal([false, false, true, false, true, true, true, true]);
  });
});

describe('a batch of row changes', () => {
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
  const writesOf = (batch: Batch) => batch.writes().map(({ table, rows, deletes }) => [table.name, rows, deletes]);

  it('loads the affected rows at once, and writes new ones and existing ones together', async () => {
    const { batch, loaded } = open();
    await batch.add(events(touched.draft({ id: 1 }), put.draft({ id: 2, text: 'b' }), touched.draft({ id: 2 })));
    expect(loaded).to.deep.equal([['boxes', [{ id: 1 }, { id: 2 }]]]);
    expect(writesOf(batch)).to.deep.equal([
      [
        'boxes',
        [
          { id: 1, text: 'a!', position: 10 },
          { id: 2, text: 'b!', position: 12 },
        ],
        [],
      ],
    ]);
    expect(writesOf(batch), 'asked twice').to.deep.equal(writesOf(batch));
  });

  it('caches both rows of a changed agent, which the response shows, and reads them once', async () => {
    const rows = rowsAfter(agentsProjection, eventsOf([registeredAgent({ agent_id: 7, name: 'ada' })]));
    const tables: Record<string, readonly object[]> = rows;
    const loaded: string[] = [];
    const cache = new RowCache();
    const load: BatchOptions['load'] = async (table) => {
      loaded.push(table.name);
      return new Map((tables[table.name] as AnyStoredRow[]).map((row) => [keyText(table, row), row]));
    };
    const change = (role: string) =>
      agentDetailsChanged.draft({
        ...{ agent_id: 7, name: 'ada', changes: { role } },
        ...({ via: 'id', write_to_gateway: false, status: null } as const),
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
    for (const table of agentsProjection.tables.filter(({ name }) => loaded.includes(name))) {
      const found = cache.find(table.name, keyText(table as Table, { workspace_id: 1, id: 7 }));
      expect(found?.row, table.name).to.be.an('object');
    }
  });

  it('applies changes in order, even if some rows are cached and others are loaded', async () => {
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
        [
          { id: 1, text: 'aad', position: 11 },
          { id: 2, text: 'xbc', position: 11 },
        ],
        [],
      ],
    ]);
  });

  it('removes existing rows, and writes nothing for rows that do not exist', async () => {
    const { batch } = open();
    await batch.add(
      events(
        removed.draft({ id: 1 }),
        put.draft({ id: 2, text: 'b' }),
        removed.draft({ id: 2 }),
        removed.draft({ id: 3 }),
      ),
    );
    expect(writesOf(batch)).to.deep.equal([['boxes', [], [{ id: 1 }]]]);
  });

  it('writes nothing for events already applied and for updates of missing rows', async () => {
    const { batch } = open();
    const old = eventsOf([touched.draft({ id: 1 })]).map((event) => ({ ...event, position: 1 }));
    await batch.add([...old, ...events(touched.draft({ id: 3 }))]);
    expect(batch.writes()).to.deep.equal([]);
  });

  it('does not look up new rows', async () => {
    const { batch, loaded } = open();
    await batch.add(events(noted.draft({ id: 5 })));
    expect(loaded).to.deep.equal([]);
    expect(writesOf(batch)).to.deep.equal([['notes', [{ id: 5, position: 10 }], []]]);
  });

  it('caches written rows, except those that never change', async () => {
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
      ['boxes', [{ id: 1, text: 'a!!', position: 11 }], []],
    ]);
  });

  it('caches new rows of tables whose rows are updated', async () => {
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

  it('rejects a change of a table that the projection does not declare', async () => {
    const odd = defineProjection({
      name: 'odd',
      version: 1,
      tables: [notes],
      handlers: [on(put, ({ data }) => [change(boxes, { id: data.id }, () => ({ id: data.id, text: '' }))])],
    });
    const { batch } = open({ projection: odd as never });
    const failure = await failureOf(batch.add(events(put.draft({ id: 1, text: '' }))));
    expect(failure).to.equal('odd: table boxes is not in its list of tables');
  });
});

describe('the event inbox', () => {
  const event = (position: number, text = ''): LoggedEvent =>
    ({ id: `${position}`, type: 'A', data: { text }, meta: {}, stream: 's', revision: 0, position }) as never;
  const positions = (events: readonly LoggedEvent[]) => events.map(({ position }) => position);

  it('returns events in order, a thousand at a time, without those already known', () => {
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

  it('is limited in number and bytes, and keeps nothing beyond the limit', () => {
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
