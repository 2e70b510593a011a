/** Conversations and messages: what is listed, how many there are, and what is remembered of which workspace. */
import { expect } from 'chai';
import { settingsProjection } from '../../projections/admin/settings.ts';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { chatProjection } from '../../projections/chat.ts';
import { createChatDirectory, listConversations, listMessages } from '../../queries/chat.ts';
import { chatMessageSent } from '../../shared/events/chat.ts';
import { allTasks } from '../../shared/identity.ts';
import { sample } from '../support/kit.ts';
import { openReadModels, type ReadModels, secondsOf } from '../support/rows.ts';

let messages = 0;
const ids = new Map<string, number>();
/** A message in a conversation, which begins with the first one. */
const said = (conversation: string, from: string, to: string | null) => {
  const messageId = ++messages;
  const conversationId = ids.get(conversation) ?? messageId;
  ids.set(conversation, conversationId);
  return sample(chatMessageSent, {
    ...{
      message_id: messageId,
      conversation_id: conversationId,
      conversation,
      from,
      to,
      ...{ from_agent_id: null, recipient_id: null, to_agent_id: null },
      content: `${from} in ${conversation}`,
    },
    message_type: 'text',
  });
};

describe('chat queries', () => {
  let models: ReadModels;
  before(async () => {
    messages = 0;
    ids.clear();
    models = await openReadModels([chatProjection, agentsProjection, settingsProjection]);
    await models.tell(
      said('roof', 'ada', 'eve'),
      // Ada has said something to everybody and is a participant, too.
      said('all', 'ada', null),
      said('all', 'ada', 'eve'),
      said('other', 'kim', 'eve'),
      said('roof', 'eve', 'ada'),
      said('roof', 'ada', 'eve'),
      [said('garden', 'ada', 'eve'), { workspace: 2 }],
    );
  });
  after(() => models?.close());

  const conversations = (query: { agent?: string; limit?: number; offset?: number }) =>
    listConversations(models.reads, allTasks(1), { limit: 50, offset: 0, agent: undefined, ...query });
  const list = (query: object, workspace = 1) =>
    listMessages(models.reads, allTasks(workspace), { limit: 50, offset: 0, ...query } as Parameters<
      typeof listMessages
    >[2]);

  it('list a conversation once if an agent takes part in it and it has messages to all', async () => {
    const keys = async (query: Parameters<typeof conversations>[0]) => {
      const { conversations: found, total } = await conversations(query);
      return [total, ...found.map(({ conversation_key }) => conversation_key)];
    };
    expect(await keys({ agent: 'ada' })).to.deep.equal([2, 'roof', 'all']);
    expect(await keys({ agent: 'eve' })).to.deep.equal([3, 'roof', 'other', 'all']);
    expect(await keys({ agent: 'nobody' }), 'what is for everybody').to.deep.equal([1, 'all']);
    expect(await keys({})).to.deep.equal([3, 'roof', 'other', 'all']);
    expect(await keys({ agent: 'ada', limit: 1, offset: 1 })).to.deep.equal([2, 'all']);
  });

  it('count the messages that match a filter', async () => {
    const totals = async (query: object, workspace?: number) => {
      const { messages: found, total } = await list(query, workspace);
      return [total, found.length];
    };
    expect(await totals({})).to.deep.equal([6, 6]);
    expect(await totals({ since: secondsOf(4) })).to.deep.equal([2, 2]);
    expect(await totals({ since: secondsOf(4), limit: 1 })).to.deep.equal([2, 1]);
    const conversation_id = { key: 'roof' };
    expect(await totals({ conversation_id })).to.deep.equal([3, 3]);
    expect(await totals({ conversation_id, since: secondsOf(1) })).to.deep.equal([2, 2]);
    expect(await totals({ conversation_id, from_agent: 'eve' })).to.deep.equal([1, 1]);
    expect(await totals({ to_agent: 'eve' })).to.deep.equal([4, 4]);
    expect(await totals({ since: secondsOf(6) })).to.deep.equal([0, 0]);
    expect(await totals({}, 2)).to.deep.equal([1, 1]);
  });

  it('cache conversations per workspace: another workspace finds neither their ids nor their keys', async () => {
    const chat = createChatDirectory({ reads: models.reads });
    const directory = (workspace: number) => chat(workspace, {} as never);
    const roof = { id: 1, key: 'roof' };
    const garden = { id: 7, key: 'garden' };
    const found = async (workspace: number) => {
      const { conversation } = directory(workspace);
      const refs = [{ id: 1 }, { key: 'roof' }, { id: 7 }, { key: 'garden' }];
      return (await Promise.all(refs.map(conversation))).map((one) => one && { id: one.id, key: one.key });
    };
    for (const _ of ['read', 'remembered']) {
      expect(await found(1)).to.deep.equal([roof, roof, undefined, undefined]);
      expect(await found(2)).to.deep.equal([undefined, undefined, garden, garden]);
    }
    // What a workspace begins is its own from then on, also under a key that another one has.
    directory(2).begun({ id: 99, key: 'roof' });
    expect(await found(1)).to.deep.equal([roof, roof, undefined, undefined]);
    expect(await directory(2).conversation({ key: 'roof' })).to.deep.equal({ id: 99, key: 'roof' });
    expect(await directory(1).conversation({ id: 99 })).to.equal(undefined);
  });

  it('list conversations of participants in this workspace', async () => {
    await models.tell([said('roof', 'kim', 'lea'), { workspace: 2 }]);
    const { conversations: found, total } = await conversations({ agent: 'kim' });
    expect([total, ...found.map(({ conversation_key }) => conversation_key)]).to.deep.equal([2, 'other', 'all']);
  });
});
