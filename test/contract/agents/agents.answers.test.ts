/** What writes answer about agents is what the next reads show, though many rows are not written yet. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { type AgentsWorld, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('Responses to agent writes', function () {
  this.timeout(120_000);
  const world = fixture(startAgentsWorld);

  const { ask, create, fresh } = world;
  const done = async (...asked: Parameters<AgentsWorld['ask']>) => bodyOf(await ask(...asked), 200, 201);
  /** The record as a list shows it, which is always read from the database. */
  async function listed(id: number) {
    const { agents } = await done('GET', '/api/agents?limit=200&show_hidden=1');
    const { taskStats: _, ...agent } = agents.find((one: { id: number }) => one.id === id);
    return agent;
  }

  it('PUT returns the record, including all earlier changes', async () => {
    const { id, name } = await create({ soul_content: 'soul', config: { a: 1 }, session_key: fresh('key') });
    const path = `/api/agents/${id}`;
    /** Each happens right after the one before it. */
    const before: readonly (() => Promise<unknown>)[] = [
      async () => undefined,
      () => done('POST', `${path}/heartbeat`, {}),
      () => done('PUT', '/api/agents', { name, status: 'busy', last_activity: 'reads' }),
      () => done('PUT', `${path}/memory`, { working_memory: 'one', mood: 'good' }),
      () => done('PUT', `${path}/memory`, { working_memory: 'two', append: true }),
      () => done('PUT', `${path}/soul`, { soul_content: 'another soul' }),
      () => done('POST', `${path}/hide`),
      () => done('POST', `${path}/wake`, { reason: 'now' }),
      () => done('PUT', path, { config: { b: [1, { c: 'x' }] }, soul_content: 'third', runtime_type: 'codex' }),
      () => done('DELETE', `${path}/memory`),
      () => done('DELETE', `${path}/hide`),
      () => Promise.all([1, 2, 3].map((n) => done('PUT', path, { role: `one of ${n}` }))),
    ];
    for (const [at, happens] of before.entries()) {
      await happens();
      const { agent } = await done('PUT', path, { role: `role ${at}`, status: at % 2 ? 'busy' : 'idle' });
      const { agent: shown } = await done('GET', path);
      expect(shown, `${at}: the next GET`).to.deep.equal(agent);
      expect(await listed(id), `${at}: in the list`).to.deep.equal(agent);
    }
    // All in one go.
    for (const happens of before) await happens();
    const { agent } = await done('PUT', path, { role: 'last' });
    expect(await listed(id)).to.deep.equal(agent);
  });

  it('an agent is found under its new name at once, and no longer under the old one', async () => {
    const { id, name } = await create();
    const message = (to: string) => ask('POST', '/api/agents/message', { from: 'ann', to, content: 'hello' });
    const say = async (recipient: string) =>
      (await done('POST', '/api/chat/messages', { content: 'hello', recipient, forward: true })).forward.delivered;
    expect((await message(name)).status).to.equal(200);
    let last = name;
    for (let n = 0; n < 5; n++) {
      const next = fresh();
      await done('PUT', `/api/agents/${id}`, { name: next });
      expect((await message(last)).status, 'the old name').to.equal(404);
      expect((await message(next)).status, 'the new name').to.equal(200);
      await done('PUT', '/api/agents', { name: next, role: `role ${n}` });
      expect((await ask('PUT', '/api/agents', { name: last, role: 'x' })).status).to.equal(404);
      expect([await say(last), await say(next)]).to.deep.equal([false, true]);
      last = next;
    }
    // Another agent gets the first name.
    const other = await create({ name });
    await done('PUT', '/api/agents', { name, role: 'heir' });
    expect((await world.get(other.id)).role).to.equal('heir');
    expect((await world.get(id)).role).to.equal('role 4');
    await done('DELETE', `/api/agents/${id}`);
    expect((await message(last)).status, 'deleted').to.equal(404);
    expect(await say(last)).to.equal(false);
    const asks: readonly Parameters<AgentsWorld['ask']>[] = [
      ['GET', `/api/agents/${id}`],
      ['GET', `/api/agents/${last}/memory`],
      ['GET', `/api/agents/${id}/soul`],
      ['PUT', `/api/agents/${id}`, { role: 'x' }],
      ['PUT', `/api/agents/${id}/memory`, { working_memory: 'x' }],
    ];
    for (const asked of asks) expect((await ask(...asked)).status, `${asked[0]} ${asked[1]}`).to.equal(404);
  });
});
