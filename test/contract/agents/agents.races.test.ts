/**
 * Agents under many requests at once: names are given once, no write is lost, every answer is readable at once. In one
 * process, and in two on one PostgreSQL, where every other request goes to the other process.
 */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { runs } from '../../support/runs.ts';
import { call, type Reply, startTestService, startTwo, type TestService } from '../../support/service.ts';

describe('Concurrent requests for agents', () => {
  const one = fixture(() => startTestService());
  races(() => [one]);
});

describeWith('TEST_DATABASE_URL', 'Concurrent requests for agents in two processes', () => {
  const two = fixture(() => startTwo());
  races(() => two.services);
});

function races(services: () => readonly TestService[]): void {
  let asked = 0;
  const ask = (method: string, path: string, body?: unknown) => {
    const all = services();
    return call(all[asked++ % all.length] as TestService, method, path, body);
  };
  const create = async (name: string, fields: object = {}) =>
    (await ask('POST', '/api/agents', { name, role: 'x', ...fields })).body.agent as { id: number };
  const counted = (replies: readonly Reply[]) => {
    const counts: Record<number, number> = {};
    for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };
  const times = <T>(count: number, work: (n: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, n) => work(n)));

  it('50 creations of one name: one 201, 49 409', async () => {
    const replies = await times(50, () => ask('POST', '/api/agents', { name: 'wanted', role: 'x' }));
    expect(counted(replies)).to.deep.equal({ 201: 1, 409: 49 });
    expect((await ask('GET', '/api/agents?role=x')).body.total).to.equal(1);
  });

  it('50 self-registrations of one name: one creates the agent, the others find it', async () => {
    const replies = await times(50, () => ask('POST', '/api/agents/register', { name: 'self' }));
    expect(counted(replies)).to.deep.equal({ 200: 49, 201: 1 });
    const ids = replies.map(({ body }) => `${body.agent.id} ${body.agent.name} ${body.agent.status}`);
    expect(new Set(ids).size).to.equal(1);
    expect((await ask('GET', '/api/agents?role=agent')).body.total).to.equal(1);
  });

  it('merges into one config: no change is lost', async () => {
    const { id } = await create('merged');
    const replies = await times(10, (n) => ask('PUT', `/api/agents/${id}`, { gateway_config: { [`key${n}`]: n } }));
    const { config } = (await ask('GET', `/api/agents/${id}`)).body.agent;
    const succeeded = replies.flatMap(({ status }, n) => (status === 200 ? [`key${n}`] : []));
    expect(succeeded).not.to.have.length(0);
    expect(Object.keys(config)).to.have.members(succeeded);
  });

  it('additions to one memory: each is stored once', async () => {
    const { id } = await create('memory');
    const replies = await times(30, (n) =>
      ask('PUT', `/api/agents/${id}/memory`, { working_memory: `line ${n};`, append: true }),
    );
    expect(counted(replies)).to.deep.equal({ 200: 30 });
    const { working_memory, size } = (await ask('GET', `/api/agents/${id}/memory`)).body;
    expect(working_memory).to.have.length(size);
    for (let n = 0; n < 30; n++) expect(working_memory.split(`line ${n};`)).to.have.length(2);
  });

  it('a write can be read by the next request, again and again', async () => {
    const ids = await times(4, async (n) => (await create(`read-${n}`)).id);
    await Promise.all(
      ids.map(async (id) => {
        for (let n = 0; n < runs(20, 60); n++) {
          const role = `role-${n}`;
          expect((await ask('PUT', `/api/agents/${id}`, { role })).status).to.equal(200);
          expect((await ask('GET', `/api/agents/${id}`)).body.agent.role).to.equal(role);
        }
      }),
    );
  });

  it('a heartbeat is counted by the next request, also where the response was cached', async () => {
    const { id } = await create('counted');
    const count = async () =>
      (await ask('GET', `/api/agents/${id}/diagnostics?privileged=1&section=summary`)).body.summary.heartbeats;
    for (let n = 1; n <= 20; n++) {
      expect((await ask('POST', `/api/agents/${id}/heartbeat`, {})).status).to.equal(200);
      // From each process, and repeated by it.
      for (let read = 0; read < 3; read++) expect(await count(), `heartbeat ${n}, read ${read}`).to.equal(n);
    }
    // What one process changes, the other one finds in the log.
    for (let n = 1; n <= 4; n++) {
      await ask('PUT', '/api/agents', { name: 'counted', status: 'busy' });
      await ask('POST', `/api/agents/${id}/heartbeat`, {});
      expect((await ask('GET', `/api/agents/${id}`)).body.agent.status).to.equal('idle');
    }
    expect(await count()).to.equal(24);
  });

  it('heartbeats of one agent: each is counted', async () => {
    const { id } = await create('beating');
    const replies = await times(40, () => ask('POST', `/api/agents/${id}/heartbeat`, {}));
    expect(counted(replies)).to.deep.equal({ 200: 40 });
    const { summary } = (await ask('GET', `/api/agents/${id}/diagnostics?privileged=1&section=summary`)).body;
    expect(summary.heartbeats).to.equal(40);
    const changes = await ask('GET', '/api/activities?type=agent_status_change&actor=beating');
    expect(changes.body.total).to.equal(1);
  });
}
