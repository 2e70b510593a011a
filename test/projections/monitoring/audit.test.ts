import { expect } from 'chai';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { auditEntriesPurged } from '../../../shared/events/admin/cleanup.ts';
import { auditEntriesErased } from '../../../shared/events/auth/people.ts';
import { userDeleted, userUpdated } from '../../../shared/events/auth/users.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const deleted = userDeleted.draft({ user_id: 7, username: 'bob' });
const origin = { actor: { type: 'user' as const, id: 3, name: 'ada' }, ip: '192.0.2.7', userAgent: 'curl/8' };

describe('projection audit', () => {
  it('has a row for each audited event with actor, origin, action and subject', () => {
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
        via: null,
        created_at: seconds(timeOf(1)),
        address_of: 'user:3',
        about: null,
        erased: null,
        position: 1,
      },
    ]);
  });
  it('removes from each entry the values that a rebuild without the key would not show', () => {
    const changes = { user_id: 7, username: 'bob', password_changed: false, by: 'admin' } as const;
    const renamed = userUpdated.draft({ ...changes, display_name: 'Bob Lee' });
    const unnamed = userUpdated.draft({ ...changes, display_name: null });
    const erasures = [
      auditEntriesErased.draft({ kind: 'user', id: 3, ids: [1, 2] }),
      auditEntriesErased.draft({ kind: 'user', id: 7, ids: [1, 2] }),
    ];
    const byAda = (draft: Draft, ip: string | null) => eventsOf([draft, deleted, ...erasures], { ...origin, ip });
    const shown = rowsAfter(auditProjection, byAda(renamed, origin.ip).slice(0, 2)).audit;
    expect(shown[0]).to.deep.include({ about: 'user:7', address_of: 'user:3', position: 1 });
    expect(JSON.stringify(shown)).to.include('Bob Lee').and.include(origin.ip);
    const { audit } = rowsAfter(auditProjection, byAda(renamed, origin.ip));
    expect(audit).to.deep.equal(rowsAfter(auditProjection, byAda(unnamed, null)).audit);
    expect(audit.map(({ position }) => position)).to.deep.equal([1, 2]);
    expect(JSON.stringify(audit)).not.to.match(/Bob Lee|192\.0\.2\.7/);
    // Only of the person who is erased.
    const [of3] = rowsAfter(auditProjection, byAda(renamed, origin.ip).slice(0, 3)).audit;
    expect(of3).to.deep.include({ ip_address: null, about: 'user:7' });
  });
  it('has no rows for events that are not audited', () => {
    const byGoogle = userUpdated.draft({ user_id: 7, username: 'bob', password_changed: false, by: 'google' });
    expect(rowsAfter(auditProjection, eventsOf([byGoogle]))).to.deep.equal({ audit: [], audit_counts: [] });
  });
  it('counts by action, in each workspace', () => {
    const { audit, audit_counts } = rowsAfter(auditProjection, [
      ...eventsOf([deleted, deleted], origin),
      ...eventsOf([deleted, deleted, deleted], { workspace: 2 }).slice(2),
    ]);
    expect(audit).to.have.length(3);
    expect(audit_counts).to.deep.equal([
      { workspace_id: 1, action: 'user_delete', count: 2, position: 2 },
      { workspace_id: 2, action: 'user_delete', count: 1, position: 3 },
    ]);
  });
  it('removes old entries and their counts', () => {
    const told = eventsOf([deleted, deleted, deleted], origin);
    const purged = (ids: number[]) =>
      auditEntriesPurged.draft({ ids, counts: [{ action: 'user_delete', count: ids.length }] });
    const left = (...ids: number[]) => {
      const { audit, audit_counts } = rowsAfter(auditProjection, [
        ...told,
        ...eventsOf([deleted, deleted, deleted, purged(ids)], origin).slice(3),
      ]);
      return { ids: audit.map(({ id }) => id), counts: audit_counts.map(({ count }) => count) };
    };
    expect(left(1, 2)).to.deep.equal({ ids: [3], counts: [1] });
    expect(left(1, 2, 3)).to.deep.equal({ ids: [], counts: [] });
  });
});
