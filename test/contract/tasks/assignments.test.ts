import { expect } from 'chai';
import { heartbeatPostResponse } from '../../../shared/contract/agents/heartbeat.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { tokensReported } from '../../../shared/events/tokens/reports.ts';
import { MASK } from '../../../shared/secrets.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('tasks for agents', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;

  it('are returned by a heartbeat if assigned or in progress, most urgent and oldest first', async () => {
    const { id, name } = await world.create();
    const task = (fields: object) => world.task({ assigned_to: name, ...fields });
    const low = await task({ priority: 'low' });
    const high = await task({ priority: 'high', status: 'in_progress', due_date: 9 });
    const later = await task({
      priority: 'high',
      metadata: { code_location: 'src', implementation_repo: 'a/b', api_key: 'very-private' },
    });
    await task({ status: 'review' });
    const body = conforms(heartbeatPostResponse, await ask('POST', `/api/agents/${id}/heartbeat`, {}));
    expect(body.pending_tasks.map((one: { id: number }) => one.id)).to.deep.equal([high.id, later.id, low.id]);
    expect(body.pending_tasks[2]).to.deep.equal(low);
    const group = body.work_items.find(({ type }: { type: string }) => type === 'assigned_tasks');
    const { title } = high;
    expect(group.count).to.equal(3);
    expect(group.items[0]).to.deep.equal({
      id: high.id,
      title,
      status: 'in_progress',
      priority: 'high',
      due_date: 9,
    });
    expect(group.items[1]).to.deep.include({ code_location: 'src', implementation_repo: 'a/b' });
    expect(group.items[2]).not.to.have.any.keys('due_date', 'code_location', 'implementation_repo');
    await ask('PUT', `/api/tasks/${low.id}`, { metadata: { implementationRepo: '', github_repo: 'a/c', path: 'lib' } });
    const renamed = (await ask('GET', `/api/agents/${id}/heartbeat`)).body.work_items[0].items[2];
    expect(renamed).to.deep.include({ code_location: 'lib', implementation_repo: 'a/c' });
    // Only admins see secrets, also here.
    const key = await world.world.makeKey(id, ['operator']);
    const own = await ask('GET', `/api/agents/${id}/heartbeat`, undefined, key);
    expect(own.body.pending_tasks[1].metadata.api_key).to.equal(MASK);
    // The next heartbeat knows what changed in between.
    await ask('DELETE', `/api/tasks/${low.id}`);
    const next = await ask('POST', `/api/agents/${id}/heartbeat`, {});
    expect(next.body.pending_tasks).to.have.length(2);
    for (let n = 0; n < 10; n++) await task({});
    const full = await ask('POST', `/api/agents/${id}/heartbeat`, {});
    expect(full.body.pending_tasks).to.have.length(10);
  });

  it('are counted by status in agent lists', async () => {
    const { name } = await world.create();
    const statsNow = async () => {
      const { agents } = (await ask('GET', '/api/agents?limit=200')).body;
      return agents.find((agent: { name: string }) => agent.name === name).taskStats;
    };
    const none = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };
    expect(await statsNow()).to.deep.equal(none);
    const [first, second] = [await world.task({ assigned_to: name }), await world.task({ assigned_to: name })];
    await world.task({ assigned_to: name, status: 'backlog', priority: 'low' });
    expect(await statsNow()).to.deep.equal({ ...none, total: 3, assigned: 2 });
    await world.approve(first.id);
    await ask('PUT', `/api/tasks/${second.id}`, { status: 'quality_review', priority: 'high' });
    expect(await statsNow()).to.deep.equal({ ...none, total: 3, quality_review: 1, done: 1, completed: 1 });
    await ask('PUT', `/api/tasks/${second.id}`, { assigned_to: '' });
    expect(await statsNow()).to.deep.equal({ ...none, total: 2, done: 1, completed: 1 });
  });

  it('are offered to an adapter if they are its own or unassigned', async () => {
    const agentId = world.fresh('crew');
    const own = await world.task({ assigned_to: agentId, priority: 'critical', description: 'How' });
    const due = await world.task({ assigned_to: agentId, priority: 'critical', due_date: 5 });
    await world.task({ assigned_to: agentId, status: 'in_progress' });
    const nobodys = await world.task({ priority: 'critical', due_date: 6 });
    await world.task({ assigned_to: 'another', priority: 'critical' });
    const body = { framework: 'generic', action: 'assignments', payload: { agentId } };
    const { assignments } = (await ask('POST', '/api/adapters', body)).body;
    expect(assignments.slice(0, 3)).to.deep.equal([
      { taskId: String(due.id), description: due.title, priority: 0 },
      { taskId: String(nobodys.id), description: nobodys.title, priority: 0 },
      { taskId: String(own.id), description: `${own.title}\nHow`, priority: 0 },
    ]);
    expect(assignments.length).to.be.at.most(5);
  });

  it('count token usage only if they exist', async () => {
    const { id } = await world.create();
    const { id: taskId } = await world.task();
    const usage = { model: 'm', inputTokens: 1, outputTokens: 1 };
    const told = async (task: number) => {
      await ask('POST', `/api/agents/${id}/heartbeat`, { token_usage: { ...usage, taskId: task } });
      const events = await world.world.service.core.store.readStream(`agent-1-${id}`);
      const { data } = events.filter(({ type }) => type === tokensReported.type).at(-1) as EventOf<
        typeof tokensReported
      >;
      return data.reports[0]?.task_id;
    };
    expect(await told(taskId)).to.equal(taskId);
    expect(await told(999_999)).to.equal(null);
  });
});
