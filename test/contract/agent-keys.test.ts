/**
 * What an agent's key may do: the table of the calls that write is compared with the routes both ways, so that a new call
 * does not become open to agents unnoticed; then every row of it that is about an agent, with keys of every scope, on the
 * agent itself and on another one.
 */
import { expect } from 'chai';
import { routes } from '../../api/routes/index.ts';
import { agentStream } from '../../commands/agents/agents.ts';
import { AGENT_KEY_SCOPES } from '../../shared/contract/agents/keys.ts';
import type { Role } from '../../shared/identity.ts';
import { ACCESS } from '../support/access.ts';
import { fixture } from '../support/fixture.ts';
import { startFakeGateway } from '../support/gateway.ts';
import { bodyOf, type Reply } from '../support/service.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

const rows = ACCESS.filter(({ agents }) => agents !== '-');

/** An agent, and what there is of it. */
interface Subject {
  readonly id: number;
  readonly name: string;
  /** Key of its session at the gateway. */
  readonly live: string;
}

interface Sent {
  readonly path: string;
  readonly body?: unknown;
}

describe('contract: agent keys', function () {
  this.timeout(120_000);
  let names = 0;
  let gatewayId = 0;
  const gateway = fixture(startFakeGateway);
  const world = fixture(() => startAuthWorld({ MC_AGENT_TIMEOUT_MINUTES: '0', MC_CONNECTION_TIMEOUT_MINUTES: '0' }));
  before(async () => {
    gatewayId = (await done('POST', '/api/gateways', { name: 'main', url: gateway.url, is_primary: true })).gateway.id;
    const list = [{ id: 'known', name: 'known', tools: { allow: ['read'] } }];
    await done('PUT', '/api/gateway-config', { agents: { list } });
  });

  /** As a caller with all rights. */
  async function done(method: string, path: string, body?: unknown) {
    return bodyOf(await world.ask(method, path, { as: world.adminKey, body }), 200, 201);
  }

  async function subject(): Promise<Subject> {
    const name = `agent-${++names}`;
    const live = `agent:${name}:main`;
    gateway.sessions = [...gateway.sessions, { key: live }];
    return { id: await world.makeAgent(name), name, live };
  }

  const keyOf = ({ id }: Subject, ...scopes: string[]) => world.makeKey(id, scopes);

  const project = async () => {
    const name = `project-${++names}`;
    return (await done('POST', '/api/projects', { name, ticket_prefix: `P${names}` })).project.id as number;
  };
  const notified = async ({ name }: Subject) => {
    await done('POST', '/api/tasks', { title: 'work', assigned_to: name });
    const { notifications } = await done('GET', `/api/notifications?recipient=${name}`);
    return notifications[0].id as number;
  };
  const reportOf = ({ name }: Subject) => ({ model: 'm', sessionId: `${name}:cli`, inputTokens: 1, outputTokens: 1 });

  /** Of each call about an agent: a request that is right but for who makes it. */
  const REQUESTS: Readonly<Record<string, (about: Subject) => Sent | Promise<Sent>>> = {
    'PUT /api/agents': ({ name }) => ({ path: '/api/agents', body: { name, status: 'idle', soul_content: 'calm' } }),
    'PUT /api/agents/{id}': ({ id }) => ({
      path: `/api/agents/${id}`,
      body: { config: { tools: { allow: ['*'] } }, status: 'idle' },
    }),
    'DELETE /api/agents/{id}': ({ id }) => ({ path: `/api/agents/${id}` }),
    'POST /api/agents/{id}/hide': ({ id }) => ({ path: `/api/agents/${id}/hide` }),
    'DELETE /api/agents/{id}/hide': async ({ id }) => {
      await done('POST', `/api/agents/${id}/hide`);
      return { path: `/api/agents/${id}/hide` };
    },
    'POST /api/agents/{id}/heartbeat': ({ name }) => ({ path: `/api/agents/${name}/heartbeat` }),
    'POST /api/agents/{id}/wake': ({ name }) => ({ path: `/api/agents/${name}/wake`, body: { reason: 'now' } }),
    'PUT /api/agents/{id}/memory': ({ id }) => ({ path: `/api/agents/${id}/memory`, body: { working_memory: 'mine' } }),
    'DELETE /api/agents/{id}/memory': ({ name }) => ({ path: `/api/agents/${name}/memory` }),
    'PUT /api/agents/{id}/soul': ({ id }) => ({ path: `/api/agents/${id}/soul`, body: { soul_content: 'obey' } }),
    'POST /api/agents/message': async ({ name }) => ({
      path: '/api/agents/message',
      body: { from: name, to: (await subject()).name, content: 'hello' },
    }),
    'POST /api/adapters': ({ id }) => ({
      path: '/api/adapters',
      body: { framework: 'generic', action: 'heartbeat', payload: { agentId: id, status: 'gone' } },
    }),
    'PATCH /api/chat/messages/{id}': async ({ name }) => {
      const { message } = await done('POST', '/api/chat/messages', { content: 'read me', recipient: name });
      return { path: `/api/chat/messages/${message.id}`, body: { read: true } };
    },
    'POST /api/connect': ({ name }) => ({ path: '/api/connect', body: { tool_name: 'cli', agent_name: name } }),
    'DELETE /api/connect': async ({ name }) => {
      const { connection_id } = await done('POST', '/api/connect', { tool_name: 'cli', agent_name: name });
      return { path: '/api/connect', body: { connection_id } };
    },
    'POST /api/claude/sessions': async ({ name }) => {
      const session_id = `cli-${++names}`;
      await done('POST', '/api/claude/sessions', { session_id, agent_name: name });
      return { path: '/api/claude/sessions', body: { session_id, model: 'opus' } };
    },
    'POST /api/sessions': ({ live }) => ({
      path: '/api/sessions?action=set-label',
      body: { sessionKey: live, label: 'mine' },
    }),
    'DELETE /api/sessions': ({ live }) => ({ path: '/api/sessions', body: { sessionKey: live } }),
    'POST /api/sessions/{id}/control': async ({ name }) => {
      const session_id = `cli-${++names}`;
      await done('POST', '/api/claude/sessions', { session_id, agent_name: name });
      return { path: `/api/sessions/${session_id}/control`, body: { action: 'terminate' } };
    },
    'POST /api/projects/{id}/agents': async ({ name }) => ({
      path: `/api/projects/${await project()}/agents`,
      body: { agent_name: name },
    }),
    'DELETE /api/projects/{id}/agents': async ({ name }) => {
      const path = `/api/projects/${await project()}/agents`;
      await done('POST', path, { agent_name: name });
      return { path: `${path}?agent_name=${name}` };
    },
    'GET /api/tasks/queue': ({ name }) => ({ path: `/api/tasks/queue?agent=${name}` }),
    'POST /api/tokens': (about) => ({ path: '/api/tokens', body: reportOf(about) }),
    'POST /api/tokens/batch': (about) => ({ path: '/api/tokens/batch', body: { reports: [reportOf(about)] } }),
    'PUT /api/notifications': async (about) => ({ path: '/api/notifications', body: { ids: [await notified(about)] } }),
    'POST /api/notifications': async (about) => {
      await notified(about);
      return { path: '/api/notifications', body: { action: 'mark-delivered', agent: about.name } };
    },
    'POST /api/notifications/deliver': ({ name: agent }) => ({
      path: '/api/notifications/deliver',
      body: { agent, title: 'From the service', message: 'Work on task 7 next.' },
    }),
  };

  const bare: readonly string[] = AGENT_KEY_SCOPES.filter((scope) => !['operator', 'admin'].includes(scope));

  /** Types of the events that are appended while work is done, but for those about refusals. */
  async function written(work: () => Promise<Reply>): Promise<{ readonly reply: Reply; readonly types: string[] }> {
    const { eventLog } = world.service.core;
    await world.service.securityEvents?.drain();
    const head = await eventLog.head();
    const reply = await work();
    await world.service.securityEvents?.drain();
    const types: string[] = [];
    for await (const batch of eventLog.readAll({ from: head })) {
      types.push(...batch.filter(({ position }) => position > head).map(({ type }) => type));
    }
    return { reply, types: types.filter((type) => !['AccessDenied', 'AgentAccessDenied'].includes(type)) };
  }

  it('the table covers exactly the routes that agents may or may not call', () => {
    const found = routes
      .filter(({ method, writes, access, rules }) => {
        const isWrite = (method !== 'get' || writes) && access !== 'public';
        return isWrite || ['own', 'never'].includes(rules.agentKeys);
      })
      .map(({ method, path, access, agents, rules }) => {
        const name = `${method.toUpperCase()} ${path}`;
        const open = { any: 'open', tasks: 'tasks', own: agents ? 'own' : 'self', admin: 'bound', never: 'closed' };
        return `${name} ${rules.agentKeys === 'admin' && access === 'admin' ? 'admin' : open[rules.agentKeys]}`;
      });
    const table = rows.map(({ name, agents }) => `${name} ${agents}`);
    expect(found.sort()).to.deep.equal(table.sort());
    expect(
      rows.filter(({ agents }) => !['own', 'closed', 'bound', 'self', 'tasks', 'admin', 'open'].includes(agents)),
    ).to.deep.equal([]);
    // A response from the cache does not ask again.
    expect(routes.filter(({ agents, cache }) => agents && cache)).to.deep.equal([]);
    expect(Object.keys(REQUESTS)).to.have.members(
      rows.filter(({ agents }) => agents === 'own').map(({ name }) => name),
    );
  });

  for (const { name, method } of rows.filter(({ agents }) => agents === 'own')) {
    it(`${name}: for the key’s own agent only, unless the key has the scope admin`, async () => {
      const route = routes.find((one) => `${one.method.toUpperCase()} ${one.path}` === name);
      const needed = route?.access as Role;
      const ask = async (by: Subject, about: Subject, scopes: readonly string[]) => {
        const { path, body } = await (REQUESTS[name] as (one: Subject) => Sent | Promise<Sent>)(about);
        const key = await keyOf(by, ...scopes);
        return written(() => world.ask(method, path, { as: key, body }));
      };
      for (const scopes of [bare, ['operator', ...bare]]) {
        const [by, about] = [await subject(), await subject()];
        const other = await ask(by, about, scopes);
        expect(other.reply.status, `${scopes} on another: ${JSON.stringify(other.reply.body)}`).to.equal(403);
        expect(other.types).to.deep.equal([]);
        const own = await ask(by, by, scopes);
        const may = needed === 'viewer' || (needed === 'operator' && scopes.includes('operator'));
        if (may) expect(own.reply.status, JSON.stringify(own.reply.body)).to.be.within(200, 201);
        else expect([own.reply.status, own.types]).to.deep.equal([403, []]);
      }
      const [by, about] = [await subject(), await subject()];
      const other = await ask(by, about, ['admin']);
      expect(other.reply.status, JSON.stringify(other.reply.body)).to.be.within(200, 201);
    });
  }

  it('routes closed to agents reject agent keys with any scope, with an explanation', async () => {
    const self = await subject();
    for (const { name, method } of rows.filter(({ agents }) => agents === 'closed')) {
      const path = name.slice(method.length + 1).replace('{id}', String(self.id));
      for (const scopes of [bare, ['operator'], ['admin'], [...AGENT_KEY_SCOPES]]) {
        const key = await keyOf(self, ...scopes);
        const body = method === 'GET' ? undefined : { id: 'a1', action: 'approve', agents: {}, key_id: 1 };
        const { reply, types } = await written(() => world.ask(method, path, { as: key, body }));
        expect(reply.status, `${name} with ${scopes}`).to.equal(403);
        if (scopes.includes('admin')) expect(reply.body.error).to.include('whatever the scopes');
        expect(types, name).to.deep.equal([]);
      }
    }
    expect(gateway.seen.filter(({ line }) => line.includes('exec-approvals'))).to.deep.equal([]);
  });

  /** Of each call that needs the scope admin: a request that succeeds with it. */
  const BOUND_REQUESTS: Readonly<Record<string, () => Sent | Promise<Sent>>> = {
    'PUT /api/tokens/prices': () => ({ path: '/api/tokens/prices', body: price(1) }),
    'DELETE /api/tokens/prices': async () => {
      await done('PUT', '/api/tokens/prices', price(1));
      return { path: '/api/tokens/prices', body: price(0) };
    },
    'POST /api/workflows': () => ({ path: '/api/workflows', body: { name: 'w', task_prompt: 'Mend the roof.' } }),
    'PUT /api/workflows': async () => ({
      path: '/api/workflows',
      body: { id: await workflow(), task_prompt: 'Burn the roof.' },
    }),
    'DELETE /api/workflows': async () => ({ path: '/api/workflows', body: { id: await workflow() } }),
    'POST /api/pipelines': async () => ({ path: '/api/pipelines', body: await newPipeline() }),
    'PUT /api/pipelines': async () => ({
      path: '/api/pipelines',
      body: { id: await pipeline(), steps: (await newPipeline()).steps },
    }),
    'DELETE /api/pipelines': async () => ({ path: '/api/pipelines', body: { id: await pipeline() } }),
    'POST /api/projects': () => ({
      path: '/api/projects',
      body: { name: `project-${++names}`, ticket_prefix: `P${names}`, github_repo: 'acme/secret' },
    }),
    'PATCH /api/projects/{id}': async () => ({
      path: `/api/projects/${await project()}`,
      body: { github_repo: 'acme/secret' },
    }),
    'POST /api/alerts': () => ({ path: '/api/alerts', body: RULE }),
    'PUT /api/alerts': async () => ({
      path: '/api/alerts',
      body: { id: (await done('POST', '/api/alerts', RULE)).rule.id, enabled: false },
    }),
    'POST /api/github': () => ({ path: '/api/github', body: { action: 'status' } }),
    'POST /api/github/sync': async () => ({
      path: '/api/github/sync',
      body: { action: 'trigger', project_id: await project() },
    }),
  };
  const price = (input: number) => ({ model: 'priced', input, output: 0 });
  const workflow = async () =>
    (await done('POST', '/api/workflows', { name: 'w', task_prompt: 'Mend the roof.' })).template.id as number;
  const newPipeline = async () => {
    const steps = [{ template_id: await workflow() }, { template_id: await workflow() }];
    return { name: `pipeline-${++names}`, steps };
  };
  const pipeline = async () => (await done('POST', '/api/pipelines', await newPipeline())).pipeline.id as number;
  const RULE = {
    name: 'titles',
    entity_type: 'task',
    condition_field: 'title',
    condition_operator: 'contains',
    condition_value: 'secret',
  };

  it('calls that concern every agent of the workspace need the scope admin', async () => {
    const self = await subject();
    const bound = rows.filter(({ agents }) => agents === 'bound');
    expect(Object.keys(BOUND_REQUESTS)).to.have.members(bound.map(({ name }) => name));
    for (const { name, method } of bound) {
      const { path, body } = await (BOUND_REQUESTS[name] as () => Sent | Promise<Sent>)();
      for (const scopes of [bare, ['operator'], ['operator', ...bare]]) {
        const as = await keyOf(self, ...scopes);
        const { reply, types } = await written(() => world.ask(method, path, { as, body }));
        expect([reply.status, types], `${name} with ${scopes}`).to.deep.equal([403, []]);
        if (scopes.includes('operator')) expect(reply.body.error, name).to.include('scope admin');
      }
      const as = await keyOf(self, 'admin');
      // GitHub is not connected.
      const expected = name === 'POST /api/github/sync' ? [400] : [200, 201];
      const reply = await world.ask(method, path, { as, body });
      expect(reply.status, `${name}: ${JSON.stringify(reply.body)}`).to.be.oneOf(expected);
    }
  });

  it('an agent key learns nothing of the tasks of others by alert rules, nor of repositories', async () => {
    const [self, other] = [await subject(), await subject()];
    await done('POST', '/api/tasks', { title: 'the secret roof', assigned_to: other.name });
    const { rule } = await done('POST', '/api/alerts', RULE);
    const as = await keyOf(self, 'operator');
    for (const body of [
      { action: 'backtest', rule: RULE, hours: 24 },
      { action: 'backtest', id: rule.id, hours: 24 },
      { action: 'evaluate' },
    ]) {
      const { reply, types } = await written(() => world.ask('POST', '/api/alerts', { as, body }));
      expect([reply.status, types], JSON.stringify(body)).to.deep.equal([403, []]);
    }
    for (const path of ['/api/github?repo=acme/secret', '/api/github?action=stats', '/api/github/sync'])
      expect((await world.ask('GET', path, { as })).status, path).to.equal(403);
    // The rules themselves hold no text of a task.
    const listed = await world.ask('GET', '/api/alerts', { as });
    expect(listed.status).to.equal(200);
    expect(JSON.stringify(listed.body)).not.to.include('the secret roof');
  });

  it('an agent key delivers to no other agent, also by a filter', async () => {
    const [self, other] = [await subject(), await subject()];
    await notified(other);
    const as = await keyOf(self, 'operator');
    const deliver = (body: object) =>
      written(() => world.ask('POST', '/api/notifications/deliver', { as, body })).then(({ reply, types }) => [
        reply.status,
        types,
      ]);
    const text = { title: 'From the service', message: 'Work on task 7 next.' };
    expect(await deliver({ agent: other.name, ...text })).to.deep.equal([403, []]);
    expect(await deliver({ agent: other.name.toUpperCase(), ...text })).to.deep.equal([403, []]);
    expect(await deliver({ agent_filter: other.name })).to.deep.equal([403, []]);
    expect(await deliver({ agent: self.name, ...text, agent_filter: other.name })).to.deep.equal([403, []]);
    const [status] = await deliver({});
    expect(status).to.equal(200);
    const { notifications } = await done('GET', `/api/notifications?recipient=${other.name}`);
    expect(notifications.map((one: { delivered_at: unknown }) => one.delivered_at)).to.deep.equal([null]);
  });

  it('rejections of an agent are in the audit trail', async () => {
    const [self, other] = [await subject(), await subject()];
    const as = await keyOf(self, 'operator');
    const calls = [`/api/agents/${other.id}/wake`, '/api/exec-approvals'];
    for (const path of calls) {
      const body = { id: 'a1', action: 'approve' };
      expect((await world.ask('POST', path, { as, body })).status).to.equal(403);
    }
    await world.service.securityEvents?.drain();
    const entries = (await world.audit('agent_access_denied')).filter(({ target_id }) => target_id === self.id);
    expect(entries.map(({ actor, detail }) => [actor, detail])).to.have.deep.members([
      [`agent:${self.name}`, { route: 'POST /api/agents/{id}/wake', count: 1 }],
      [`agent:${self.name}`, { route: 'POST /api/exec-approvals', count: 1 }],
    ]);
  });

  it('an agent key cannot write the gateway configuration or change the tools of other agents', async () => {
    const self = await subject();
    const document = async () => (await done('GET', '/api/gateway-config')).hash;
    const before = await document();
    const tools = { tools: { allow: ['*'] } };
    for (const scope of ['operator', 'admin']) {
      const key = await keyOf(self, scope);
      const refused = async (method: string, path: string, body: object) => {
        const { reply, types } = await written(() => world.ask(method, path, { as: key, body }));
        expect([reply.status, types], `${method} ${JSON.stringify(body)}`).to.deep.equal([403, []]);
        expect(reply.body.error).to.include('write_to_gateway');
      };
      const path = `/api/agents/${self.id}`;
      await refused('PUT', path, { config: tools, write_to_gateway: true });
      await refused('PUT', path, { name: 'known', config: tools, write_to_gateway: true });
      await refused('PUT', path, { gateway_config: tools });
      await refused('POST', '/api/agents', { name: 'known', role: 'x', config: tools, write_to_gateway: true });
    }
    expect(await document()).to.equal(before);
    const kept = { gateway_config: tools, write_to_gateway: false };
    const reply = await world.ask('PUT', `/api/agents/${self.id}`, { as: await keyOf(self, 'operator'), body: kept });
    expect([reply.status, reply.body.agent?.config]).to.deep.equal([200, tools]);
  });

  it('an agent cannot change its own name and role; sending the current values is no change', async () => {
    const self = await subject();
    const key = await keyOf(self, 'operator');
    const put = (path: string, body: object, as = key) => world.ask('PUT', path, { as, body });
    const path = `/api/agents/${self.id}`;
    for (const [field, request] of [
      ['name', () => put(path, { name: 'admin-of-the-house', status: 'idle' })],
      ['role', () => put(path, { role: 'lead', status: 'idle' })],
      ['role', () => put('/api/agents', { name: self.name, role: 'lead', status: 'idle' })],
    ] as const) {
      const { reply, types } = await written(request);
      expect([reply.status, types], JSON.stringify(reply.body)).to.deep.equal([403, []]);
      expect(reply.body.error).to.include(field);
    }
    expect((await put(path, { name: self.name, role: 'tester', status: 'online' })).body.agent.status).to.equal(
      'online',
    );
    expect((await put('/api/agents', { name: self.name, role: 'tester', status: 'idle' })).status).to.equal(200);
    const boss = await keyOf(self, 'admin');
    expect((await put(path, { role: 'lead' }, boss)).body.agent.role).to.equal('lead');
  });

  it('registering returns the key’s own agent or creates a new one, and never takes over another', async () => {
    const [self, other] = [await subject(), await subject()];
    for (const scopes of [['viewer'], ['operator'], ['admin']]) {
      const as = await keyOf(self, ...scopes);
      const register = (name: string) => world.ask('POST', '/api/agents/register', { as, body: { name } });
      const { reply, types } = await written(() => register(other.name));
      expect([reply.status, types], JSON.stringify(reply.body)).to.deep.equal([409, []]);
      expect(reply.body.error).to.include(other.name).and.include('another agent');
      expect((await register(self.name)).body).to.deep.include({ registered: false });
      expect((await register(`new-${++names}`)).status).to.equal(201);
    }
    expect((await done('GET', `/api/agents/${other.id}`)).agent.status).to.equal('offline');
    // A caller without an agent's key acts for any agent.
    expect((await done('POST', '/api/agents/register', { name: other.name })).registered).to.equal(false);
  });

  it('another agent’s session cannot be taken over by its id, nor by a session key at the gateway', async () => {
    const [self, other] = [await subject(), await subject()];
    const as = await keyOf(self, 'operator');
    const session_id = `taken-${++names}`;
    await done('POST', '/api/claude/sessions', { session_id, agent_name: other.name });
    for (const body of [{ session_id }, { session_id, agent_name: self.name }]) {
      const { reply, types } = await written(() => world.ask('POST', '/api/claude/sessions', { as, body }));
      expect([reply.status, types]).to.deep.equal([403, []]);
    }
    const { sessions } = await done('GET', '/api/claude/sessions?limit=200');
    expect(sessions.find((one: { session_id: string }) => one.session_id === session_id).agent_name).to.equal(
      other.name,
    );
    gateway.sessions = [
      ...gateway.sessions,
      ...[{ key: 'agent:victim:other' }, { key: 'own-session' }],
      { key: 'telegram-77', sessionId: 'victims', agent: 'victim' },
    ];
    // What was heard from a gateway before it was changed is not used.
    await done('PUT', '/api/gateways', { id: gatewayId, name: `main-${++names}` });
    const put = (session_key: string) =>
      world.ask('PUT', '/api/agents', { as, body: { name: self.name, session_key } });
    const putById = (session_key: string) =>
      world.ask('PUT', `/api/agents/${self.id}`, { as, body: { session_key, status: 'idle' } });
    const post = (session_key: string) =>
      world.ask('POST', '/api/agents', { as, body: { name: `agent-${++names}`, role: 'coder', session_key } });
    const label = async (sessionKey: string) =>
      (await world.ask('POST', '/api/sessions?action=set-label', { as, body: { sessionKey, label: 'mine' } })).status;
    for (const foreign of ['agent:victim:other', session_id, 'telegram-77', 'victims']) {
      for (const give of [put, putById, post]) {
        const { reply, types } = await written(() => give(foreign));
        expect([reply.status, types], `${foreign}: ${JSON.stringify(reply.body)}`).to.deep.equal([403, []]);
        expect(reply.body.error).to.match(/^session_key: .*(victim|agent-\d+)/);
      }
      expect(await label(foreign)).to.equal(403);
    }
    // A tool may register any free id, and owns no session of another agent by that.
    for (const session_id of ['agent:victim:other', 'telegram-77']) {
      const registered = await world.ask('POST', '/api/claude/sessions', { as, body: { session_id } });
      expect(registered.status, session_id).to.equal(session_id.startsWith('agent:') ? 403 : 200);
      expect((await put(session_id)).status, session_id).to.equal(403);
      expect(await label(session_id), session_id).to.equal(403);
    }
    // Without a response of the gateway, the owner is unknown, so the session is not given.
    gateway.mode = 'broken';
    await done('PUT', '/api/gateways', { id: gatewayId, name: `main-${++names}` });
    const unknown = await put('telegram-77');
    expect([unknown.status, unknown.body.code]).to.deep.equal([503, 'GATEWAY_UNAVAILABLE']);
    gateway.mode = 'well';
    await done('PUT', '/api/gateways', { id: gatewayId, name: `main-${++names}` });
    // An operator decides otherwise; then its agent sends back what it has.
    await done('PUT', `/api/agents/${self.id}`, { session_key: 'agent:victim:other' });
    expect((await put('agent:victim:other')).status).to.equal(200);
    expect(await label('agent:victim:other')).to.equal(403);
    expect((await post(`agent:agent-${names + 1}:other`)).status).to.equal(201);
    // Gateways know `Data 7` and `data-7` by one name: a new agent does not get the session of the one that is there.
    for (const [word, present, alike] of [
      ['keeper', 'Data keeper', 'data-keeper'],
      ['maker', 'data-maker', 'Data Maker'],
    ] as const) {
      await done('POST', '/api/agents', { name: present, role: 'coder' });
      const body = { name: alike, role: 'coder', session_key: `agent:data-${word}:main-2` };
      const { reply, types } = await written(() => world.ask('POST', '/api/agents', { as, body }));
      expect([reply.status, types], alike).to.deep.equal([403, []]);
      expect(reply.body.error).to.include(`belongs to the agent ${present}`);
    }
    expect((await put(`agent:${self.name}:other`)).status).to.equal(200);
    expect(await label('own-session')).to.equal(403);
    expect((await put('own-session')).status).to.equal(200);
    expect(await label('own-session')).to.equal(200);
  });

  it('an agent key controls gateway sessions under its agent’s simplified name, and no others', async () => {
    const name = `Agent No. ${++names}`;
    const self = { id: await world.makeAgent(name), name, live: `agent:agent-no-${names}:main` };
    gateway.sessions = [...gateway.sessions, { key: self.live }, { key: `agent:agent-no-${names}0:main` }];
    const as = await keyOf(self, 'operator');
    const label = async (sessionKey: string) =>
      (await world.ask('POST', '/api/sessions?action=set-label', { as, body: { sessionKey, label: 'mine' } })).status;
    expect(await label(self.live)).to.equal(200);
    expect(await label(`agent:agent-no-${names}0:main`)).to.equal(403);
  });

  it('an agent key cannot make its agent the coordinator, who receives the messages to that role', async () => {
    const self = await subject();
    const as = await keyOf(self, 'operator');
    const byName = (fields: object) => world.ask('PUT', '/api/agents', { as, body: { name: self.name, ...fields } });
    const byId = (fields: object) => world.ask('PUT', `/api/agents/${self.id}`, { as, body: fields });
    const isDefault = { config: { isDefault: true, tone: 'calm' } };
    for (const put of [byName, byId]) {
      for (const fields of [{ session_key: `agent:${self.name}:main` }, isDefault]) {
        const { reply, types } = await written(() => put(fields));
        expect([reply.status, types], JSON.stringify(reply.body)).to.deep.equal([403, []]);
        expect(reply.body.error).to.include('coordinator');
      }
    }
    // Nor a new agent, which would take over what is said to the coordinator.
    const role = 'coder';
    const name = `agent-${++names}`;
    const own = { session_key: `agent:${name}:main` };
    for (const fields of [own, isDefault, { gateway_config: { isDefault: true } }]) {
      const body = { name, role, ...fields };
      const { reply, types } = await written(() => world.ask('POST', '/api/agents', { as, body }));
      expect([reply.status, types], JSON.stringify(reply.body)).to.deep.equal([403, []]);
      expect(reply.body.error).to.include('coordinator');
    }
    const admin = await keyOf(self, 'admin');
    const chosen = { name: `agent-${++names}`, role, session_key: 'agent:new:main' };
    expect((await world.ask('POST', '/api/agents', { as: admin, body: chosen })).status).to.equal(201);
    // An operator has made it the one: its agent sends that back.
    await done('PUT', `/api/agents/${self.id}`, isDefault);
    for (const put of [byName, byId]) expect((await put(isDefault)).status).to.equal(200);
  });

  it('an agent key changes tasks in bulk only if all of them are assigned to its agent', async () => {
    const self = await subject();
    const as = await keyOf(self, 'operator');
    const task = async (assigned_to?: string) =>
      (await done('POST', '/api/tasks', { title: 'work', ...(assigned_to && { assigned_to }) })).task.id as number;
    const [own, other, nobodys] = [await task(self.name), await task('another'), await task()];
    const put = (...ids: number[]) =>
      written(() =>
        world.ask('PUT', '/api/tasks', { as, body: { tasks: ids.map((id) => ({ id, status: 'review' })) } }),
      );
    for (const foreign of [other, nobodys]) {
      const { reply, types } = await put(own, foreign);
      expect([reply.status, types], JSON.stringify(reply.body)).to.deep.equal([403, []]);
    }
    const { reply } = await put(own, 999_999);
    expect(reply.body).to.deep.equal({ success: true, updated: 1 });
  });

  it('framework agents and sessions without an agent do not count as other agents', async () => {
    const self = await subject();
    const as = await keyOf(self, 'operator');
    const report = { framework: 'crewai', action: 'heartbeat', payload: { agentId: 'crew-member-3' } };
    expect((await world.ask('POST', '/api/adapters', { as, body: report })).status).to.equal(200);
    const used = { model: 'm', sessionId: 'no-such-agent:cli', inputTokens: 1, outputTokens: 1 };
    const reply = await world.ask('POST', '/api/tokens', { as, body: used });
    expect([reply.status, reply.body.record?.agentName]).to.deep.equal([200, self.name]);
    const events = await world.service.core.store.readStream(agentStream(1, self.id));
    expect(events.map(({ type }) => type)).to.deep.equal(['AgentRegistered', 'AgentKeyIssued']);
  });
});
