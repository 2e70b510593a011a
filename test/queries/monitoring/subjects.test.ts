/** What activities are about can be looked up. Pure. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ACTIVITY_MODELS } from '../../../queries/monitoring/activities.ts';
import { SUBJECTS } from '../../../queries/monitoring/subjects.ts';

const golden = fileURLToPath(new URL('../../../../test/golden/events/', import.meta.url));

describe('activity subjects', () => {
  it('are looked up for each kind that an event names', () => {
    const named = readdirSync(golden).flatMap((file) => {
      const { activity } = JSON.parse(readFileSync(golden + file, 'utf8')).means;
      // Id 0: it is about no single entity.
      return activity === null || activity.entity_id === 0 ? [] : [activity.entity_type];
    });
    expect(named).not.to.be.empty;
    expect(Object.keys(SUBJECTS)).to.include.members(named);
  });

  it('invalidate cached activity lists when their read models change', () => {
    expect(ACTIVITY_MODELS).to.include('activities');
    for (const { projection } of Object.values(SUBJECTS)) expect(ACTIVITY_MODELS).to.include(projection.name);
  });
});
