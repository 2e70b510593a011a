import { expect } from 'chai';
import { decideCreate, firstAdmin, NAME_LOST, usernames } from '../../../commands/auth/users.ts';
import { userDeleted } from '../../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import { ann, created, given, OLD } from '../../support/ann.ts';
import { refusalOf } from '../../support/kit.ts';

describe('user decisions', () => {
  describe('create', () => {
    it('makes a user and names the credential', () => {
      const [event] = decideCreate(given(), 7, ann, OLD);
      expect(event).to.deep.equal(created());
    });
    it('refuses a number that is in use, or was', () => {
      expect(refusalOf(() => decideCreate(given(created()), 7, ann, OLD)).status).to.equal(409);
      const gone = given(created(), userDeleted.draft({ userId: 7, username: 'ann' }));
      expect(refusalOf(() => decideCreate(gone, 7, ann, OLD)).status).to.equal(409);
    });
    it('refuses once the name it was about to have was given to somebody else', () => {
      const voided = given(nameClaimVoided.draft({ kind: 'username', name: 'ann' }));
      expect(refusalOf(() => decideCreate(voided, 7, ann, OLD)).extras.code).to.equal(NAME_LOST);
    });
  });

  describe('unique names', () => {
    it('are held by the user who has them, for good and until deleted', () => {
      expect(usernames.holds(given(), 'ann')).to.equal('not yet');
      expect(usernames.holds(given(created()), 'ann')).to.equal('yes');
      expect(usernames.holds(given(created()), 'bob')).to.equal('never');
      expect(usernames.holds(given(created(), userDeleted.draft({ userId: 7, username: 'ann' })), 'ann')).to.equal(
        'never',
      );
      expect(usernames.holds(given(nameClaimVoided.draft({ kind: 'username', name: 'ann' })), 'ann')).to.equal('never');
    });
    it('the first admin is whoever exists', () => {
      expect(firstAdmin.holds(given(created()), 'first')).to.equal('yes');
      expect(firstAdmin.holds(given(created(), userDeleted.draft({ userId: 7, username: 'ann' })), 'first')).to.equal(
        'yes',
      );
    });
  });
});
