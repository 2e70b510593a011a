import { expect } from 'chai';
import { chatProjection } from '../../projections/chat.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import { chatMessageRead, chatMessageSent } from '../../shared/events/chat.ts';
import { notificationForwarded } from '../../shared/events/monitoring/notifications.ts';
import { seconds } from '../../shared/time.ts';
import { eventsOf, rowsAfter, sample, timeOf } from '../support/kit.ts';

const agentOf = (name: string): number => (name === 'ada' ? 1 : 3);
const sent = (messageId: number, from: string, to: string) =>
  sample(agentMessageSent, {
    message_id: messageId,
    from,
    to,
    from_agent_id: agentOf(from),
    to_agent_id: agentOf(to),
    content: `from ${from}`,
    message_type: 'text',
  });

describe('projection chat', () => {
  const time = (n: number) => seconds(timeOf(n));
  const told = () =>
    rowsAfter(
      chatProjection,
      eventsOf([sent(1, 'ada', 'eve'), sent(2, 'eve', 'ada'), sent(3, 'ada', 'eve'), sent(4, 'ada', 'ada')]),
    );

  it('stores each message as unread in the conversation of the pair', () => {
    const { messages } = told();
    expect(messages[1]).to.deep.equal({
      workspace_id: 1,
      id: 2,
      conversation: 'a2a:1:3',
      from_agent: 'eve',
      to_agent: 'ada',
      from_agent_id: 3,
      recipient_id: 1,
      to_agent_id: 1,
      content: 'from eve',
      message_type: 'text',
      metadata: null,
      read_at: null,
      created_at: time(2),
      position: 2,
    });
    expect(messages.map((row) => row.conversation)).to.deep.equal(['a2a:1:3', 'a2a:1:3', 'a2a:1:3', 'a2a:1:1']);
  });

  it('contains notifications delivered to agents, and none for users', () => {
    const delivered = (message: { message_id: number; to_agent_id: number; content: string } | null) =>
      sample(notificationForwarded, {
        ...{ notification_id: 9, recipient: 'eve', notification_type: 'mention', title: 't' },
        message,
      });
    const events = eventsOf([delivered({ message_id: 5, to_agent_id: 3, content: 'told' }), delivered(null)]);
    const { messages, message_edges } = rowsAfter(chatProjection, events);
    expect(messages).to.have.length(1);
    expect(messages[0]).to.include({
      ...{ id: 5, from_agent: 'system', to_agent: 'eve', to_agent_id: 3, content: 'told' },
      ...{ message_type: 'notification', conversation: 'a2a:3:@system' },
    });
    expect(message_edges[0]).to.include({ from_agent: 'system', to_agent: 'eve', count: 1 });
  });

  it('counts messages per direction, with the time of the last one', () => {
    const edge = { workspace_id: 1, from_agent_id: 1, to_agent_id: 3 };
    expect(told().message_edges).to.have.deep.members([
      { ...edge, from_agent: 'ada', to_agent: 'eve', count: 2, last_message_at: time(3), position: 3 },
      {
        ...edge,
        ...{ from_agent_id: 3, to_agent_id: 1 },
        from_agent: 'eve',
        to_agent: 'ada',
        count: 1,
        last_message_at: time(2),
        position: 2,
      },
      { ...edge, to_agent_id: 1, from_agent: 'ada', to_agent: 'ada', count: 1, last_message_at: time(4), position: 4 },
    ]);
  });

  it('chooses the last message of a pair by time, even if a clock went back', () => {
    const [first, second] = eventsOf([sent(1, 'ada', 'eve'), sent(2, 'ada', 'eve')]);
    if (!first || !second) throw new Error('two events were asked for');
    const late = { ...first, meta: { ...first.meta, at: timeOf(9) } };
    expect(rowsAfter(chatProjection, [late, second]).message_edges[0]).to.include({
      count: 2,
      last_message_at: time(9),
    });
  });

  const said = (messageId: number, to: string | null, more: object = {}) =>
    sample(chatMessageSent, {
      message_id: messageId,
      conversation_id: 1,
      conversation: 'chat:1',
      from: 'admin',
      to,
      ...{ from_agent_id: null, recipient_id: null, to_agent_id: null },
      content: `said ${messageId}`,
      message_type: 'text',
      ...more,
    });
  const read = (messageId: number, to: string | null, first: boolean) =>
    chatMessageRead.draft({ message_id: messageId, conversation: 'chat:1', to, recipient_id: null, first });

  it('stores conversations with their last message and participants', () => {
    const events = eventsOf([said(1, 'ada'), said(2, null), said(3, 'admin', { content: 'x'.repeat(2_000) })]);
    const { conversations, participants, message_totals } = rowsAfter(chatProjection, events);
    expect(conversations).to.deep.equal([
      {
        workspace_id: 1,
        conversation: 'chat:1',
        id: 1,
        message_count: 3,
        broadcasts: 1,
        last_message: 'x'.repeat(1_000),
        created_at: time(1),
        updated_at: time(3),
        position: 3,
      },
    ]);
    const place = { workspace_id: 1, conversation: 'chat:1' };
    const none = { agent_id: null, inbox_id: null };
    expect(participants).to.deep.equal([
      { ...place, participant: 'name:admin', name: 'admin', ...none, unread: 1, first_id: 1, position: 3 },
      { ...place, participant: 'name:ada', name: 'ada', ...none, unread: 1, first_id: 1, position: 1 },
    ]);
    expect(message_totals).to.deep.equal([{ workspace_id: 1, messages: 3, position: 3 }]);
  });

  it('gives a conversation of agents the id of its first message', () => {
    const { conversations } = told();
    expect(conversations.map(({ conversation, id, message_count }) => [conversation, id, message_count])).to.deep.equal(
      [
        ['a2a:1:3', 1, 3],
        ['a2a:1:1', 4, 1],
      ],
    );
  });

  it('counts a read message once as no longer unread, and keeps the last time', () => {
    const events = eventsOf([said(1, 'ada'), said(2, 'ada'), read(1, 'ada', true), read(1, 'ada', false)]);
    const { messages, participants } = rowsAfter(chatProjection, events);
    expect(messages.map(({ read_at }) => read_at)).to.deep.equal([time(4), null]);
    expect(participants.map(({ name, unread }) => [name, unread])).to.deep.equal([
      ['admin', 0],
      ['ada', 1],
    ]);
  });

  it('allows a message to all to be read, and counts it as unread for no agent', () => {
    const { messages, participants } = rowsAfter(chatProjection, eventsOf([said(1, null), read(1, null, true)]));
    expect(messages[0]).to.include({ to_agent: null, read_at: time(2) });
    expect(participants.map(({ name, unread }) => [name, unread])).to.deep.equal([['admin', 0]]);
  });

  it('counts a message in the agent graph only if it is in an inbox', () => {
    const events = eventsOf([said(1, 'ada'), said(2, 'ada', { to_agent_id: 3 })]);
    expect(rowsAfter(chatProjection, events).message_edges).to.deep.equal([
      {
        ...{ workspace_id: 1, from_agent_id: 0, to_agent_id: 3, from_agent: 'admin', to_agent: 'ada' },
        ...{ count: 1, last_message_at: time(2), position: 2 },
      },
    ]);
  });

  it('keeps the agent that got the newest message to a name in its inbox', () => {
    const events = eventsOf([said(1, 'ada', { to_agent_id: 3 }), said(2, 'ada', { to_agent_id: 7 }), said(3, 'ada')]);
    const { participants } = rowsAfter(chatProjection, events);
    expect(participants.map(({ name, inbox_id }) => [name, inbox_id])).to.deep.equal([
      ['admin', null],
      ['ada', 7],
    ]);
  });

  it('has an agent once in a conversation, under whatever name, and a person of the former name apart', () => {
    const from = (name: string, id: number | null) => ({ from: name, from_agent_id: id });
    const events = eventsOf([
      said(1, 'eve', { ...from('ada', 1), recipient_id: 3 }),
      said(2, 'eve', { ...from('ida', 1), recipient_id: 3 }),
      said(3, 'ida', { ...from('ada', null), recipient_id: 1 }),
      chatMessageRead.draft({ message_id: 3, conversation: 'chat:1', to: 'ida', recipient_id: 1, first: true }),
    ]);
    const { participants } = rowsAfter(chatProjection, events);
    expect(
      participants.map(({ participant, name, agent_id, unread }) => [participant, name, agent_id, unread]),
    ).to.deep.equal([
      ['agent:1', 'ada', 1, 0],
      ['agent:3', 'eve', 3, 2],
      ['name:ada', 'ada', null, 0],
    ]);
  });
});
