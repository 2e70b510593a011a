/** The parts of projections: their declaration, single changes of rows, and the list of all. */
import { expect } from 'chai';
import { z } from 'zod';
import { applyEvent, keyText, MemoryTables } from '../../projections/apply.ts';
import { columnsFor } from '../../projections/columns.ts';
import { projections } from '../../projections/index.ts';
import {
  change,
  defineProjection,
  defineTable,
  insert,
  observed,
  on,
  schemaOf,
  update,
} from '../../projections/projection.ts';
import { agentHidden, agentShown } from '../../shared/events/agents/agents.ts';

const boxes = defineTable('boxes', { kind: 'text', id: 'bigint', content: 'bigint' }, { key: ['kind', 'id'] });
const box = { kind: 'a', id: 1 };

describe('a projection', () => {
  it('has one handler for each of its event types', () => {
    const handler = on(agentHidden, () => [insert(boxes, { ...box, content: 1 })]);
    const define = (...handlers: (typeof handler)[]) =>
      defineProjection({ name: 'boxes', version: 3, tables: [boxes], handlers });
    const projection = define(
      handler,
      on(agentShown, () => []),
    );
    expect([...projection.handles]).to.deep.equal([agentHidden.type, agentShown.type]);
    expect(schemaOf(projection)).to.equal('boxes_v3');
    expect(() => define(handler, handler)).to.throw('boxes: two handlers for one event type');
  });

  it('marks new rows, and only those are written without reading the table', () => {
    expect(insert(boxes, { ...box, content: 1 })).to.deep.include({ fresh: true, key: box });
    expect(change(boxes, box, (row) => row)).to.deep.include({ fresh: false, key: box });
    expect(update(boxes, box, (row) => row)).to.deep.include({ fresh: false, key: box });
  });

  it('has a column for each field of a schema, by its type', () => {
    const schema = z.object({
      ...{ text: z.string(), choice: z.enum(['a', 'b']), whole: z.int(), any: z.number(), flag: z.boolean() },
      ...{ list: z.array(z.string()), record: z.object({ a: z.string() }), maybe: z.int().nullable() },
    });
    expect(columnsFor(schema)).to.deep.equal({
      ...{ text: 'text', choice: 'text', whole: 'bigint', any: 'double', flag: 'boolean' },
      ...{ list: 'jsonb', record: 'jsonb', maybe: 'bigint?' },
    });
    for (const field of [z.string().optional(), z.string().default(''), z.union([z.string(), z.int()])])
      expect(() => columnsFor(z.object({ field }))).to.throw(/^No column type for /);
  });

  it('has a unique schema', () => {
    const schemas = projections.map(schemaOf);
    expect(schemas).to.include.members(['users_v1', 'agents_v1', 'activities_v1']);
    expect(new Set(schemas).size).to.equal(schemas.length);
  });
});

describe('row changes of one event', () => {
  const put = (content: number) => change(boxes, box, () => ({ ...box, content }));

  it('are counted if a row becomes different', () => {
    const rows = new MemoryTables();
    const other = { kind: 'a', id: 2 };
    const two = [put(1), change(boxes, other, () => ({ ...other, content: 1 }))];
    expect(applyEvent(two, { position: 5 }, rows)).to.equal(2);
    expect(rows.rows(boxes).map(({ id, position }) => [id, position])).to.deep.equal([
      [1, 5],
      [2, 5],
    ]);
  });

  it('keep a row and its position if it is returned unchanged or already has a later event', () => {
    const rows = new MemoryTables();
    applyEvent([put(1)], { position: 5 }, rows);
    expect(applyEvent([update(boxes, box, (row) => row)], { position: 6 }, rows)).to.equal(0);
    expect(applyEvent([put(2)], { position: 5 }, rows)).to.equal(0);
    expect(rows.rows(boxes)).to.deep.equal([{ ...box, content: 1, position: 5 }]);
  });

  it('may depend on an earlier change, which yields nothing if it was applied before', () => {
    const rows = new MemoryTables();
    const sum = { kind: 'sum', id: 0 };
    const set = (content: number | undefined) => {
      const { change: first, turn } = observed(boxes, box, () =>
        content === undefined ? undefined : { ...box, content },
      );
      const added = change(boxes, sum, (row) => {
        const { before, now } = turn();
        const more = (now?.content ?? 0) - (before?.content ?? 0);
        return more === 0 ? row : { ...sum, content: (row?.content ?? 0) + more };
      });
      return [first, added];
    };
    const total = () => rows.rows(boxes).find(({ kind }) => kind === 'sum')?.content;
    applyEvent(set(7), { position: 1 }, rows);
    applyEvent(set(5), { position: 2 }, rows);
    applyEvent(set(5), { position: 2 }, rows);
    expect(total()).to.equal(5);
    applyEvent(set(undefined), { position: 3 }, rows);
    expect(total()).to.equal(0);
  });

  it('find a row by its whole key', () => {
    expect(keyText(boxes, { kind: 'a', id: 11 })).to.not.equal(keyText(boxes, { kind: 'a1', id: 1 }));
    const numbers = defineTable('numbers', { a: 'int', b: 'int' }, { key: ['a', 'b'] });
    expect(keyText(numbers, { a: 1, b: 11 })).to.not.equal(keyText(numbers, { a: 11, b: 1 }));
  });
});
