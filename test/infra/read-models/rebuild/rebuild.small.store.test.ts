/** One small read model built anew, step by step: what is reported, what is left behind, what is taken up again. */
import { expect } from 'chai';
import { z } from 'zod';
import { createLogger } from '../../../../infra/logging.ts';
import { ensureTables } from '../../../../infra/read-models/projector.ts';
import { encodeRow } from '../../../../infra/read-models/rebuild/bulk.ts';
import type { RebuildOptions, RebuildProgress } from '../../../../infra/read-models/rebuild/plan.ts';
import { change, defineProjection, defineTable, insert, on, update } from '../../../../projections/projection.ts';
import type { EventLog } from '../../../../shared/ports/event-log.ts';
import { testEvent } from '../../../support/boxes.ts';
import { fixtureForEach } from '../../../support/fixture.ts';
import { failureOf } from '../../../support/kit.ts';
import { describeWith } from '../../../support/needs.ts';
import { rebuildProjection } from '../../../support/rebuild.ts';
import { until } from '../../../support/until.ts';
import { databaseOnServer, openView, testOrigin } from '../../../support/world.ts';

const noted = testEvent('Noted', z.object({ id: z.int(), text: z.string() }));
const crossed = testEvent('CrossedOut', z.object({ id: z.int() }));
const unseen = testEvent('Unseen', z.object({}));
const broken = testEvent('BreaksProjection', z.object({}));
const notes = defineTable('notes', { id: 'bigint', text: 'text' }, { key: ['id'], indexes: ['text DESC'] });
const counts = defineTable('counts', { name: 'text', count: 'bigint' }, { key: ['name'] });
let breaks = false;
const projection = defineProjection({
  name: 'small',
  version: 1,
  tables: [notes, counts],
  handlers: [
    on(noted, ({ data }) => [
      insert(notes, { id: data.id, text: data.text }),
      change(counts, { name: 'all' }, (row) => ({ name: 'all', count: (row?.count ?? 0) + 1 })),
    ]),
    on(crossed, ({ data }) => [update(notes, { id: data.id }, () => undefined)]),
    on(broken, () => {
      if (breaks) throw new Error('cannot be applied');
      return [];
    }),
  ],
});
const log = createLogger('silent');

describeWith('TEST_DATABASE_URL', 'rebuild of one small read model', () => {
  const place = fixtureForEach(databaseOnServer);
  beforeEach(() => {
    breaks = false;
    return ensureTables(place.database, [projection]);
  });
  const view = fixtureForEach(() => openView(place.database, [noted, crossed, unseen, broken], [projection]));
  const projector = fixtureForEach(() => view.project('live'));

  const note = (id: number, text = `note ${id}`) => noted.draft({ id, text });
  const add = async (...drafts: { type: string; data: object }[]) => {
    const { position } = await view.store.append('notes', await view.store.prepare(drafts as never, testOrigin), 'any');
    await view.positions.reach([noted.type], { position });
    return position;
  };
  const query = async (text: string) => (await place.database.pool.query(text)).rows as Record<string, unknown>[];
  const rebuild = (options: RebuildOptions = {}) =>
    rebuildProjection(
      { database: place.database, store: view.store, log, config: { dataDir: '' } },
      projection,
      options,
    );
  const rows = () => query('SELECT * FROM small_v1.notes ORDER BY id');
  const checkpoint = async () =>
    (await query("SELECT position, generation, stuck_at FROM service.checkpoints WHERE schema_name = 'small_v1'"))[0];
  const leftovers = () =>
    query(
      "SELECT nspname AS name FROM pg_namespace WHERE nspname ~ '_(rebuild|old)$' UNION SELECT schema_name FROM service.checkpoints WHERE schema_name ~ '_rebuild$' ORDER BY 1",
    );
  const indexes = () => query("SELECT indexname FROM pg_indexes WHERE schemaname = 'small_v1' ORDER BY 1");

  it('reports what it read and compared; a check changes nothing', async () => {
    const end = await add(note(1), note(2), crossed.draft({ id: 1 }), unseen.draft({}), note(3));
    const before = [await rows(), await checkpoint()];
    const told: RebuildProgress[] = [];
    const { ms, tables, ...report } = await rebuild({ check: true, onProgress: (progress) => told.push(progress) });
    expect(report).to.deep.equal({
      projection: 'small',
      schema: 'small_v1',
      position: end,
      events: 4,
      compared: true,
      equal: true,
      switched: false,
    });
    expect(tables.map(({ table, equal, live, rebuilt }) => [table, equal, live?.rows, rebuilt.rows])).to.deep.equal([
      ['notes', true, 2, 2],
      ['counts', true, 1, 1],
    ]);
    expect(tables[0]?.live?.hash)
      .to.match(/^[0-9a-f]{32}$/)
      .and.equal(tables[0]?.rebuilt.hash);
    expect(ms.rows <= ms.indexes && ms.indexes <= ms.total).to.equal(true);
    expect(told.map(({ phase }) => phase).filter((phase, n, all) => phase !== all[n - 1])).to.deep.equal([
      'reading the log',
      'indexing',
      'comparing',
    ]);
    expect(told[0]).to.deep.equal({ phase: 'reading the log', position: end, target: end, events: 5 });
    expect(told.at(-1)).to.include({ projection: 'small', position: end, target: end });
    expect([await rows(), await checkpoint()]).to.deep.equal(before);
    expect(await leftovers()).to.deep.equal([]);
  });

  it('replaces the live tables by whole tables, which continue from there', async () => {
    await add(note(1), note(2));
    const before = [await rows(), await indexes()];
    const { generation } = (await checkpoint()) as { generation: number };
    const phases: string[] = [];
    const report = await rebuild({ onProgress: ({ phase }) => phases.push(phase) });
    expect(report).to.include({ compared: true, equal: true, switched: true, events: 2 });
    expect(phases.at(-1)).to.equal('switching');
    expect([await rows(), await indexes()]).to.deep.equal(before);
    expect(await checkpoint()).to.deep.include({ position: report.position, generation: generation + 1 });
    expect(await leftovers()).to.deep.equal([]);
    const end = await add(note(3), note(2, 'twice'));
    expect(await rows()).to.have.length(3);
    expect(await checkpoint()).to.include({ position: end });
  });

  it('detects rows that were changed, added or removed, and repairs them', async () => {
    await add(note(1), note(2));
    const right = await rows();
    for (const damage of [
      "UPDATE small_v1.notes SET text = 'other' WHERE id = 1",
      'DELETE FROM small_v1.notes WHERE id = 1',
      "INSERT INTO small_v1.notes VALUES (9, 'extra', 1)",
    ]) {
      await query(damage);
      const report = await rebuild();
      expect(report, damage).to.include({ equal: false, compared: true, switched: true });
      expect(
        report.tables.map(({ equal }) => equal),
        damage,
      ).to.deep.equal([false, true]);
      expect(await rows(), damage).to.deep.equal(right);
      expect(await rebuild({ check: true })).to.include({ equal: true });
    }
    await query('DROP TABLE small_v1.notes CASCADE');
    const { tables, equal } = await rebuild();
    expect([equal, tables[0]?.live, tables[0]?.equal]).to.deep.equal([false, undefined, false]);
    expect(await rows()).to.deep.equal(right);
  });

  it('yields the same rows with any batch size, even with repeated keys, updates and deletions', async () => {
    await add(
      note(1),
      note(2),
      note(1, 'again'),
      crossed.draft({ id: 2 }),
      note(3),
      note(2, 'back'),
      crossed.draft({ id: 3 }),
    );
    for (const batchSize of [1, 2, 3, 100]) {
      const report = await rebuild({ batchSize, check: true });
      expect(report, `batches of ${batchSize}`).to.include({ equal: true, events: 7 });
    }
    expect((await rows()).map(({ id, text }) => [id, text])).to.deep.equal([
      [1, 'again'],
      [2, 'back'],
    ]);
  });

  it('resumes after an interruption, unless a restart is requested or the code has changed', async () => {
    await add(...Array.from({ length: 300 }, (_, n) => note(n)));
    const cut = async () => {
      const stop = new AbortController();
      const onProgress = ({ phase }: RebuildProgress) => phase === 'indexing' && stop.abort(new Error('stopped'));
      const failed = await rebuild({ batchSize: 50, signal: stop.signal, onProgress }).catch((error: Error) => error);
      expect((failed as Error).message).to.equal('stopped');
      expect((await leftovers()).map(({ name }) => name)).to.include('small_v1_rebuild');
    };
    await cut();
    expect(await rebuild({ check: true })).to.include({ events: 0, equal: true });
    await cut();
    expect(await rebuild({ check: true, fresh: true })).to.include({ events: 300, equal: true });
    await cut();
    await query("UPDATE service.checkpoints SET leader = 'rebuild by others' WHERE schema_name = 'small_v1_rebuild'");
    expect(await rebuild()).to.include({ events: 300, equal: true });
    expect(await leftovers()).to.deep.equal([]);
  });

  it('skips the comparison if the live tables are far behind or belong to another log', async () => {
    const end = await add(...Array.from({ length: 30 }, (_, n) => note(n)));
    const right = await rows();
    await projector.close();
    for (const position of [0, end + 1_000_000]) {
      await query('TRUNCATE small_v1.notes, small_v1.counts');
      await query(`UPDATE service.checkpoints SET position = ${position}, stuck_at = 1, stuck_reason = 'x'`);
      const report = await rebuild({ farBehind: 10 });
      expect(report).to.deep.include({ compared: false, equal: true, switched: true, position: end, tables: [] });
      expect(await rows()).to.deep.equal(right);
      expect(await checkpoint()).to.include({ position: end, stuck_at: null });
    }
    await query('TRUNCATE small_v1.notes, small_v1.counts');
    await query('UPDATE service.checkpoints SET position = 0');
    const near = await rebuild({ farBehind: 30, check: true });
    expect(near, 'not so far').to.include({ compared: true, equal: true, position: 0 });
  });

  it('leaves the live tables alone if an event cannot be applied, and requires existing tables', async () => {
    await add(note(1), broken.draft({}));
    const before = [await rows(), await checkpoint()];
    breaks = true;
    expect(await failureOf(rebuild())).to.match(/cannot be applied/);
    expect([await rows(), await checkpoint()]).to.deep.equal(before);
    breaks = false;
    expect(await rebuild()).to.include({ equal: true, switched: true });
    const unknown = defineProjection({ name: 'unknown', version: 1, tables: [counts], handlers: [] });
    const stores = { database: place.database, store: view.store, log, config: { dataDir: '' } };
    expect(await failureOf(rebuildProjection(stores, unknown))).to.equal(
      'there is no read model unknown_v1; start the service once, then rebuild',
    );
  });

  it('ends if another one of the same read model has started, and leaves the live tables alone', async () => {
    await add(note(1), note(2));
    const before = await checkpoint();
    const overtaken = {
      head: () => view.store.log.head(),
      async *readAll(options?: Parameters<typeof view.store.log.readAll>[0]) {
        await query(
          "UPDATE service.checkpoints SET generation = generation + 1 WHERE schema_name = 'small_v1_rebuild'",
        );
        yield* view.store.log.readAll(options);
      },
    } as unknown as EventLog;
    const store = { log: overtaken, decode: view.store.decode };
    const failed = await rebuildProjection(
      { database: place.database, store, log, config: { dataDir: '' } },
      projection,
    ).catch((error: Error) => error.message);
    expect(failed).to.equal('another rebuild of small has taken over');
    expect(await checkpoint()).to.deep.equal(before);
  });

  it('includes events that are written meanwhile', async () => {
    await add(note(1));
    let more: Promise<unknown> | undefined;
    const report = await rebuild({
      onProgress: ({ phase }) => {
        if (phase === 'comparing') more ??= add(note(2), note(3));
      },
    });
    await more;
    expect(report).to.include({ equal: true, switched: true });
    await until('the live tables go on', async () => (await rows()).length === 3);
    expect(await rebuild({ check: true })).to.include({ equal: true, events: 3 });
  });

  it('applies events written just before the switch under its lock', async () => {
    await add(note(1), crossed.draft({ id: 1 }), note(2));
    let phase = '';
    const late = {
      head: () => view.store.log.head(),
      async *readAll(options?: Parameters<typeof view.store.log.readAll>[0]) {
        if (phase === 'comparing') {
          phase = 'late';
          await add(note(3), note(1, 'back'), crossed.draft({ id: 2 }), unseen.draft({}));
        }
        yield* view.store.log.readAll(options);
      },
    } as unknown as EventLog;
    const report = await rebuildProjection(
      { database: place.database, store: { log: late, decode: view.store.decode }, log, config: { dataDir: '' } },
      projection,
      { onProgress: (progress) => (phase ||= progress.phase === 'comparing' ? 'comparing' : '') },
    );
    expect(phase).to.equal('late');
    expect(report).to.include({ compared: true, equal: true, switched: true, events: 6 });
    expect((await rows()).map(({ id, text }) => [id, text])).to.deep.equal([
      [1, 'back'],
      [3, 'note 3'],
    ]);
    expect((await checkpoint())?.position).to.equal(report.position);
    expect(await rebuild({ check: true })).to.include({ equal: true, events: 6 });
  });

  it('waits for the lock of the live checkpoint, and fails with a reason after too long', async () => {
    await add(note(1), note(2));
    const before = [await rows(), await checkpoint()];
    const holder = await place.database.pool.connect();
    const hold = () =>
      holder.query("BEGIN; SELECT 1 FROM service.checkpoints WHERE schema_name = 'small_v1' FOR UPDATE");
    try {
      await hold();
      const refused = await rebuild({ lockMs: 10 }).catch((error: { code?: string }) => error.code);
      expect(refused).to.equal('55P03');
      await holder.query('ROLLBACK');
      expect([await rows(), await checkpoint()]).to.deep.equal(before);

      await hold();
      let asked = 0;
      const report = rebuild({
        lockMs: 100,
        onProgress: ({ phase }) => {
          if (phase === 'switching' && ++asked === 2) holder.query('ROLLBACK').catch(() => undefined);
        },
      });
      expect(await report).to.include({ equal: true, switched: true });
      expect(asked).to.be.greaterThan(1);
    } finally {
      holder.release(true);
    }
    expect(await leftovers()).to.deep.equal([]);
  });

  it('leaves the old tables to the next rebuild while they are being read', async () => {
    await add(note(1));
    const reader = await place.database.pool.connect();
    const warnings: unknown[] = [];
    const telling = { ...log, warn: (about: unknown) => warnings.push(about) } as unknown as typeof log;
    try {
      await reader.query('BEGIN; SELECT * FROM small_v1.notes');
      const stores = { database: place.database, store: view.store, log: telling, config: { dataDir: '' } };
      const report = await rebuildProjection(stores, projection, { lockMs: 10 });
      expect(report).to.include({ equal: true, switched: true });
      expect(warnings).to.deep.equal([{ schema: 'small_v1_old' }]);
      expect(await leftovers()).to.deep.equal([{ name: 'small_v1_old' }]);
    } finally {
      reader.release(true);
    }
    expect(await rebuild()).to.include({ equal: true, switched: true });
    expect(await leftovers()).to.deep.equal([]);
  });

  it('replaces the row of a key that is repeated after a look-up', async () => {
    await add(note(1), note(2), crossed.draft({ id: 2 }), note(1, 'again'), note(3), note(3, 'again'), note(2, 'back'));
    for (const batchSize of [1, 2, 4, 100])
      expect(await rebuild({ batchSize, check: true }), `batches of ${batchSize}`).to.include({
        equal: true,
        events: 7,
      });
  });
});

describe('rows for COPY', () => {
  const table = defineTable(
    'all',
    { text: 'text', json: 'jsonb', nothing: 'text?', number: 'double', flag: 'boolean' },
    { key: ['text'] },
  );

  it('are lines of columns with escaped delimiters', () => {
    const row = { text: 'a\tb\\c\nd\re', json: { a: 'x\ny' }, nothing: null, number: 1.5, flag: false };
    expect(encodeRow(table as never, row, 7)).to.equal('a\\tb\\\\c\\nd\\re\t{"a":"x\\\\ny"}\t\\N\t1.5\tfalse\t7\n');
    const bare = { text: 'plain', json: 'a "text"', number: 0, flag: true };
    expect(encodeRow(table as never, bare, 8)).to.equal('plain\t"a \\\\"text\\\\""\t\\N\t0\ttrue\t8\n');
  });
});
