/** The feed of messages, and the graph of who talks to whom. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { chatProjection } from '../../../projections/chat.ts';
import { listComms } from '../../../queries/agents/messages.ts';
import { MAX_GRAPH } from '../../../shared/contract/agents/messages.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { allTasks } from '../../../shared/identity.ts';
import { sample } from '../../support/kit.ts';
import { openReadModels, type ReadModels, secondsOf } from '../../support/rows.ts';

let number = 0;
const sent = (from: string, to: string) =>
  sample(agentMessageSent, {
    message_id: ++number,
    from,
    to,
    from_agent_id: null,
    to_agent_id: 1,
    content: `${from} to ${to}`,
    message_type: 'text',
  });

describe('message queries', () => {
  let models: ReadModels;
  before(async () => {
    number = 0;
    models = await openReadModels([chatProjection, agentsProjection]);
    await models.tell(
      sent('ada', 'eve'),
      sent('eve', 'ada'),
      sent('ada', 'eve'),
      sent('eve', 'kim'),
      sent('Human', 'ada'),
      sent('ada', 'system'),
      sent('operator', 'human'),
      [sent('ada', 'spy'), { workspace: 2 }],
    );
  });
  after(() => models?.close());

  const list = (query: object = {}, workspace = 1) =>
    listComms(models.reads, allTasks(workspace), { limit: 50, offset: 0, ...query } as Parameters<typeof listComms>[2]);
  const ids = async (query?: object) => (await list(query)).messages.map(({ id }) => id);

  it('return the latest messages in the feed, the oldest of them first', async () => {
    const { messages, total, source } = await list();
    expect(messages.map(({ id }) => id)).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    expect(messages[1]).to.deep.equal({
      id: 2,
      from_agent: 'eve',
      to_agent: 'ada',
      content: 'eve to ada',
      type: 'text',
      created_at: secondsOf(2),
      message_type: 'text',
      conversation_id: 'a2a:1:@eve',
      metadata: null,
      read_at: null,
      workspace_id: 1,
    });
    expect({ total, source }).to.deep.equal({ total: 7, source: { mode: 'live', seededCount: 0, liveCount: 7 } });
    expect(await ids({ limit: 2 })).to.deep.equal([6, 7]);
    expect(await ids({ limit: 2, offset: 2 })).to.deep.equal([4, 5]);
  });

  it('return the messages that an agent sent and received, in pages', async () => {
    expect(await ids({ agent: 'ada' })).to.deep.equal([1, 2, 3, 5, 6]);
    expect(await ids({ agent: 'ada', limit: 2, offset: 1 })).to.deep.equal([3, 5]);
    expect(await ids({ agent: 'ada', limit: 2, offset: 3 })).to.deep.equal([1, 2]);
    expect((await list({ agent: 'kim' })).total).to.equal(1);
  });

  it('return a graph edge per direction between agents, without people and the service', async () => {
    const { graph } = await list();
    expect(graph.edges).to.deep.equal([
      { from_agent: 'ada', to_agent: 'eve', message_count: 2, last_message_at: secondsOf(3) },
      { from_agent: 'eve', to_agent: 'ada', message_count: 1, last_message_at: secondsOf(2) },
      { from_agent: 'eve', to_agent: 'kim', message_count: 1, last_message_at: secondsOf(4) },
    ]);
    expect(graph.agentStats).to.deep.equal([
      { agent: 'eve', sent: 2, received: 2 },
      { agent: 'ada', sent: 2, received: 1 },
      { agent: 'kim', sent: 0, received: 1 },
    ]);
    const ofKim = (await list({ agent: 'kim' })).graph;
    expect(ofKim.edges.map(({ from_agent, to_agent }) => [from_agent, to_agent])).to.deep.equal([['eve', 'kim']]);
    expect(ofKim.agentStats, 'of all, whatever is asked for').to.deep.equal(graph.agentStats);
  });

  it('the graph has the pairs and the agents with the most messages, at most 1,000 each; the total counts all', async () => {
    const names = Array.from({ length: 33 }, (_, n) => `agent-${n}`);
    const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const));
    const all = [...pairs, ...pairs.slice(-3)];
    await models.tell(...all.map(([from, to]) => [sent(from, to), { workspace: 9 }] as const));
    const { graph, total } = await list({}, 9);
    expect([pairs.length, graph.edges.length, total]).to.deep.equal([1_056, MAX_GRAPH, 1_059]);
    expect(graph.edges.slice(0, 4).map(({ message_count }) => message_count)).to.deep.equal([2, 2, 2, 1]);
    const { length } = graph.agentStats;
    expect([length, graph.agentStats[0]]).to.deep.equal([33, { agent: 'agent-32', sent: 35, received: 32 }]);
  });

  it('return only messages after a given time, and edges counted from them', async () => {
    const { messages, total, graph } = await list({ since: secondsOf(2) });
    expect(messages.map(({ id }) => id)).to.deep.equal([3, 4, 5, 6, 7]);
    expect(total).to.equal(5);
    expect(graph.edges).to.deep.equal([
      { from_agent: 'ada', to_agent: 'eve', message_count: 1, last_message_at: secondsOf(3) },
      { from_agent: 'eve', to_agent: 'kim', message_count: 1, last_message_at: secondsOf(4) },
    ]);
    const [first] = (await list({ since: secondsOf(0) })).graph.edges;
    expect(first).to.include({ from_agent: 'ada', message_count: 2, last_message_at: secondsOf(3) });
    const ofEve = await list({ since: secondsOf(1), agent: 'kim' });
    expect([ofEve.total, ofEve.messages.map(({ id }) => id)]).to.deep.equal([1, [4]]);
  });

  it('return no messages of another workspace', async () => {
    expect(await list({}, 3)).to.deep.equal({
      messages: [],
      total: 0,
      graph: { edges: [], agentStats: [] },
      source: { mode: 'empty', seededCount: 0, liveCount: 0 },
    });
    expect((await list({ since: secondsOf(1) }, 2)).messages.map(({ id }) => id)).to.deep.equal([8]);
    expect((await list({ since: secondsOf(1) }, 2)).graph.edges).to.have.length(1);
  });
});
