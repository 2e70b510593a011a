import { expect } from 'chai';
import { usersProjection } from '../../../projections/auth/users.ts';
import {
  accessRequestApproved,
  accessRequested,
  accessRequestRejected,
} from '../../../shared/events/auth/access-requests.ts';
import { type Draft, eventsOf, rowsAfter, sample } from '../../support/kit.ts';

const rows = (...drafts: readonly Draft[]) => ({
  requests: rowsAfter(usersProjection, eventsOf(drafts)).access_requests,
});

describe('projection users: access requests', () => {
  it('counts access attempts and keeps the time of the first', () => {
    const asked = (displayName: string) =>
      sample(accessRequested, {
        request_id: 3,
        provider: 'google',
        email: 'a@example.com',
        display_name: displayName,
        provider_id: 'sub',
      });
    const { requests } = rows(
      asked('A'),
      accessRequestRejected.draft({ request_id: 3, email: 'a@example.com', note: 'who?' }),
      asked('Ann'),
    );
    expect(requests[0]).to.deep.include({
      status: 'pending',
      pending: 1,
      display_name: 'Ann',
      requested_at: 1_700_000_001,
      last_attempt_at: 1_700_000_003,
      attempt_count: 2,
      reviewed_by: 'admin',
      review_note: 'who?',
      reviewed_at: 1_700_000_002,
      approved_user_id: null,
    });
    const [rejected] = rows(
      asked('A'),
      accessRequestRejected.draft({ request_id: 3, email: null, note: null }),
    ).requests;
    expect(rejected).to.include({ status: 'rejected', pending: 0, review_note: null });
    const approved = rows(
      asked('A'),
      accessRequestApproved.draft({ request_id: 3, email: null, role: 'viewer', user_id: 9, note: null }),
    );
    expect(approved.requests[0]).to.deep.include({ status: 'approved', pending: 0, approved_user_id: 9 });
    const again = rows(
      asked('A'),
      accessRequestApproved.draft({ request_id: 3, email: null, role: 'viewer', user_id: 9, note: null }),
      asked('A'),
    );
    expect(again.requests[0], 'the user that it was approved for').to.include({
      status: 'pending',
      approved_user_id: 9,
    });
  });
});
