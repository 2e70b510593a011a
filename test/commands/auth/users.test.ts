import { expect } from 'chai';
import { decideApproval } from '../../../commands/auth/access-requests.ts';
import { decideDelete, decideMove, decideUpdate } from '../../../commands/auth/changes.ts';
import { decideDisconnect, decideGoogleSignIn, type GoogleProfile } from '../../../commands/auth/google.ts';
import { decideProfile } from '../../../commands/auth/profile.ts';
import {
  decideCreate,
  firstAdmin,
  NAME_LOST,
  type NewUser,
  type UserState,
  userDecider,
  usernames,
} from '../../../commands/auth/users.ts';
import type { Decider } from '../../../commands/decider.ts';
import { AppError } from '../../../shared/errors.ts';
import { userCreated, userDeleted, userPasswordChanged, userUpdated } from '../../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import type { EventDraft } from '../../../shared/events/define.ts';

const OLD = '11111111-1111-4111-8111-111111111111';
const NEW = '22222222-2222-4222-8222-222222222222';

const ann: NewUser = {
  username: 'ann',
  displayName: 'Ann',
  email: 'ann@example.com',
  avatarUrl: null,
  role: 'operator',
  provider: 'local',
  providerId: null,
  isApproved: true,
  tenant: 1,
  workspace: 3,
  source: 'admin',
};
const google: NewUser = { ...ann, provider: 'google', providerId: 'sub-1' };
const profile: GoogleProfile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };
const created = (user: NewUser = ann, credentialId: string | null = OLD) =>
  userCreated.draft({ ...user, userId: 7, credentialId });

/** The state after these events. */
const given = (...drafts: EventDraft<string, object>[]): UserState =>
  drafts.reduce(
    (state, { type, data }) =>
      (userDecider as Decider<UserState>).evolve(state, { type, data: data as Record<string, unknown>, at: 1 }),
    userDecider.initial,
  );

function refusal(act: () => unknown): AppError {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('was not refused');
}

const update = (state: UserState, request: Partial<Parameters<typeof decideUpdate>[1]>) =>
  decideUpdate(state, {
    userId: 7,
    workspace: 3,
    callerId: 1,
    changes: {},
    credentialId: null,
    by: 'admin',
    ...request,
  });

describe('user decisions', () => {
  describe('create', () => {
    it('makes a user and names the credential', () => {
      const [event] = decideCreate(given(), 7, ann, OLD);
      expect(event).to.deep.equal(created());
    });
    it('refuses a number that is in use, or was', () => {
      expect(refusal(() => decideCreate(given(created()), 7, ann, OLD)).status).to.equal(409);
      const gone = given(created(), userDeleted.draft({ userId: 7, username: 'ann' }));
      expect(refusal(() => decideCreate(gone, 7, ann, OLD)).status).to.equal(409);
    });
    it('refuses once the name it was about to have was given to somebody else', () => {
      const voided = given(nameClaimVoided.draft({ kind: 'username', name: 'ann' }));
      expect(refusal(() => decideCreate(voided, 7, ann, OLD)).extras.code).to.equal(NAME_LOST);
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

  describe('update by an admin', () => {
    it('records what differs, and nothing when nothing does', () => {
      expect(update(given(created()), { changes: { role: 'admin', displayName: 'Ann' } })).to.deep.equal([
        userUpdated.draft({ userId: 7, username: 'ann', role: 'admin', passwordChanged: false, by: 'admin' }),
      ]);
      expect(update(given(created()), { changes: { displayName: 'Ann', email: 'ann@example.com' } })).to.deep.equal([]);
      expect(update(given(created()), {})).to.deep.equal([]);
    });
    it('clears an address with null', () => {
      const state = given(created(), ...update(given(created()), { changes: { email: null } }));
      expect(state.email).to.equal(null);
    });
    it('a new password is one more event of the same append', () => {
      const events = update(given(created()), { credentialId: NEW });
      expect(events.map((event) => event.type)).to.deep.equal(['UserUpdated', 'UserPasswordChanged']);
      expect(given(created(), ...events).credentialId).to.equal(NEW);
    });
    it('finds no user of another workspace, none deleted, none that never was', () => {
      expect(refusal(() => update(given(created()), { workspace: 4 })).status).to.equal(404);
      expect(refusal(() => update(given(), {})).status).to.equal(404);
      const gone = given(created(), userDeleted.draft({ userId: 7, username: 'ann' }));
      expect(refusal(() => update(gone, {})).status).to.equal(404);
      expect(update(given(created()), { workspace: 'all', changes: { role: 'admin' } })).to.have.length(1);
    });
    it('does not let anybody change their own role or disable themselves', () => {
      const self = { callerId: 7 };
      expect(refusal(() => update(given(created()), { ...self, changes: { role: 'admin' } })).status).to.equal(400);
      expect(refusal(() => update(given(created()), { ...self, changes: { isApproved: false } })).status).to.equal(400);
      expect(update(given(created()), { ...self, changes: { role: 'operator' } })).to.deep.equal([]);
      expect(update(given(created()), { ...self, changes: { displayName: 'A.' } })).to.have.length(1);
    });
  });

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
      const error = refusal(() => decideProfile(state, { userId: 7, password: { verified: OLD, credentialId: NEW } }));
      expect(error.status).to.equal(403);
    });
  });

  describe('Google', () => {
    it('a sign-in brings what is newer, and nothing when nothing is', () => {
      expect(decideGoogleSignIn(given(created(google)), 7, profile)).to.deep.equal([]);
      const [event] = decideGoogleSignIn(given(created(google)), 7, { ...profile, email: 'new@example.com' });
      expect(event?.data).to.deep.include({ email: 'new@example.com', by: 'google' });
    });
    it('refuses local users and unapproved ones', () => {
      for (const user of [ann, { ...google, isApproved: false }]) {
        const error = refusal(() => decideGoogleSignIn(given(created(user)), 7, profile));
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
      expect(refusal(() => decideDisconnect(given(created(google, null)), 7)).status).to.equal(400);
      expect(refusal(() => decideDisconnect(given(created()), 7)).status).to.equal(400);
    });
  });

  it('deletes others, in the own workspace', () => {
    expect(decideDelete(given(created()), 7, 3, 1)).to.deep.equal([userDeleted.draft({ userId: 7, username: 'ann' })]);
    expect(refusal(() => decideDelete(given(created()), 7, 3, 7)).status).to.equal(400);
    expect(refusal(() => decideDelete(given(created()), 7, 4, 1)).status).to.equal(404);
  });

  it('moves to another workspace once', () => {
    const place = { tenant: 1, workspace: 1 };
    const events = decideMove(given(created()), 7, place);
    const moved = given(created(), ...events);
    expect(moved.workspace).to.equal(1);
    expect(decideMove(moved, 7, place)).to.deep.equal([]);
  });
});
