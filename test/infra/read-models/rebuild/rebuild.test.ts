/** Rebuilding read models: the same rows as live, beside the live ones, despite interruptions and live traffic. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import { createLogger } from '../../../../infra/logging.ts';
import type { Projector } from '../../../../infra/read-models/projector.ts';
import type { RebuildOptions, RebuildReport } from '../../../../infra/read-models/rebuild/plan.ts';
import { rebuildProjections } from '../../../../infra/read-models/rebuild/rebuild.ts';
import { agentsProjection } from '../../../../projections/agents/agents.ts';
import { type AnyStoredRow, MemoryTables } from '../../../../projections/apply.ts';
import { projections } from '../../../../projections/index.ts';
import {
  change,
  defineProjection,
  defineTable,
  historyOf,
  insert,
  on,
  schemaOf,
  type Table,
  update,
} from '../../../../projections/projection.ts';
import {
  ALL_TIME,
  tokenDaysTable,
  tokenOpenHoursTable,
  tokenUsageTable,
} from '../../../../projections/tokens/usage.ts';
import { tables } from '../../../../queries/reads.ts';
import type { EventStore } from '../../../../shared/event-store.ts';
import { catalogue } from '../../../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../../../shared/events/define.ts';
import type { EventLog, LoggedEvent } from '../../../../shared/ports/event-log.ts';
import { startOf, type Unit } from '../../../../shared/time-buckets.ts';
import { testEvent } from '../../../support/boxes.ts';
import { fixture } from '../../../support/fixture.ts';
import { writeHistory } from '../../../support/history.ts';
import { failureOf, outcomeText } from '../../../support/kit.ts';
import { rebuildProjection } from '../../../support/rebuild.ts';
import { runs } from '../../../support/runs.ts';
import { until } from '../../../support/until.ts';
import { onEveryDatabase, openView, type TestDatabase, testOrigin, viewOn } from '../../../support/world.ts';
import { errorOf } from '../../event-log/conformance/subject.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');

/* A projection with every column type, and with the mistakes that projections can make. */
const noted = testEvent(
  'Noted',
  z.object({
    id: z.int(),
    text: z.string(),
    json: z.json(),
    number: z.number(),
    flag: z.boolean(),
  }),
);
const crossed = testEvent('CrossedOut', z.object({ id: z.int() }));
const broken = testEvent('BreaksProjection', z.object({}));
const notes = defineTable(
  'notes',
  {
    id: 'bigint',
    kind: 'text',
    small: 'int?',
    text: 'text?',
    json: 'jsonb?',
    must: 'jsonb',
    number: 'double',
    maybe: 'double?',
    flag: 'boolean',
  },
  { key: ['kind', 'id'], indexes: ['id DESC', '(text) WHERE flag'] },
);
const counts = defineTable('counts', { name: 'text', count: 'bigint' }, { key: ['name'] });
/** The first character, whole. */
const firstOf = (text: string) => String(Array.from(text)[0] ?? '');
let breaks = false;
const oddProjection = defineProjection({
  name: 'odd',
  version: 7,
  tables: [notes, counts],
  handlers: [
    on(noted, ({ data }) => [
      // Inserted as new, although an id can come twice.
      insert(notes, {
        id: data.id,
        kind: `a\tb\\${data.id % 3}`,
        small: data.flag ? null : data.id % 100,
        text: data.text,
        json: data.json as never,
        must: [data.text, { nested: data.json }],
        number: data.number,
        maybe: data.flag ? null : -data.number,
        flag: data.flag,
      }),
      change(counts, { name: firstOf(data.text) }, (row) => ({
        name: firstOf(data.text),
        count: (row?.count ?? 0) + 1,
      })),
    ]),
    on(crossed, ({ data }) =>
      [0, 1, 2].map((n) => update(notes, { kind: `a\tb\\${n}`, id: data.id }, (row) => (row.flag ? undefined : row))),
    ),
    on(broken, () => {
      if (breaks) throw new Error('cannot be applied');
      return [];
    }),
  ],
});

const definitions = [...catalogue.values(), noted, crossed, broken];
const everything = [...projections, oddProjection];
/** The schema of a projection, whatever its version is. */
const schemaNamed = (name: string): string => {
  const found = projections.find((projection) => projection.name === name);
  if (!found) throw new Error(`there is no projection ${name}`);
  return schemaOf(found);
};
/** Rows that are only added, rows that change, and the odd ones. */
const some = everything.filter(({ name }) => ['activities', 'agents', 'odd'].includes(name));

/** A log that is read in another way. */
const passing = (log: EventLog, readAll: EventLog['readAll']): EventLog => ({
  stride: log.stride,
  append: (...given) => log.append(...given),
  readStream: (...given) => log.readStream(...given),
  readAll,
  follow: (options) => log.follow(options),
  head: () => log.head(),
  close: () => log.close(),
});

type View = Awaited<ReturnType<typeof openView>>;
/** What a database gives back: absent columns are null. */
function wholeRow(table: Pick<Table, 'columns'>, row: AnyStoredRow): object {
  const whole = Object.fromEntries(Object.keys(table.columns).map((column) => [column, row[column] ?? null]));
  return JSON.parse(JSON.stringify({ ...whole, position: row.position }));
}

/** Rows as texts that compare. */
type Row = Readonly<Record<string, unknown>>;

/** Whether reads of the past derive the row from others (`unversioned`): a sum of tokens in a bucket that was open then. */
function isUnversioned(then: MemoryTables, table: object, row: Row): boolean {
  if (table === tokenDaysTable) return true;
  if (table !== tokenUsageTable) return false;
  const [open] = then.rows(tokenOpenHoursTable).filter(({ workspace_id }) => workspace_id === row.workspace_id);
  return row.unit === ALL_TIME || Number(row.start) >= startOf(row.unit as Unit, Number(open?.hour));
}

const sortedRows = (rows: readonly object[]): string[] =>
  rows.map((row) => JSON.stringify(Object.entries(withSortedJson(row)).sort(([a], [b]) => (a < b ? -1 : 1)))).sort();

function suite(name: string, open: () => Promise<TestDatabase>): void {
  describe(`rebuild on ${name}`, function () {
    this.timeout(180_000);
    let seed = 0;

    const { place, view } = viewOn(open, definitions, everything);
    /** Tests end it and start others. */
    let projector: Projector | undefined;
    fixture(() => {
      projector = view.project('live');
      return { close: () => projector?.close() };
    });

    const stores = () => ({ database: place.database, store: view.store, log, config: { dataDir: place.dataDir } });
    const rebuild = (options: RebuildOptions = {}, which = everything) => rebuildProjections(stores(), which, options);
    const add = async (stream: string, ...drafts: { type: string; data: object }[]) =>
      view.store.append(stream, await view.store.prepare(drafts as never, testOrigin), 'any');
    /** Types of which histories have written events. */
    const written = new Set<string>();
    const history = async (events: number) => {
      const noting: EventStore = {
        ...view.store,
        append(stream, given, expected) {
          for (const { type } of given) written.add(type);
          return view.store.append(stream, given, expected);
        },
      };
      await writeHistory(noting, { events, agents: 4, seed: ++seed });
    };
    /** Read models that a history fills. The tables of the others stay empty, whatever it is and however it is read. */
    const filled = () => everything.filter(({ handles }) => [...written].some((type) => handles.has(type)));
    const live = (leader: View = view) =>
      until('the read models have caught up', async () => {
        const { rows: stuck } = await place.database.pool.query(
          'SELECT stuck_reason FROM service.checkpoints WHERE stuck_at IS NOT NULL',
        );
        if (stuck[0]) throw new Error(stuck[0].stuck_reason);
        const head = await leader.store.log.head();
        return everything.every((projection) => leader.positions.shown(schemaOf(projection)) >= head);
      });
    const schemas = async () => {
      const { rows } = await place.database.pool.query(
        "SELECT nspname FROM pg_namespace WHERE nspname ~ '_(rebuild|old)(_history|_past)?$' UNION SELECT schema_name FROM service.checkpoints WHERE schema_name ~ '_rebuild$'",
      );
      return rows.map((row) => row.nspname);
    };
    const unequal = (reports: readonly RebuildReport[]) =>
      reports.flatMap((report) => report.tables.filter((table) => !table.equal).map((table) => table.table));

    it('yields the same rows as live projection, for any history and batch size', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({ events: fc.integer({ min: 20, max: 400 }), batchSize: fc.integer({ min: 1, max: 300 }) }),
          async ({ events, batchSize }) => {
            await history(events);
            await live();
            const reports = await rebuild({ batchSize, check: true }, filled());
            expect(reports).to.have.length.above(5);
            expect(unequal(reports)).to.deep.equal([]);
            expect(reports.every((report) => report.compared && report.equal && !report.switched)).to.equal(true);
          },
        ),
        { numRuns: runs(2, 3) },
      );
      expect(await schemas()).to.deep.equal([]);
    });

    it('yields the same rows as the projections in memory', async () => {
      await history(300);
      await live();
      const own = filled().filter((one) => one !== oddProjection);
      const reports = await rebuild({}, own);
      expect(unequal(reports)).to.deep.equal([]);
      expect(reports.every((report) => report.compared && report.switched)).to.equal(true);
      const memory = new MemoryTables();
      for await (const page of view.store.log.readAll()) {
        const events: DomainEvent[] = [];
        for (const event of page) events.push(await view.store.decode(event));
        for (const projection of own) memory.apply(projection, events);
      }
      for (const projection of own) {
        for (const table of projection.tables) {
          const { rows } = await place.database.pool.query(`SELECT * FROM ${schemaOf(projection)}.${table.name}`);
          const expected = memory.rows(table).map((row) => wholeRow(table, row));
          const found = rows.map(({ bytes: _, ...row }) => row);
          expect(sortedRows(found), table.name).to.deep.equal(sortedRows(expected));
        }
      }
    });

    it('shows every table as of any position, and restores the same past from the log', async () => {
      const { pool } = place.database;
      await history(runs(60, 200));
      await live();
      const shown = filled();
      const pages: DomainEvent[][] = [];
      for await (const page of view.store.log.readAll())
        pages.push(await Promise.all(page.map((event) => view.store.decode(event))));
      const events = pages.flat();
      const some = fc.sample(fc.nat({ max: events.length - 1 }), runs(3, 8)).toSorted((a, b) => a - b);
      const isAsItWas = async () => {
        const memory = new MemoryTables();
        for (const [n, event] of events.entries()) {
          for (const projection of shown) memory.apply(projection, [event]);
          if (!some.includes(n)) continue;
          const then = view.reads.asOf(event.position);
          for (const projection of shown) {
            for (const table of projection.tables) {
              const rows = await then.db
                .selectFrom(`${then.schema(projection)}.${table.name}`)
                .selectAll()
                .execute();
              const hasVersions = (row: Row) => !isUnversioned(memory, table, row);
              const expected = memory.rows(table).filter(hasVersions);
              const at = `${table.name} at ${event.position}`;
              const own = rows.filter(hasVersions).map(({ bytes: _, ...row }) => row);
              expect(sortedRows(own), at).to.deep.equal(sortedRows(expected.map((row) => wholeRow(table, row))));
            }
          }
        }
      };
      await isAsItWas();
      const versions = async () => {
        const found = new Map<string, readonly string[]>();
        for (const projection of shown) {
          for (const { name } of projection.tables) {
            const { rows } = await pool.query(`SELECT * FROM ${historyOf(schemaOf(projection))}.${name}`);
            found.set(`${projection.name}.${name}`, sortedRows(rows));
          }
        }
        return found;
      };
      const written = await versions();
      expect([...written.values()].flat().length).to.be.above(100);
      // As if an older program had made the tables.
      for (const projection of shown)
        for (const { name } of projection.tables)
          await pool.query(`TRUNCATE ${historyOf(schemaOf(projection))}.${name}`);
      await pool.query('UPDATE service.checkpoints SET history_from = position WHERE schema_name = ANY($1)', [
        shown.map(schemaOf),
      ]);
      const early = events[0]?.position as number;
      const then = view.reads.asOf(early);
      expect(await failureOf(tables(then, agentsProjection).selectFrom('agents').selectAll().execute())).to.match(
        /^as_of: the past of agents goes back to position \d+ only, .*rebuild --history agents$/,
      );

      const reports = await rebuild({ history: true }, shown);
      expect(unequal(reports)).to.deep.equal([]);
      expect(await schemas()).to.deep.equal([]);
      expect(await versions()).to.deep.equal(written);
      await history(20);
      await live();
      await isAsItWas();
      expect(unequal(await rebuild({}, shown))).to.deep.equal([]);
      await isAsItWas();
    });

    it('restarts the past if the tables have advanced without it', async () => {
      const { pool } = place.database;
      const schema = schemaOf(agentsProjection);
      await pool.query('UPDATE service.checkpoints SET history_to = position - 1 WHERE schema_name = $1', [schema]);
      const at = await view.store.log.head();
      const read = () => tables(view.reads.asOf(at), agentsProjection).selectFrom('agents').select('id').execute();
      expect(await errorOf(read())).to.have.nested.property('extras.code', 'HISTORY_NOT_KEPT');
      await projector?.close();
      projector = view.project('next');
      await live();
      await until('the next leader has taken over', async () => {
        const { rows } = await pool.query('SELECT leader FROM service.checkpoints WHERE schema_name = $1', [schema]);
        return rows[0]?.leader === 'next';
      });
      const { rows } = await pool.query(
        'SELECT history_from, position FROM service.checkpoints WHERE schema_name = $1',
        [schema],
      );
      expect(rows[0].history_from).to.equal(rows[0].position);
      await rebuild({ history: true }, [agentsProjection]);
      await read();
    });

    it('writes every value like live projection: text, JSON, numbers, nulls', async () => {
      const text = fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: fc.constantFrom('\\', '\t', '\n', '\r', '"', "'", 'N', '.', '{', '\u2028') }),
        fc.constantFrom('\\N', '\\.', '', 'null'),
      );
      // As the column type says: objects, lists, or nothing.
      const json = fc.oneof(fc.dictionary(text, fc.jsonValue()), fc.array(fc.jsonValue()), fc.constant(null));
      let id = 1_000;
      await fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              text,
              json,
              number: fc.double({ noNaN: true, noDefaultInfinity: true }),
              flag: fc.boolean(),
            }),
            { minLength: 1, maxLength: 30 },
          ),
          async (rows) => {
            const clean = JSON.parse(JSON.stringify(rows).replaceAll('\\u0000', '')) as typeof rows;
            await add('notes', ...clean.map((row) => noted.draft({ ...row, id: ++id, json: row.json as never })));
          },
        ),
        { numRuns: runs(5, 25) },
      );
      await live();
      const report = await rebuildProjection(stores(), oddProjection, { check: true });
      expect(unequal([report])).to.deep.equal([]);
      expect(report.tables[0]?.rebuilt.rows).to.equal(id - 1_000);
    });

    it('keeps the later row if a projection inserts an existing key, like live projection', async () => {
      const note = (id: number, text: string, flag = false) => noted.draft({ id, text, json: null, number: 1, flag });
      await add('notes', note(1, 'first'), note(2, 'kept'), note(1, 'second'), note(3, 'goes', true));
      await add('notes', note(1, 'third'), crossed.draft({ id: 3 }), note(4, 'last'));
      await live();
      for (const batchSize of [1, 2, 3, 5_000]) {
        const report = await rebuildProjection(stores(), oddProjection, { batchSize, check: true });
        expect(unequal([report]), `batches of ${batchSize}`).to.deep.equal([]);
      }
    });

    it('resumes after an interruption, unless `fresh` is set or the code has changed', async () => {
      await history(runs(200, 1_000));
      await live();
      const rebuildSome = (options: RebuildOptions) => rebuildProjections(stores(), some, options);
      const all = await rebuildSome({ check: true });
      const activities = all.findIndex((report) => report.projection === 'activities');
      const interrupt = async () => {
        const stop = new AbortController();
        const cut = rebuildSome({
          batchSize: 50,
          signal: stop.signal,
          onProgress: ({ phase }) => phase === 'reading the log' && stop.abort(new Error('stopped')),
        });
        expect(await failureOf(cut)).to.equal('stopped');
        expect(await schemas()).to.include(`${schemaNamed('activities')}_rebuild`);
      };
      const events = (reports: readonly RebuildReport[]) => reports[activities]?.events ?? 0;

      await interrupt();
      const rest = await rebuildSome({ check: true });
      expect(unequal(rest)).to.deep.equal([]);
      expect(events(rest)).to.be.lessThan(events(all));

      await interrupt();
      const again = await rebuildSome({ check: true, fresh: true });
      expect(events(again)).to.equal(events(all));

      await interrupt();
      await place.database.pool.query(
        "UPDATE service.checkpoints SET leader = 'rebuild by others' WHERE schema_name ~ '_rebuild$'",
      );
      const other = await rebuildSome({});
      expect(unequal(other)).to.deep.equal([]);
      expect(events(other)).to.equal(events(all));
      expect(await schemas()).to.deep.equal([]);
    });

    it('detects, locates and repairs manipulated rows', async () => {
      await history(200);
      await live();
      const { pool } = place.database;
      await pool.query(
        `UPDATE ${schemaNamed('audit')}.audit SET actor = 'nobody' WHERE position = (SELECT min(position) FROM ${schemaNamed('audit')}.audit)`,
      );
      const agentTexts = `${schemaNamed('agents')}.agent_texts`;
      await pool.query(`DELETE FROM ${agentTexts} WHERE id = (SELECT min(id) FROM ${agentTexts})`);
      const touched = ['agents', 'audit', 'notifications'];
      const which = everything.filter((one) => some.includes(one) || touched.includes(one.name));
      const reports = await rebuild({ check: true }, which);
      expect(unequal(reports)).to.have.members(['audit', 'agent_texts']);
      expect(reports.filter((report) => !report.equal).map((report) => report.projection)).to.have.members([
        'agents',
        'audit',
      ]);
      const texts = reports.flatMap((report) => report.tables).find((table) => table.table === 'agent_texts');
      expect(texts?.live?.rows).to.equal((texts?.rebuilt.rows ?? 0) - 1);
      expect(await schemas()).to.deep.equal([]);

      await pool.query(`DROP TABLE ${schemaNamed('notifications')}.notifications CASCADE`);
      const repaired = await rebuild({}, which);
      expect(repaired.every((report) => report.switched)).to.equal(true);
      expect(
        repaired.flatMap((report) => report.tables).find((table) => table.table === 'notifications')?.live,
      ).to.equal(undefined);
      expect(unequal(await rebuild({ check: true }, which))).to.deep.equal([]);
    });

    it('leaves the live tables unchanged if an event cannot be applied', async () => {
      breaks = false;
      await add('notes', broken.draft({}), noted.draft({ id: 50, text: 'x', json: null, number: 1, flag: false }));
      await live();
      const rows = async () =>
        (await place.database.pool.query('SELECT * FROM odd_v7.notes ORDER BY position, id')).rows;
      const before = await rows();
      breaks = true;
      const failed = await outcomeText(rebuildProjection(stores(), oddProjection));
      breaks = false;
      expect(failed).to.match(/cannot be applied/);
      expect(await rows()).to.deep.equal(before);
      const report = await rebuildProjection(stores(), oddProjection);
      expect(report.equal && report.switched).to.equal(true);
    });

    it('writes none of the events in a batch if one of them cannot be applied', async () => {
      breaks = false;
      const note = (id: number) => noted.draft({ id, text: 'x', json: null, number: 1, flag: false });
      await add('notes', note(60), note(61), broken.draft({}), note(62));
      await live();
      breaks = true;
      const { store } = view;
      // Each page begins with a note: what the pages before were applied to is still to be written when one fails.
      const paged = passing(store.log, async function* (options) {
        let page: LoggedEvent[] = [];
        for await (const events of store.log.readAll(options)) {
          for (const event of events) {
            if (event.type === noted.type && page.length > 0) {
              yield page;
              page = [];
            }
            page.push(event);
          }
        }
        yield page;
      });
      const given = { ...stores(), store: { log: paged, decode: store.decode } };
      const failed = await outcomeText(rebuildProjection(given, oddProjection, { fresh: true }));
      breaks = false;
      expect(failed).to.match(/cannot be applied/);
      const { rows } = await place.database.pool.query(`
        SELECT n.position FROM odd_v7_rebuild.notes n, service.checkpoints c
        WHERE c.schema_name = 'odd_v7_rebuild' AND n.position > c.position`);
      expect(rows, 'rows of events after the checkpoint').to.deep.equal([]);
      const report = await rebuildProjection(stores(), oddProjection);
      expect(report.equal && report.switched).to.equal(true);
    });

    it('switches without affecting concurrent writes and reads', async () => {
      await history(runs(100, 500));
      await live();
      const writing = new AbortController();
      let written = 0;
      const problems: unknown[] = [];
      const writers = [1, 2, 3].map(async (writer) => {
        for (let n = 0; !writing.signal.aborted; n++) {
          const { position } = await add(
            `busy-${writer}`,
            noted.draft({ id: 1_000_000 * writer + n, text: 'busy', json: { n }, number: n, flag: false }),
          );
          await view.positions.reach([noted.type], { position });
          written++;
          const { rows } = await place.database.pool.query(
            'SELECT count(*)::int AS mine FROM odd_v7.notes WHERE id BETWEEN $1 AND $2',
            [1_000_000 * writer, 1_000_000 * writer + n],
          );
          if (rows[0].mine !== n + 1) problems.push({ writer, n, seen: rows[0].mine });
        }
      });
      await until('writers are busy', () => written > 20);
      for (let round = 0; round < 2; round++) {
        const reports = await rebuildProjections(stores(), some, { batchSize: 500 });
        expect(unequal(reports)).to.deep.equal([]);
        expect(reports.every((report) => report.compared && report.switched)).to.equal(true);
        const before = written;
        await until('writers go on', () => written > before + 20);
      }
      writing.abort();
      await Promise.all(writers);
      expect(problems).to.deep.equal([]);
      await live();
      expect(unequal(await rebuildProjections(stores(), some, { check: true }))).to.deep.equal([]);
      expect(await schemas()).to.deep.equal([]);
    });

    it('does not wait for live tables that are far behind', async () => {
      await projector?.close();
      await history(300);
      const { pool } = place.database;
      // As if the log had been restored without its read models.
      await pool.query(`TRUNCATE ${schemaNamed('agents')}.agents, ${schemaNamed('agents')}.agent_texts`);
      await pool.query(
        "UPDATE service.checkpoints SET position = 0, generation = generation + 1 WHERE projection = 'agents'",
      );
      const head = await view.store.log.head();
      const agents = projections.filter((projection) => projection.name === 'agents');
      const [report] = await rebuildProjections(stores(), agents, { farBehind: 100 });
      expect(report).to.include({ compared: false, switched: true, position: head });
      projector = view.project('live again');
      await live();
      expect(unequal(await rebuild({ check: true }, some))).to.deep.equal([]);
    });

    it('counts the lag once for read models at the same position', async () => {
      await live();
      const { log: real, decode } = view.store;
      const limits: unknown[] = [];
      const counting = passing(real, (options) => {
        if (options?.limit !== undefined) limits.push(options.from);
        return real.readAll(options);
      });
      const reports = await rebuildProjections({ ...stores(), store: { log: counting, decode } }, some);
      expect(reports.every((report) => report.compared && report.equal)).to.equal(true);
      expect(limits).to.deep.equal([...new Set(limits)]);
    });

    it('compares with live tables that are a few events behind, however far apart the positions are', async () => {
      await projector?.close();
      await history(300);
      const reports = await rebuild({}, some);
      expect(reports.every((report) => report.compared)).to.equal(true);
      expect(unequal(reports)).to.deep.equal([]);
      projector = view.project('live again');
      await live();
      expect(unequal(await rebuild({ check: true }, some))).to.deep.equal([]);
    });

    it('reports live tables of another log as stuck, and replaces them', async () => {
      await projector?.close();
      const { pool } = place.database;
      // As if the log had been restored from an older backup than its read models.
      await pool.query(
        "UPDATE service.checkpoints SET position = position + 1000000000000, generation = generation + 1 WHERE projection = 'agents'",
      );
      projector = view.project('live again');
      const stuck = "SELECT stuck_reason FROM service.checkpoints WHERE projection = 'agents' AND stuck_at IS NOT NULL";
      const reason = async () => ((await pool.query(stuck)).rows[0]?.stuck_reason ?? '') as string;
      await until('it is told', async () => (await reason()) !== '');
      expect(await reason()).to.match(/^the log has no position \d+; that position is from another log/);
      const agents = projections.filter((projection) => projection.name === 'agents');
      const [report] = await rebuildProjections(stores(), agents);
      expect(report).to.include({ compared: false, switched: true });
      expect(await reason()).to.equal('');
      await history(20);
      await live();
      expect(unequal(await rebuild({ check: true }, some))).to.deep.equal([]);
    });

    it('works while another process leads', async function () {
      if (!place.other) this.skip();
      await projector?.close();
      const other = await openView(await place.other(), definitions, everything, await place.openLog?.());
      projector = other.project('elsewhere');
      await history(200);
      await live(other);
      const reports = await rebuild();
      expect(unequal(reports)).to.deep.equal([]);
      await history(50);
      await live(other);
      expect(unequal(await rebuild({ check: true }))).to.deep.equal([]);
      await projector.close();
      projector = undefined;
      await other.close();
      await other.database.close();
    });

    it('leaves no files behind', async function () {
      if (place.database.kind === 'server') this.skip();
      const temporary = join(place.dataDir, 'pg', 'base', 'pgsql_tmp');
      expect(await readdir(temporary)).to.deep.equal([]);
    });
  });
}

/** JSON values with their keys in one order. */
function withSortedJson(row: object): object {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, inner]) => [key, sorted(inner)]),
    );
  };
  return sorted(row) as object;
}

onEveryDatabase('rebuild', suite);
