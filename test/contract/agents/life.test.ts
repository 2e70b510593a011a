/** What agents do, through HTTP: heartbeat, wake-up, memory, soul, the sweep; and that an agent only touches itself. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { sweepLiveness } from '../../../commands/policies/agents/liveness.ts';
import { silentAgents } from '../../../queries/agents/liveness.ts';
import { heartbeatAnswer, heartbeatPostAnswer, wakeAnswer } from '../../../shared/contract/agents/heartbeat.ts';
import { memoryAnswer, memoryDeleteAnswer, memoryPutAnswer } from '../../../shared/contract/agents/memory.ts';
import { soulAnswer, soulPutAnswer, soulTemplatesAnswer } from '../../../shared/contract/agents/souls.ts';
import { tokenUsageReported } from '../../../shared/events/agents/heartbeat.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { testOrigin } from '../../support/world.ts';
import { type AgentsWorld, conforms, startAgentsWorld } from './world.ts';

describe('Life of agents', () => {
  let world: AgentsWorld;
  before(async () => {
    world = await startAgentsWorld();
  });
  after(() => world.close());

  const ask: AgentsWorld['ask'] = (...asked) => world.ask(...asked);
  const create: AgentsWorld['create'] = (fields) => world.create(fields);
  const get: AgentsWorld['get'] = (id) => world.get(id);
  const activities: AgentsWorld['activities'] = (type, id) => world.activities(type, id);
  const core = () => world.world.service.core;
  const events = async (id: number, type: string) =>
    (await core().store.readStream(`agent-1-${id}`)).filter((event) => event.type === type);

  describe('POST heartbeat', () => {
    it('of a client that leaves before its body is read is not taken for one without a body', async () => {
      const { id } = await create();
      const body = JSON.stringify({ connection_id: 'here' });
      const { hostname, port } = new URL(world.world.url);
      await Promise.all(
        Array.from({ length: 40 }, async (_, n) => {
          const socket = connect(Number(port), hostname);
          socket.end(
            `POST /api/agents/${id}/heartbeat HTTP/1.1\r\nHost: ${hostname}:${port}\r\nx-api-key: ${world.world.adminKey}\r\n` +
              `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nIdempotency-Key: leaves-${id}-${n}\r\nConnection: close\r\n\r\n${body}`,
          );
          socket.resume();
          await once(socket, 'close');
        }),
      );
      for (let n = 0; n < 40; n++) {
        const key = { 'idempotency-key': `leaves-${id}-${n}` };
        const again = await ask('POST', `/api/agents/${id}/heartbeat`, { connection_id: 'here' }, undefined, key);
        expect(again.status, JSON.stringify(again.body)).to.equal(200);
      }
      const seen = await events(id, 'AgentHeartbeatReceived');
      expect(seen).to.have.length(40);
      for (const { data } of seen) expect(data).to.include({ connectionId: 'here' });
    });

    it('makes the agent idle and seen, and tells what waits', async () => {
      const { id, name } = await create({ status: 'error' });
      const reply = await ask('POST', `/api/agents/${id}/heartbeat`, {});
      conforms(heartbeatPostAnswer, reply);
      expect(reply.body).to.deep.include({
        success: true,
        agent: name,
        status: 'HEARTBEAT_OK',
        pending_tasks: [],
        messages: [],
        token_recorded: false,
      });
      const after = await get(id);
      expect(after.status).to.equal('idle');
      expect(after.last_seen).to.be.closeTo(Date.now() / 1_000, 30);
      expect(after.last_activity).to.match(/heartbeat/i);
      const [activity] = await activities('agent_heartbeat', id);
      expect(activity).to.deep.include({ actor: name, metadata: { workItemsCount: 0, workItemTypes: [] } });
      expect(await activities('agent_status_change', id)).to.have.length(1);
      await world.stream.until(() =>
        world.stream.frames.some(({ type, data }) => type === 'agent.status_changed' && data.id === id),
      );
      const frames = world.stream.frames.filter(({ type, data }) => type === 'agent.status_changed' && data.id === id);
      expect(frames).to.have.length(1);
      expect(frames[0]?.data).to.include({ name, status: 'idle', last_seen: after.last_seen });
    });

    it('takes nothing at all, by id and by name', async () => {
      const { id, name } = await create();
      expect((await ask('POST', `/api/agents/${id}/heartbeat`)).status).to.equal(200);
      expect((await ask('POST', `/api/agents/${name}/heartbeat`)).status).to.equal(200);
      expect(await activities('agent_heartbeat', id)).to.have.length(2);
    });

    it('records token usage when it is complete', async () => {
      const { id, name } = await create();
      const usage = { model: 'm', inputTokens: 10, outputTokens: 0, taskId: 99 };
      const told = await ask('POST', `/api/agents/${id}/heartbeat`, { connection_id: 'c', token_usage: usage });
      expect(told.body.token_recorded).to.equal(true);
      for (const token_usage of [
        {},
        null,
        'x',
        { ...usage, model: '' },
        { ...usage, inputTokens: -1 },
        { ...usage, inputTokens: 1.5 },
        { ...usage, outputTokens: '5' },
        { ...usage, outputTokens: 1e300 },
        { model: 'm', inputTokens: 1 },
      ]) {
        const { status, body } = await ask('POST', `/api/agents/${id}/heartbeat`, { token_usage });
        expect({ status, recorded: body.token_recorded }).to.deep.equal({ status: 200, recorded: false });
      }
      const [event, ...more] = await events(id, tokenUsageReported.type);
      expect(more).to.have.length(0);
      expect(event?.data).to.deep.equal({
        agentId: id,
        agentName: name,
        sessionId: `${name}:cli`,
        model: 'm',
        inputTokens: 10,
        outputTokens: 0,
        // There is no such task.
        taskId: null,
      });
    });

    it('with an Idempotency-Key is recorded once', async () => {
      const { id } = await create();
      const body = { token_usage: { model: 'm', inputTokens: 1, outputTokens: 1 } };
      const once = () =>
        ask('POST', `/api/agents/${id}/heartbeat`, body, undefined, { 'idempotency-key': `beat-${id}` });
      const [first, second] = [await once(), await once()];
      expect(second.body).to.deep.equal(first.body);
      expect(await events(id, tokenUsageReported.type)).to.have.length(1);
    });

    it('refuses unknown agents and bodies that are none', async () => {
      const { id } = await create();
      for (const path of ['999999', 'nobody']) {
        expect((await ask('POST', `/api/agents/${path}/heartbeat`, {})).status).to.equal(404);
        expect((await ask('GET', `/api/agents/${path}/heartbeat`)).status).to.equal(404);
      }
      for (const body of ['{', '[]', 'null', { connection_id: 5 }, { connection_id: 'x\u0000' }])
        expect((await ask('POST', `/api/agents/${id}/heartbeat`, body)).status, JSON.stringify(body)).to.equal(400);
    });

    it('follows an agent that is renamed, replaced and deleted', async () => {
      const { id, name } = await create();
      const beat = (path: number | string) => ask('POST', `/api/agents/${path}/heartbeat`, {});
      await beat(id);
      await beat(name);
      await ask('PUT', `/api/agents/${id}`, { name: `${name}-renamed` });
      expect((await beat(id)).body.agent).to.equal(`${name}-renamed`);
      expect((await beat(name)).status).to.equal(404);
      const other = await create({ name });
      expect((await beat(name)).body.agent).to.equal(name);
      expect(await activities('agent_heartbeat', other.id)).to.have.length(1);
      await ask('DELETE', `/api/agents/${id}`);
      expect((await beat(id)).status).to.equal(404);
      expect((await beat(`${name}-renamed`)).status).to.equal(404);
    });

    it('shows messages and notifications at once, unread ones', async () => {
      const { id, name } = await create();
      await ask('POST', `/api/agents/${id}/heartbeat`, {});
      for (let n = 1; n <= 7; n++)
        await ask('POST', '/api/agents/message', { from: 'boss', to: name, content: `message ${n}` });
      const { body } = await ask('POST', `/api/agents/${id}/heartbeat`, {});
      expect(body.status).to.equal('WORK_ITEMS_FOUND');
      expect(body.total_items).to.equal(7);
      expect(body.work_items).to.have.length(1);
      expect(body.work_items[0]).to.include({ type: 'notifications', count: 7 });
      expect(body.work_items[0].items.map((item: { message: string }) => item.message)).to.deep.equal(
        [7, 6, 5, 4, 3].map((n) => `boss: message ${n}`),
      );
      expect(body.messages.map((message: { content: string }) => message.content)).to.deep.equal(
        [1, 2, 3, 4, 5, 6, 7].map((n) => `message ${n}`),
      );
      const looked = await ask('GET', `/api/agents/${name}/heartbeat`);
      conforms(heartbeatAnswer, looked);
      expect(looked.body.messages).to.deep.equal(body.messages);
      const [activity] = await activities('agent_heartbeat', id);
      expect(activity.metadata).to.deep.equal({ workItemsCount: 7, workItemTypes: ['notifications'] });
    });
  });

  it('shows the newest 50 of more unread messages, oldest of them first', async () => {
    const { id, name } = await create();
    const drafts = Array.from({ length: 51 }, (_, n) =>
      agentMessageSent.draft({
        messageId: 1_000_000 * id + n,
        from: 'boss',
        to: name,
        toAgentId: id,
        content: `message ${n + 1}`,
        messageType: 'text',
        secrets: { count: 0, types: [] },
      }),
    );
    await core().commands.record(`agent_messages-1-${id}`, { origin: testOrigin }, drafts);
    const { body } = await ask('GET', `/api/agents/${id}/heartbeat`);
    expect(body.messages.map((message: { content: string }) => message.content)).to.deep.equal(
      Array.from({ length: 50 }, (_, n) => `message ${n + 2}`),
    );
  });

  it('GET heartbeat changes nothing', async () => {
    const { id } = await create();
    const before = await get(id);
    await ask('GET', `/api/agents/${id}/heartbeat`);
    expect(await get(id)).to.deep.equal(before);
    expect(await activities('agent_heartbeat', id)).to.have.length(0);
  });

  it('wakes an agent', async () => {
    const { id, name } = await create({ session_key: 'wake-key' });
    const reply = await ask('POST', `/api/agents/${id}/wake`);
    conforms(wakeAnswer, reply);
    expect(reply.body).to.include({ success: true, session_key: 'wake-key' });
    expect(reply.body.message).to.include(name);
    const reasoned = await ask('POST', `/api/agents/${name}/wake`, { reason: 'a review waits' });
    expect(reasoned.body.message).to.equal('a review waits');
    expect((await ask('POST', `/api/agents/${id}/wake`, { message: 'alias' })).body.message).to.equal('alias');
    const agent = await get(id);
    expect(agent).to.include({ status: 'idle' });
    expect(agent.last_seen).to.be.a('number');
    const told = await activities('agent_status_change', id);
    expect(told).to.have.length(3);
    expect(told[1].metadata).to.include({ status: 'idle', reason: 'a review waits' });
    expect((await ask('POST', '/api/agents/nobody/wake')).status).to.equal(404);
    for (const body of ['{', [], { reason: 5 }, { reason: 'x'.repeat(2_001) }])
      expect((await ask('POST', `/api/agents/${id}/wake`, body)).status).to.equal(400);
  });

  describe('memory', () => {
    it('is written, added to, read and emptied', async () => {
      const { id, name, created_at } = await create();
      const path = `/api/agents/${id}/memory`;
      const agent = { id, name, role: 'coder' };
      const empty = await ask('GET', path);
      conforms(memoryAnswer, empty);
      expect(empty.body).to.deep.equal({ agent, working_memory: '', source: 'none', updated_at: created_at, size: 0 });
      const put = await ask('PUT', path, { working_memory: 'øne 🎉' });
      conforms(memoryPutAnswer, put);
      expect(put.body).to.include({ success: true, working_memory: 'øne 🎉', size: 6, saved_to_workspace: false });
      const added = await ask('PUT', `/api/agents/${name}/memory`, { working_memory: 'two', append: true });
      expect(added.body.working_memory).to.match(/^øne 🎉\n\n## \d{4}-\d\d-\d\dT[\d:.]+Z\ntwo$/);
      const read = await ask('GET', path);
      expect(read.body).to.deep.include({ source: 'database', working_memory: added.body.working_memory });
      expect((await get(id)).working_memory).to.equal(added.body.working_memory);
      const cleared = await ask('DELETE', `/api/agents/${name}/memory`);
      conforms(memoryDeleteAnswer, cleared);
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

    it('takes any object; without working_memory it is empty', async () => {
      const { id } = await create();
      const path = `/api/agents/${id}/memory`;
      for (const body of [{}, { anything: [1] }, { working_memory: null }, { append: true }]) {
        const reply = await ask('PUT', path, body);
        expect(reply, JSON.stringify(body)).to.deep.include({ status: 200 });
        expect(reply.body).to.include({ success: true, working_memory: '' });
      }
    });

    it('keeps every other key: a replacement replaces them, an addition merges them, DELETE clears all', async () => {
      const { id } = await create();
      const path = `/api/agents/${id}/memory`;
      const kept = async () => {
        const reply = await ask('GET', path);
        conforms(memoryAnswer, reply);
        const { agent, updated_at, size, ...rest } = reply.body;
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

    it('counts the other keys into the limit, and refuses what cannot be stored', async () => {
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

    it('merges of many at once lose nothing', async () => {
      const { id } = await create();
      const path = `/api/agents/${id}/memory`;
      const keys = Array.from({ length: 6 }, (_, n) => `key${n}`);
      const replies = await Promise.all(keys.map((key) => ask('PUT', path, { append: true, [key]: key })));
      const done = keys.filter((_, n) => replies[n]?.status === 200);
      expect(done).to.not.be.empty;
      for (const { status } of replies) expect(status).to.be.oneOf([200, 409]);
      expect((await ask('GET', path)).body).to.include(Object.fromEntries(done.map((key) => [key, key])));
    });

    it('in the records of others is hidden from a caller that speaks for an agent', async () => {
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
      const changed = await ask('PUT', `/api/agents/${other.id}`, { role: 'x' }, key);
      expect(changed.body.agent.working_memory).to.equal('');
    });

    it('refuses what is no memory, and too much of it', async () => {
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
        expect((await ask(method, '/api/agents/nobody/memory', method === 'PUT' ? {} : undefined)).status).to.equal(
          404,
        );
    });
  });

  describe('soul', () => {
    it('is written and read', async () => {
      const { id, name } = await create();
      const path = `/api/agents/${id}/soul`;
      const empty = await ask('GET', path);
      conforms(soulAnswer, empty);
      expect(empty.body).to.deep.include({ soul_content: '', source: 'none', agent: { id, name, role: 'coder' } });
      const put = await ask('PUT', path, { soul_content: 'be kind' });
      conforms(soulPutAnswer, put);
      expect(put.body).to.include({ success: true, soul_content: 'be kind' });
      expect((await ask('GET', `/api/agents/${name}/soul`)).body).to.include({
        soul_content: 'be kind',
        source: 'database',
      });
      expect((await get(id)).soul_content).to.equal('be kind');
      const [activity] = await activities('agent_soul_updated', id);
      expect(activity).to.include({ actor: 'api' });
      expect(activity.metadata).to.deep.equal({
        content_length: 7,
        previous_content_length: 0,
        saved_to_workspace: false,
      });
    });

    it('is loaded from a template, with its placeholders filled', async () => {
      const { id, name } = await create();
      const put = await ask('PUT', `/api/agents/${id}/soul`, { template_name: 'developer' });
      expect(put.body.soul_content).to.include(`You are ${name}, coder.`).and.not.include('{{');
      expect((await activities('agent_soul_updated', id))[0].metadata).to.include({ template_used: 'developer' });
    });

    it('templates are listed and shown', async () => {
      const { id } = await create();
      const path = `/api/agents/${id}/soul`;
      const list = await ask('PATCH', path);
      conforms(soulTemplatesAnswer, list);
      expect(list.body.templates.map((one: { name: string }) => one.name)).to.deep.equal(
        (await ask('GET', path)).body.available_templates,
      );
      const one = await ask('PATCH', `${path}?template=reviewer`, { ignored: true });
      conforms(soulTemplatesAnswer, one);
      expect(one.body).to.include({ template_name: 'reviewer' });
      expect(one.body.content).to.include('{{AGENT_NAME}}');
      expect((await ask('PATCH', `${path}?template=unknown`)).status).to.equal(404);
      expect((await ask('PATCH', `${path}?template=../etc`)).status).to.equal(400);
      expect((await ask('PATCH', '/api/agents/nobody/soul')).status).to.equal(404);
    });

    it('refuses what is no soul', async () => {
      const { id } = await create();
      const path = `/api/agents/${id}/soul`;
      for (const body of [
        undefined,
        '{',
        {},
        { soul_content: 5 },
        { soul_content: null },
        { soul_content: 'x'.repeat(200_001) },
        { soul_content: '\ud800' },
        { template_name: '../x' },
      ])
        expect((await ask('PUT', path, body)).status, JSON.stringify(body)?.slice(0, 50)).to.equal(400);
      expect((await ask('PUT', path, { template_name: 'unknown' })).status).to.equal(404);
      expect((await ask('PUT', '/api/agents/nobody/soul', { soul_content: 'x' })).status).to.equal(404);
      expect((await ask('GET', '/api/agents/nobody/soul')).status).to.equal(404);
      expect((await ask('PUT', path, { soul_content: '' })).body).to.include({ success: true, soul_content: '' });
    });
  });

  describe('an agent touches only itself', () => {
    const calls: readonly [string, string, unknown][] = [
      ['GET', 'heartbeat', undefined],
      ['POST', 'heartbeat', {}],
      ['GET', 'memory', undefined],
      ['PUT', 'memory', { working_memory: 'x' }],
      ['DELETE', 'memory', undefined],
    ];

    it('with its own key: by id and by name, not another; an admin key may', async () => {
      const [me, other] = [await create(), await create()];
      const key = await world.world.makeKey(me.id, ['operator']);
      const admin = await world.world.makeKey(me.id, ['admin']);
      for (const [method, what, body] of calls) {
        const status = async (agent: number | string, as: string) =>
          (await ask(method, `/api/agents/${agent}/${what}`, body, as)).status;
        expect(await status(me.id, key), `${method} ${what}`).to.equal(200);
        expect(await status(me.name, key), `${method} ${what}`).to.equal(200);
        expect(await status(other.id, key), `${method} ${what}`).to.equal(403);
        expect(await status(other.name, key), `${method} ${what}`).to.equal(403);
        expect(await status(other.id, admin), `${method} ${what}`).to.equal(200);
        expect(await status(999_999, key), `${method} ${what}`).to.equal(404);
      }
    });

    it('with a session that says x-agent-name: by name and by the id of that name', async () => {
      const [me, other] = [await create(), await create()];
      await world.world.makeUser({ username: `operator-${me.id}`, role: 'operator' });
      const cookie = await world.world.signIn(`operator-${me.id}`);
      for (const [method, what, body] of calls) {
        const status = async (agent: number | string, headers: Record<string, string>) =>
          (await ask(method, `/api/agents/${agent}/${what}`, body, cookie, headers)).status;
        const says = { 'x-agent-name': me.name };
        expect(await status(me.id, says), `${method} ${what}`).to.equal(200);
        expect(await status(me.name, says), `${method} ${what}`).to.equal(200);
        expect(await status(other.id, says), `${method} ${what}`).to.equal(403);
        expect(await status(other.name, says), `${method} ${what}`).to.equal(403);
        expect(await status(other.id, {}), `${method} ${what} without the header`).to.equal(200);
      }
      // Nor after a rename, when the heartbeat's inbox was kept under the old name.
      await ask('PUT', `/api/agents/${me.id}`, { name: `${me.name}-renamed` });
      const beat = (name: string) =>
        ask('POST', `/api/agents/${me.id}/heartbeat`, {}, cookie, { 'x-agent-name': name });
      expect((await beat(me.name)).status).to.equal(403);
      expect((await beat(`${me.name}-renamed`)).status).to.equal(200);
    });
  });

  describe('the sweep', () => {
    const sweep = (minutesFromNow: number) =>
      sweepLiveness({
        commands: core().commands,
        silentAgents: (since) => silentAgents(core().reads, since),
        timeoutMinutes: 10,
        now: () => Date.now() + minutesFromNow * 60_000,
      });

    it('sets silent agents offline, once, and tells about it', async () => {
      const [silent, offline] = [await create({ status: 'busy' }), await create()];
      expect(await sweep(5)).to.deep.equal([]);
      expect(await get(silent.id)).to.include({ status: 'busy' });
      const marked = await sweep(11);
      expect(marked).to.include(silent.name).and.not.include(offline.name);
      expect(await get(silent.id)).to.include({ status: 'offline', last_seen: null });
      expect(await sweep(12)).to.deep.equal([]);
      const [activity] = await activities('agent_status_change', silent.id);
      expect(activity).to.include({ actor: 'heartbeat' });
      const [entry, ...more] = await world.world.audit('heartbeat_check');
      expect(more).to.have.length(0);
      expect(entry).to.deep.include({
        actor: 'scheduler',
        detail: { marked_offline: marked, marked_offline_count: marked.length },
      });
      await world.stream.until(() =>
        world.stream.frames.some(({ type, data }) => type === 'notification.created' && data.source_id === silent.id),
      );
      const told = world.stream.frames.find(
        ({ type, data }) => type === 'notification.created' && data.source_id === silent.id,
      );
      expect(told?.data).to.include({ recipient: 'system', type: 'heartbeat', source_type: 'agent' });
      await ask('POST', `/api/agents/${silent.id}/heartbeat`, {});
      expect(await get(silent.id)).to.include({ status: 'idle' });
    });

    it('decides on the log, not on what the read model said a moment ago', async () => {
      const { id, name } = await create({ status: 'busy' });
      const { commands } = core();
      const stale = [{ tenant: 1, workspace: 1, id, name }];
      const marked = await sweepLiveness({
        commands,
        silentAgents: async () => stale,
        timeoutMinutes: 10,
        now: Date.now,
      });
      expect(marked).to.deep.equal([]);
      await ask('DELETE', `/api/agents/${id}`);
      const later = { commands, silentAgents: async () => stale, timeoutMinutes: 10, now: () => Date.now() + 1e9 };
      expect(await sweepLiveness(later)).to.deep.equal([]);
    });
  });
});
