/** What activities are about can be looked up. Pure. */
import { expect } from 'chai';
import { ACTIVITY_MODELS } from '../../../queries/monitoring/activities.ts';
import { SUBJECTS } from '../../../queries/monitoring/subjects.ts';
import { goldenEvents } from '../../support/golden.ts';

describe('activity subjects', () => {
  it('are looked up for each kind that an event names', () => {
    const named = goldenEvents().flatMap(({ golden: { means } }) => {
      // Id 0: it is about no single entity.
      return !means.activity || means.activity.entity_id === 0 ? [] : [means.activity.entity_type];
    });
    expect(named).not.to.be.empty;
    expect(Object.keys(SUBJECTS)).to.include.members(named);
  });

  it('invalidate cached activity lists when their read models change', () => {
    expect(ACTIVITY_MODELS).to.include('activities');
    for (const { projection } of Object.values(SUBJECTS)) expect(ACTIVITY_MODELS).to.include(projection.name);
  });
});
