/** The rows of a read model that is being built: whenever they are written or forgotten, the tables come out the same. */
import { expect } from 'chai';
import * as fc from 'fast-check';
import { Batch } from '../../../../infra/read-models/batch.ts';
import { type Version, versionOf } from '../../../../infra/read-models/history.ts';
import { BuiltRows, type Room } from '../../../../infra/read-models/rebuild/rows.ts';
import { WrittenKeys } from '../../../../infra/read-models/rebuild/written-keys.ts';
import { RowCache } from '../../../../infra/read-models/row-cache.ts';
import { type AnyStoredRow, keyText, MemoryTables } from '../../../../projections/apply.ts';
import {
  type Change,
  change,
  defineTable,
  insert,
  type Projection,
  update,
  updateInPlace,
} from '../../../../projections/projection.ts';
import type { DomainEvent } from '../../../../shared/events/define.ts';
import { runs } from '../../../support/runs.ts';

const things = defineTable('things', { id: 'bigint', text: 'text' }, { key: ['id'] });
const sums = defineTable('sums', { name: 'text', count: 'bigint' }, { key: ['name'] });

interface Step {
  readonly does: 'add' | 'rename' | 'erase' | 'remove' | 'count';
  readonly id: number;
}

const changesOf = ({ does, id }: Step, position: number): Change[] => {
  if (does === 'add') return [insert(things, { id, text: `added at ${position}` })];
  if (does === 'rename') return [update(things, { id }, (row) => ({ ...row, text: `${row.text}, ${position}` }))];
  if (does === 'erase') return [updateInPlace(things, { id }, (row) => ({ ...row, text: 'erased' }))];
  if (does === 'remove') return [update(things, { id }, () => undefined)];
  const name = `sum ${id}`;
  return [change(sums, { name }, (row) => ({ name, count: (row?.count ?? 0) + 1 }))];
};

const projection: Projection = {
  name: 'built',
  version: 1,
  tables: [things, sums] as unknown as Projection['tables'],
  handles: new Set(['Step']),
  project: ({ data, position }) => changesOf(data as unknown as Step, position),
};
const eventOf = (step: Step, position: number) =>
  ({ type: 'Step', data: step as unknown, position }) as unknown as DomainEvent;

/** Tables as a database keeps them. */
function openTables() {
  const stored = new Map(projection.tables.map((table) => [table, new Map<string, AnyStoredRow>()]));
  const of = (table: Projection['tables'][number]) => stored.get(table) ?? new Map<string, AnyStoredRow>();
  let loads = 0;
  let versions: Version[] = [];
  return {
    of,
    loads: () => loads,
    load: (table: Projection['tables'][number], keys: readonly Readonly<Record<string, unknown>>[]) => {
      loads++;
      const found = keys.map((key) => of(table).get(keyText(table, key)));
      return Promise.resolve(new Map(found.flatMap((row) => (row ? [[keyText(table, row), row] as const] : []))));
    },
    versions: () => versions,
    write({ writes, copies = new Map() }: Partial<ReturnType<BuiltRows['changed']>>) {
      const put = (table: Projection['tables'][number], row: AnyStoredRow) => of(table).set(keyText(table, row), row);
      for (const [table, pieces] of copies) {
        const names = [...Object.keys(table.columns), 'position'];
        for (const line of Buffer.concat(pieces).toString().split('\n').slice(0, -1)) {
          const values = line.split('\t').map((text) => (/^\d+$/.test(text) ? Number(text) : text));
          put(table, Object.fromEntries(names.map((name, index) => [name, values[index]])) as AnyStoredRow);
        }
      }
      for (const { table, rows, deletes, forgets, versions: more } of writes ?? []) {
        for (const row of rows) put(table, row);
        for (const key of deletes) of(table).delete(keyText(table, key));
        versions = versions.filter(
          (version) => !forgets.some(({ id, until }) => id === version.id && version.until <= until),
        );
        versions.push(...more);
      }
    },
  };
}

const sorted = (rows: Iterable<AnyStoredRow>) =>
  Array.from(rows, (row) => JSON.stringify(row, Object.keys(row).sort())).sort();

/** The versions of things that these steps leave, as text. */
function versionsOf(steps: readonly Step[]): string[] {
  const memory = new MemoryTables();
  let versions: Version[] = [];
  const row = (id: number) =>
    memory.rows(things as unknown as Projection['tables'][number]).find((one) => one.id === id);
  for (const [n, step] of steps.entries()) {
    const before = row(step.id);
    memory.apply(projection, [eventOf(step, n + 1)]);
    if (step.does === 'erase') versions = versions.filter(({ id }) => id !== step.id);
    else if (before && before !== row(step.id)) versions.push(versionOf(before, before.position, n + 1));
  }
  return sorted(versions);
}

describe('rows of a read model under construction', () => {
  const step = fc.record<Step>({
    does: fc.constantFrom('add', 'rename', 'erase', 'remove', 'count'),
    id: fc.integer({ min: 1, max: 4 }),
  });
  const batch = fc.record({ steps: fc.array(step, { maxLength: 8 }), forget: fc.boolean() });

  it('have the same versions in any batches, as those of a live read model', async () => {
    const steps = fc.array(
      step.filter(({ does }) => does !== 'count'),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 4 }), fc.boolean(), async (parts, live) => {
        // An id is given once.
        const added = new Set<number>();
        const isAgain = ({ does, id }: Step) => does === 'add' && added.size === added.add(id).size;
        const batches = parts.map((part) => part.filter((one) => !isAgain(one)));
        const tables = openTables();
        const room: Room = { characters: 0, written: new WrittenKeys() };
        const { load } = tables;
        const built = new BuiltRows({ projection, room, empty: true, copies: false, history: true, load });
        const cache = new RowCache();
        let position = 0;
        for (const one of batches) {
          const events = one.map((each) => eventOf(each, ++position));
          if (live) {
            const pending = new Batch({ projection, cache, load });
            await pending.add(events);
            tables.write({ writes: pending.writes() });
            pending.written();
          } else {
            await built.add(events);
            tables.write(built.changed());
          }
        }
        expect(sorted(tables.versions())).to.deep.equal(versionsOf(batches.flat()));
      }),
      { numRuns: runs(100, 300) },
    );
  });

  it('are the same whenever they are written and dropped, with COPY and without', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { maxLength: 10 }),
        fc.boolean(),
        fc.boolean(),
        async (batches, copies, full) => {
          const tables = openTables();
          const expected = new MemoryTables();
          const room: Room = { characters: 0, written: new WrittenKeys(full ? 0 : undefined) };
          const rows = new BuiltRows({
            projection,
            room,
            empty: true,
            copies,
            history: false,
            load: tables.load,
          });
          let position = 0;
          for (const { steps, forget } of batches) {
            let events = steps.map((one) => eventOf(one, ++position));
            expected.apply(projection, events);
            while (events.length > 0) {
              events = events.slice(await rows.add(events));
              if (events.length > 0) tables.write(rows.changed());
            }
            tables.write(rows.changed());
            if (forget) rows.age();
            expect(room.characters, 'size in memory').to.equal(rows.used + rows.unused);
          }
          for (const table of projection.tables)
            expect(sorted(tables.of(table).values()), table.name).to.deep.equal(sorted(expected.rows(table)));
        },
      ),
    );
  });

  it('are not read back while in memory, and are dropped if not used twice', async () => {
    const tables = openTables();
    const room: Room = { characters: 0, written: new WrittenKeys() };
    const rows = new BuiltRows({
      projection,
      room,
      empty: true,
      copies: true,
      history: false,
      load: tables.load,
    });
    let position = 0;
    const count = async (id: number) => {
      await rows.add([eventOf({ does: 'count', id }, ++position)]);
      tables.write(rows.changed());
    };
    for (const id of [1, 2, 1, 2]) await count(id);
    expect(tables.loads()).to.equal(0);
    const both = room.characters;
    rows.age();
    await count(1);
    rows.age();
    expect(room.characters).to.be.below(both);
    await count(1);
    expect(tables.loads(), 'of the one that was used in between').to.equal(0);
    await count(2);
    expect(tables.loads(), 'of the other').to.equal(1);
    const counted = [...tables.of(projection.tables[1] as Projection['tables'][number]).values()];
    expect(counted.map((row) => row.count)).to.deep.equal([4, 3]);
  });

  it('are not looked up before they were written, however many were dropped', async () => {
    const tables = openTables();
    const rows = new BuiltRows({
      projection,
      room: { characters: 0, written: new WrittenKeys() },
      empty: true,
      copies: true,
      history: false,
      load: tables.load,
    });
    for (let id = 1; id <= 1_000; id++) {
      await rows.add([eventOf({ does: 'count', id }, id)]);
      tables.write(rows.changed());
      rows.age();
    }
    expect(tables.loads()).to.be.below(20);
    expect([...tables.of(projection.tables[1] as Projection['tables'][number]).keys()]).to.have.length(1_000);
  });
});
