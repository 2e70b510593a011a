/** Tasks, given events, when a command is decided, then events: pure. */
import { expect } from 'chai';
import {
  decideDelete,
  decideSubscribe,
  existing,
  MAX_SUBSCRIBERS,
  recordOf,
  requireApproval,
  taskDecider,
} from '../../../commands/tasks/tasks.ts';
import { taskSubscribed } from '../../../shared/events/tasks/subscriptions.ts';
import { taskMoved } from '../../../shared/events/tasks/tasks.ts';
import { givenFor, refusalOf } from '../../support/kit.ts';
import { at, created, deleted, placed, reviewed, statusSet, TASK, updated } from '../../support/tasks.ts';

const given = givenFor(taskDecider);
const followed = (names: readonly string[]) =>
  taskSubscribed.draft({ task_id: 7, title: TASK.title, names: [...names] });

describe('task: state', () => {
  it('consists of the created fields and later changes', () => {
    const state = given(created({ assigned_to: 'ada', metadata: { a: 1 } }), updated({ title: 'Mend the door' })).state;
    expect(state).to.deep.include({
      id: 7,
      created_at: at(1),
      updated_at: at(2),
      task: { ...TASK, title: 'Mend the door' },
    });
  });

  it('follows statuses, verdicts and moves', () => {
    expect(given(created(), statusSet('inbox', 'done', 5)).state.task).to.deep.include({
      status: 'done',
      completed_at: 5,
    });
    const rejected = given(created(), reviewed('rejected')).state;
    expect(rejected.task).to.deep.include({ status: 'in_progress', error_message: 'no' });
    const approved = given(created({ error_message: 'old' }), reviewed('approved', { completed_at: 9 })).state;
    expect(approved.task).to.deep.include({ status: 'done', completed_at: 9, error_message: 'old' });
    const moved = taskMoved.draft({
      task_id: 7,
      title: TASK.title,
      ...placed({}, { project_id: 2 }),
      project_ticket_no: 1,
    });
    expect(recordOf(given(created(), moved).state, 1)).to.deep.include({
      project_id: 2,
      project_ticket_no: 1,
      updated_at: at(2),
    });
  });

  it('is approved only by the latest verdict of the gatekeeper', () => {
    const verdicts = (...all: readonly (readonly [string, 'approved' | 'rejected'])[]) =>
      given(created(), ...all.map(([reviewer, status]) => reviewed(status, { reviewer }))).state.approved;
    expect(verdicts()).to.equal(false);
    expect(verdicts(['aegis', 'approved'])).to.equal(true);
    expect(verdicts(['Aegis', 'approved'])).to.equal(false);
    expect(verdicts(['aegis', 'approved'], ['eve', 'rejected'])).to.equal(true);
    expect(verdicts(['aegis', 'approved'], ['aegis', 'rejected'])).to.equal(false);
    expect(verdicts(['aegis', 'rejected'], ['aegis', 'approved'])).to.equal(true);
  });

  it('has its creator, assignees and subscribers as followers', () => {
    expect(given(created({ assigned_to: 'ada' })).state.subscribers).to.deep.equal(['Ann', 'ada']);
    expect(given(created({ assigned_to: 'ada' }, 'recurrence')).state.subscribers).to.deep.equal(['ada']);
    const later = given(created(), updated({ assigned_to: 'ada' }), followed(['eve', 'Ann', 'eve'])).state;
    expect(later.subscribers).to.deep.equal(['Ann', 'ada', 'eve']);
  });

  it('has a limited number of followers', () => {
    const names = Array.from({ length: MAX_SUBSCRIBERS + 20 }, (_, n) => `agent-${n}`);
    expect(given(created(), followed(names)).state.subscribers).to.have.length(MAX_SUBSCRIBERS);
    const full = given(created(), followed(names));
    full.when(decideSubscribe, ['one more']).then();
  });

  it('reports approximately its size in memory', () => {
    const large = given(created({ metadata: { text: 'x'.repeat(100_000) } })).state;
    expect(taskDecider.sizeOf?.(large)).to.be.within(100_000, 105_000);
    expect(taskDecider.sizeOf?.(given(created()).state)).to.be.below(1_500);
  });
});

describe('task: decisions', () => {
  it('are rejected for a missing or deleted task', () => {
    for (const before of [given(), given(created(), deleted())]) {
      before.when(existing).thenRefuses(404);
      before.when(decideDelete).thenRefuses(404);
      before.when(decideSubscribe, ['ada']).thenRefuses(404);
    }
  });

  it('record the previous state of a deleted task', () => {
    const { before } = deleted({ status: 'assigned', assigned_to: 'ada' }).data;
    given(created({ status: 'assigned', assigned_to: 'ada' }))
      .when(decideDelete)
      .then(deleted(before));
  });

  it('name only new subscribers', () => {
    given(created())
      .when(decideSubscribe, ['Ann', 'ada', 'ada'])
      .then(followed(['ada']));
    given(created()).when(decideSubscribe, ['Ann']).then();
  });

  it('allow done only for an approved task, and the rejection names Aegis', () => {
    const refused = refusalOf(() => requireApproval(given(created()).state));
    expect(refused.status).to.equal(403);
    expect(refused.message).to.match(/^This task .*Aegis/);
    expect(refusalOf(() => requireApproval(given(created()).state, true)).message).to.match(/^Task 7 .*Aegis/);
    requireApproval(given(created(), reviewed('approved')).state);
  });
});
