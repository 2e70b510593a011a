/** Pages of large records through HTTP. */
import { expect } from 'chai';
import { PAGE_BYTES } from '../../shared/contract/common.ts';
import { fixture } from '../support/fixture.ts';
import { bodyOf } from '../support/service.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

/** Characters of the text in each record. */
const LENGTH = 190_000;
const COUNT = 45;

describe('contract: pages of large records', function () {
  this.timeout(120_000);
  const world = fixture(() => startAuthWorld());
  const post = async (path: string, body: unknown) =>
    bodyOf(await world.ask('POST', path, { as: world.adminKey, body }), 200, 201);

  /** Reads a list to its end. @returns the ids, in order, and the number of pages */
  async function readAll(path: string, list: string) {
    const ids: number[] = [];
    for (let pages = 1; ; pages++) {
      const reply = await world.ask('GET', `${path}limit=200&offset=${ids.length}`, { as: world.adminKey });
      const body = bodyOf(reply, 200);
      const page = body[list] as { readonly id: number }[];
      expect(Buffer.byteLength(JSON.stringify(page))).to.be.at.most(PAGE_BYTES);
      ids.push(...page.map(({ id }) => id));
      if (page.length === 0 || ids.length >= (body.total ?? COUNT)) return { ids, pages };
    }
  }

  it('has every record once', async () => {
    const made: number[] = [];
    for (let n = 0; n < COUNT; n++) {
      const body = { title: `task ${n}`, metadata: { text: 'x'.repeat(LENGTH) } };
      made.push((await post('/api/tasks', body)).task.id);
    }
    const { ids, pages } = await readAll('/api/tasks?', 'tasks');
    expect(ids).to.deep.equal(made.toReversed());
    expect(pages).to.equal(3);
    const backwards = await readAll('/api/tasks?order=asc&', 'tasks');
    expect(backwards.ids).to.deep.equal(made);
  });
  it('has every message once where the page begins with its oldest', async () => {
    for (const name of ['ann-agent', 'bob-agent']) await world.makeAgent(name);
    const count = 100;
    for (let n = 0; n < count; n++)
      await post('/api/agents/message', { from: 'ann-agent', to: 'bob-agent', content: 'x'.repeat(49_000) });
    const { ids, pages } = await readAll('/api/agents/comms?', 'messages');
    expect(new Set(ids).size).to.equal(count);
    expect([ids.length, pages]).to.deep.equal([count, 2]);
  });
});
