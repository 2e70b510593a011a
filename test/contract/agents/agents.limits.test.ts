/** How many agents, keys, connected tools and recurring tasks there may be: settings, small ones here. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { bodyOf, call, type Reply, startTwo, type TestService } from '../../support/service.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

const AGENTS = 6;

describe('Workspace limits', () => {
  let names = 0;
  const world = fixture(() =>
    startAuthWorld({
      MAX_AGENTS: String(AGENTS),
      MAX_AGENT_KEYS: '2',
      MAX_CONNECTIONS: '2',
      MAX_RECURRING_TASKS: '2',
      MC_CONNECTION_TIMEOUT_MINUTES: '0',
    }),
  );

  const ask = (method: string, path: string, body?: unknown, as = world.adminKey) =>
    world.ask(method, path, { as, body });
  const fresh = () => `one-${++names}`;
  const create = (name = fresh(), as?: string) => ask('POST', '/api/agents', { name, role: 'x' }, as);
  const total = async () => (await ask('GET', '/api/agents')).body.total as number;
  const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status).sort();
  const refused = ({ status, body }: Reply, says: RegExp) => {
    expect([status, body.error]).to.deep.equal([409, body.error]);
    expect(body.error).to.match(says);
  };

  it('agents: every way to create one is rejected at the limit, and works again below it', async () => {
    const all = await Promise.all(Array.from({ length: AGENTS + 4 }, () => create()));
    expect(statuses(all)).to.deep.equal([...Array(AGENTS).fill(201), ...Array(4).fill(409)]);
    expect(await total()).to.equal(AGENTS);
    const list = [{ id: 'imported', name: 'imported' }];
    expect((await ask('PUT', '/api/gateway-config', { agents: { list } })).status).to.equal(200);
    const ways: readonly (() => Promise<Reply>)[] = [
      () => create(),
      () => ask('POST', '/api/agents/register', { name: fresh() }),
      () => ask('POST', '/api/connect', { tool_name: 'cli', agent_name: fresh() }),
      () => ask('POST', '/api/agents/sync'),
      () => ask('POST', '/api/gateways', { name: fresh(), url: 'http://gate.example', agents: [{ name: fresh() }] }),
    ];
    const known = all.filter(({ status }) => status === 201).map(({ body }) => body.agent);
    for (const way of ways) {
      refused(await way(), /at most 6 agents/);
      expect(await total()).to.equal(AGENTS);
      // Those that exist may go on.
      const { name } = known[0];
      expect((await ask('POST', '/api/agents/register', { name })).status).to.equal(200);
      const { id } = known.pop();
      expect((await ask('DELETE', `/api/agents/${id}`)).status).to.equal(200);
      expect((await way()).status).to.be.within(200, 201);
      expect(await total()).to.equal(AGENTS);
    }
  });

  it('agents of other workspaces do not count', async () => {
    const there = await world.makeSession({ username: 'elsewhere', role: 'admin', workspace: 2 });
    expect((await create('there', there)).status).to.equal(201);
    refused(await create(), /at most 6 agents/);
  });

  it('agent keys: only valid keys count', async () => {
    const [agent] = (await ask('GET', '/api/agents')).body.agents;
    const path = `/api/agents/${agent.id}/keys`;
    expect((await ask('POST', path, { expires_at: 1_000_000 })).status).to.equal(201);
    const replies = await Promise.all(Array.from({ length: 4 }, () => ask('POST', path)));
    expect(statuses(replies)).to.deep.equal([201, 201, 409, 409]);
    const key = replies.find(({ status }) => status === 201)?.body.key;
    refused(await ask('POST', path), /at most 2 valid keys/);
    expect((await ask('DELETE', path, { key_id: key.id })).status).to.equal(200);
    expect((await ask('POST', path)).status).to.equal(201);
  });

  it('connected tools: a new connection of an agent replaces its previous one', async () => {
    const agents = (await ask('GET', '/api/agents')).body.agents as { id: number; name: string }[];
    const connect = (at: number) =>
      ask('POST', '/api/connect', { tool_name: 'cli', agent_name: (agents[at] as { name: string }).name });
    const { connections } = (await ask('GET', '/api/connect')).body;
    for (const { status, connection_id } of connections)
      if (status === 'connected') await ask('DELETE', '/api/connect', { connection_id });
    const [first, second] = [await connect(0), await connect(1)];
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    refused(await connect(2), /at most 2 connected tools/);
    const body = bodyOf(await connect(0));
    await ask('DELETE', '/api/connect', { connection_id: body.connection_id });
    expect(statuses(await Promise.all([connect(2), connect(3), connect(4)]))).to.deep.equal([200, 409, 409]);
    // One whose agent is gone is not connected any more.
    await ask('DELETE', `/api/agents/${agents[1]?.id}`);
    expect((await connect(5)).status).to.equal(200);
  });

  it('recurring tasks: new tasks and tasks that become recurring count', async () => {
    const metadata = { recurrence: { enabled: true, cron_expr: '0 4 1 1 *' } };
    const task = (more: object = {}) => ask('POST', '/api/tasks', { title: fresh(), ...more });
    const put = (id: number, body: object) => ask('PUT', `/api/tasks/${id}`, body);
    const plain = (await task()).body.task.id;
    const made = await Promise.all(Array.from({ length: 4 }, () => task({ metadata })));
    expect(statuses(made)).to.deep.equal([201, 201, 409, 409]);
    refused(await task({ metadata }), /at most 2 recurring tasks/);
    refused(await put(plain, { metadata }), /at most 2 recurring tasks/);
    expect((await task({ metadata: { recurrence: { ...metadata.recurrence, enabled: false } } })).status).to.equal(201);
    const { id } = made.find(({ status }) => status === 201)?.body.task ?? {};
    // One that recurs already may be changed, and stopped.
    expect((await put(id, { metadata: { ...metadata, note: 1 } })).status).to.equal(200);
    expect((await put(id, { metadata: {} })).status).to.equal(200);
    expect((await put(plain, { metadata })).status).to.equal(200);
    refused(await put(id, { metadata }), /at most 2 recurring tasks/);
    expect((await put(999_999, { metadata })).status).to.equal(404);
  });
});

describeWith('TEST_DATABASE_URL', 'Workspace limits with two processes', () => {
  const two = fixture(() => startTwo({ MAX_AGENTS: '5' }));

  it('of 20 agents created at once, only 5 are accepted', async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        call(two.services[n % 2] as TestService, 'POST', '/api/agents', { name: `one-${n}`, role: 'x' }),
      ),
    );
    expect(replies.filter(({ status }) => status === 201)).to.have.length(5);
    expect(replies.filter(({ status }) => status === 409)).to.have.length(15);
    for (const service of two.services) expect((await call(service, 'GET', '/api/agents')).body.total).to.equal(5);
  });
});
