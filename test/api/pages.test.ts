/** Bodies of reads: written in pieces, with a list that ends at the size of a page. */
import { expect } from 'chai';
import { z } from 'zod';
import { jsonOf, pageOf } from '../../api/http/pages.ts';
import { defineRoute, type Route } from '../../api/http/route.ts';
import { routes } from '../../api/routes/index.ts';
import { limitParam, offsetParam, PAGE_BYTES } from '../../shared/contract/common.ts';

const record = (id: number, length: number) => ({ id, text: 'x'.repeat(length) });
const read = async (body: unknown, page: Route['page']) => JSON.parse((await jsonOf(body, page)).toString());

describe('bodies of reads', () => {
  it('are what JSON.stringify writes', async () => {
    for (const body of [
      { a: 1, b: undefined, c: null, list: [1, undefined, 'é"\u0001', { x: undefined }], d: { toJSON: () => 'day' } },
      { list: [] },
      [1, 2],
      'text',
      null,
    ])
      expect((await jsonOf(body, { list: 'list' })).toString()).to.equal(JSON.stringify(body));
  });
  it('end a list at the size of a page, and have all of another', async () => {
    const records = Array.from({ length: 10 }, (_, id) => record(id, 1_000_000));
    const { list, other, hasMore } = await read({ list: records, other: records, hasMore: false }, { list: 'list' });
    expect(list.map(({ id }: { id: number }) => id)).to.deep.equal([0, 1, 2]);
    expect(other).to.have.length(10);
    expect(hasMore).to.equal(true);
    expect(Buffer.byteLength(JSON.stringify(list))).to.be.at.most(PAGE_BYTES);
  });
  it('end a list sooner for a smaller page', async () => {
    const body = { list: Array.from({ length: 10 }, (_, id) => record(id, 100_000)) };
    expect(JSON.parse((await jsonOf(body, { list: 'list' }, 400_000)).toString()).list).to.have.length(3);
  });
  it('count bytes, not characters', async () => {
    const { list } = await read({ list: Array.from({ length: 4 }, () => '€'.repeat(600_000)) }, { list: 'list' });
    expect(list).to.have.length(2);
  });
  it('have at least one record, however large', async () => {
    const { list, hasMore } = await read(
      { list: [record(1, 5_000_000), record(2, 1)], hasMore: false },
      { list: 'list' },
    );
    expect(list.map(({ id }: { id: number }) => id)).to.deep.equal([1]);
    expect(hasMore).to.equal(true);
  });
  it('keep the end of a list that begins with its oldest record', async () => {
    const records = Array.from({ length: 6 }, (_, id) => record(id, 1_500_000));
    const { list } = await read({ list: records }, { list: 'list', newestLast: true });
    expect(list.map(({ id }: { id: number }) => id)).to.deep.equal([4, 5]);
  });
  it('of many records let other work run in between', async () => {
    let turns = 0;
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    await jsonOf({ list: Array.from({ length: 40 }, (_, id) => record(id, 100_000)) }, undefined);
    running = false;
    expect(turns).to.be.at.least(10);
  });
});

describe('lists with an offset', () => {
  const bare = { method: 'get', path: '/api/things', summary: '', access: 'viewer' } as const;
  const rules = { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' } as const;
  const thing = z.object({ id: z.int() });
  const routeWith = (schema: z.ZodType, page?: Route['page']) =>
    defineRoute({
      ...bare,
      rules,
      ...(page && { page }),
      query: z.object({ limit: limitParam(50), offset: offsetParam }),
      responses: { 200: { description: '', schema } },
      respond: () => ({}) as never,
    });

  it('are found in the schema of the response', () => {
    expect(pageOf(routeWith(z.object({ names: z.array(z.string()), things: z.array(thing) })))).to.deep.equal({
      list: 'things',
    });
    const found = routes.flatMap((route) => pageOf(route)?.list ?? []);
    expect(found).to.include.members(['agents', 'tasks', 'messages', 'activities', 'entries', 'notifications']);
  });
  it('must be named if the response has several', () => {
    const two = z.object({ things: z.array(thing), others: z.array(thing) });
    expect(() => pageOf(routeWith(two))).to.throw(/^\/api\/things: `page` must name the list .*\(things, others\)/);
    expect(pageOf(routeWith(two, { list: 'others' }))).to.deep.equal({ list: 'others' });
  });
});
