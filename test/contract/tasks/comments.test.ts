import { expect } from 'chai';
import { commentResponse, commentsResponse } from '../../../shared/contract/tasks/comments.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('task comments', () => {
  const world = fixture(startTasksWorld);

  const say = (id: number, content: string, more: object = {}, as?: string) =>
    world.ask('POST', `/api/tasks/${id}/comments`, { content, ...more }, as);

  it('are shown as threads, oldest first, and counted', async () => {
    const { id } = await world.task();
    const first = await say(id, 'first', { author: 'somebody else', task_id: 77, parent_id: 0 });
    conforms(commentResponse, first, 201);
    expect(first.body.comment).to.deep.include({
      task_id: id,
      author: 'API Access',
      content: 'first',
      parent_id: null,
      mentions: [],
      workspace_id: 1,
      replies: [],
    });
    await say(id, 'second');
    const reply = (await say(id, 'reply', { parent_id: first.body.comment.id })).body.comment;
    await say(id, 'reply to the reply', { parent_id: reply.id });
    const body = conforms(commentsResponse, await world.ask('GET', `/api/tasks/${id}/comments`));
    expect(body.total).to.equal(4);
    const texts = (comments: { content: string; replies: [] }[]): unknown[] =>
      comments.map(({ content, replies }) => (replies.length > 0 ? [content, ...texts(replies)] : content));
    expect(texts(body.comments)).to.deep.equal([['first', ['reply', 'reply to the reply']], 'second']);
    const { tasks } = (await world.ask('GET', '/api/tasks?limit=200')).body;
    expect(tasks.find((task: { id: number }) => task.id === id).comment_count).to.equal(4);
  });

  it('are recorded as activities, and do not change the task', async () => {
    const task = await world.task();
    const { comment } = (await say(task.id, `long ${'x'.repeat(200)}`)).body;
    const { activities } = (await world.ask('GET', '/api/activities?type=comment_added&limit=1')).body;
    expect(activities[0]).to.deep.include({
      entity_type: 'comment',
      entity_id: comment.id,
      actor: 'API Access',
      metadata: {
        task_id: task.id,
        task_title: task.title,
        mentions: [],
        content_preview: comment.content.slice(0, 100),
      },
      entity: {
        type: 'comment',
        id: comment.id,
        task_id: task.id,
        task_title: task.title,
        content: comment.content,
        content_preview: comment.content.slice(0, 100),
      },
    });
    expect((await world.taskNow(task.id)).updated_at).to.equal(task.updated_at);
  });

  it('notify all followers of the task, and assign it to the first mentioned agent', async () => {
    const [{ name: first }, { name: second }] = [await world.create(), await world.create()];
    const task = await world.task();
    const assigned = await say(task.id, `@${first} and @${second}, please look.`);
    conforms(commentResponse, assigned, 201);
    expect(assigned.body).to.deep.include({ auto_assigned_to: first });
    expect(assigned.body.comment.mentions).to.deep.equal([first, second]);
    expect(await world.taskNow(task.id)).to.deep.include({ assigned_to: first, status: 'assigned' });
    const types = async (name: string) => (await world.toldTo(name)).map(({ type }) => type);
    expect(await types(first)).to.deep.equal(['assignment', 'mention']);
    expect(await types(second)).to.deep.equal(['mention']);
    const [activity] = await world.activities('task_assigned', task.id);
    expect(activity).to.deep.include({
      actor: 'API Access',
      metadata: { assigned_to: first, trigger: 'mention' },
    });
    const next = await say(task.id, `thanks @${second}`);
    expect(next.body).not.to.have.property('auto_assigned_to');
    expect(await types(first)).to.deep.equal(['assignment', 'mention', 'comment']);
    expect((await world.toldTo(first)).at(-1)?.source_id).to.equal(next.body.comment.id);
  });

  it('are refused with the reason', async () => {
    const { id } = await world.task();
    const path = `/api/tasks/${id}/comments`;
    const unknown = await world.refused('POST', path, { content: 'hi @nobody-here' }, 400, /Unknown mentions/);
    expect(unknown.body.missing_mentions).to.deep.equal(['nobody-here']);
    await world.refused('POST', path, { content: '' }, 400, /content/);
    await world.refused('POST', path, {}, 400, /content/);
    await world.refused('POST', path, { content: 'x', parent_id: 'x' }, 400, /parent_id/);
    await world.refused('POST', path, { content: 'x', parent_id: 999_999 }, 404, /Comment 999999/);
    const other = await world.task();
    const { comment } = (await say(other.id, 'elsewhere')).body;
    await world.refused('POST', path, { content: 'x', parent_id: comment.id }, 404, /on this task/);
    for (const method of ['GET', 'POST']) {
      const body = method === 'POST' ? { content: 'hi @nobody-here' } : undefined;
      await world.refused(method, '/api/tasks/999999/comments', body, 404, /Task/);
      await world.refused(method, '/api/tasks/x/comments', body, 400, /id/);
    }
    expect((await world.ask('GET', path)).body).to.deep.equal({ comments: [], total: 0, next_after: null });
  });

  it('are accessible, among agents, only to the agent of the task', async () => {
    const [mine, other] = [await world.create(), await world.create()];
    const keyOf = async ({ id }: { id: number }) =>
      (await world.ask('POST', `/api/agents/${id}/keys`, { name: 'k', scopes: ['operator'] })).body.api_key;
    const [own, foreign] = [await keyOf(mine), await keyOf(other)];
    const { id } = await world.task({ assigned_to: mine.name });
    expect((await say(id, 'mine', {}, own)).body.comment?.author).to.equal(mine.name);
    expect((await world.ask('GET', `/api/tasks/${id}/comments`, undefined, own)).body.total).to.equal(1);
    expect((await say(id, 'not mine', {}, foreign)).status).to.equal(403);
    expect((await world.ask('GET', `/api/tasks/${id}/comments`, undefined, foreign)).status).to.equal(403);
  });
});
