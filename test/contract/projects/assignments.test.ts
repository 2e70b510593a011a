/** Agents of projects, on the service of `projects.test.ts`. */
import { expect } from 'chai';
import { assignedResponse, assignmentsResponse } from '../../../shared/contract/projects/assignments.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startProjectsWorld } from '../../support/worlds/projects.ts';

describe('agents of projects', function () {
  this.timeout(120_000);
  const world = fixture(startProjectsWorld);
  const { ask } = world;

  const assignments = async (id: number) =>
    (await ask('GET', `/api/projects/${id}/agents`)).body.assignments.map(
      ({ agent_name, role }: { agent_name: string; role: string }) => [agent_name, role],
    );
  const agentsOf = async (id: number) => (await ask('GET', `/api/projects/${id}`)).body.project.assigned_agents;

  it('are assigned, listed in that order, and removed', async () => {
    const { id } = await world.createProject();
    const path = `/api/projects/${id}/agents`;
    const assigned = await ask('POST', path, { agent_name: ' zoe ', role: ' lead ' });
    conforms(assignedResponse, assigned, 201);
    expect((await ask('POST', path, { agent_name: 'ada', role: '' })).status).to.equal(201);
    // Again is nothing new, not even another role.
    expect((await ask('POST', path, { agent_name: 'zoe', role: 'member' })).status).to.equal(201);
    const body = conforms(assignmentsResponse, await ask('GET', path));
    expect(body.assignments[0]).to.include({ project_id: id, agent_name: 'zoe', role: 'lead' });
    expect(await assignments(id)).to.deep.equal([
      ['zoe', 'lead'],
      ['ada', 'member'],
    ]);
    expect(await agentsOf(id)).to.deep.equal(['zoe', 'ada']);
    for (const _ of ['first', 'again']) {
      conforms(assignedResponse, await ask('DELETE', `${path}?agent_name=zoe`));
      expect(await assignments(id)).to.deep.equal([['ada', 'member']]);
    }
  });

  it('are replaced by PATCH: remaining ones keep their role, and unknown ones reject the request', async () => {
    const [a, b, c] = [await world.create(), await world.create(), await world.create()];
    const { id } = await world.createProject();
    await ask('POST', `/api/projects/${id}/agents`, { agent_name: a.name, role: 'lead' });
    await ask('POST', `/api/projects/${id}/agents`, { agent_name: b.name });
    const reply = await ask('PATCH', `/api/projects/${id}`, { assigned_agents: [c.name, ` ${a.name} `] });
    expect(reply.body.project.assigned_agents).to.have.members([a.name, c.name]);
    expect(await assignments(id)).to.have.deep.members([
      [a.name, 'lead'],
      [c.name, 'member'],
    ]);
    const refused = await ask('PATCH', `/api/projects/${id}`, {
      name: 'Not this',
      assigned_agents: [a.name, 'nobody', 'no one'],
    });
    expect(refused.status).to.equal(400);
    expect(refused.body.details).to.deep.equal(['nobody', 'no one']);
    const after = (await ask('GET', `/api/projects/${id}`)).body.project;
    expect(after.name).not.to.equal('Not this');
    expect(after.assigned_agents).to.have.members([a.name, c.name]);
    // All of a request or nothing of it.
    const prefix = await world.createProject({ ticket_prefix: 'HELD' });
    const both = { ticket_prefix: 'HELD', assigned_agents: [] };
    expect((await ask('PATCH', `/api/projects/${id}`, both)).status).to.equal(409);
    expect(await agentsOf(id)).to.have.length(2);
    expect(prefix.ticket_prefix).to.equal('HELD');
    expect((await ask('PATCH', `/api/projects/${id}`, { assigned_agents: [] })).status).to.equal(200);
    expect(await agentsOf(id)).to.deep.equal([]);
  });

  it('require a name and an existing project', async () => {
    const path = `/api/projects/${(await world.createProject()).id}/agents`;
    await world.refused('POST', path, {}, 400, /agent_name/);
    await world.refused('POST', path, { agent_name: '  ' }, 400, /agent_name/);
    await world.refused('DELETE', path, undefined, 400, /agent_name/);
    await world.refused('GET', '/api/projects/999999/agents', undefined, 404);
    await world.refused('POST', '/api/projects/999999/agents', { agent_name: 'x' }, 404);
    await world.refused('DELETE', '/api/projects/999999/agents?agent_name=x', undefined, 404);
    await world.refused('GET', '/api/projects/x/agents', undefined, 400);
  });
});
