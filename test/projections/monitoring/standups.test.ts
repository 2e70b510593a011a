import { expect } from 'chai';
import { standupsProjection } from '../../../projections/monitoring/standups.ts';
import { standupGenerated } from '../../../shared/events/monitoring/standups.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const summary = {
  totalAgents: 1,
  totalCompleted: 2,
  totalInProgress: 3,
  totalAssigned: 4,
  totalReview: 5,
  totalBlocked: 6,
  totalActivity: 7,
  overdue: 8,
};
const report = (date: string, totalAgents = 1) =>
  standupGenerated.draft({ date, summary: { ...summary, totalAgents } });

describe('projection standups', () => {
  it('has the latest report of each day, in each workspace', () => {
    const { standups } = rowsAfter(standupsProjection, [
      ...eventsOf([report('2026-01-31'), report('2026-02-01'), report('2026-01-31', 9)]),
      ...eventsOf([report('2026-01-31'), report('2026-01-31'), report('2026-01-31'), report('2026-01-31', 4)], {
        workspace: 2,
      }).slice(3),
    ]);
    expect(standups).to.have.length(3);
    expect(standups[0]).to.deep.equal({
      workspace_id: 1,
      date: '2026-01-31',
      summary: { ...summary, totalAgents: 9 },
      generated_at: timeOf(3),
      generated_by: 'admin',
      position: 3,
    });
    expect(standups[2]).to.deep.include({ workspace_id: 2, summary: { ...summary, totalAgents: 4 } });
  });
});
