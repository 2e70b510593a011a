/** Comments on tasks, given events, when one is decided, then events: pure; and the whole command, in memory. */
import { expect } from 'chai';
import type { Mentioned } from '../../../commands/mentions.ts';
import { decideComment, MAX_COMMENTS, MAX_DEPTH, quoted } from '../../../commands/tasks/comments.ts';
import { MAX_SUBSCRIBERS, taskDecider } from '../../../commands/tasks/tasks.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { taskAssigned, taskCommented } from '../../../shared/events/tasks/comments.ts';
import { taskSubscribed } from '../../../shared/events/tasks/subscriptions.ts';
import { givenFor, refusalOf, sample } from '../../support/kit.ts';
import { created, deleted, TASK } from '../../support/tasks.ts';

const given = givenFor(taskDecider);
const NOBODY: Mentioned = { tokens: [], recipients: [], agents: [] };
const agents = (...names: readonly string[]): Mentioned => ({ tokens: names, recipients: names, agents: names });
const comment = (fields: Partial<Parameters<typeof decideComment>[1]> = {}) => ({
  id: 31,
  parent_id: null,
  depth: 0,
  author: 'Ann',
  content: 'Looks good',
  mentioned: NOBODY,
  ...fields,
});

const of = (drafts: readonly EventDraft[], type: string) =>
  drafts.filter((draft) => draft.type === type).map(({ data }) => data as Record<string, unknown>);
/** Recipient and type of every notification. */
const told = (drafts: readonly EventDraft[]) =>
  of(drafts, 'NotificationRaised').map(({ recipient, type }) => `${recipient}: ${type}`);

describe('task: comments', () => {
  it('a comment by the only follower is one event', () => {
    given(created())
      .when(decideComment, comment())
      .then(
        sample(taskCommented, { task_id: 7, title: TASK.title, comment_id: 31, author: 'Ann', content: 'Looks good' }),
      );
  });

  it('all followers of the task are notified, except the author', () => {
    const drafts = decideComment(given(created({ assigned_to: 'ada' })).state, comment({ author: 'eve' }));
    expect(of(drafts, 'TaskSubscribed')).to.deep.equal([{ task_id: 7, title: TASK.title, names: ['eve'] }]);
    expect(told(drafts)).to.deep.equal(['Ann: comment', 'ada: comment']);
    expect(of(drafts, 'NotificationRaised')[0]).to.deep.include({
      source_type: 'comment',
      source_id: 31,
      message: 'eve commented on "Mend the roof": Looks good',
    });
  });

  it('mentioned users and agents follow the task and are notified of the mention', () => {
    const drafts = decideComment(
      given(created({ assigned_to: 'ada' })).state,
      comment({ mentioned: { tokens: ['Bob', 'ada'], recipients: ['bob', 'ada'], agents: ['ada'] } }),
    );
    expect(of(drafts, 'TaskCommented')[0]?.mentions).to.deep.equal(['Bob', 'ada']);
    expect(of(drafts, 'TaskSubscribed')[0]?.names).to.deep.equal(['bob']);
    expect(told(drafts)).to.deep.equal(['ada: mention', 'bob: mention']);
  });

  it('authors are not notified of their own comments, even if mentioned', () => {
    const herself = { tokens: ['ann'], recipients: ['Ann'], agents: [] };
    expect(told(decideComment(given(created()).state, comment({ mentioned: herself })))).to.deep.equal([]);
  });

  it('an unassigned task is assigned to the first mentioned agent', () => {
    const drafts = decideComment(given(created()).state, comment({ mentioned: agents('ada', 'bee') }));
    expect(of(drafts, 'TaskAssigned')[0]).to.deep.include({
      before: { status: 'inbox', priority: 'medium', assigned_to: null, project_id: 1 },
      after: { status: 'assigned', priority: 'medium', assigned_to: 'ada', project_id: 1 },
      trigger: 'mention',
      by: 'Ann',
    });
    expect(told(drafts)).to.deep.equal(['ada: assignment', 'ada: mention', 'bee: mention']);
  });

  it('a status other than inbox does not change', () => {
    const drafts = decideComment(given(created({ status: 'review' })).state, comment({ mentioned: agents('ada') }));
    expect(of(drafts, 'TaskAssigned')[0]?.after).to.deep.include({ status: 'review', assigned_to: 'ada' });
  });

  it('no agent is assigned if a user is mentioned or the task has an assignee', () => {
    const user = { tokens: ['bob'], recipients: ['bob'], agents: [] };
    expect(of(decideComment(given(created()).state, comment({ mentioned: user })), 'TaskAssigned')).to.deep.equal([]);
    const taken = decideComment(given(created({ assigned_to: 'ada' })).state, comment({ mentioned: agents('bee') }));
    expect(of(taken, 'TaskAssigned')).to.deep.equal([]);
  });

  it('the state contains the assignee and the number and total length of comments', () => {
    const drafts = decideComment(given(created()).state, comment({ mentioned: agents('ada') }));
    const state = given(created(), ...drafts).state;
    expect(state.task).to.deep.include({ assigned_to: 'ada', status: 'assigned' });
    expect(state.comments).to.deep.equal({ count: 1, characters: 10 });
    expect(state.subscribers).to.deep.equal(['Ann', 'ada']);
  });

  it('a comment is rejected if the task does not exist or the limit is reached', () => {
    given().when(decideComment, comment()).thenRefuses(404);
    given(created(), deleted()).when(decideComment, comment()).thenRefuses(404);
    const state = given(created()).state;
    for (const comments of [
      { count: MAX_COMMENTS.count, characters: 0 },
      { count: 1, characters: MAX_COMMENTS.characters - 9 },
    ]) {
      expect(refusalOf(() => decideComment({ ...state, comments }, comment())).status).to.equal(400);
    }
    const room = { count: MAX_COMMENTS.count - 1, characters: MAX_COMMENTS.characters - 10 };
    expect(decideComment({ ...state, comments: room }, comment())).to.have.length(1);
    expect(refusalOf(() => decideComment(state, comment({ depth: MAX_DEPTH + 1 }))).message).to.match(/further up/);
    expect(decideComment(state, comment({ depth: MAX_DEPTH, parent_id: 3 }))).to.have.length(1);
  });

  it('mentioned users do not follow the task if the list of followers is full', () => {
    const names = Array.from({ length: MAX_SUBSCRIBERS }, (_, n) => `agent-${n}`);
    const full = given(created({ assigned_to: 'ada' }), taskSubscribed.draft({ task_id: 7, title: '', names })).state;
    const drafts = decideComment(full, comment({ mentioned: agents('late') }));
    expect(of(drafts, 'TaskSubscribed')).to.deep.equal([]);
    expect(told(drafts))
      .to.have.length(MAX_SUBSCRIBERS - 1)
      .and.not.include('late: mention');
  });

  it('a quotation is short and marks a cut', () => {
    expect(quoted('x'.repeat(100))).to.equal('x'.repeat(100));
    expect(quoted('x'.repeat(101))).to.equal(`${'x'.repeat(100)}...`);
  });

  it('an activity shows the start of a comment and the comment that it replies to', () => {
    const [commented] = decideComment(
      given(created()).state,
      comment({ parent_id: 30, depth: 1, content: 'y'.repeat(200) }),
    );
    const event = { data: commented?.data, meta: {} } as never;
    expect(taskCommented.activity?.(event)).to.deep.equal({
      type: 'comment_added',
      entity_type: 'comment',
      entity_id: 31,
      actor: 'Ann',
      description: 'Replied to a comment on task "Mend the roof"',
      data: { task_id: 7, task_title: TASK.title, parent_id: 30, mentions: [], content_preview: 'y'.repeat(100) },
    });
    expect(taskAssigned.activity).to.be.a('function');
  });
});
