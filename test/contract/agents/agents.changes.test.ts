/** Agents through HTTP: changed by id and by name, deleted; who may; workspaces apart. */
import { expect } from 'chai';
import { deleteAgentResponse, updateByIdResponse } from '../../../shared/contract/agents/agents.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('Updates of agents', () => {
  const world = fixture(startAgentsWorld);

  const { ask, refused, create, get, fresh } = world;

  describe('/api/agents/{id}', () => {
    it('returns 404 for an unknown agent and 400 for an invalid id', async () => {
      for (const path of ['999999', 'nobody', '%2e%2e', 'x'.repeat(300)]) {
        await refused('GET', `/api/agents/${path}`, undefined, 404);
        await refused('PUT', `/api/agents/${path}`, { role: 'x' }, 404);
        await refused('DELETE', `/api/agents/${path}`, undefined, 404);
      }
      for (const path of ['0', '-1', '99999999999999999999', '%00', '%E0%A4%A'])
        await refused('GET', `/api/agents/${path}`, undefined, 400);
    });

    it('PUT changes the given fields and nothing else', async () => {
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
      conforms(updateByIdResponse, reply);
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
      const [activity] = await world.activities('agent_config_updated', agent.id);
      expect(activity.metadata.fields).to.have.members(['name', 'role', 'config', 'session_key', 'soul_content']);
      expect(activity.metadata.write_to_gateway).to.equal(false);
      expect(await world.activities('agent_status_change', agent.id)).to.have.length(1);
      await world.stream.until(() => world.framesOf('agent.updated', agent.id).length > 0);
      const frames = world.framesOf('agent.updated', agent.id);
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

    it('PUT clears session key and persona with null, and a session key with an empty string', async () => {
      const agent = await create({ session_key: fresh('key'), soul_content: 'x' });
      const { body } = await ask('PUT', `/api/agents/${agent.id}`, { session_key: '', soul_content: null });
      expect(body.agent).to.include({ session_key: null, soul_content: null });
      expect(await create({ session_key: agent.session_key })).to.include({ session_key: agent.session_key });
    });

    it('PUT rejects names and keys of other agents, and unknown fields', async () => {
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
      expect(await world.activities('agent_config_updated', one.id)).to.have.length(0);
    });

    it('DELETE removes the record, keeps its history and frees its names', async () => {
      const agent = await create({ session_key: fresh('key') });
      const body = conforms(deleteAgentResponse, await ask('DELETE', `/api/agents/${agent.id}`));
      expect(body).to.deep.equal({ success: true, deleted: agent.name, remove_workspace: false });
      await refused('GET', `/api/agents/${agent.id}`, undefined, 404);
      await refused('DELETE', `/api/agents/${agent.id}`, undefined, 404);
      await refused('PUT', '/api/agents', { name: agent.name, role: 'x' }, 404);
      expect(await world.activities('agent_created', agent.id)).to.have.length(1);
      expect((await world.activities('agent_deleted', agent.id))[0].metadata).to.deep.equal({
        name: agent.name,
        role: 'coder',
        remove_workspace: false,
      });
      await world.stream.until(() => world.framesOf('agent.deleted', agent.id).length > 0);
      expect(world.framesOf('agent.deleted', agent.id)[0]?.data).to.include({ name: agent.name, workspace_id: 1 });
      const again = await create({ name: agent.name, session_key: agent.session_key });
      expect(again.id).to.be.above(agent.id);
      const named = await ask('DELETE', `/api/agents/${agent.name}`, { remove_workspace: true });
      expect(named.body).to.include({ deleted: agent.name, remove_workspace: true });
    });
  });

  describe('PUT /api/agents', () => {
    it('records a status as a sign of life', async () => {
      const agent = await create();
      const reply = await ask('PUT', '/api/agents', { name: agent.name, status: 'busy', last_activity: 'thinking' });
      expect(reply).to.deep.include({ status: 200, body: { success: true } });
      const after = await get(agent.id);
      expect(after).to.include({ status: 'busy', last_activity: 'thinking' });
      expect(after.last_seen).to.be.a('number');
      const [activity] = await world.activities('agent_status_change', agent.id);
      expect(activity).to.deep.include({ actor: agent.name });
      expect(activity.metadata).to.include({ oldStatus: 'offline', newStatus: 'busy', last_activity: 'thinking' });
      await ask('PUT', '/api/agents', { name: agent.name, status: 'busy' });
      expect(await world.activities('agent_status_change', agent.id)).to.have.length(1);
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

    it('rejects invalid reports', async () => {
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
});
