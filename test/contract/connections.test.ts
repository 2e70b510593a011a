/** Tools that connect directly, through HTTP. */
import { expect } from 'chai';
import { routes } from '../../api/routes/index.ts';
import { disconnectStale } from '../../commands/schedules/connections.ts';
import { staleConnections } from '../../queries/connections.ts';
import {
  type ConnectionRecord,
  connectionsResponse,
  connectResponse,
  disconnectResponse,
} from '../../shared/contract/connections.ts';
import { MASK } from '../../shared/secrets.ts';
import { fixture } from '../support/fixture.ts';
import { bodyOf } from '../support/service.ts';
import { conforms, startAgentsWorld } from '../support/worlds/agents.ts';

describe('contract: connections', function () {
  this.timeout(120_000);
  const world = fixture(startAgentsWorld);

  const { ask } = world;
  const connect = async (agent_name: string, more: object = {}) =>
    conforms(connectResponse, await ask('POST', '/api/connect', { tool_name: 'cli', agent_name, ...more }));
  const disconnect = async (connection_id: string) => {
    const body = conforms(disconnectResponse, await ask('DELETE', '/api/connect', { connection_id }));
    expect(body).to.deep.equal({ status: 'disconnected', connection_id });
  };
  const list = async (query = '', as?: string): Promise<ConnectionRecord[]> =>
    conforms(connectionsResponse, await ask('GET', `/api/connect${query}`, undefined, as)).connections;
  const find = async (id: string) => (await list()).find(({ connection_id }) => connection_id === id);
  const frames = (type: string, id: string) =>
    world.stream.frames.filter((frame) => frame.type === type && frame.data.connection_id === id);

  it('creates the agent of a tool, and returns working URLs', async () => {
    const name = world.fresh('tool');
    const answer = await connect(name, { tool_version: '2.1', agent_role: 'builder', metadata: { pid: 7 } });
    expect(answer).to.include({ agent_name: name, status: 'connected', sse_url: '/api/events' });
    const agent = await world.get(name);
    expect(agent).to.include({ id: answer.agent_id, role: 'builder', status: 'online' });
    const [newest] = await list('?limit=1');
    expect(newest).to.deep.equal({
      id: newest?.id,
      agent_id: agent.id,
      agent_name: name,
      tool_name: 'cli',
      tool_version: '2.1',
      connection_id: answer.connection_id,
      status: 'connected',
      last_heartbeat: newest?.created_at,
      created_at: newest?.created_at,
      updated_at: newest?.created_at,
      metadata: { pid: 7 },
      agent_status: 'online',
      agent_role: 'builder',
      workspace_id: 1,
    });
    const [created] = await world.activities('agent_created', agent.id);
    expect(created).to.include({ actor: 'system' });
    const [connected] = await world.activities('connection_created', agent.id);
    expect(connected).to.include({ actor: name, entity_type: 'agent' });
    await world.stream.until(() => frames('connection.created', answer.connection_id).length > 0);
    expect(frames('connection.created', answer.connection_id)[0]?.data).to.deep.equal({
      connection_id: answer.connection_id,
      agent_id: agent.id,
      agent_name: name,
      tool_name: 'cli',
      workspace_id: 1,
    });
    const { body } = await ask('POST', answer.heartbeat_url, { connection_id: answer.connection_id });
    expect(body).to.include({ success: true, agent: name });
    expect(routes.some(({ method, path }) => method === 'post' && path === answer.token_report_url)).to.equal(true);
  });

  it('is unique per agent: a new one replaces it, and the agent keeps its role', async () => {
    const agent = await world.create({ role: 'reviewer' });
    const first = await connect(agent.name, { agent_role: 'builder' });
    const second = await connect(agent.name);
    expect(second.agent_id).to.equal(agent.id);
    expect(await find(first.connection_id)).to.include({ status: 'disconnected' });
    expect(await find(second.connection_id)).to.include({ status: 'connected', agent_role: 'reviewer' });
    await disconnect(first.connection_id);
    expect(await world.get(agent.id), 'the other one is still there').to.include({ status: 'online' });
    expect(frames('connection.disconnected', first.connection_id)).to.deep.equal([]);
  });

  it('announces on the stream that a known agent is online, also when it already was', async () => {
    const agent = await world.create({ status: 'offline' });
    const told = () => world.framesOf('agent.status_changed', agent.id);
    await connect(agent.name);
    await world.stream.until(() => told().length > 0);
    const again = await connect(agent.name);
    await world.stream.until(() => frames('connection.created', again.connection_id).length > 0);
    const fresh = await connect(world.fresh('tool'));
    await world.stream.until(() => frames('connection.created', fresh.connection_id).length > 0);
    expect(world.framesOf('agent.status_changed', fresh.agent_id), 'a new agent').to.deep.equal([]);
    expect(told().map(({ data }) => data)).to.deep.equal([
      { id: agent.id, name: agent.name, status: 'online', last_activity: null, workspace_id: 1 },
      { id: agent.id, name: agent.name, status: 'online', workspace_id: 1 },
    ]);
  });

  it('ends once on request, and its agent goes offline', async () => {
    const { connection_id, agent_id, agent_name } = await connect(world.fresh('tool'));
    await disconnect(connection_id);
    await disconnect(connection_id);
    expect(await find(connection_id)).to.include({ status: 'disconnected', agent_status: 'offline' });
    expect(await world.activities('connection_disconnected', agent_id)).to.have.length(1);
    await world.stream.until(() => frames('connection.disconnected', connection_id).length > 0);
    expect(frames('connection.disconnected', connection_id)[0]?.data).to.include({ agent_id, agent_name });
  });

  it('is refreshed by heartbeats; without them it ends, and its agent goes offline', async () => {
    const [silent, alive] = [await connect(world.fresh('tool')), await connect(world.fresh('tool'))];
    const { commands, leases, reads } = world.world.service.core;
    const sweep = (at: number) =>
      disconnectStale({
        commands,
        leases,
        staleConnections: (since) => staleConnections(reads, since),
        timeoutMinutes: 0,
        now: () => at,
      });
    // What came before this moment is too old; the heartbeat comes after it.
    const moment = Date.now() + 1;
    while (Date.now() <= moment) await new Promise((resolve) => setImmediate(resolve));
    await ask('POST', alive.heartbeat_url, { connection_id: alive.connection_id });
    const ended = await sweep(moment);
    expect(ended).to.include(silent.connection_id).and.not.include(alive.connection_id);
    expect(await find(silent.connection_id)).to.include({ status: 'disconnected', agent_status: 'offline' });
    expect(await find(alive.connection_id)).to.include({ status: 'connected', agent_status: 'idle' });
    await world.stream.until(() => frames('connection.disconnected', silent.connection_id).length > 0);
    expect(await sweep(moment)).to.deep.equal([]);
    const { body } = await ask('POST', silent.heartbeat_url, { connection_id: silent.connection_id });
    expect(body.success, 'the agent is alive again, its connection is not').to.equal(true);
    expect(await find(silent.connection_id)).to.include({ status: 'disconnected', agent_status: 'idle' });
  });

  it('is no longer shown once its agent is deleted', async () => {
    const { connection_id, agent_id } = await connect(world.fresh('tool'));
    await ask('DELETE', `/api/agents/${agent_id}`);
    expect(await find(connection_id)).to.equal(undefined);
    await world.refused('DELETE', '/api/connect', { connection_id }, 404, /Connection/);
    const { reads } = world.world.service.core;
    const candidates = await staleConnections(reads, Math.ceil(Date.now() / 1_000));
    expect(candidates.map(({ agent_id: agentId }) => agentId)).not.to.include(agent_id);
  });

  it('hides secrets in metadata from all but admins', async () => {
    const { connection_id } = await connect(world.fresh('tool'), { metadata: { token: 'very-private-10' } });
    expect((await find(connection_id))?.metadata).to.deep.equal({ token: 'very-private-10' });
    await world.world.makeUser({ username: 'vera', role: 'viewer' });
    const seen = await list('?limit=1', await world.world.signIn('vera'));
    expect(seen[0]?.metadata).to.deep.equal({ token: MASK });
    for await (const events of world.world.service.core.eventLog.readAll())
      expect(JSON.stringify(events)).not.to.include('very-private-10');
  });

  for (const [what, body] of Object.entries<unknown>({
    'no body': undefined,
    'no tool': { agent_name: 'x' },
    'no agent': { tool_name: 'x' },
    'a blank agent': { tool_name: 'x', agent_name: ' ' },
    'a long tool': { tool_name: 'x'.repeat(101), agent_name: 'x' },
    'a long version': { tool_name: 'x', agent_name: 'x', tool_version: 'x'.repeat(51) },
    'a name that hides something': { tool_name: 'x', agent_name: 'a\u200bb' },
    'metadata that are no object': { tool_name: 'x', agent_name: 'x', metadata: 'x' },
  })) {
    it(`rejects ${what} with 400 and a message that states the correction`, async () => {
      await world.refused('POST', '/api/connect', body, 400);
    });
  }

  it('rejects ending an unnamed or unknown connection, or one of another workspace', async () => {
    await world.refused('DELETE', '/api/connect', undefined, 400);
    await world.refused('DELETE', '/api/connect', {}, 400, /connection_id/);
    await world.refused('DELETE', '/api/connect', { connection_id: 'none' }, 404, /Connection/);
    const { connection_id } = await connect(world.fresh('tool'));
    const as = await world.world.makeSession({ username: 'outside', role: 'admin', tenant: 8, workspace: 8 });
    expect(bodyOf(await ask('DELETE', '/api/connect', { connection_id }, as), 404).error).to.match(/Connection/);
    expect(await find(connection_id)).to.include({ status: 'connected' });
  });
});
