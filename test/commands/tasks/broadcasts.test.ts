/** Messages to those who follow a task, given events, when one is decided, then events: pure. */
import { expect } from 'chai';
import { decideBroadcast } from '../../../commands/tasks/broadcasts.ts';
import { taskDecider } from '../../../commands/tasks/tasks.ts';
import { taskSubscribed } from '../../../shared/events/tasks/subscriptions.ts';
import { givenFor } from '../../support/kit.ts';
import { created, TASK } from '../../support/tasks.ts';

const given = givenFor(taskDecider);
const followed = given(
  created(),
  taskSubscribed.draft({
    task_id: 7,
    title: TASK.title,
    names: ['ada', 'bee', 'bob', 'new'],
    agents: { ada: 1, bee: 2, new: 3 },
  }),
);
const agents = new Map([
  ['ada', { id: 1, name: 'ada', hasSession: true }],
  ['bee', { id: 2, name: 'bee', hasSession: false }],
  ['far', { id: 4, name: 'far', hasSession: true }],
  // A later agent of the name.
  ['new', { id: 5, name: 'new', hasSession: true }],
]);

describe('task: broadcasts', () => {
  it('reach agents with a session that follow the task; users are not counted', () => {
    const [broadcast, ...notices] = decideBroadcast(followed.state, {
      author: 'Ann',
      message: 'm'.repeat(120),
      agents,
    });
    expect(broadcast).to.deep.equal({
      type: 'TaskBroadcast',
      data: { task_id: 7, title: TASK.title, author: 'Ann', message: 'm'.repeat(120), sent: 1, skipped: 1 },
    });
    expect(notices).to.have.length(1);
    expect(notices[0]?.data).to.deep.equal({
      recipient: 'ada',
      type: 'message',
      title: 'Task broadcast',
      message: `Ann about the task "Mend the roof" (7): ${'m'.repeat(100)}...`,
      source_type: 'task',
      source_id: 7,
      by: 'Ann',
    });
  });

  it('do not reach the author', () => {
    const [broadcast] = decideBroadcast(followed.state, { author: 'ada', message: 'm', agents });
    expect(broadcast?.data).to.deep.include({ sent: 0, skipped: 1 });
  });

  it('record nothing if no agent follows the task', () => {
    followed.when(decideBroadcast, { author: 'Ann', message: 'm', agents: new Map() }).then();
  });

  it('are rejected if the task does not exist', () => {
    const missing = given();
    missing.when(decideBroadcast, { author: 'Ann', message: 'm', agents }).thenRefuses(404);
  });
});
