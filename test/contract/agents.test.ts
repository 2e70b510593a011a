/** Agents through HTTP: list, create, change, delete, register, hide; who may; what is refused; what is told of it. */
import { expect } from 'chai';
import type { z } from 'zod';
import {
  agentAnswer,
  agentsAnswer,
  createAgentAnswer,
  deleteAgentAnswer,
  hideAnswer,
  registerAnswer,
  updateByIdAnswer,
} from '../../shared/contract/agents.ts';
import type { Reply } from '../support/service.ts';
import { type OpenStream, openStream } from '../support/stream.ts';
import { type AuthWorld, startAuthWorld } from './auth-world.ts';

const NO_TASKS = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

/** A whole answer is what is described, with nothing besides. */
function conforms(schema: z.ZodType, reply: Reply, status = 200): void {
  expect(reply.status, JSON.stringify(reply.body)).to.equal(status);
  expect(schema.parse(reply.body)).to.deep.equal(reply.body);
}

describe('Agents', () => {
  let world: AuthWorld;
  let stream: OpenStream;
  before(async () => {
    world = await startAuthWorld();
    stream = await openStream(`${world.url}/api/events`, { 'x-api-key': world.adminKey });
  });
  after(async () => {
    stream.close();
    await world.close();
  });

  const ask = (method: string, path: string, body?: unknown) => world.ask(method, path, { as: world.adminKey, body });
  const refused = async (method: string, path: string, body: unknown, status: number, says?: RegExp) => {
    const reply = await ask(method, path, body);
    expect(reply.status, `${method} ${path} ${JSON.stringify(body)}: ${JSON.stringify(reply.body)}`).to.equal(status);
    expect(reply.body.error).to.be.a('string').that.is.not.empty;
    if (says) expect(JSON.stringify(reply.body)).to.match(says);
    return reply;
  };
  let names = 0;
  const fresh = (prefix = 'agent') => `${prefix}-${++names}`;
  async function create(fields: object = {}) {
    const reply = await ask('POST', '/api/agents', { name: fresh(), role: 'coder', ...fields });
    expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
    return reply.body.agent as { id: number; name: string } & Record<string, unknown>;
  }
  const get = async (id: number | string) => (await ask('GET', `/api/agents/${id}`)).body.agent;
  const activities = async (type: string, id: number) =>
    (await ask('GET', `/api/activities?type=${type}&limit=200`)).body.activities.filter(
      (activity: { entity_id: number }) => activity.entity_id === id,
    );
  const framesOf = (type: string, id: number) =>
    stream.frames.filter((frame) => frame.type === type && frame.data.id === id);

  describe('POST /api/agents', () => {
    it('gives the whole record, as GET gives it at once', async () => {
      const name = fresh();
      const reply = await ask('POST', '/api/agents', {
        name,
        role: 'coder',
        session_key: 'session-1',
        soul_content: 'soul',
        status: 'busy',
        config: { a: { b: [1] } },
        runtime_type: 'codex',
      });
      conforms(createAgentAnswer, reply, 201);
      const { taskStats, ...agent } = reply.body.agent;
      expect(taskStats).to.deep.equal(NO_TASKS);
      expect(agent).to.deep.include({
        name,
        role: 'coder',
        session_key: 'session-1',
        soul_content: 'soul',
        status: 'busy',
        config: { a: { b: [1] } },
        runtime_type: 'codex',
        working_memory: '',
        source: 'manual',
        hidden: 0,
        last_seen: null,
        last_activity: null,
        workspace_id: 1,
      });
      expect(agent.created_at).to.be.closeTo(Date.now() / 1_000, 30);
      const one = await ask('GET', `/api/agents/${agent.id}`);
      conforms(agentAnswer, one);
      expect(one.body.agent).to.deep.equal(agent);
      expect((await ask('GET', `/api/agents/${name}`)).body.agent).to.deep.equal(agent);
    });

    it('fills in what is not given', async () => {
      expect(await create({ session_key: '', template: null, runtime_type: null })).to.deep.include({
        status: 'offline',
        session_key: null,
        soul_content: null,
        config: {},
        runtime_type: null,
      });
    });

    it('starts from a template', async () => {
      const agent = await create({
        template: 'reviewer',
        config: { tools: { allow: ['read'] } },
        gateway_config: { model: { primary: 'other' } },
      });
      expect(agent).to.have.nested.property('config.model.primary', 'other');
      expect(agent).to.have.nested.property('config.sandbox.workspaceAccess', 'ro');
      expect(agent).to.deep.nested.include({ 'config.tools': { allow: ['read'] } });
      expect(await create({ template: 'unknown', config: { x: 1 }, gateway_config: { y: 1 } })).to.deep.include({
        config: { x: 1 },
      });
      expect(await create({ config: { x: 1, y: 1 }, gateway_config: { y: 2 } })).to.deep.include({
        config: { x: 1, y: 2 },
      });
    });

    it('is told as activity, audit entry and frame', async () => {
      const agent = await create({ session_key: fresh('key'), template: 'developer' });
      const [activity, ...more] = await activities('agent_created', agent.id);
      expect(more).to.have.length(0);
      expect(activity).to.deep.include({ actor: 'api', entity_type: 'agent' });
      expect(activity.metadata).to.deep.equal({
        name: agent.name,
        role: 'coder',
        status: 'offline',
        session_key: agent.session_key,
        template: 'developer',
      });
      const entries = await world.audit('agent_created');
      expect(entries.find((entry) => entry.target_id === agent.id)).to.deep.include({
        actor: 'api',
        target_type: 'agent',
      });
      await stream.until(() => framesOf('agent.created', agent.id).length > 0);
      expect(framesOf('agent.created', agent.id)[0]?.data).to.deep.equal({
        ...Object.fromEntries(
          Object.entries(agent).filter(([field]) => field !== 'content_hash' && field !== 'workspace_path'),
        ),
        workspace_id: 1,
      });
    });

    it('keeps texts as they are: any language, any size that is allowed', async () => {
      const soul_content = `${'𝕊øul 日本 "quoted" \\ \n'.repeat(2_000)}`.slice(0, 49_999);
      const name = 'Zoë / 50% ?x=1 #2';
      const agent = await create({ name, soul_content: `${soul_content.slice(0, 49_000)}e` });
      expect(agent.soul_content).to.equal(`${soul_content.slice(0, 49_000)}e`);
      expect(await get(encodeURIComponent(name))).to.deep.include({ id: agent.id, name });
    });

    it('refuses a name or a session key that is taken', async () => {
      const agent = await create({ session_key: fresh('key') });
      await refused('POST', '/api/agents', { name: agent.name, role: 'x' }, 409, /exists/);
      await refused(
        'POST',
        '/api/agents',
        { name: fresh(), role: 'x', session_key: agent.session_key },
        409,
        /session_key/,
      );
    });

    for (const [what, body] of Object.entries<unknown>({
      'no body': undefined,
      'malformed JSON': '{"name": "x",',
      null: 'null',
      'a list': [],
      'a text': '"x"',
      'no name': { role: 'x' },
      'no role': { name: 'x' },
      'an empty name': { name: '', role: 'x' },
      'a blank name': { name: '   ', role: 'x' },
      'a long name': { name: 'x'.repeat(101), role: 'x' },
      'a number as name': { name: 5, role: 'x' },
      'a long role': { name: 'x', role: 'x'.repeat(101) },
      'an unknown status': { name: 'x', role: 'x', status: 'asleep' },
      'a text as config': { name: 'x', role: 'x', config: 'x' },
      'a list as config': { name: 'x', role: 'x', config: [] },
      'a huge config': { name: 'x', role: 'x', config: { x: 'x'.repeat(200_001) } },
      'a long soul': { name: 'x', role: 'x', soul_content: 'x'.repeat(50_001) },
      'a long session key': { name: 'x', role: 'x', session_key: 'x'.repeat(201) },
      'an unknown runtime': { name: 'x', role: 'x', runtime_type: 'abacus' },
      'a text as write_to_gateway': { name: 'x', role: 'x', write_to_gateway: 'yes' },
      'U+0000 in the name': { name: 'x\u0000', role: 'x' },
      'half a surrogate pair in the soul': { name: 'x', role: 'x', soul_content: '\ud800' },
      'U+0000 deep in the config': { name: 'x', role: 'x', config: { a: [{ b: '\u0000' }] } },
      'U+0000 in a key of the config': { name: 'x', role: 'x', config: { 'a\u0000': 1 } },
    })) {
      it(`refuses ${what} with 400`, () => refused('POST', '/api/agents', body, 400));
    }

    it('says which field is wrong, and refuses bodies that are too large', async () => {
      const { body } = await refused('POST', '/api/agents', { name: 'x', role: 5, config: { a: 1 }, status: 1 }, 400);
      expect(body.details).to.have.length(2);
      expect(body.details[0]).to.match(/^role: /);
      await refused('POST', '/api/agents', { name: 'x', role: 'x', soul_content: 'x'.repeat(3_000_000) }, 413);
    });

    it('with an Idempotency-Key makes one agent and gives the same answer', async () => {
      const name = fresh();
      const again = () =>
        world.ask('POST', '/api/agents', {
          as: world.adminKey,
          body: { name, role: 'x', session_key: `${name}-key` },
          headers: { 'idempotency-key': name },
        });
      const replies = await Promise.all([again(), again(), again()]);
      for (const reply of replies) {
        expect(reply.status).to.equal(201);
        expect(reply.body).to.deep.equal(replies[0]?.body);
      }
    });
  });

  describe('GET /api/agents', () => {
    it('pages through everything, newest first', async () => {
      for (let n = 0; n < 5; n++) await create();
      const first = await ask('GET', '/api/agents');
      conforms(agentsAnswer, first);
      expect(first.body).to.include({ page: 1, limit: 50 });
      const all: { id: number; created_at: number }[] = [];
      for (let offset = 0; offset < first.body.total; offset += 3) {
        const { body } = await ask('GET', `/api/agents?limit=3&offset=${offset}`);
        expect(body).to.include({ total: first.body.total, limit: 3, page: offset / 3 + 1 });
        all.push(...body.agents);
      }
      expect(all).to.have.length(first.body.total);
      const sorted = all.toSorted((a, b) => b.created_at - a.created_at || b.id - a.id);
      expect(all.map((agent) => agent.id)).to.deep.equal(sorted.map((agent) => agent.id));
      expect((await ask('GET', '/api/agents?offset=5000')).body).to.deep.include({
        agents: [],
        total: first.body.total,
      });
    });

    it('filters by status and role, in list and total', async () => {
      const role = fresh('role');
      await create({ role, status: 'busy' });
      await create({ role, status: 'idle' });
      const query = async (text: string) => {
        const { body } = await ask('GET', `/api/agents?${text}`);
        expect(body.agents).to.have.length(Math.min(body.total, body.limit));
        return body.total;
      };
      expect(await query(`role=${role}`)).to.equal(2);
      expect(await query(`role=${role}&limit=1`)).to.equal(2);
      expect(await query(`role=${role}&status=busy`)).to.equal(1);
      expect(await query('status=asleep')).to.equal(0);
      expect(await query(`role=${role}&status=`)).to.equal(2);
      expect(await query(`role=${encodeURIComponent("' OR 1=1 --")}`)).to.equal(0);
    });

    for (const [query, limit, page] of [
      ['limit=abc', 50, 1],
      ['limit=', 50, 1],
      ['limit=1.5', 50, 1],
      ['limit=0', 1, 1],
      ['limit=-3', 1, 1],
      ['limit=201', 200, 1],
      ['limit=99999999999999999999', 200, 1],
      ['offset=-1', 50, 1],
      ['offset=abc', 50, 1],
      ['offset=99999999999999999999', 50, 20_000_001],
      ['limit=10&limit=20', 50, 1],
    ] as const) {
      it(`makes the best of ?${query}`, async () => {
        const { status, body } = await ask('GET', `/api/agents?${query}`);
        if (query === 'limit=10&limit=20') expect(status).to.be.oneOf([200, 400]);
        else expect({ status, limit: body.limit, page: body.page }).to.deep.equal({ status: 200, limit, page });
      });
    }

    it('refuses filters that no store can hold', async () => {
      await refused('GET', '/api/agents?status=%00', undefined, 400);
      await refused('GET', `/api/agents?role=${'x'.repeat(501)}`, undefined, 400);
    });
  });

  describe('/api/agents/{id}', () => {
    it('answers 404 for what is not there and 400 for what is no id', async () => {
      for (const path of ['999999', 'nobody', '%2e%2e', 'x'.repeat(300)]) {
        await refused('GET', `/api/agents/${path}`, undefined, 404);
        await refused('PUT', `/api/agents/${path}`, { role: 'x' }, 404);
        await refused('DELETE', `/api/agents/${path}`, undefined, 404);
      }
      for (const path of ['0', '-1', '99999999999999999999', '%00', '%E0%A4%A'])
        await refused('GET', `/api/agents/${path}`, undefined, 400);
    });

    it('PUT changes what is given and nothing else', async () => {
      const agent = await create({ session_key: fresh('key'), config: { a: 1, b: 1 }, soul_content: 'soul' });
      const name = fresh();
      const reply = await ask('PUT', `/api/agents/${agent.id}`, {
        name,
        role: 'lead',
        status: 'on a break',
        session_key: `${name}-key`,
        soul_content: 'new',
        config: { c: 1 },
      });
      conforms(updateByIdAnswer, reply);
      const { taskStats: _, ...before } = agent;
      expect(reply.body.agent).to.deep.equal({
        ...before,
        name,
        role: 'lead',
        status: 'on a break',
        session_key: `${name}-key`,
        soul_content: 'new',
        config: { c: 1 },
        updated_at: reply.body.agent.updated_at,
      });
      expect(await get(agent.id)).to.deep.equal(reply.body.agent);
      expect(await get(name)).to.deep.equal(reply.body.agent);
      await refused('GET', `/api/agents/${agent.name}`, undefined, 404);
      const [activity] = await activities('agent_config_updated', agent.id);
      expect(activity.metadata.fields).to.have.members(['name', 'role', 'config', 'session_key', 'soul_content']);
      expect(activity.metadata.write_to_gateway).to.equal(false);
      expect(await activities('agent_status_change', agent.id)).to.have.length(1);
      await stream.until(() => framesOf('agent.updated', agent.id).length > 0);
      const frames = framesOf('agent.updated', agent.id);
      expect(frames).to.have.length(1);
      expect(frames[0]?.data).to.deep.include({ name, status: 'on a break', role: 'lead', config: { c: 1 } });
    });

    it('PUT merges gateway_config into the config', async () => {
      const agent = await create({ config: { a: 1, b: 1 } });
      const { body } = await ask('PUT', `/api/agents/${agent.id}`, { gateway_config: { b: 2, c: 3 } });
      expect(body.agent.config).to.deep.equal({ a: 1, b: 2, c: 3 });
      const both = await ask('PUT', `/api/agents/${agent.id}`, { config: { d: 1 }, gateway_config: { e: 1 } });
      expect(both.body.agent.config).to.deep.equal({ d: 1, e: 1 });
      await refused('PUT', `/api/agents/${agent.id}`, { role: 'x', write_to_gateway: true }, 502, /gateway/);
      expect(await get(agent.id)).to.include({ role: 'coder' });
    });

    it('PUT clears session key and soul with null, and a session key with an empty text', async () => {
      const agent = await create({ session_key: fresh('key'), soul_content: 'x' });
      const { body } = await ask('PUT', `/api/agents/${agent.id}`, { session_key: '', soul_content: null });
      expect(body.agent).to.include({ session_key: null, soul_content: null });
      expect(await create({ session_key: agent.session_key })).to.include({ session_key: agent.session_key });
    });

    it('PUT refuses names and keys of others, and what is no field', async () => {
      const [one, other] = [await create({ session_key: fresh('key') }), await create()];
      await refused('PUT', `/api/agents/${other.id}`, { name: one.name }, 409);
      await refused('PUT', `/api/agents/${other.id}`, { name: fresh(), session_key: one.session_key }, 409);
      expect(await get(other.id)).to.include({ name: other.name, session_key: null });
      for (const body of [
        {},
        { unknown: 1 },
        [],
        'x',
        { name: '' },
        { role: 5 },
        { status: '' },
        { config: 5 },
        undefined,
      ])
        await refused('PUT', `/api/agents/${other.id}`, body, 400);
      await refused('PUT', `/api/agents/${other.id}`, '{', 400);
      // With its own name and key there is nothing to refuse and nothing to change.
      const same = await ask('PUT', `/api/agents/${one.id}`, { name: one.name, session_key: one.session_key });
      expect(same.status).to.equal(200);
      expect(await activities('agent_config_updated', one.id)).to.have.length(0);
    });

    it('DELETE removes the record, keeps its history and frees its names', async () => {
      const agent = await create({ session_key: fresh('key') });
      const reply = await world.ask('DELETE', `/api/agents/${agent.id}`, { as: world.adminKey });
      conforms(deleteAgentAnswer, reply);
      expect(reply.body).to.deep.equal({ success: true, deleted: agent.name, remove_workspace: false });
      await refused('GET', `/api/agents/${agent.id}`, undefined, 404);
      await refused('DELETE', `/api/agents/${agent.id}`, undefined, 404);
      await refused('PUT', '/api/agents', { name: agent.name, role: 'x' }, 404);
      expect(await activities('agent_created', agent.id)).to.have.length(1);
      expect((await activities('agent_deleted', agent.id))[0].metadata).to.deep.equal({
        name: agent.name,
        role: 'coder',
        remove_workspace: false,
      });
      await stream.until(() => framesOf('agent.deleted', agent.id).length > 0);
      expect(framesOf('agent.deleted', agent.id)[0]?.data).to.include({ name: agent.name, workspace_id: 1 });
      const again = await create({ name: agent.name, session_key: agent.session_key });
      expect(again.id).to.be.above(agent.id);
      const named = await ask('DELETE', `/api/agents/${agent.name}`, { remove_workspace: true });
      expect(named.body).to.include({ deleted: agent.name, remove_workspace: true });
    });
  });

  describe('PUT /api/agents', () => {
    it('reports a status as a sign of life', async () => {
      const agent = await create();
      const reply = await ask('PUT', '/api/agents', { name: agent.name, status: 'busy', last_activity: 'thinking' });
      expect(reply).to.deep.include({ status: 200, body: { success: true } });
      const after = await get(agent.id);
      expect(after).to.include({ status: 'busy', last_activity: 'thinking' });
      expect(after.last_seen).to.be.a('number');
      const [activity] = await activities('agent_status_change', agent.id);
      expect(activity).to.deep.include({ actor: agent.name });
      expect(activity.metadata).to.include({ oldStatus: 'offline', newStatus: 'busy', last_activity: 'thinking' });
      await ask('PUT', '/api/agents', { name: agent.name, status: 'busy' });
      expect(await activities('agent_status_change', agent.id)).to.have.length(1);
    });

    it('sets the other fields', async () => {
      const agent = await create({ runtime_type: 'codex' });
      const fields = { session_key: fresh('key'), soul_content: 's', role: 'lead', config: { x: 1 } };
      await ask('PUT', '/api/agents', { name: agent.name, ...fields, runtime_type: '' });
      expect(await get(agent.id)).to.deep.include({
        ...fields,
        runtime_type: null,
        status: 'offline',
        last_seen: null,
      });
    });

    it('refuses what is no report', async () => {
      const { name } = await create();
      for (const body of [
        {},
        { name },
        { name, status: 'wild' },
        { name, runtime_type: 'x' },
        { status: 'busy' },
        '{',
        [],
      ])
        await refused('PUT', '/api/agents', body, 400);
      await refused('PUT', '/api/agents', { name: 'nobody', status: 'busy' }, 404);
    });
  });

  describe('POST /api/agents/register', () => {
    it('makes an agent that is idle and seen, and greets it the next time', async () => {
      const name = fresh('self');
      const body = { name: ` ${name} `, role: 'tester', framework: ' crewai ', capabilities: ['a', 5, null, 'b'] };
      const first = await ask('POST', '/api/agents/register', body);
      conforms(registerAnswer, first, 201);
      expect(first.body).to.deep.include({ registered: true });
      const agent = await get(name);
      expect(first.body.agent).to.deep.equal({
        id: agent.id,
        name,
        role: 'tester',
        status: 'idle',
        created_at: agent.created_at,
      });
      expect(agent.config).to.deep.equal({ capabilities: ['a', 'b'], framework: 'crewai' });
      expect(agent.last_seen).to.be.a('number');

      await ask('PUT', `/api/agents/${agent.id}`, { status: 'error', role: 'lead' });
      const second = await ask('POST', '/api/agents/register', { name, role: 'coder' });
      conforms(registerAnswer, second);
      expect(second.body).to.deep.include({ registered: false });
      expect(second.body.agent).to.deep.equal({ ...first.body.agent, role: 'lead' });
      expect(await get(name)).to.include({ status: 'idle', role: 'lead' });

      const [activity, ...more] = await activities('agent_created', agent.id);
      expect(more).to.have.length(0);
      expect(activity).to.include({ actor: name });
      expect(activity.metadata).to.deep.equal({
        name,
        role: 'tester',
        framework: 'crewai',
        capabilities: ['a', 'b'],
        self_registered: true,
      });
      const entries = await world.audit('agent_self_register');
      expect(entries.filter((entry) => entry.target_id === agent.id)).to.have.length(1);
      await stream.until(() => framesOf('agent.created', agent.id).length > 0);
      expect(framesOf('agent.created', agent.id)[0]?.data).to.deep.equal({
        id: agent.id,
        name,
        role: 'tester',
        status: 'idle',
        workspace_id: 1,
      });
    });

    it('refuses bad names and roles', async () => {
      for (const name of ['', '-x', '.x', 'a b', 'x'.repeat(64), 'ü', 5, null])
        await refused('POST', '/api/agents/register', { name }, 400);
      await refused('POST', '/api/agents/register', { name: fresh(), role: 'king' }, 400, /role/);
      await refused('POST', '/api/agents/register', { name: fresh(), capabilities: 'x' }, 400);
      await refused('POST', '/api/agents/register', undefined, 400, /body/);
    });

    it('with an Idempotency-Key gives the first answer again', async () => {
      const name = fresh('self');
      const again = () =>
        world.ask('POST', '/api/agents/register', {
          as: world.adminKey,
          body: { name },
          headers: { 'idempotency-key': name },
        });
      const first = await again();
      expect((await again()).body).to.deep.equal(first.body);
    });
  });

  describe('hide', () => {
    it('takes an agent out of the default list and back', async () => {
      const role = fresh('role');
      const agent = await create({ role });
      const counts = async () => [
        (await ask('GET', `/api/agents?role=${role}`)).body.total,
        (await ask('GET', `/api/agents?role=${role}&show_hidden=true`)).body.total,
      ];
      const hidden = await ask('POST', `/api/agents/${agent.id}/hide`);
      conforms(hideAnswer, hidden);
      expect(hidden.body).to.deep.equal({ success: true, agent_id: agent.id, hidden: true });
      expect(await counts()).to.deep.equal([0, 1]);
      expect(await get(agent.id)).to.include({ hidden: 1 });
      expect((await ask('DELETE', `/api/agents/${agent.name}/hide`)).body).to.deep.include({ hidden: false });
      expect(await counts()).to.deep.equal([1, 1]);
      await refused('POST', '/api/agents/nobody/hide', undefined, 404);
    });
  });

  describe('who may', () => {
    it('follows the roles', async () => {
      const agent = await create();
      const keys = {
        viewer: await world.makeKey(agent.id, ['viewer']),
        operator: await world.makeKey(agent.id, ['operator']),
        admin: await world.makeKey(agent.id, ['admin']),
      };
      const { id, name } = agent;
      const cases: [string, string, unknown, number, 'viewer' | 'operator' | 'admin'][] = [
        ['GET', '/api/agents', undefined, 200, 'viewer'],
        ['GET', `/api/agents/${id}`, undefined, 200, 'viewer'],
        ['POST', '/api/agents/register', { name }, 200, 'viewer'],
        ['POST', '/api/agents', { name, role: 'x' }, 409, 'operator'],
        ['PUT', '/api/agents', { name, role: 'x' }, 200, 'operator'],
        ['PUT', `/api/agents/${id}`, { role: 'x' }, 200, 'operator'],
        ['POST', `/api/agents/${id}/hide`, undefined, 200, 'operator'],
        ['DELETE', `/api/agents/${id}/hide`, undefined, 200, 'operator'],
        ['DELETE', '/api/agents/999999', undefined, 404, 'admin'],
      ];
      const order = ['viewer', 'operator', 'admin'] as const;
      for (const [method, path, body, passes, needed] of cases) {
        const anonymous = await world.ask(method, path, { body });
        expect(anonymous.status, `${method} ${path} by nobody`).to.equal(401);
        for (const role of order) {
          const { status } = await world.ask(method, path, { as: keys[role], body });
          const expected = order.indexOf(role) >= order.indexOf(needed) ? passes : 403;
          expect(status, `${method} ${path} by ${role}`).to.equal(expected);
        }
      }
    });

    it('keeps workspaces apart', async () => {
      const mine = await create({ session_key: fresh('key') });
      await world.makeUser({ username: 'elsewhere', role: 'admin', workspace: 2 });
      const as = await world.signIn('elsewhere');
      const there = (method: string, path: string, body?: unknown) => world.ask(method, path, { as, body });
      expect((await there('GET', '/api/agents')).body).to.deep.include({ agents: [], total: 0 });
      for (const [method, path, body] of [
        ['GET', `/api/agents/${mine.id}`, undefined],
        ['GET', `/api/agents/${mine.name}`, undefined],
        ['PUT', `/api/agents/${mine.id}`, { role: 'x' }],
        ['PUT', '/api/agents', { name: mine.name, role: 'x' }],
        ['DELETE', `/api/agents/${mine.id}`, undefined],
        ['POST', `/api/agents/${mine.id}/hide`, undefined],
        ['GET', `/api/agents/${mine.id}/heartbeat`, undefined],
        ['POST', `/api/agents/${mine.id}/heartbeat`, {}],
        ['POST', `/api/agents/${mine.name}/heartbeat`, {}],
        ['GET', `/api/agents/${mine.id}/memory`, undefined],
        ['PUT', `/api/agents/${mine.id}/memory`, { working_memory: 'x' }],
        ['DELETE', `/api/agents/${mine.id}/memory`, undefined],
        ['GET', `/api/agents/${mine.id}/soul`, undefined],
        ['PUT', `/api/agents/${mine.id}/soul`, { soul_content: 'x' }],
        ['PATCH', `/api/agents/${mine.id}/soul`, {}],
        ['POST', `/api/agents/${mine.id}/wake`, {}],
        ['POST', '/api/agents/message', { from: 'x', to: mine.name, content: 'x' }],
      ] as const) {
        expect((await there(method, path, body)).status, `${method} ${path}`).to.equal(404);
      }
      expect((await there('POST', '/api/agents', { name: mine.name, role: 'x' })).status).to.equal(201);
      const { status } = await there('POST', '/api/agents', { name: 'y', role: 'x', session_key: mine.session_key });
      expect(status).to.equal(409);
      expect((await there('GET', '/api/agents')).body.total).to.equal(1);
      expect(await get(mine.id)).to.include({ role: 'coder', working_memory: '', hidden: 0 });
    });
  });
});
