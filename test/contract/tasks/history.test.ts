import { expect } from 'chai';
import { historyResponse } from '../../../shared/contract/tasks/history.ts';
import { taskResponse } from '../../../shared/contract/tasks/tasks.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('task history', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;
  const historyOf = async (id: number, more = '') =>
    conforms(taskResponse.extend(historyResponse.shape), await ask('GET', `/api/tasks/${id}?include=history${more}`));

  it('shows who did what, when and why, newest first', async () => {
    const { id } = await world.task({ assigned_to: 'ada' });
    await ask('PUT', `/api/tasks/${id}`, { title: 'New', estimated_hours: 3 });
    await ask('PUT', '/api/tasks', { tasks: [{ id, status: 'review' }] });
    await ask('POST', '/api/quality-review', { taskId: id, status: 'rejected', notes: 'leaks' });
    const { history, history_before } = await historyOf(id);
    expect(history_before).to.equal(null);
    expect(history.map(({ type }: { type: string }) => type)).to.deep.equal([
      'TaskReviewed',
      'TaskStatusChanged',
      'TaskUpdated',
      'NotificationRaised',
      'TaskCreated',
    ]);
    const [reviewed, bulk, updated, told, created] = history;
    expect(reviewed).to.deep.include({ actor: 'aegis', reason: 'leaks', revision: 4 });
    expect(reviewed.changes).to.deep.equal({ status: { from: 'review', to: 'in_progress' } });
    expect(bulk).to.deep.include({ cause: 'bulk', changes: { status: { from: 'assigned', to: 'review' } } });
    expect(updated.changes).to.deep.include({ estimated_hours: { from: null, to: 3 } });
    expect(updated.changes.title.to).to.equal('New');
    expect(told.description).to.match(/ada/);
    expect(created).to.deep.include({ actor: 'API Access', actor_type: 'api', cause: 'api', changes: {} });
    expect(created.request_id).to.be.a('string').and.not.equal(updated.request_id);
    expect(created.at).to.be.closeTo(Date.now() / 1000, 30);
  });

  it('is paged', async () => {
    const { id } = await world.task();
    for (const title of ['a', 'b', 'c']) await ask('PUT', `/api/tasks/${id}`, { title });
    const first = await historyOf(id, '&history_limit=3');
    expect(first.history.map(({ revision }: { revision: number }) => revision)).to.deep.equal([3, 2, 1]);
    expect(first.history_before).to.equal(1);
    const second = await historyOf(id, `&history_limit=3&history_before=${first.history_before}`);
    expect(second.history.map(({ type }: { type: string }) => type)).to.deep.equal(['TaskCreated']);
    expect(second.history_before).to.equal(null);
    expect((await historyOf(id, '&history_before=0')).history).to.deep.equal([]);
    for (const query of ['include=comments', 'include=history&history_before=x'])
      await world.refused('GET', `/api/tasks/${id}?${query}`, undefined, 400);
  });
});
