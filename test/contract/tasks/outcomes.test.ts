/** How tasks came out, through HTTP; the numbers themselves are tested on the query. */
import { expect } from 'chai';
import { outcomesResponse } from '../../../shared/contract/tasks/outcomes.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeTask } from '../../support/worlds/monitoring.ts';

describe('GET /api/tasks/outcomes', () => {
  const base = fixture(startTestService);

  const outcomes = async (query = '') => {
    const body = conforms(outcomesResponse, await call(base, 'GET', `/api/tasks/outcomes${query}`));
    return outcomesResponse.parse(body);
  };

  it('counts completed tasks at once, within the requested timeframe', async () => {
    const before = await outcomes();
    expect(before.timeframe).to.equal('all');
    const now = Math.floor(Date.now() / 1000);
    await makeTask(base, { status: 'done', outcome: 'success', completed_at: now, assigned_to: 'outi' });
    await makeTask(base, { status: 'done', completed_at: now - 8 * 86_400, assigned_to: 'outi' });
    const after = await outcomes('?timeframe=%20ALL');
    expect(after.record_count - before.record_count).to.equal(2);
    expect(after.by_agent.outi).to.deep.include({ success: 1, unknown: 1, total: 2, success_rate: 1 });
    expect((await outcomes('?timeframe=Week')).by_agent.outi?.total).to.equal(1);
    expect((await outcomes('?timeframe=month')).by_agent.outi?.total).to.equal(2);
    expect((await outcomes('?timeframe=year')).timeframe).to.equal('year');
  });
});
