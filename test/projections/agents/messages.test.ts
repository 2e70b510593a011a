import { expect } from 'chai';
import { agentMessagesProjection } from '../../../projections/agents/messages.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { notificationForwarded } from '../../../shared/events/monitoring/notifications.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

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
  const time = (n: number) => seconds(timeOf(n));
  const told = () =>
    rowsAfter(
      agentMessagesProjection,
      eventsOf([sent(1, 'ada', 'eve'), sent(2, 'eve', 'ada'), sent(3, 'ada', 'eve'), sent(4, 'ada', 'ada')]),
    );

  it('keeps each message, unread, in the conversation of the pair', () => {
    const { messages } = told();
    expect(messages[1]).to.deep.equal({
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
    expect(messages.map((row) => row.conversation_id)).to.deep.equal([
      'a2a:ada:eve',
      'a2a:ada:eve',
      'a2a:ada:eve',
      'a2a:ada:ada',
    ]);
  });

  it('has the notifications that were delivered to agents, and none of those for users', () => {
    const delivered = (message: { messageId: number; toAgentId: number; content: string } | null) =>
      notificationForwarded.draft({
        ...{ notificationId: 9, recipient: 'eve', notificationType: 'mention', title: 't', sessionKey: null },
        message,
      });
    const events = eventsOf([delivered({ messageId: 5, toAgentId: 3, content: 'told' }), delivered(null)]);
    const { messages, message_edges } = rowsAfter(agentMessagesProjection, events);
    expect(messages).to.have.length(1);
    expect(messages[0]).to.include({
      ...{ id: 5, from_agent: 'system', to_agent: 'eve', to_agent_id: 3, content: 'told' },
      ...{ message_type: 'notification', conversation_id: 'a2a:eve:system' },
    });
    expect(message_edges[0]).to.include({ from_agent: 'system', to_agent: 'eve', count: 1 });
  });

  it('counts per direction, with the time of the last', () => {
    const edge = { workspace_id: 1 };
    expect(told().message_edges).to.have.deep.members([
      { ...edge, from_agent: 'ada', to_agent: 'eve', count: 2, last_message_at: time(3), position: 3 },
      { ...edge, from_agent: 'eve', to_agent: 'ada', count: 1, last_message_at: time(2), position: 2 },
      { ...edge, from_agent: 'ada', to_agent: 'ada', count: 1, last_message_at: time(4), position: 4 },
    ]);
  });

  it('the last message of a pair is the one with the latest time, though a clock went back', () => {
    const [first, second] = eventsOf([sent(1, 'ada', 'eve'), sent(2, 'ada', 'eve')]);
    if (!first || !second) throw new Error('two events were asked for');
    const late = { ...first, meta: { ...first.meta, at: timeOf(9) } };
    expect(rowsAfter(agentMessagesProjection, [late, second]).message_edges[0]).to.include({
      count: 2,
      last_message_at: time(9),
    });
  });
});
