import { expect } from 'chai';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { userDeleted, userUpdated } from '../../../shared/events/auth/users.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const deleted = userDeleted.draft({ userId: 7, username: 'bob' });
const origin = { actor: { type: 'user' as const, id: 3, name: 'ada' }, ip: '192.0.2.7', userAgent: 'curl/8' };

describe('projection audit', () => {
  it('has a row for each audited event: who, from where, what and whom', () => {
    expect(rowsAfter(auditProjection, eventsOf([deleted], origin)).audit).to.deep.equal([
      {
        workspace_id: 1,
        id: 1,
        action: 'user_delete',
        actor: 'ada',
        actor_id: 3,
        target_type: 'user',
        target_id: 7,
        detail: { username: 'bob' },
        ip_address: '192.0.2.7',
        user_agent: 'curl/8',
        created_at: seconds(timeOf(1)),
        position: 1,
      },
    ]);
  });
  it('has none for what is not audited', () => {
    const byGoogle = userUpdated.draft({ userId: 7, username: 'bob', passwordChanged: false, by: 'google' });
    expect(rowsAfter(auditProjection, eventsOf([byGoogle]))).to.deep.equal({ audit: [], audit_counts: [] });
  });
  it('counts by action and actor, in each workspace', () => {
    const { audit, audit_counts } = rowsAfter(auditProjection, [
      ...eventsOf([deleted, deleted], origin),
      ...eventsOf([deleted, deleted, deleted], { workspace: 2 }).slice(2),
    ]);
    expect(audit).to.have.length(3);
    expect(audit_counts).to.deep.equal([
      { workspace_id: 1, action: 'user_delete', actor: 'ada', count: 2, position: 2 },
      { workspace_id: 2, action: 'user_delete', actor: 'admin', count: 1, position: 3 },
    ]);
  });
});
