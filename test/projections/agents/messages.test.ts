import { expect } from 'chai';
import { agentMessagesProjection, messageEdgesTable, messagesTable } from '../../../projections/agents/messages.ts';
import { MemoryTables } from '../../../projections/apply.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf } from '../../support/kit.ts';

const sent = (messageId: number, from: string, to: string) =>
  agentMessageSent.draft({
    messageId,
    from,
    to,
    toAgentId: to.length,
    content: `from ${from}`,
    messageType: 'text',
    secrets: { count: 0, types: [] },
  });

describe('projection agent_messages', () => {
  const events = eventsOf([sent(1, 'ada', 'eve'), sent(2, 'eve', 'ada'), sent(3, 'ada', 'eve'), sent(4, 'ada', 'ada')]);
  const time = (n: number) => seconds(events[n - 1]?.meta.at as number);
  const tables = new MemoryTables();
  tables.apply(agentMessagesProjection, events);

  it('keeps each message, unread, in the conversation of the pair', () => {
    expect(tables.rows(messagesTable)[1]).to.deep.equal({
      workspace_id: 1,
      id: 2,
      conversation_id: 'a2a:ada:eve',
      from_agent: 'eve',
      to_agent: 'ada',
      to_agent_id: 3,
      content: 'from eve',
      message_type: 'text',
      read_at: null,
      created_at: time(2),
      position: 2,
    });
    expect(tables.rows(messagesTable).map((row) => row.conversation_id)).to.deep.equal([
      'a2a:ada:eve',
      'a2a:ada:eve',
      'a2a:ada:eve',
      'a2a:ada:ada',
    ]);
  });

  it('counts per direction, with the time of the last', () => {
    const edges = tables
      .rows(messageEdgesTable)
      .map(({ from_agent, to_agent, count, last_message_at }) => [from_agent, to_agent, count, last_message_at]);
    expect(edges).to.have.deep.members([
      ['ada', 'eve', 2, time(3)],
      ['eve', 'ada', 1, time(2)],
      ['ada', 'ada', 1, time(4)],
    ]);
  });

  it('gives the same rows when the events are told twice', () => {
    const before = [tables.rows(messagesTable), tables.rows(messageEdgesTable)];
    tables.apply(agentMessagesProjection, events);
    expect([tables.rows(messagesTable), tables.rows(messageEdgesTable)]).to.deep.equal(before);
  });
});
