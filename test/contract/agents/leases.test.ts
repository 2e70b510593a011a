/** Heartbeats that change nothing: they renew a lease, every read shows them, and a summary of them is in the log. */
import { expect } from 'chai';
import { removeOldSummaries, sumUpHeartbeats } from '../../../commands/agents/leases.ts';
import { sweepLiveness } from '../../../commands/schedules/agents/liveness.ts';
import { silentAgents } from '../../../queries/agents/liveness.ts';
import { heartbeatsReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { testOrigin } from '../../support/world.ts';
import { startAgentsWorld } from '../../support/worlds/agents.ts';

describe('Heartbeats that change nothing', () => {
  const world = fixture(startAgentsWorld);
  const { ask, create, get, activities } = world;
  const core = () => world.world.service.core;
  const beat = async (id: number, body: object = {}) => bodyOf(await ask('POST', `/api/agents/${id}/heartbeat`, body));
  const events = (id: number) => core().store.readStream(`agent-1-${id}`);
  const summaries = async () =>
    (await core().store.readStream('liveness-1')).filter(
      (event) => event.type === heartbeatsReceived.type,
    ) as unknown as EventOf<typeof heartbeatsReceived>[];
  const sumUp = () => {
    const { commands, leases, positions } = core();
    return sumUpHeartbeats({ commands, leases, readModels: positions }, 1);
  };
  /** What the log says of an agent. */
  const summed = async (id: number) =>
    (await summaries()).flatMap(({ data }) =>
      data.agents.flatMap(([agent, beats, first, last]) =>
        agent === id ? [{ beats, first: data.from + first, last: data.from + last }] : [],
      ),
    );
  const beatsOf = async (id: number) => (await summed(id)).reduce((sum, { beats }) => sum + beats, 0);
  /** Moves the lease of an agent into the past, as if its heartbeats had come then. */
  const age = (id: number, by: number) =>
    core().database.pool.query(
      `UPDATE service.leases SET first_at = first_at - $2, last_at = last_at - $2, closed_first = closed_first - $2,
         closed_last = closed_last - $2, connection_at = connection_at - $2 WHERE agent_id = $1`,
      [id, by],
    );

  it('write no event, activity or frame; the one before them, and what they count, are in the log', async () => {
    const { id } = await create({ status: 'error' });
    for (let n = 0; n < 4; n++) await beat(id);
    expect((await events(id)).filter(({ type }) => type === 'AgentHeartbeatReceived')).to.have.length(1);
    expect(await activities('agent_heartbeat', id)).to.have.length(1);
    expect(await beatsOf(id)).to.equal(0);
    await sumUp();
    await sumUp();
    expect(await summed(id)).to.have.length(1);
    expect(await beatsOf(id)).to.equal(3);
    await beat(id);
    await sumUp();
    expect(await beatsOf(id)).to.equal(4);
    await world.stream.until(() => world.framesOf('agent.status_changed', id).length > 0);
    expect(world.framesOf('agent.status_changed', id)).to.have.length(1);
  });

  it('are seen in each read at once, whether or not it was cached', async () => {
    const { id, name } = await create();
    await beat(id);
    const seen = async () => {
      const { agents } = bodyOf(await ask('GET', '/api/agents?limit=200'));
      const listed = agents.find((agent: { id: number }) => agent.id === id).last_seen;
      const { identity } = bodyOf(await ask('GET', `/api/agents/${id}/attribution?section=identity&privileged=1`));
      const exported = bodyOf(await ask('GET', '/api/export?type=agents&format=json'));
      const own = (exported.data ?? exported).find((agent: { id: number }) => agent.id === id).last_seen;
      return [(await get(id)).last_seen, listed, identity.last_seen, own];
    };
    await beat(id);
    const now = Math.floor(Date.now() / 1_000);
    await core().database.pool.query('UPDATE service.leases SET last_at = last_at + 100 WHERE agent_id = $1', [id]);
    await beat(id);
    for (const at of await seen()) expect(at, name).to.be.within(now + 98, now + 110);
    await core().database.pool.query('UPDATE service.leases SET last_at = last_at + 100 WHERE agent_id = $1', [id]);
    await beat(id);
    for (const at of await seen()) expect(at, 'after a cached response').to.be.within(now + 198, now + 220);
    await sumUp();
    for (const at of await seen()) expect(at, 'after the summary').to.be.within(now + 198, now + 220);
    const { agent } = bodyOf(await ask('PUT', `/api/agents/${id}`, { role: 'tester' }));
    expect(agent.last_seen, 'in the response of a write').to.be.within(now + 198, now + 220);
  });

  it('are in the past as of their summary', async () => {
    const { id } = await create();
    await beat(id);
    const before = (await core().eventLog.head()).toString();
    const { last_seen: then } = await get(id);
    await beat(id);
    await core().database.pool.query('UPDATE service.leases SET last_at = last_at + 50 WHERE agent_id = $1', [id]);
    expect((await ask('GET', `/api/agents/${id}?as_of=${before}`)).body.agent.last_seen).to.equal(then);
    await sumUp();
    const after = (await core().eventLog.head()).toString();
    expect((await ask('GET', `/api/agents/${id}?as_of=${before}`)).body.agent.last_seen).to.equal(then);
    expect((await ask('GET', `/api/agents/${id}?as_of=${after}`)).body.agent.last_seen).to.be.greaterThan(then + 40);
    expect((await get(id)).last_seen).to.equal(
      (await ask('GET', `/api/agents/${id}?as_of=${after}`)).body.agent.last_seen,
    );
  });

  it('are events as soon as they change something', async () => {
    const { id, name } = await create();
    await beat(id);
    await beat(id);
    const count = async () => (await events(id)).filter(({ type }) => type === 'AgentHeartbeatReceived').length;
    expect(await count()).to.equal(1);
    await ask('POST', '/api/tasks', { title: 'work', assigned_to: name, status: 'assigned' });
    await beat(id);
    expect(await count(), 'a task waits').to.equal(2);
    await beat(id);
    expect(await count()).to.equal(2);
    await beat(id, { token_usage: { model: 'm', inputTokens: 1, outputTokens: 1 } });
    expect(await count(), 'tokens were used').to.equal(2);
    expect((await events(id)).filter(({ type }) => type === 'TokensReported')).to.have.length(1);
    await ask('PUT', '/api/agents', { name, status: 'busy', last_activity: 'thinks' });
    await beat(id);
    expect(await count(), 'the status changes').to.equal(3);
    expect(await get(id)).to.deep.include({ status: 'idle', last_activity: 'Heartbeat received' });
    await ask('PUT', '/api/agents', { name, last_activity: 'thinks' });
    await beat(id);
    expect(await count(), 'the last activity changes').to.equal(4);
    expect(await get(id)).to.deep.include({ last_activity: 'Heartbeat received' });
  });

  it('are events when the setting says so', async () => {
    const { id } = await create();
    const set = async (value: string) =>
      bodyOf(await ask('PUT', '/api/settings', { settings: { 'general.heartbeat_events': value } }));
    await set('all');
    for (let n = 0; n < 3; n++) await beat(id);
    expect(await activities('agent_heartbeat', id)).to.have.length(3);
    await set('changes');
    await beat(id);
    expect(await activities('agent_heartbeat', id)).to.have.length(3);
    expect((await ask('PUT', '/api/settings', { settings: { 'general.heartbeat_events': 'some' } })).status).to.equal(
      400,
    );
  });

  it('keep an agent and its connection alive', async () => {
    const name = world.fresh('tool');
    const { connection_id: connection, agent_id: id } = bodyOf(
      await ask('POST', '/api/connect', { tool_name: 'cli', agent_name: name }),
    );
    await beat(id, { connection_id: connection });
    await beat(id, { connection_id: connection });
    const shown = async () => {
      const { connections } = bodyOf(await ask('GET', '/api/connect?limit=200'));
      return connections.find((one: { connection_id: string }) => one.connection_id === connection);
    };
    await core().database.pool.query(
      'UPDATE service.leases SET connection_at = connection_at + 100, last_at = last_at + 100 WHERE agent_id = $1',
      [id],
    );
    const lastHeartbeat = (await shown()).last_heartbeat;
    expect(lastHeartbeat).to.be.greaterThan(Date.now() / 1_000 + 90);
    await sumUp();
    expect((await shown()).last_heartbeat).to.equal(lastHeartbeat);
    const { commands, leases, reads } = core();
    const sweep = (since: number) =>
      sweepLiveness({
        ...{ commands, leases, timeoutMinutes: 0, now: () => since * 1_000 },
        silentAgents: (moment) => silentAgents(reads, moment),
      });
    expect(await sweep(lastHeartbeat - 5)).to.not.include(name);
    expect(await sweep(lastHeartbeat + 5)).to.include(name);
    expect(await get(id)).to.include({ status: 'offline' });
    await beat(id, { connection_id: connection });
    expect(await get(id)).to.include({ status: 'idle' });
    const before = (await events(id)).length;
    await beat(id, { connection_id: connection });
    expect(await events(id), 'the lease was granted again').to.have.length(before);
    expect(await sweep(lastHeartbeat - 5)).to.not.include(name);
  });

  it('stay with a connection that was replaced', async () => {
    const agent = { tool_name: 'cli', agent_name: world.fresh('tool') };
    const connect = async () => bodyOf(await ask('POST', '/api/connect', agent));
    const { connection_id: old, agent_id: id } = await connect();
    for (let n = 0; n < 2; n++) await beat(id, { connection_id: old });
    await core().database.pool.query(
      'UPDATE service.leases SET connection_at = connection_at + 100, last_at = last_at + 100 WHERE agent_id = $1',
      [id],
    );
    const shown = async () => {
      const { connections } = bodyOf(await ask('GET', '/api/connect?limit=200'));
      return connections.find((one: { connection_id: string }) => one.connection_id === old).last_heartbeat;
    };
    const seen = await shown();
    expect(seen).to.be.greaterThan(Date.now() / 1_000 + 90);
    const { connection_id: connection } = await connect();
    const count = async () => (await events(id)).filter(({ type }) => type === 'AgentHeartbeatReceived').length;
    for (let n = 0; n < 3; n++) await beat(id, { connection_id: connection });
    expect(await shown()).to.equal(seen);
    expect(await count(), 'events until the old one is summed up').to.equal(4);
    await sumUp();
    for (let n = 0; n < 2; n++) await beat(id, { connection_id: connection });
    expect(await count()).to.equal(4);
    expect(await shown()).to.equal(seen);
    await sumUp();
    expect(await shown()).to.equal(seen);
  });

  it('are an event after a sweep that began to look at the agent', async () => {
    const { id } = await create();
    await beat(id);
    await beat(id);
    await age(id, 1_000);
    const { leases } = core();
    const place = { tenant: 1, workspace: 1, agent: id };
    const since = Math.floor(Date.now() / 1_000) - 600;
    expect(await leases.revoke(place, since - 600)).to.equal(undefined);
    expect(await leases.revoke(place, since)).to.be.lessThan(since);
    const before = (await events(id)).length;
    await beat(id);
    expect(await events(id)).to.have.length(before + 1);
    await beat(id);
    expect(await events(id)).to.have.length(before + 1);
    expect(await leases.revoke(place, since)).to.equal(undefined);
  });

  it('of a deleted agent are in the log before its deletion', async () => {
    const { id } = await create();
    for (let n = 0; n < 3; n++) await beat(id);
    bodyOf(await ask('DELETE', `/api/agents/${id}`));
    expect(await beatsOf(id)).to.equal(2);
    const deleted = (await events(id)).find(({ type }) => type === 'AgentDeleted');
    const last = (await summaries()).find(({ data }) => data.agents.some(([agent]) => agent === id));
    expect(deleted?.position).to.be.greaterThan(last?.position as number);
  });

  it('lose old summaries, but the newest, if the past is bounded', async () => {
    const { commands, reads } = core();
    const { id } = await create();
    const { id: silent } = await create();
    const now = Math.floor(Date.now() / 1_000);
    const days = (n: number) => now - n * 86_400;
    const window = (at: number) => at * 1_000_000 + id;
    const summary = (at: number, ...agents: number[]) =>
      heartbeatsReceived.draft({
        ...{ window: window(at), part: 0, from: at, to: at, connections: [] },
        agents: agents.map((agent) => [agent, 2, 0, 0]),
      });
    const context = { origin: { ...testOrigin, tenant: 1, workspace: 1 } };
    await commands.record('liveness-1', context, [
      ...[summary(days(60), id, silent), summary(days(50), id, silent), summary(days(20), id)],
    ]);
    const run = (historyDays: number) =>
      removeOldSummaries({ commands, reads }, [{ id: 1, tenant: 1 }], {
        ...{ days: historyDays, deadline: Number.POSITIVE_INFINITY, now: Date.now },
      });
    const rows = async (agent: number) => {
      const { rows } = await core().database.pool.query<{ window: number }>(
        'SELECT window_id AS window FROM leases_v1.windows WHERE agent_id = $1 ORDER BY window_id',
        [agent],
      );
      return rows.map((row) => row.window);
    };
    const { last_seen: seen } = await get(silent);
    expect(seen).to.equal(days(50));
    expect(await run(0)).to.equal(0);
    expect(await run(55)).to.equal(2);
    await get(id);
    expect(await rows(id)).to.deep.equal([window(days(50)), window(days(20))]);
    // Reads of the last 30 days count the others, however short the past is.
    expect(await run(1)).to.equal(1);
    await get(id);
    expect(await rows(id)).to.deep.equal([window(days(20))]);
    expect(await rows(silent)).to.deep.equal([window(days(50))]);
    expect((await get(silent)).last_seen).to.equal(seen);
    expect(await run(1)).to.equal(0);
  });

  it('are in the log before a backup copies it', async () => {
    const { id } = await create();
    for (let n = 0; n < 3; n++) await beat(id);
    bodyOf(await ask('POST', '/api/backup', {}));
    expect(await beatsOf(id)).to.equal(2);
    await beat(id);
    await sumUp();
    expect(await beatsOf(id)).to.equal(3);
  });

  it('are counted once by many callers, and by summaries at the same time', async () => {
    const agents = await Promise.all(Array.from({ length: 8 }, () => create()));
    await Promise.all(agents.map(({ id }) => beat(id)));
    await Promise.all([
      ...agents.flatMap(({ id }) => Array.from({ length: 10 }, () => beat(id))),
      ...Array.from({ length: 4 }, () => sumUp()),
    ]);
    await sumUp();
    for (const { id } of agents) expect(await beatsOf(id)).to.equal(10);
  });
});
