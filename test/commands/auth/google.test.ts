import { expect } from 'chai';
import { decideApproval } from '../../../commands/auth/access-requests.ts';
import { decideDisconnect, decideGoogleSignIn } from '../../../commands/auth/google.ts';
import { ann, created, given, google, OLD, profile } from '../../support/ann.ts';
import { refusalOf } from '../../support/kit.ts';

describe('Google', () => {
  it('a sign-in brings what is newer, and nothing when nothing is', () => {
    expect(decideGoogleSignIn(given(created(google)), 7, profile)).to.deep.equal([]);
    const [event] = decideGoogleSignIn(given(created(google)), 7, { ...profile, email: 'new@example.com' });
    expect(event?.data).to.deep.include({ email: 'new@example.com', by: 'google' });
  });
  it('refuses local users and unapproved ones', () => {
    for (const user of [ann, { ...google, isApproved: false }]) {
      const error = refusalOf(() => decideGoogleSignIn(given(created(user)), 7, profile));
      expect([error.status, error.extras.code]).to.deep.equal([403, 'PENDING_APPROVAL']);
    }
  });
  it('an approval turns a local user into a Google one and keeps the password for later', () => {
    const state = given(created(), ...decideApproval(given(created()), 7, profile, 'admin', 1));
    expect(state).to.deep.include({ provider: 'google', providerId: 'sub-1', role: 'admin', credentialId: OLD });
    const back = given(
      created(),
      ...decideApproval(given(created()), 7, profile, 'admin', 1),
      ...decideDisconnect(state, 7),
    );
    expect(back).to.deep.include({ provider: 'local', providerId: null, credentialId: OLD });
  });
  it('does not disconnect somebody who could not sign in again', () => {
    expect(refusalOf(() => decideDisconnect(given(created(google, null)), 7)).status).to.equal(400);
    expect(refusalOf(() => decideDisconnect(given(created()), 7)).status).to.equal(400);
  });
});
