/** Quality reviews, through HTTP. */
import { expect } from 'chai';
import { latestReviewsAnswer, reviewedAnswer, reviewsAnswer } from '../../../shared/contract/quality/reviews.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld, type TasksWorld } from '../../support/worlds/tasks.ts';

describe('Quality reviews', () => {
  let world: TasksWorld;
  before(async () => {
    world = await startTasksWorld();
  });
  after(() => world?.close());

  const review = (body: object) => world.ask('POST', '/api/quality-review', body);

  it('an approval makes a task done, whoever gives it, and says when it was', async () => {
    const { id, title } = await world.task({ status: 'quality_review', assigned_to: 'ada' });
    const reply = await review({ task_id: id, status: 'approved', notes: 'fine', reviewer: 'eve' });
    conforms(reviewedAnswer, reply);
    const now = await world.taskNow(id);
    expect(now).to.include({ status: 'done', error_message: null });
    expect(now.completed_at).to.be.closeTo(Date.now() / 1000, 30);
    expect(await world.frame('task.status_changed', id)).to.include({
      status: 'done',
      previous_status: 'quality_review',
      workspace_id: 1,
    });
    const [activity] = (await world.ask('GET', '/api/activities?type=quality_review&limit=1')).body.activities;
    expect(activity).to.deep.include({
      entity_type: 'task',
      entity_id: id,
      actor: 'eve',
      metadata: { status: 'approved', notes: 'fine' },
    });
    expect(activity.description).to.include(title).and.include('approved');
    expect(await world.toldTo('ada')).to.have.length(1);
  });

  it('a rejection sends it back to work and says why, also when it was done', async () => {
    const { id } = await world.task();
    await world.approve(id);
    await review({ taskId: id, status: 'rejected', notes: 'It leaks.' });
    const now = await world.taskNow(id);
    expect(now.status).to.equal('in_progress');
    expect(now.error_message).to.include('aegis').and.include('It leaks.');
    expect(now.completed_at).to.be.a('number');
  });

  it('are listed newest first, at most ten', async () => {
    const { id } = await world.task();
    const ids: number[] = [];
    for (let n = 0; n < 12; n++)
      ids.push((await review({ taskId: id, status: 'rejected', notes: `n${n}`, reviewer: 'eve' })).body.id);
    for (const name of ['taskId', 'task_id']) {
      const reply = await world.ask('GET', `/api/quality-review?${name}=${id}`);
      conforms(reviewsAnswer, reply);
      expect(reply.body.reviews.map((one: { id: number }) => one.id)).to.deep.equal(ids.reverse().slice(0, 10));
      ids.reverse();
    }
    expect((await world.ask('GET', '/api/quality-review?taskId=999999')).body).to.deep.equal({ reviews: [] });
  });

  it('the newest of several tasks are found at once', async () => {
    const [one, two] = [await world.task(), await world.task()];
    await review({ taskId: one.id, status: 'rejected', notes: 'n' });
    await world.approve(one.id);
    const reply = await world.ask('GET', `/api/quality-review?taskIds=${one.id},%20${two.id},x,&taskId=7`);
    conforms(latestReviewsAnswer, reply);
    const { latest } = reply.body;
    expect(Object.keys(latest)).to.deep.equal([String(one.id), String(two.id)]);
    expect(latest[one.id]).to.include({ status: 'approved', reviewer: 'aegis' });
    expect(latest[two.id]).to.equal(null);
  });

  it('refuses what is no review, and no question', async () => {
    const { id } = await world.task();
    const good = { taskId: id, status: 'approved', notes: 'n' };
    for (const [body, says] of [
      [{ ...good, taskId: undefined }, /taskId/],
      [{ ...good, taskId: 'x' }, /taskId/],
      [{ ...good, status: 'maybe' }, /status/],
      [{ ...good, notes: '' }, /notes/],
      [{ ...good, notes: undefined }, /notes/],
      [{ ...good, reviewer: 5 }, /reviewer/],
    ] as const)
      await world.refused('POST', '/api/quality-review', body, 400, says);
    await world.refused('POST', '/api/quality-review', { ...good, taskId: 999_999 }, 404);
    for (const query of ['', '?taskId=x', '?taskIds=x,y', `?taskIds=${Array(501).fill(1).join()}`])
      await world.refused('GET', `/api/quality-review${query}`, undefined, 400, /taskId/);
  });
});
