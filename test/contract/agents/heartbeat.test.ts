/**
 * Heartbeats and wake-ups, through HTTP, and that an agent affects only itself. Memory, souls, diagnostics and liveness
 * are tested on the same service, because starting one for each would take longer than the tests.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { heartbeatPostResponse, heartbeatResponse, wakeResponse } from '../../../shared/contract/agents/heartbeat.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { tokensReported } from '../../../shared/events/tokens/reports.ts';
import { fixture } from '../../support/fixture.ts';
import { ATTACK } from '../../support/screening-cases.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('Agent heartbeats, memory and personas', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create, get, activities } = world;
  const core = () => world.world.service.core;
  const events = async (id: number, type: string) =>
    (await core().store.readStream(`agent-1-${id}`)).filter((event) => event.type === type);

  describe('POST heartbeat', () => {
    it('with an interrupted body is not treated as one without a body', async () => {
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
      const [first, ...more] = await events(id, 'AgentHeartbeatReceived');
      expect(first?.data).to.include({ connection_id: 'here' });
      expect(more, 'the others change nothing').to.have.length(0);
      const { body: report } = await ask('GET', `/api/agents/${id}/diagnostics?privileged=1&section=summary`);
      expect(report.summary.heartbeats).to.equal(40);
    });

    it('sets the agent idle, counts as a sign of life, and returns waiting items', async () => {
      const { id, name } = await create({ status: 'error' });
      const body = conforms(heartbeatPostResponse, await ask('POST', `/api/agents/${id}/heartbeat`, {}));
      expect(body).to.deep.include({
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

    it('requires no body, by id or by name', async () => {
      const { id, name } = await create();
      expect((await ask('POST', `/api/agents/${id}/heartbeat`)).status).to.equal(200);
      expect((await ask('POST', `/api/agents/${name}/heartbeat`)).status).to.equal(200);
      expect(await activities('agent_heartbeat', id)).to.have.length(1);
      const { body } = await ask('GET', `/api/agents/${id}/diagnostics?privileged=1&section=summary`);
      expect(body.summary.heartbeats).to.equal(2);
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
        { ...usage, outputTokens: Number.MAX_SAFE_INTEGER },
        { model: 'm', inputTokens: 1 },
      ]) {
        const { status, body } = await ask('POST', `/api/agents/${id}/heartbeat`, { token_usage });
        expect({ status, recorded: body.token_recorded }).to.deep.equal({ status: 200, recorded: false });
      }
      const [event, ...more] = await events(id, tokensReported.type);
      expect(more).to.have.length(0);
      const { data } = event as EventOf<typeof tokensReported>;
      expect(data.reports).to.deep.equal([
        {
          id: data.reports[0]?.id,
          agent_id: id,
          agent_name: name,
          session_id: `${name}:cli`,
          model: 'm',
          input_tokens: 10,
          output_tokens: 0,
          // There is no such task.
          task_id: null,
          operation: 'heartbeat',
          duration: null,
          used_at: null,
          cache_read_tokens: 0,
          cache_write_tokens: 0,
          cost: 0.00003,
          price: 'default',
        },
      ]);
    });

    it('rejects unknown agents and invalid bodies', async () => {
      const { id } = await create();
      for (const path of ['999999', 'nobody']) {
        expect((await ask('POST', `/api/agents/${path}/heartbeat`, {})).status).to.equal(404);
        expect((await ask('GET', `/api/agents/${path}/heartbeat`)).status).to.equal(404);
      }
      for (const body of ['{', '[]', 'null', { connection_id: 5 }, { connection_id: 'x\u0000' }])
        expect((await ask('POST', `/api/agents/${id}/heartbeat`, body)).status, JSON.stringify(body)).to.equal(400);
    });

    it('follows an agent that is renamed, replaced or deleted', async () => {
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

    it('shows unread messages and notifications at once', async () => {
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
      conforms(heartbeatResponse, looked);
      expect(looked.body.messages).to.deep.equal(body.messages);
      const [activity] = await activities('agent_heartbeat', id);
      expect(activity.metadata).to.deep.equal({ workItemsCount: 7, workItemTypes: ['notifications'] });
    });
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
    conforms(wakeResponse, reply);
    expect(reply.body).to.include({ success: true, session_key: 'wake-key' });
    expect(reply.body.message).to.include(name);
    const reasoned = await ask('POST', `/api/agents/${name}/wake`, { reason: 'a review waits' });
    expect(reasoned.body.message).to.equal('a review waits');
    expect((await ask('POST', `/api/agents/${id}/wake`, { message: 'alias' })).body.message).to.equal('alias');
    const agent = await get(id);
    expect(agent).to.include({ status: 'idle', last_activity: 'Manual wake' });
    expect(agent.last_seen).to.be.a('number');
    const told = await activities('agent_status_change', id);
    expect(told).to.have.length(3);
    expect(told[1].metadata).to.include({ status: 'idle', reason: 'a review waits' });
    expect((await ask('POST', '/api/agents/nobody/wake')).status).to.equal(404);
    for (const body of ['{', [], { reason: 5 }, { reason: 'x'.repeat(2_001) }])
      expect((await ask('POST', `/api/agents/${id}/wake`, body)).status).to.equal(400);
    for (const body of [{ reason: ATTACK }, { message: ATTACK }]) {
      const refused = await ask('POST', `/api/agents/${id}/wake`, body);
      expect(refused.status).to.equal(422);
      expect(refused.body.injection[0].rule).to.equal('prompt-override');
    }
    expect(await activities('agent_status_change', id)).to.have.length(3);
  });

  describe('an agent acts only on itself', () => {
    const calls: readonly [string, string, unknown][] = [
      ['GET', 'heartbeat', undefined],
      ['POST', 'heartbeat', {}],
      ['GET', 'memory', undefined],
      ['PUT', 'memory', { working_memory: 'x' }],
      ['DELETE', 'memory', undefined],
    ];

    it('with its own key, by id or by name; an admin key may act on other agents', async () => {
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
        expect(await status(999_999, key), `${method} ${what}`).to.equal(method === 'GET' ? 404 : 403);
        expect(await status(999_999, admin), `${method} ${what}`).to.equal(404);
      }
    });

    it('with a session and x-agent-name, by name or by the id of that name', async () => {
      const [me, other] = [await create(), await create()];
      const cookie = await world.world.makeSession({ username: `operator-${me.id}`, role: 'operator' });
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
});
