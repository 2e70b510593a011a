import { expect } from 'chai';
import { connectionsProjection } from '../../projections/connections.ts';
import { heartbeatsReceived } from '../../shared/events/agents/heartbeat.ts';
import { connectionClosed, connectionOpened, connectionSeen } from '../../shared/events/connections.ts';
import { seconds } from '../../shared/time.ts';
import { eventsOf, rowsAfter, timeOf } from '../support/kit.ts';

describe('projection connections', () => {
  const agent = { agent_id: 3, name: 'ada' };
  const uuid = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  const time = (n: number) => seconds(timeOf(n));
  const opened = (n: number, replaces: string | null = null) =>
    connectionOpened.draft({
      ...agent,
      id: n,
      connection_id: uuid(n),
      tool_name: 'cli',
      tool_version: '1.0',
      metadata: { pid: 1 },
      replaces,
      already_online: false,
    });
  const seen = (n: number) => connectionSeen.draft({ ...agent, connection_id: uuid(n) });

  it('keeps a connection with its last heartbeat', () => {
    expect(rowsAfter(connectionsProjection, eventsOf([opened(1), seen(1)])).connections).to.deep.equal([
      {
        workspace_id: 1,
        connection_id: uuid(1),
        tenant_id: 1,
        id: 1,
        agent_id: 3,
        tool_name: 'cli',
        tool_version: '1.0',
        status: 'connected',
        metadata: { pid: 1 },
        last_heartbeat: time(2),
        created_at: time(1),
        updated_at: time(2),
        position: 2,
      },
    ]);
  });

  it('ends a connection on request, for inactivity, and on replacement', () => {
    const closed = connectionClosed.draft({ ...agent, connection_id: uuid(2), cause: 'stale' });
    const { connections } = rowsAfter(
      connectionsProjection,
      eventsOf([opened(1), opened(2, uuid(1)), closed, opened(3)]),
    );
    expect(
      connections.map(({ id, status, last_heartbeat, updated_at }) => [id, status, last_heartbeat, updated_at]),
    ).to.deep.equal([
      [1, 'disconnected', time(1), time(2)],
      [2, 'disconnected', time(2), time(3)],
      [3, 'connected', time(4), time(4)],
    ]);
  });

  it('shows the last heartbeat of a summary, unless a later one is known', () => {
    const summary = (at: number, ...connections: [number, string, number][]) =>
      heartbeatsReceived.draft({ window: 1, part: 0, from: at, to: at, agents: [[3, 1, 0, 0]], connections });
    const events = [opened(1), summary(time(9), [3, uuid(1), 5], [3, uuid(8), 0]), summary(time(2), [3, uuid(1), 0])];
    const { connections } = rowsAfter(connectionsProjection, eventsOf(events));
    expect(connections).to.have.length(1);
    expect(connections[0]).to.include({ last_heartbeat: time(9) + 5, updated_at: time(1), position: 2 });
    const { wants, weigh } = connectionsProjection;
    expect([wants?.(summary(0)), wants?.(opened(1)), wants?.(summary(0, [3, 'c', 0]))]).to.deep.equal([
      false,
      true,
      true,
    ]);
    expect([weigh?.(opened(1)), weigh?.(summary(0, [3, 'c', 0], [4, 'd', 0]))]).to.deep.equal([1, 2]);
  });
});
