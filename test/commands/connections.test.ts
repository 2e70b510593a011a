/** Connections of tools: decisions on the agent's state, and who gets the agent of a name. */
import { expect } from 'chai';
import { decideHeartbeat } from '../../commands/agents/heartbeat.ts';
import { connectTool, decideConnect, decideDisconnect, toolsRegistration } from '../../commands/connections.ts';
import { connectionClosed, connectionOpened, connectionSeen } from '../../shared/events/connections.ts';
import { ada, deleted, given, registered, status } from '../support/agent.ts';
import { agentsMemory } from '../support/agents-memory.ts';
import { anyRoom, type Draft, outcomeOf, timeOf } from '../support/kit.ts';
import { repeatedRequest } from '../support/memory-world.ts';

const FIRST = '00000000-0000-4000-8000-000000000001';
const SECOND = '00000000-0000-4000-8000-000000000002';
const tool = { tool_name: 'cli', tool_version: '1.0', metadata: null };
const opened = (connectionId: string, replaces: string | null = null) =>
  connectionOpened.draft({ ...ada, ...tool, id: 1, connection_id: connectionId, replaces, already_online: false });

describe('an agent connection', () => {
  const connect = (...drafts: readonly Draft[]) =>
    decideConnect(given(...drafts).state, { ...tool, id: 2, connection_id: SECOND, isNew: false });

  it('sets its agent online and starts', () => {
    const [changed, begun] = connect(registered);
    expect(changed?.data).to.include({ from: 'offline', to: 'online', cause: 'connect', seen: false });
    expect(begun?.data).to.deep.include({ ...ada, ...tool, connection_id: SECOND, replaces: null });
    expect(begun?.data).to.include({ already_online: false });
    const again = connect(registered, status('online'));
    expect(again.map(({ type, data }) => [type, data.already_online])).to.deep.equal([['ConnectionOpened', true]]);
  });

  it('replaces and ends the previous connection', () => {
    expect(connect(registered, status('online'), opened(FIRST))[0]?.data).to.include({ replaces: FIRST });
    expect(given(registered, opened(FIRST), opened(SECOND, FIRST)).state.connection?.id).to.equal(SECOND);
  });

  it('sets its agent offline once when it ends, if it is the current connection', () => {
    const before = given(registered, status('busy'), opened(FIRST));
    const drafts = decideDisconnect(before.state, FIRST);
    expect(drafts.map(({ type }) => type)).to.deep.equal(['ConnectionClosed', 'AgentStatusChanged']);
    expect(drafts[0]?.data).to.include({ cause: 'request' });
    expect(drafts[1]?.data).to.include({ from: 'busy', to: 'offline', cause: 'disconnect' });
    before.when(decideDisconnect, SECOND).then();
    const closed = connectionClosed.draft({ ...ada, connection_id: FIRST, cause: 'request' });
    given(registered, opened(FIRST), closed).when(decideDisconnect, FIRST).then();
    expect(decideDisconnect(given(registered, opened(FIRST)).state, FIRST), 'offline already').to.have.length(1);
  });

  it('disappears with its agent', () => {
    const before = given(registered, opened(FIRST), deleted);
    expect(before.state.connection).to.equal(null);
    before.when(decideDisconnect, FIRST).thenRefuses(404);
    before.when(decideConnect, { ...tool, id: 2, connection_id: SECOND, isNew: false }).thenRefuses(404);
  });

  it('is refreshed only by heartbeats that name it', () => {
    const state = given(registered, opened(FIRST)).state;
    const seen = (connectionId: string | null) =>
      decideHeartbeat(state, {
        connection_id: connectionId,
        work_items_count: 0,
        work_item_types: [],
        tokenUsage: null,
      }).filter(({ type }) => type === connectionSeen.type);
    expect(seen(FIRST).map(({ data }) => data)).to.deep.equal([{ ...ada, connection_id: FIRST }]);
    for (const other of [SECOND, null]) expect(seen(other)).to.deep.equal([]);
    const after = given(registered, opened(FIRST), connectionSeen.draft({ ...ada, connection_id: FIRST })).state;
    expect(after.connection).to.deep.equal({ id: FIRST, seenAt: timeOf(3) });
    const late = given(registered, opened(SECOND), connectionSeen.draft({ ...ada, connection_id: FIRST })).state;
    expect(late.connection, 'of one that has been replaced').to.deep.equal({ id: SECOND, seenAt: timeOf(2) });
  });
});

describe('connecting a tool', () => {
  const input = { ...tool, agent_name: 'ada', agentRole: 'cli' };
  const rooms = { agents: anyRoom, connections: () => anyRoom };

  it('creates an online agent, or uses the existing agent of that name', async () => {
    const { commands, context, stateOf, events } = agentsMemory();
    const first = await connectTool(commands, context(), rooms, async () => undefined, input);
    expect(await stateOf(first.agent_id)).to.include({ name: 'ada', role: 'cli', status: 'online' });
    expect(events('AgentRegistered')[0]?.data).to.include({ via: 'connect' });
    const again = await connectTool(commands, context(), rooms, async () => first.agent_id, {
      ...input,
      agentRole: 'other',
    });
    expect(again.agent_id).to.equal(first.agent_id);
    expect(again.connection_id).not.to.equal(first.connection_id);
    expect((await stateOf(first.agent_id)).role).to.equal('cli');
    expect((await stateOf(first.agent_id)).connection?.id).to.equal(again.connection_id);
  });

  it('yields the same agent as another tool that connects under the name at the same time', async () => {
    const memory = agentsMemory();
    const { world, context, events } = memory;
    const agentIdOf = async () => events('AgentRegistered')[0]?.data.agent_id as number | undefined;
    const both = await Promise.all(
      [1, 2, 3].map(() => connectTool(world.process(), context(), rooms, agentIdOf, input)),
    );
    expect(new Set(both.map(({ agent_id: agentId }) => agentId)).size).to.equal(1);
    expect(events('AgentRegistered')).to.have.length(1);
    const replaced = events('ConnectionOpened').map(({ data }) => data.replaces);
    expect(replaced.filter((one) => one === null)).to.have.length(1);
  });

  it('creates a new agent if the agent of that name was deleted meanwhile', async () => {
    const { commands, context } = agentsMemory();
    let asked = 0;
    const { agent_id: agentId } = await connectTool(
      commands,
      context(),
      rooms,
      async () => (asked++ === 0 ? 999 : undefined),
      input,
    );
    expect(agentId).not.to.equal(999);
  });

  it('returns the agent and connection of the first run if its request is repeated', async () => {
    const { commands, world } = agentsMemory();
    const once = repeatedRequest();
    const first = await connectTool(commands, once(), rooms, async () => undefined, input);
    const written = world.written().length;
    expect(await connectTool(commands, once(), rooms, async () => first.agent_id, input)).to.deep.equal(first);
    expect(world.written()).to.have.length(written);
  });

  it('is rejected under an invalid agent name', async () => {
    const { commands, context } = agentsMemory();
    const work = connectTool(commands, context(), rooms, async () => undefined, { ...input, agent_name: 'a\u200bb' });
    expect(await outcomeOf(work)).to.equal('400');
  });

  it('shows the agent as an operator would see it', () => {
    expect(toolsRegistration('ada', 'cli')).to.include({ status: 'online', source: 'manual', via: 'connect' });
  });
});
