import { expect } from 'chai';
import { decideReview } from '../../../commands/quality/reviews.ts';
import { requireApproval, taskDecider } from '../../../commands/tasks/tasks.ts';
import { taskReviewed } from '../../../shared/events/quality/reviews.ts';
import { type Draft, givenFor, refusalOf } from '../../support/kit.ts';
import { created, deleted, placed, TASK } from '../../support/tasks.ts';

const given = givenFor(taskDecider);
const NOW = 1_800_000_000;
const review = (drafts: readonly Draft[], status: 'approved' | 'rejected', reviewer = 'aegis', counts = true) =>
  decideReview(given(...drafts).state, 4, { reviewer, status, notes: 'so', counts }, NOW).map(({ data }) => data);

describe('quality review', () => {
  const common = { task_id: 7, title: TASK.title, review_id: 4, notes: 'so' };

  it('that approves but does not count leaves the task as it is and the gate closed', () => {
    const before = created({ status: 'review' });
    const [data] = review([before], 'approved', 'eve', false);
    expect(data).to.deep.include({ ...placed({ status: 'review' }, { status: 'review' }), completed_at: null });
    const after = given(before, taskReviewed.draft(data as never));
    after.when(requireApproval).thenRefuses(403);
  });

  it('that approves and counts sets a task to done, from any status', () => {
    expect(review([created({ status: 'backlog' })], 'approved', 'eve')).to.deep.equal([
      {
        ...common,
        reviewer: 'eve',
        status: 'approved',
        ...placed({ status: 'backlog' }, { status: 'done' }),
        completed_at: NOW,
        error_message: null,
      },
    ]);
    expect(review([created({ status: 'done', completed_at: 3 })], 'approved')[0]).to.include({ completed_at: 3 });
  });

  it('that rejects sends the task back with a reason', () => {
    const [data] = review([created({ status: 'done', completed_at: 3 })], 'rejected');
    expect(data).to.deep.include({ ...placed({ status: 'done' }, { status: 'in_progress' }), completed_at: 3 });
    expect(data?.error_message).to.match(/aegis.*so/);
  });

  it('requires an existing task', () => {
    expect(refusalOf(() => review([], 'approved')).status).to.equal(404);
    expect(refusalOf(() => review([created(), deleted()], 'rejected')).status).to.equal(404);
  });
});
