/** Pages of large records through HTTP. */
import { expect } from 'chai';
import { PAGE_BYTES } from '../../shared/contract/common.ts';
import { closing, fixture } from '../support/fixture.ts';
import { connectMcp } from '../support/mcp.ts';
import { bodyOf } from '../support/service.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

/** Characters of the text in each record. */
const LENGTH = 190_000;
const COUNT = 24;

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
    expect(pages).to.equal(2);
    await using agent = closing(await connectMcp(world.url, { 'x-api-key': world.adminKey }));
    const { tasks, total } = await agent.value('list_tasks', { limit: 200 });
    expect([tasks.map(({ id }: { id: number }) => id), total], 'for an MCP tool').to.deep.equal([
      made.toReversed().slice(0, 2),
      COUNT,
    ]);
    const backwards = await readAll('/api/tasks?order=asc&', 'tasks');
    expect(backwards.ids).to.deep.equal(made);
  });
  it('has every message once where the page begins with its oldest', async () => {
    for (const name of ['ann-agent', 'bob-agent']) await world.makeAgent(name);
    const count = 90;
    for (let n = 0; n < count; n++)
      await post('/api/agents/message', { from: 'ann-agent', to: 'bob-agent', content: 'x'.repeat(49_000) });
    const { ids, pages } = await readAll('/api/agents/comms?', 'messages');
    expect(new Set(ids).size).to.equal(count);
    expect([ids.length, pages]).to.deep.equal([count, 2]);
  });
  it('has every comment once, and each reply of an earlier page’s comment by itself', async () => {
    const { task } = await post('/api/tasks', { title: 'with comments' });
    const path = `/api/tasks/${task.id}/comments`;
    const made: number[] = [];
    for (let n = 0; n < 55; n++) {
      // Every tenth replies to the first one.
      const parent = n % 10 === 9 && { parent_id: made[0] };
      made.push((await post(path, { content: 'x'.repeat(90_000), ...parent })).comment.id);
    }
    interface Comment {
      readonly id: number;
      readonly replies: readonly Comment[];
    }
    const idsOf = (comments: readonly Comment[]): number[] =>
      comments.flatMap(({ id, replies }) => [id, ...idsOf(replies)]);
    const pages: number[][] = [];
    for (let after: number | null = 0; after !== null; ) {
      const body = bodyOf(await world.ask('GET', `${path}?after=${after}`, { as: world.adminKey }));
      expect(Buffer.byteLength(JSON.stringify(body.comments))).to.be.at.most(PAGE_BYTES);
      expect(body.total).to.equal(made.length);
      pages.push(idsOf(body.comments));
      after = body.next_after;
    }
    expect(pages.map((ids) => ids.length)).to.deep.equal([44, 11]);
    expect(pages.flat().toSorted((a, b) => a - b)).to.deep.equal(made);
  });
  it('has every event of a task’s history once', async () => {
    const { task } = await post('/api/tasks', { title: 'often changed' });
    const changes = 12;
    for (let n = 0; n < changes; n++) {
      const body = { metadata: { text: String(n % 10).repeat(LENGTH) } };
      bodyOf(await world.ask('PUT', `/api/tasks/${task.id}`, { as: world.adminKey, body }));
    }
    const pages: number[][] = [];
    for (let before: number | null = 1_000; before !== null; ) {
      const path = `/api/tasks/${task.id}?include=history&history_limit=100&history_before=${before}`;
      const { history, history_before } = bodyOf(await world.ask('GET', path, { as: world.adminKey }));
      expect(Buffer.byteLength(JSON.stringify(history))).to.be.at.most(PAGE_BYTES);
      pages.push(history.map(({ revision }: { revision: number }) => revision));
      before = history_before;
    }
    expect(pages.map((one) => one.length)).to.deep.equal([10, 3]);
    expect(pages.flat()).to.deep.equal(Array.from({ length: changes + 1 }, (_, n) => changes - n));
  });
  it('has every difference between two moments once', async () => {
    const agents: number[] = [];
    for (let n = 0; n < COUNT; n++)
      agents.push(
        (await post('/api/agents', { name: `large-${n}`, role: 'coder', config: { text: 'x'.repeat(LENGTH) } })).agent
          .id,
      );
    const head = await world.ask('GET', '/api/agents?limit=1', { as: world.adminKey });
    const to = head.headers.get('x-signalbox-position');
    const ids: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path = `/api/history/diff?from=0&to=${to}&resource=agent_texts&limit=200&cursor=${cursor}`;
      const body = bodyOf(await world.ask('GET', path, { as: world.adminKey }));
      expect(Buffer.byteLength(JSON.stringify(body.changes))).to.be.at.most(PAGE_BYTES * 1.01);
      ids.push(...body.changes.map(({ id }: { id: number }) => id));
      cursor = body.next_cursor;
    }
    expect(ids.filter((id) => agents.includes(id))).to.deep.equal(agents);
    expect(new Set(ids).size).to.equal(ids.length);
  });
});
