import { expect } from 'chai';
import { decideDelete, decideMove, decideUpdate } from '../../../commands/auth/changes.ts';
import type { UserState } from '../../../commands/auth/users.ts';
import { userDeleted, userUpdated } from '../../../shared/events/auth/users.ts';
import { created, given, NEW } from '../../support/ann.ts';
import { refusalOf } from '../../support/kit.ts';

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

describe('changes of users', () => {
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
      expect(refusalOf(() => update(given(created()), { workspace: 4 })).status).to.equal(404);
      expect(refusalOf(() => update(given(), {})).status).to.equal(404);
      const gone = given(created(), userDeleted.draft({ userId: 7, username: 'ann' }));
      expect(refusalOf(() => update(gone, {})).status).to.equal(404);
      expect(update(given(created()), { workspace: 'all', changes: { role: 'admin' } })).to.have.length(1);
    });
    it('does not let anybody change their own role or disable themselves', () => {
      const self = { callerId: 7 };
      expect(refusalOf(() => update(given(created()), { ...self, changes: { role: 'admin' } })).status).to.equal(400);
      expect(refusalOf(() => update(given(created()), { ...self, changes: { isApproved: false } })).status).to.equal(
        400,
      );
      expect(update(given(created()), { ...self, changes: { role: 'operator' } })).to.deep.equal([]);
      expect(update(given(created()), { ...self, changes: { displayName: 'A.' } })).to.have.length(1);
    });
  });

  it('deletes others, in the own workspace', () => {
    expect(decideDelete(given(created()), 7, 3, 1)).to.deep.equal([userDeleted.draft({ userId: 7, username: 'ann' })]);
    expect(refusalOf(() => decideDelete(given(created()), 7, 3, 7)).status).to.equal(400);
    expect(refusalOf(() => decideDelete(given(created()), 7, 4, 1)).status).to.equal(404);
  });

  it('moves to another workspace once', () => {
    const place = { tenant: 1, workspace: 1 };
    const events = decideMove(given(created()), 7, place);
    const moved = given(created(), ...events);
    expect(moved.workspace).to.equal(1);
    expect(decideMove(moved, 7, place)).to.deep.equal([]);
  });
});
