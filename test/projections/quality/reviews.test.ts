import { expect } from 'chai';
import { qualityReviewsProjection } from '../../../projections/quality/reviews.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { eventsOf, rowsAfter } from '../../support/kit.ts';
import { at, created, deleted, reviewed } from '../../support/tasks.ts';

describe('projection quality_reviews', () => {
  it('keeps the latest ten reviews of a task, newest first', () => {
    const verdicts = Array.from({ length: 12 }, (_, n) => reviewed(n % 2 ? 'approved' : 'rejected'));
    const { quality_reviews } = rowsAfter(qualityReviewsProjection, eventsOf([created(), ...verdicts]));
    expect(quality_reviews).to.have.length(1);
    const reviews = quality_reviews[0]?.reviews as readonly { created_at: number }[];
    expect(reviews.map(({ created_at }) => created_at)).to.deep.equal(Array.from({ length: 10 }, (_, n) => at(13 - n)));
    expect(reviews[0]).to.deep.equal({
      id: 4,
      task_id: 7,
      reviewer: 'aegis',
      reviewed_by: { id: 1, name: 'admin', kind: 'user' },
      status: 'approved',
      notes: 'as agreed',
      created_at: at(13),
      workspace_id: 1,
    });
  });

  it('stores the gatekeeper’s reason for a rejection until it approves; other reviews do not count', () => {
    const rejectionAfter = (...events: DomainEvent[]) =>
      rowsAfter(qualityReviewsProjection, events).quality_reviews[0]?.rejection;
    const rejected = eventsOf([created(), reviewed('rejected')]);
    expect(rejectionAfter(...rejected)).to.equal('as agreed');
    expect(rejectionAfter(...eventsOf([created(), reviewed('rejected'), reviewed('approved')]))).to.equal(null);
    const byAnn = reviewed('rejected', { reviewer: 'ann' });
    expect(rejectionAfter(...eventsOf([created(), byAnn]))).to.equal(null);
    const approvedByAnn = reviewed('approved', { reviewer: 'ann' });
    expect(rejectionAfter(...eventsOf([created(), reviewed('rejected'), approvedByAnn]))).to.equal('as agreed');
    // Older versions let an agent write under the gatekeeper's name.
    const actor = { type: 'agent', id: 3, name: 'agent:scout' } as const;
    expect(rejectionAfter(...eventsOf([created(), reviewed('rejected')], { actor }))).to.equal(null);
  });

  it('removes the reviews of a deleted task', () => {
    const { quality_reviews } = rowsAfter(
      qualityReviewsProjection,
      eventsOf([created(), reviewed('rejected'), deleted()]),
    );
    expect(quality_reviews).to.deep.equal([]);
  });
});
