/** The stored gateway configuration, the import of its agents, writing agents to it, and framework adapters, through HTTP. */
import { expect } from 'chai';
import { changeGatewayConfig, decideReplace } from '../../../commands/admin/gateway-config.ts';
import { gatewayConfigPutResponse, gatewayConfigResponse } from '../../../shared/contract/admin/gateway-config.ts';
import type { GatewayDocument } from '../../../shared/contract/admin/gateway-document.ts';
import { adapterPostResponse, adaptersResponse } from '../../../shared/contract/agents/adapters.ts';
import { syncPreviewResponse, syncResponse } from '../../../shared/contract/agents/sync.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { testOrigin } from '../../support/world.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

const SECRET = 'the-gateway-token-0815';
const DOCUMENT = {
  zuletzt: 1,
  gateway: { port: 18_789, auth: { token: SECRET } },
  agents: {
    list: [
      { id: 'one', identity: { name: 'Ada', theme: 'coder' }, model: { primary: 'm' } },
      { id: 'two', workspace: '/w' },
    ],
  },
};

describe('Gateway configuration', () => {
  const world = fixture(startAuthWorld);
  const stream = fixture(() => openStream(`${world.url}/api/events`, { 'x-api-key': world.adminKey }));

  const ask = (method: string, path: string, body?: unknown, as = world.adminKey) =>
    world.ask(method, path, { as, body });
  const put = (body: unknown) => ask('PUT', '/api/gateway-config', body);
  const config = async () => {
    const body = conforms(gatewayConfigResponse, await ask('GET', '/api/gateway-config'));
    return body;
  };

  it('is empty at first, and calls that need a document say so', async () => {
    expect(await config()).to.deep.include({ config: {}, raw_size: 0 });
    const nothing = await ask('POST', '/api/agents/sync');
    expect(nothing.status).to.equal(200);
    expect(syncResponse.parse(nothing.body)).to.deep.equal(nothing.body);
    expect(nothing.body).to.include({ synced: 0, created: 0, updated: 0 });
    expect(nothing.body.message).to.match(/PUT .*\/api\/gateway-config/);
    const preview = await ask('GET', '/api/agents/sync');
    expect(preview.body).to.deep.equal({ inConfig: 0, inMC: 0, newAgents: [], updatedAgents: [], onlyInMC: [] });
    // Nothing is stored: an expectation of what is stored cannot hold.
    const hash = 'a'.repeat(64);
    expect((await put({ updates: { 'gateway.port': 1 }, hash })).status).to.equal(409);
    expect((await put({ config: { a: 1 }, hash })).status).to.equal(409);
    expect((await put({ config: { a: 1 }, hash: 5 })).status).to.equal(400);
    expect((await put({ updates: { 'gateway.port': 1 } })).status).to.equal(404);
    const { body } = await ask('POST', '/api/agents', { name: 'warned', role: 'x', write_to_gateway: true });
    expect(body.warning).to.match(/gateway/);
    expect(body.agent.name).to.equal('warned');
  });

  it('stores a document and keeps its secrets out of the response and the log', async () => {
    const body = conforms(gatewayConfigPutResponse, await put(DOCUMENT));
    const stored = await config();
    expect(stored.hash).to.equal(body.hash);
    expect(stored.raw_size).to.equal(JSON.stringify(DOCUMENT).length);
    expect(stored.config).to.deep.equal({ ...DOCUMENT, gateway: { port: 18_789, auth: { token: '--------' } } });
    expect(await world.rawLog()).not.to.include(SECRET);
    const [entry] = await world.audit('gateway_config_update');
    expect(entry).to.deep.include({ actor: 'api', detail: { updated_keys: ['*'] } });
  });

  it('accepts the document that GET returned, and keeps the masked secret', async () => {
    const before = await config();
    expect((await put({ ...before, config: { ...before.config, added: true } })).status).to.equal(200);
    expect((await put({ ...before, config: {} })).status, 'an old hash').to.equal(409);
    const after = await config();
    expect(after.config).to.deep.equal({ ...before.config, added: true });
    const stored = await world.service.core.store.readStream('gateway_config-1');
    expect(stored.at(-1)?.data.document).to.deep.equal({ ...DOCUMENT, added: true });
  });

  it('can be changed by paths', async () => {
    const { hash } = await config();
    const reply = await put({ updates: { 'gateway.port': 1, 'gateway.new.deep': { x: 1 } }, hash });
    expect(reply.body).to.deep.include({ success: true, updated: ['gateway.port', 'gateway.new.deep'], count: 2 });
    expect((await config()).config.gateway).to.deep.include({ port: 1, new: { deep: { x: 1 } } });
    const body = bodyOf(await put({ updates: { 'gateway.port': 2 }, hash }), 409);
    expect(body).to.include({ code: 'CONFLICT' });
    expect(body.error).to.match(/modified/);
    const [entry] = await world.audit('gateway_config_update');
    expect(entry).to.deep.include({ detail: { updated_keys: ['gateway.port', 'gateway.new.deep'] } });
  });

  it('rejects protected, unknown or malformed paths', async () => {
    // 20 of these calls a minute are allowed to each caller, also where limits are off.
    const other = await world.makeSession({ username: 'other', role: 'admin' });
    const put = (body: unknown) => ask('PUT', '/api/gateway-config', body, other);
    for (const body of [{ updates: { 'gateway.auth.token': 'x' } }, { gateway: { auth: { token: 'x' } } }])
      expect((await put(body)).status, JSON.stringify(body)).to.equal(403);
    for (const body of [
      ...[undefined, '{', {}, { updates: {} }, { updates: { 'a..b': 1 } }, { updates: { unknown: 1 } }],
      { updates: { ['x'.repeat(501)]: 1 } },
      { updates: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`gateway.x${n}`, 1])) },
      { updates: { 'gateway.port': 1 }, hash: 5 },
      { updates: 'gateway.port=1' },
      { updates: [{ 'gateway.port': 1 }] },
    ])
      expect((await put(body)).status, JSON.stringify(body)?.slice(0, 60)).to.equal(400);
    expect((await put({ ...DOCUMENT, big: 'x'.repeat(1_000_000) })).status).to.equal(413);
    expect((await config()).config.gateway.port).to.equal(1);
  });

  it('returns an error without a connected gateway', async () => {
    for (const [method, action] of [
      ['GET', 'schema'],
      ['PUT', 'apply'],
      ['PUT', 'update'],
    ] as const) {
      const reply = await ask(method, `/api/gateway-config?action=${action}`);
      expect(reply.status, action).to.equal(502);
      expect(reply.body.error).to.match(/[Nn]o gateway/);
      const other = await ask(method, '/api/gateway-config?action=other', method === 'PUT' ? {} : undefined);
      expect(other.status).to.equal(400);
    }
  });

  it('imports its agents as new, changed or unchanged', async () => {
    const preview = await ask('GET', '/api/agents/sync');
    expect(syncPreviewResponse.parse(preview.body)).to.deep.equal(preview.body);
    expect(preview.body).to.deep.equal({
      inConfig: 2,
      inMC: 1,
      newAgents: ['Ada', 'two'],
      updatedAgents: [],
      onlyInMC: ['warned'],
    });
    const first = await ask('POST', '/api/agents/sync');
    expect(syncResponse.parse(first.body)).to.deep.equal(first.body);
    expect(first.body).to.deep.include({ synced: 2, created: 2, updated: 0 });
    const ada = (await ask('GET', '/api/agents/Ada')).body.agent;
    expect(ada).to.deep.include({
      role: 'coder',
      status: 'offline',
      source: 'gateway',
      config: { model: { primary: 'm' }, identity: { name: 'Ada', theme: 'coder' } },
    });
    expect((await ask('GET', '/api/agents/two')).body.agent).to.deep.include({
      role: 'agent',
      config: { workspace: '/w' },
    });

    await ask('PUT', `/api/agents/${ada.id}`, { config: { model: 'other', own: 1 } });
    expect((await ask('GET', '/api/agents/sync')).body).to.deep.include({ newAgents: [], updatedAgents: ['Ada'] });
    const second = await ask('POST', '/api/agents/sync');
    expect(second.body).to.deep.equal({
      synced: 2,
      created: 0,
      updated: 1,
      agents: [
        { id: 'one', name: 'Ada', action: 'updated' },
        { id: 'two', name: 'two', action: 'unchanged' },
      ],
    });
    expect((await ask('GET', '/api/agents/Ada')).body.agent.config).to.deep.equal({ ...ada.config, own: 1 });
    const third = await ask('POST', '/api/agents/sync');
    expect(third.body).to.deep.include({ created: 0, updated: 0 });
    const entries = await world.audit('agent_config_sync');
    expect(entries.map((entry) => entry.detail)).to.deep.equal([
      { synced: 2, created: 0, updated: 1, agents: ['Ada'] },
      { synced: 2, created: 2, updated: 0, agents: ['Ada', 'two'] },
    ]);
    await stream.until(() => stream.frames.filter(({ data }) => data?.type === 'sync').length === 2);
  });

  it('imports agents once for concurrent requests', async () => {
    const before = await config();
    const list = Array.from({ length: 10 }, (_, n) => ({ id: `many-${n}` }));
    await put({ ...before.config, agents: { list } });
    const replies = await Promise.all(Array.from({ length: 5 }, () => ask('POST', '/api/agents/sync')));
    for (const { status } of replies) expect(status).to.be.oneOf([200, 409]);
    expect((await ask('POST', '/api/agents/sync')).body).to.deep.include({ synced: 10 });
    const { agents } = (await ask('GET', '/api/agents?limit=200')).body;
    const names = agents
      .map((agent: { name: string }) => agent.name)
      .filter((name: string) => name.startsWith('many-'));
    expect(names.toSorted()).to.deep.equal(list.map(({ id }) => id).toSorted());
    await put({ ...before.config });
  });

  it('adds agents, updates them and removes them', async () => {
    const created = await ask('POST', '/api/agents', {
      name: 'Written One',
      role: 'x',
      template: 'developer',
      write_to_gateway: true,
    });
    expect(created.body).not.to.have.property('warning');
    const entry = async () =>
      (await config()).config.agents.list.find((one: { id: string }) => one.id === 'written-one');
    expect(await entry()).to.deep.include({
      id: 'written-one',
      name: 'Written One',
      model: created.body.agent.config.model,
    });
    const { id } = created.body.agent;
    const changed = await ask('PUT', `/api/agents/${id}`, {
      name: 'Renamed One',
      gateway_config: { model: { primary: 'new' } },
    });
    expect(changed.status).to.equal(200);
    expect(await entry()).to.deep.include({ name: 'Renamed One', model: { primary: 'new' } });
    await ask('PUT', `/api/agents/${id}`, {
      gateway_config: { model: { primary: 'left out' } },
      write_to_gateway: false,
    });
    expect(await entry()).to.deep.include({ model: { primary: 'new' } });
    await ask('DELETE', `/api/agents/${id}`);
    expect(await entry()).to.equal(undefined);
    expect((await world.audit('agent_gateway_create'))[0]).to.deep.include({
      detail: { name: 'Written One', template: 'developer' },
    });
    const writes = (await world.audit('agent_config_writeback')).map((one) => one.detail);
    expect(writes).to.deep.equal([
      { agent_name: 'Renamed One', fields: [], removed: true },
      { agent_name: 'Renamed One', fields: ['name', 'gateway_config'] },
    ]);
  });

  /** Without HTTP and its limits. */
  const store = (document: GatewayDocument) =>
    changeGatewayConfig(world.service.core.commands, { origin: testOrigin }, (state) => decideReplace(state, document));

  it('explains why its agents cannot be imported', async () => {
    const before = await config();
    for (const [agents, says] of [
      ['none', /agents must be a list or an object/],
      [{ list: 5 }, /agents\.list must be a list/],
      [{ list: [{ id: 'a' }, 'b'] }, /agents\.list\.1 must be an object/],
    ] as const) {
      await store({ ...before.config, agents });
      for (const method of ['GET', 'POST']) {
        expect(bodyOf(await ask(method, '/api/agents/sync'), 422).error).to.match(says);
      }
    }
    await store(before.config);
  });

  describe('adapters', () => {
    const post = (body: unknown) => ask('POST', '/api/adapters', body);

    it('are listed', async () => {
      const reply = await ask('GET', '/api/adapters');
      expect(adaptersResponse.parse(reply.body)).to.deep.equal(reply.body);
      expect(reply.body.adapters).to.include.members(['generic', 'crewai', 'langgraph', 'autogen', 'claude-sdk']);
      expect((await world.ask('GET', '/api/adapters', {})).status).to.equal(401);
    });

    it('publish reports on the stream', async () => {
      const reports: [string, object, string, object][] = [
        [
          'register',
          { agentId: 'a1', name: 'One', metadata: { team: 'red', id: 'not this' } },
          'agent.created',
          { id: 'a1', name: 'One', framework: 'crewai', status: 'online', team: 'red' },
        ],
        ['heartbeat', { agentId: 'a1' }, 'agent.status_changed', { id: 'a1', status: 'online', framework: 'crewai' }],
        [
          'report',
          { agentId: 'a1', taskId: 7, progress: 0.5, output: { x: 1 } },
          'task.updated',
          { id: '7', agentId: 'a1', progress: 0.5, status: 'in_progress', output: { x: 1 } },
        ],
        ['disconnect', { agentId: 5 }, 'agent.status_changed', { id: '5', status: 'offline' }],
      ];
      for (const [action, payload] of reports) {
        const reply = await post({ framework: 'crewai', action, payload });
        expect(reply, action).to.deep.include({ status: 200, body: { ok: true, action, framework: 'crewai' } });
        expect(adapterPostResponse.parse(reply.body)).to.deep.equal(reply.body);
      }
      const frames = () => stream.frames.filter((frame) => frame.data.framework === 'crewai');
      await stream.until(() => frames().length >= reports.length);
      for (const [index, [, , type, data]] of reports.entries()) {
        expect(frames()[index]?.type).to.equal(type);
        expect(frames()[index]?.data).to.deep.include({ ...data, workspace_id: 1 });
      }
      // Nothing of it is a record of ours.
      expect((await ask('GET', '/api/agents/One')).status).to.equal(404);
    });

    it('return assignments', async () => {
      const reply = await post({ framework: 'autogen', action: 'assignments', payload: { agentId: 'a1' } });
      expect(reply.body).to.deep.equal({ assignments: [], framework: 'autogen' });
    });

    it('reject unknown frameworks and actions', async () => {
      for (const body of [
        undefined,
        '{',
        {},
        { framework: 'crewai' },
        { framework: 'unknown', action: 'register' },
        { framework: 'crewai', action: 'dance' },
        { framework: 'crewai', action: 'register' },
        { framework: 'crewai', action: 'register', payload: [] },
        { framework: 'crewai', action: 'register', payload: { agentId: 'x' } },
        { framework: 'crewai', action: 'register', payload: { agentId: 'x', name: 'x\u0000' } },
        { framework: 'crewai', action: 'heartbeat', payload: { agentId: '' } },
        { framework: 'crewai', action: 'report', payload: { agentId: 'x' } },
        { framework: 'crewai', action: 'report', payload: { agentId: 'x', taskId: 't', progress: 'half' } },
      ]) {
        const reply = await post(body);
        expect(reply.status, JSON.stringify(body)).to.equal(400);
      }
      expect(JSON.stringify((await post({ framework: 'unknown', action: 'register' })).body)).to.include('langgraph');
      const { body } = await post({ framework: 'crewai', action: 'register', payload: { agentId: 'x' } });
      expect(body.details[0]).to.match(/^payload\.name: /);
    });
  });
});
