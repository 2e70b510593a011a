/** A read model with one table, of one kind of event, for tests of how read models are kept. */
import { z } from 'zod';
import { defineProjection, defineTable, insert, on } from '../../projections/projection.ts';
import { defineEvent } from '../../shared/events/define.ts';

/** An event that only tests have. */
export const testEvent = <const Type extends string, Data extends object>(type: Type, schema: z.ZodType<Data>) =>
  defineEvent({ type, version: 1, doc: 'test', schema });

export const put = testEvent('Put', z.object({ id: z.int() }));
export const boxes = defineTable('boxes', { id: 'bigint' }, { key: ['id'] });
export const boxesProjection = defineProjection({
  name: 'boxes',
  version: 1,
  tables: [boxes],
  handlers: [on(put, ({ data }) => [insert(boxes, { id: data.id })])],
});
