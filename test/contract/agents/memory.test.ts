import { expect } from 'chai';
import { memoryDeleteResponse, memoryPutResponse, memoryResponse } from '../../../shared/contract/agents/memory.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('memory', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create, get, activities } = world;

  it('can be written, appended to, read and cleared', async () => {
    const { id, name, created_at } = await create();
    const path = `/api/agents/${id}/memory`;
    const agent = { id, name, role: 'coder' };
    const body = conforms(memoryResponse, await ask('GET', path));
    expect(body).to.deep.equal({ agent, working_memory: '', source: 'none', updated_at: created_at, size: 0 });
    const put = await ask('PUT', path, { working_memory: 'øne 🎉' });
    conforms(memoryPutResponse, put);
    expect(put.body).to.include({ success: true, working_memory: 'øne 🎉', size: 6, saved_to_workspace: false });
    const added = await ask('PUT', `/api/agents/${name}/memory`, { working_memory: 'two', append: true });
    expect(added.body.working_memory).to.match(/^øne 🎉\n\n## \d{4}-\d\d-\d\dT[\d:.]+Z\ntwo$/);
    const read = await ask('GET', path);
    expect(read.body).to.deep.include({ source: 'database', working_memory: added.body.working_memory });
    expect((await get(id)).working_memory).to.equal(added.body.working_memory);
    const cleared = await ask('DELETE', `/api/agents/${name}/memory`);
    conforms(memoryDeleteResponse, cleared);
    expect((await ask('GET', path)).body).to.include({ working_memory: '', source: 'none' });
    const [last] = await activities('agent_memory_updated', id);
    expect(last).to.include({ actor: name });
    expect(last.metadata).to.include({
      append_mode: true,
      content_length: added.body.size,
      saved_to_workspace: false,
    });
    expect(await activities('agent_memory_cleared', id)).to.have.length(1);
  });

  it('accepts any object, with an empty text if working_memory is missing', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/memory`;
    for (const body of [{}, { anything: [1] }, { working_memory: null }, { append: true }]) {
      const reply = await ask('PUT', path, body);
      expect(reply, JSON.stringify(body)).to.deep.include({ status: 200 });
      expect(reply.body).to.include({ success: true, working_memory: '' });
    }
  });

  it('keeps its other keys: PUT replaces them, appending merges them, DELETE clears all', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/memory`;
    const kept = async () => {
      const { agent, updated_at, size, ...rest } = conforms(memoryResponse, await ask('GET', path));
      expect(agent).to.include({ id });
      expect(updated_at).to.be.a('number');
      expect(size).to.equal(rest.working_memory.length);
      return rest;
    };
    const put = async (body: object) => expect((await ask('PUT', path, body)).status).to.equal(200);
    await put({ working_memory: 'text', goal: { steps: [1, null, 'ø'] }, note: 'n', message: 'm' });
    const first = { goal: { steps: [1, null, 'ø'] }, note: 'n', message: 'm' };
    expect(await kept()).to.deep.equal({ ...first, working_memory: 'text', source: 'database' });
    await put({ append: true, note: 'other', more: 1 });
    expect(await kept()).to.deep.equal({
      ...first,
      note: 'other',
      more: 1,
      working_memory: 'text',
      source: 'database',
    });
    // What GET answers of its own wins, and is not kept.
    const answered = (await ask('GET', path)).body;
    await put({ ...answered, agent: 'mine', size: -1, source: 'mine', updated_at: 'mine' });
    expect(await kept()).to.deep.include({ note: 'other', working_memory: 'text', source: 'database' });
    await put({ only: true });
    expect(await kept()).to.deep.equal({ only: true, working_memory: '', source: 'database' });
    await put({ working_memory: 'text' });
    expect(await kept()).to.deep.equal({ working_memory: 'text', source: 'database' });
    await put({ x: 1 });
    await ask('DELETE', path);
    expect(await kept()).to.deep.equal({ working_memory: '', source: 'none' });
    expect(await activities('agent_memory_updated', id)).to.have.length(6);
  });

  it('counts the other keys towards the limit, and rejects what cannot be stored', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/memory`;
    const half = 'x'.repeat(262_144);
    expect((await ask('PUT', path, { working_memory: half, other: half })).status).to.equal(413);
    expect((await ask('PUT', path, { working_memory: half, other: half.slice(20) })).status).to.equal(200);
    expect((await ask('PUT', path, { working_memory: 'y', append: true })).status).to.equal(413);
    expect((await ask('PUT', path, { append: true, more: half })).status).to.equal(413);
    expect((await ask('PUT', path, { other: '\u0000' })).status).to.equal(400);
    expect((await ask('GET', path)).body).to.include({ working_memory: half, other: half.slice(20) });
  });

  it('loses nothing in concurrent merges', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/memory`;
    const keys = Array.from({ length: 6 }, (_, n) => `key${n}`);
    const replies = await Promise.all(keys.map((key) => ask('PUT', path, { append: true, [key]: key })));
    const done = keys.filter((_, n) => replies[n]?.status === 200);
    expect(done).to.not.be.empty;
    for (const { status } of replies) expect(status).to.be.oneOf([200, 409]);
    expect((await ask('GET', path)).body).to.include(Object.fromEntries(done.map((key) => [key, key])));
  });

  it('is hidden in the records of others from a caller that speaks for an agent', async () => {
    const [me, other] = [await create(), await create()];
    for (const { id } of [me, other]) await ask('PUT', `/api/agents/${id}/memory`, { working_memory: `of ${id}` });
    const key = await world.world.makeKey(me.id, ['operator']);
    const admins = await world.world.makeKey(me.id, ['admin']);
    const memoryOf = async (id: number, as?: string, headers?: Record<string, string>) =>
      (await ask('GET', `/api/agents/${id}`, undefined, as, headers)).body.agent.working_memory;
    for (let turn = 0; turn < 2; turn++) {
      expect(await memoryOf(other.id)).to.equal(`of ${other.id}`);
      expect(await memoryOf(me.id, key)).to.equal(`of ${me.id}`);
      expect(await memoryOf(other.id, key)).to.equal('');
      expect(await memoryOf(other.id, admins)).to.equal(`of ${other.id}`);
      const { agents } = (await ask('GET', '/api/agents?limit=200', undefined, key)).body;
      const shown = agents.filter((agent: { working_memory: string }) => agent.working_memory !== '');
      expect(shown.map((agent: { id: number }) => agent.id)).to.deep.equal([me.id]);
    }
    const speaker = await world.world.makeSession({ username: `speaker-${me.id}`, role: 'operator' });
    const named = { 'x-agent-name': me.name };
    const changed = await ask('PUT', `/api/agents/${other.id}`, { role: 'x' }, speaker, named);
    expect(changed.body.agent.working_memory).to.equal('');
  });

  it('is rejected if invalid or too large', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/memory`;
    for (const body of [undefined, '{', [], 'x', 5, { working_memory: 5 }, { working_memory: {} }, { append: 'yes' }])
      expect((await ask('PUT', path, body)).status, JSON.stringify(body)).to.equal(400);
    expect((await ask('PUT', path, { working_memory: '\u0000' })).status).to.equal(400);
    const full = 'x'.repeat(524_288);
    expect((await ask('PUT', path, { working_memory: `${full}x` })).status).to.equal(413);
    expect((await ask('PUT', path, { working_memory: full })).body.size).to.equal(524_288);
    expect((await ask('PUT', path, { working_memory: 'x', append: true })).status).to.equal(413);
    expect((await ask('PUT', path, { working_memory: '日'.repeat(400_000) })).status).to.equal(413);
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect(
        (await ask(method, '/api/agents/unknown-agent/memory', method === 'PUT' ? {} : undefined)).status,
      ).to.equal(404);
  });
});
