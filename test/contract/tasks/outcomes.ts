/** How tasks came out, through HTTP; the numbers themselves are tested on the query. */
import { expect } from 'chai';
import { outcomesAnswer } from '../../../shared/contract/tasks/outcomes.ts';
import { call, type TestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeTask } from '../../support/worlds/monitoring.ts';

export function describeOutcomes(service: () => TestService): void {
  describe('GET /api/tasks/outcomes', () => {
    const outcomes = async (query = '') => {
      const reply = await call(service(), 'GET', `/api/tasks/outcomes${query}`);
      conforms(outcomesAnswer, reply);
      return outcomesAnswer.parse(reply.body);
    };

    it('counts what is done, at once, in the timeframe that is asked for', async () => {
      const before = await outcomes();
      expect(before.timeframe).to.equal('all');
      const now = Math.floor(Date.now() / 1000);
      await makeTask(service(), { status: 'done', outcome: 'success', completed_at: now, assigned_to: 'outi' });
      await makeTask(service(), { status: 'done', completed_at: now - 8 * 86_400, assigned_to: 'outi' });
      const after = await outcomes('?timeframe=%20ALL');
      expect(after.record_count - before.record_count).to.equal(2);
      expect(after.by_agent.outi).to.deep.include({ success: 1, unknown: 1, total: 2, success_rate: 1 });
      expect((await outcomes('?timeframe=Week')).by_agent.outi?.total).to.equal(1);
      expect((await outcomes('?timeframe=month')).by_agent.outi?.total).to.equal(2);
      expect((await outcomes('?timeframe=year')).timeframe).to.equal('year');
    });
  });
}
