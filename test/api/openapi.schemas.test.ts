/** The schemas in the description of the API take and refuse what the schemas that check requests take and refuse. */
import { expect } from 'chai';
import { z } from 'zod';
import type { Route } from '../../api/http/route.ts';
import { describeApi } from '../../api/openapi.ts';
import { errorSchema, idParams, idValue, limitParam, offsetParam } from '../../shared/contract/common.ts';
import { accepts, type Described, operationsOf } from '../support/openapi.ts';
import { described, problemsOf, route } from '../support/openapi-routes.ts';

describe('API description', () => {
  describe('schemas', () => {
    /** What both sides must take and refuse. */
    const CASES: { what: string; schema: z.ZodType; takes: unknown[]; refuses: unknown[] }[] = [
      {
        what: 'an object with bounds, choices and nullable fields',
        schema: z.object({
          name: z.string().min(1).max(5),
          status: z.enum(['on', 'off']).default('off'),
          note: z.string().max(3).nullable().optional(),
          mood: z.enum(['good', 'bad']).nullable().optional(),
          count: z.int().positive().max(9).optional(),
        }),
        takes: [
          { name: 'a' },
          { name: 'abcde', status: 'on', note: null, mood: null, count: 9 },
          { name: 'a', note: 'abc', mood: 'bad', count: 1, more: true },
        ],
        refuses: [
          {},
          { name: '' },
          { name: 'abcdef' },
          { name: 'a', status: 'idle' },
          { name: 'a', note: 'abcd' },
          { name: 'a', mood: 'so so' },
          { name: 'a', count: 0 },
          { name: 'a', count: 10 },
          { name: 'a', count: 1.5 },
          { name: 7 },
          [],
          null,
          'a',
        ],
      },
      {
        what: 'a strict object',
        schema: z.strictObject({ a: z.boolean(), b: z.array(z.string()).max(2).optional() }),
        takes: [{ a: true }, { a: false, b: [] }, { a: true, b: ['x', 'y'] }],
        refuses: [{}, { a: 1 }, { a: true, c: 1 }, { a: true, b: ['x', 'y', 'z'] }, { a: true, b: [1] }],
      },
      {
        what: 'one of several objects',
        schema: z.discriminatedUnion('action', [
          z.object({ action: z.literal('add'), name: z.string() }),
          z.object({ action: z.literal('remove'), id: z.int() }),
        ]),
        takes: [
          { action: 'add', name: 'a' },
          { action: 'remove', id: 1 },
        ],
        refuses: [{ action: 'add' }, { action: 'remove', id: 'a' }, { action: 'toggle' }, {}],
      },
      {
        what: 'a record of numbers',
        schema: z.record(z.string(), z.number().min(0)),
        takes: [{}, { a: 0, b: 1.5 }],
        refuses: [{ a: -1 }, { a: '1' }, [], null],
      },
      {
        what: 'an id of a record',
        schema: z.object({ id: idValue }),
        takes: [{ id: 1 }, { id: 4_000_000_000 }],
        refuses: [{ id: 0 }, { id: -1 }, { id: 1.5 }, { id: null }, { id: true }, { id: 'one' }, {}],
      },
      {
        what: 'an error',
        schema: errorSchema,
        takes: [{ error: 'no' }, { error: 'no', details: ['a: b'], code: 'X', hint: 'y' }],
        refuses: [{}, { error: 1 }, { error: 'no', details: 'a' }],
      },
    ];
    for (const { what, schema, takes, refuses } of CASES) {
      it(`accept and refuse the same as zod: ${what}`, () => {
        const { document, schema: written } = described(schema, 'input');
        expect(problemsOf(document)).to.deep.equal([]);
        for (const one of takes) {
          expect(schema.safeParse(one).success, `zod ${JSON.stringify(one)}`).to.equal(true);
          expect(accepts(document, written, one), `description ${JSON.stringify(one)}`).to.equal(true);
        }
        for (const one of refuses) {
          expect(schema.safeParse(one).success, `zod ${JSON.stringify(one)}`).to.equal(false);
          expect(accepts(document, written, one), `description ${JSON.stringify(one)}`).to.equal(false);
        }
      });
    }

    it('accept and refuse the same as zod: parameters, which arrive as text', () => {
      const paramsOf = (changes: Partial<Route>) => {
        const document = describeApi([route(changes)]);
        const { parameters } = operationsOf(document)[0] as Described;
        return (name: string, value: unknown) =>
          accepts(document, parameters.find((parameter) => parameter.name === name)?.schema, value);
      };
      const takesId = paramsOf({ path: '/api/tasks/{id}', params: idParams });
      for (const id of [1, 42, 0, -1, 1.5, 'one']) {
        expect(takesId('id', id), `id ${id}`).to.equal(idParams.safeParse({ id: String(id) }).success);
      }
      // These two refuse nothing: what is outside their range is moved into it.
      const paging = z.object({ limit: limitParam(50, 500), offset: offsetParam });
      const takes = paramsOf({ query: paging });
      for (const value of [-1, 0, 1, 50, 500, 501]) {
        const read = paging.parse({ limit: String(value), offset: String(value) });
        expect(takes('limit', value), `limit ${value}`).to.equal(read.limit === value);
        expect(takes('offset', value), `offset ${value}`).to.equal(read.offset === value);
      }
    });

    it('are replaced where the contract overrides them, but keep their descriptions', () => {
      const moment = z
        .string()
        .transform((text) => new Date(text))
        .meta({ override: { type: 'string', format: 'date' } });
      const body = z.object({
        plain: moment,
        told: moment.describe('a day').optional(),
        none: moment.nullable().describe('a day or none'),
        // A field may well be called like the key of the contract's own marking.
        override: z.boolean(),
      });
      for (const io of ['input', 'output'] as const) {
        const { schema } = described(body, io);
        expect(schema.properties, io).to.deep.equal({
          plain: { type: 'string', format: 'date' },
          told: { type: 'string', format: 'date', description: 'a day' },
          none: { type: ['string', 'null'], format: 'date', description: 'a day or none' },
          override: { type: 'boolean' },
        });
      }
    });

    it('allow new fields in responses, unless the contract forbids them', () => {
      const { schema } = described(z.object({ open: z.object({}), closed: z.strictObject({}) }), 'output');
      expect(schema).not.to.have.property('additionalProperties');
      expect(schema).to.have.nested.property('properties.closed.additionalProperties', false);
      expect(schema).not.to.have.nested.property('properties.open.additionalProperties');
    });

    it('appear once under their name if request and response schemas are the same', () => {
      const Thing = z.object({ a: z.string() }).meta({ id: 'Thing' });
      const document = describeApi([
        route({ method: 'put', body: Thing, responses: { 200: { description: 'Well', schema: Thing } } }),
      ]);
      expect(Object.keys(document.components.schemas)).to.deep.equal(['Error', 'Thing']);
    });

    it('appear twice if they differ, as do all schemas that refer to them', () => {
      const Leaf = z.object({ a: z.string().default('x') }).meta({ id: 'Leaf' });
      const Tree = z.object({ leaf: Leaf }).meta({ id: 'Tree' });
      const document = describeApi([
        route({ method: 'put', body: Tree, responses: { 200: { description: 'Well', schema: Tree } } }),
      ]);
      const { schemas } = document.components;
      expect(Object.keys(schemas)).to.deep.equal(['Error', 'Leaf', 'LeafInput', 'Tree', 'TreeInput']);
      expect(schemas.Leaf).to.have.deep.property('required', ['a']);
      expect(schemas.LeafInput).not.to.have.property('required');
      expect(schemas.TreeInput).to.have.deep.nested.property('properties.leaf', {
        $ref: '#/components/schemas/LeafInput',
      });
      expect(schemas.Tree).to.have.deep.nested.property('properties.leaf', { $ref: '#/components/schemas/Leaf' });
      expect(problemsOf(document)).to.deep.equal([]);
    });

    it('may be recursive if they are named', () => {
      const Node = z
        .object({
          get next() {
            return Node.optional();
          },
        })
        .meta({ id: 'Node' });
      const { document, schema } = described(Node, 'input');
      expect(problemsOf(document)).to.deep.equal([]);
      expect(accepts(document, schema, { next: { next: {} } })).to.equal(true);
      expect(accepts(document, schema, { next: { next: 1 } })).to.equal(false);
    });
  });
});
