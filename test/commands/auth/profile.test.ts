import { expect } from 'chai';
import { decideProfile } from '../../../commands/auth/profile.ts';
import { userPasswordChanged, userUpdated } from '../../../shared/events/auth/users.ts';
import { created, given, NEW, OLD } from '../../support/ann.ts';
import { refusalOf } from '../../support/kit.ts';

describe('own profile', () => {
  it('changes the name, the password, or both', () => {
    const both = decideProfile(given(created()), {
      userId: 7,
      displayName: 'A. Lee',
      password: { verified: OLD, credentialId: NEW },
    });
    expect(both).to.deep.equal([
      userPasswordChanged.draft({ userId: 7, username: 'ann', credentialId: NEW, by: 'self' }),
      userUpdated.draft({ userId: 7, username: 'ann', displayName: 'A. Lee', passwordChanged: false, by: 'self' }),
    ]);
    expect(decideProfile(given(created()), { userId: 7, displayName: 'Ann' })).to.deep.equal([]);
  });
  it('refuses when the password it was checked against is no longer the one', () => {
    const state = given(
      created(),
      userPasswordChanged.draft({ userId: 7, username: 'ann', credentialId: NEW, by: 'admin' }),
    );
    const error = refusalOf(() => decideProfile(state, { userId: 7, password: { verified: OLD, credentialId: NEW } }));
    expect(error.status).to.equal(403);
  });
});
