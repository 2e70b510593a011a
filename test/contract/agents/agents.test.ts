/**
 * Agents through HTTP: create, list, register oneself, hide; what is refused; which activities, audit entries and
 * frames follow.
 */
import { expect } from 'chai';
import {
  agentResponse,
  agentsResponse,
  createAgentResponse,
  hideResponse,
} from '../../../shared/contract/agents/agents.ts';
import { registerResponse } from '../../../shared/contract/agents/registration.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

const NO_TASKS = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

describe('Agents', () => {
  const world = fixture(startAgentsWorld);

  const { ask, refused, create, get, fresh } = world;

  describe('POST /api/agents', () => {
    it('returns the whole record, which GET returns at once', async () => {
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
      conforms(createAgentResponse, reply, 201);
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
      expect(conforms(agentResponse, await ask('GET', `/api/agents/${agent.id}`)).agent).to.deep.equal(agent);
      expect((await ask('GET', `/api/agents/${name}`)).body.agent).to.deep.equal(agent);
    });

    it('fills in defaults', async () => {
      expect(await create({ session_key: '', template: null, runtime_type: null })).to.deep.include({
        status: 'offline',
        session_key: null,
        soul_content: null,
        config: {},
        runtime_type: null,
      });
    });

    it('keeps texts unchanged: any language, any allowed size', async () => {
      const soul_content = `${'𝕊øul 日本 "quoted" \\ \n'.repeat(2_000)}`.slice(0, 49_999);
      const name = 'Zoë / 50% ?x=1 #2';
      const agent = await create({ name, soul_content: `${soul_content.slice(0, 49_000)}e` });
      expect(agent.soul_content).to.equal(`${soul_content.slice(0, 49_000)}e`);
      expect(await get(encodeURIComponent(name))).to.deep.include({ id: agent.id, name });
    });

    it('rejects a name or a session key that is taken', async () => {
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
      it(`rejects ${what} with 400`, () => refused('POST', '/api/agents', body, 400));
    }

    it('names the invalid field, and rejects bodies that are too large', async () => {
      const { body } = await refused('POST', '/api/agents', { name: 'x', role: 5, config: { a: 1 }, status: 1 }, 400);
      expect(body.details).to.have.length(2);
      expect(body.details[0]).to.match(/^role: /);
      await refused('POST', '/api/agents', { name: 'x', role: 'x', soul_content: 'x'.repeat(3_000_000) }, 413);
    });
  });

  describe('GET /api/agents', () => {
    it('pages through all agents, newest first', async () => {
      for (let n = 0; n < 5; n++) await create();
      const first = await ask('GET', '/api/agents');
      conforms(agentsResponse, first);
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

    it('filters list and total by status and role', async () => {
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
      for (const written of ['e\u0301diteur', 'éditeur']) await create({ role: `${role} ${written}` });
      for (const asked of ['e\u0301diteur', 'éditeur'])
        expect(await query(`role=${encodeURIComponent(`${role} ${asked}`)}`), asked).to.equal(2);
    });

    it('rejects filters with characters that cannot be stored', async () => {
      await refused('GET', '/api/agents?status=%00', undefined, 400);
      await refused('GET', `/api/agents?role=${'x'.repeat(501)}`, undefined, 400);
    });
  });

  describe('POST /api/agents/register', () => {
    it('creates an idle agent, and recognizes it the next time', async () => {
      const name = fresh('self');
      const body = { name: ` ${name} `, role: 'tester', framework: ' crewai ', capabilities: ['a', 5, null, 'b'] };
      const first = await ask('POST', '/api/agents/register', body);
      conforms(registerResponse, first, 201);
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
      conforms(registerResponse, second);
      expect(second.body).to.deep.include({ registered: false });
      expect(second.body.agent).to.deep.equal({ ...first.body.agent, role: 'lead' });
      expect(await get(name)).to.include({ status: 'idle', role: 'lead' });

      const [activity, ...more] = await world.activities('agent_created', agent.id);
      expect(more).to.have.length(0);
      expect(activity).to.include({ actor: name });
      expect(activity.metadata).to.deep.equal({
        name,
        role: 'tester',
        framework: 'crewai',
        capabilities: ['a', 'b'],
        self_registered: true,
      });
      const entries = await world.world.audit('agent_self_register');
      expect(entries.filter((entry) => entry.target_id === agent.id)).to.have.length(1);
      await world.stream.until(() => world.framesOf('agent.created', agent.id).length > 0);
      expect(world.framesOf('agent.created', agent.id)[0]?.data).to.deep.equal({
        id: agent.id,
        name,
        role: 'tester',
        status: 'idle',
        workspace_id: 1,
      });
    });

    it('rejects invalid names and roles', async () => {
      for (const name of ['', '-x', '.x', '..', 'a b', 'a/b', 'x'.repeat(64), '25', 'aegis', 5, null])
        await refused('POST', '/api/agents/register', { name }, 400);
      await refused('POST', '/api/agents/register', { name: fresh(), role: 'king' }, 400, /role/);
      await refused('POST', '/api/agents/register', { name: fresh(), capabilities: 'x' }, 400);
      await refused('POST', '/api/agents/register', undefined, 400, /body/);
    });
  });

  describe('hide', () => {
    it('removes an agent from the default list and puts it back', async () => {
      const role = fresh('role');
      const agent = await create({ role });
      const counts = async () => [
        (await ask('GET', `/api/agents?role=${role}`)).body.total,
        (await ask('GET', `/api/agents?role=${role}&show_hidden=true`)).body.total,
      ];
      const body = conforms(hideResponse, await ask('POST', `/api/agents/${agent.id}/hide`));
      expect(body).to.deep.equal({ success: true, agent_id: agent.id, hidden: true });
      expect(await counts()).to.deep.equal([0, 1]);
      expect(await get(agent.id)).to.include({ hidden: 1 });
      expect((await ask('DELETE', `/api/agents/${agent.name}/hide`)).body).to.deep.include({ hidden: false });
      expect(await counts()).to.deep.equal([1, 1]);
      await refused('POST', '/api/agents/nobody/hide', undefined, 404);
    });
  });
});
