import { expect } from 'chai';
import { qualityReviewsProjection } from '../../../projections/quality/reviews.ts';
import { eventsOf, rowsAfter } from '../../support/kit.ts';
import { at, created, deleted, reviewed } from '../../support/tasks.ts';

describe('projection quality_reviews', () => {
  it('keeps the newest ten reviews of a task, newest first', () => {
    const verdicts = Array.from({ length: 12 }, (_, n) => reviewed(n % 2 ? 'approved' : 'rejected'));
    const { quality_reviews } = rowsAfter(qualityReviewsProjection, eventsOf([created(), ...verdicts]));
    expect(quality_reviews).to.have.length(1);
    const reviews = quality_reviews[0]?.reviews as readonly { created_at: number }[];
    expect(reviews.map(({ created_at }) => created_at)).to.deep.equal(Array.from({ length: 10 }, (_, n) => at(13 - n)));
    expect(reviews[0]).to.deep.equal({
      id: 4,
      task_id: 7,
      reviewer: 'aegis',
      status: 'approved',
      notes: 'as agreed',
      created_at: at(13),
      workspace_id: 1,
    });
  });

  it('forgets them with the task', () => {
    const { quality_reviews } = rowsAfter(
      qualityReviewsProjection,
      eventsOf([created(), reviewed('rejected'), deleted()]),
    );
    expect(quality_reviews).to.deep.equal([]);
  });
});
