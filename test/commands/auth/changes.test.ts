import { expect } from 'chai';
import { decideDelete, decideMove, decideUpdate, deleteUser, updateUser } from '../../../commands/auth/changes.ts';
import type { Reach, UserState } from '../../../commands/auth/users.ts';
import { userDeleted, userTransferred, userUpdated } from '../../../shared/events/auth/users.ts';
import { created, given, NEW } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { failureOf, outcomeOf, refusalOf } from '../../support/kit.ts';

const update = (state: UserState, request: Partial<Parameters<typeof decideUpdate>[1]>) =>
  decideUpdate(state, {
    user_id: 7,
    workspace: 3,
    callerId: 1,
    changes: {},
    credential_id: null,
    by: 'admin',
    ...request,
  });

describe('user changes', () => {
  describe('update by an admin', () => {
    it('records differences only', () => {
      given(created())
        .when(update, { changes: { role: 'admin', display_name: 'Ann' } })
        .then(userUpdated.draft({ user_id: 7, username: 'ann', role: 'admin', password_changed: false, by: 'admin' }));
      given(created())
        .when(update, { changes: { display_name: 'Ann', email: 'ann@example.com' } })
        .then();
      given(created()).when(update, {}).then();
    });
    describe('moving to another workspace', () => {
      const to = { tenant: 9, workspace: 12 };
      const moved = userTransferred.draft({ user_id: 7, username: 'ann', ...to });
      const transfer = (reach: Reach, place = to) => ({ transfer: { to: place, reach } });
      it('is recorded as a separate event after the other changes', () => {
        given(created()).when(update, transfer(3)).then(moved);
        const both = update(given(created()).state, { ...transfer(3), changes: { role: 'admin' } });
        expect(both.map(({ type }) => type)).to.deep.equal(['UserUpdated', 'UserTransferred']);
        given(created(), moved)
          .when(update, { ...transfer('all'), workspace: 12 })
          .then();
      });
      it('requires that the caller can see the user in the workspace, the tenant or everywhere', () => {
        const elsewhere = { ...transfer('all'), workspace: 1 };
        given(created()).when(update, elsewhere).then(moved);
        given(created())
          .when(update, { ...elsewhere, ...transfer({ tenant: 1 }) })
          .then(moved);
        for (const reach of [4, { tenant: 2 }]) given(created()).when(update, transfer(reach)).thenRefuses(404);
        given(created()).when(update, { workspace: 1 }).thenRefuses(404);
      });
      it('allows no other change to a user in another workspace; users cannot move themselves', () => {
        const state = given(created());
        const away = { ...transfer('all'), workspace: 1 };
        state.when(update, { ...away, changes: { role: 'admin' } }).thenRefuses(400);
        state.when(update, { ...away, credential_id: NEW }).thenRefuses(400);
        state.when(update, { ...transfer(3), callerId: 7 }).thenRefuses(400);
        state.when(update, { ...transfer(3, { tenant: 1, workspace: 3 }), callerId: 7 }).then();
      });
    });
    it('removes an email address with null', () => {
      const state = given(created(), ...update(given(created()).state, { changes: { email: null } })).state;
      expect(state.email).to.equal(null);
    });
    it('records a new password as another event of the same append', () => {
      const events = update(given(created()).state, { credential_id: NEW });
      expect(events.map((event) => event.type)).to.deep.equal(['UserUpdated', 'UserPasswordChanged']);
      expect(given(created(), ...events).state.credential_id).to.equal(NEW);
    });
    it('does not find users of other workspaces, deleted users or unknown users', () => {
      given(created()).when(update, { workspace: 4 }).thenRefuses(404);
      given().when(update, {}).thenRefuses(404);
      const gone = given(created(), userDeleted.draft({ user_id: 7, username: 'ann' }));
      gone.when(update, {}).thenRefuses(404);
      expect(update(given(created()).state, { workspace: 'all', changes: { role: 'admin' } })).to.have.length(1);
    });
    it('does not let users change their own role or disable themselves', () => {
      const self = { callerId: 7 };
      given(created())
        .when(update, { ...self, changes: { role: 'admin' } })
        .thenRefuses(400);
      expect(
        refusalOf(() => update(given(created()).state, { ...self, changes: { is_approved: false } })).status,
      ).to.equal(400);
      given(created())
        .when(update, { ...self, changes: { role: 'operator' } })
        .then();
      expect(update(given(created()).state, { ...self, changes: { display_name: 'A.' } })).to.have.length(1);
    });
  });

  it('deletes other users of the same workspace', () => {
    given(created())
      .when(decideDelete, 7, 3, 1)
      .then(userDeleted.draft({ user_id: 7, username: 'ann' }));
    given(created()).when(decideDelete, 7, 3, 7).thenRefuses(400);
    given(created()).when(decideDelete, 7, 4, 1).thenRefuses(404);
  });

  it('moves a user to another workspace once', () => {
    const place = { tenant: 1, workspace: 1 };
    const events = decideMove(given(created()).state, 7, place);
    const moved = given(created(), ...events);
    expect(moved.state.workspace).to.equal(1);
    moved.when(decideMove, 7, place).then();
  });
});

describe('user changes and credentials', () => {
  const NEXT = 'the next password';
  const open = async () => {
    const auth = authMemory();
    const userId = await auth.make({}, 'the first password');
    const session = { userId, credential: 'x', ip: null, userAgent: null, createdAt: 1, expiresAt: 2 };
    await auth.parts.credentials.addSession('old', session);
    const change = (request: Partial<Parameters<typeof updateUser>[4]>) =>
      updateUser(auth.commands, auth.context(), auth.credentials.store, async () => [], {
        user_id: userId,
        workspace: 'all',
        callerId: 0,
        changes: {},
        password: null,
        by: 'admin',
        ...request,
      });
    const kept = () => [
      [...auth.credentials.passwords().values()],
      auth.credentials.sessions().map(({ token }) => token),
    ];
    return { auth, user_id: userId, change, kept };
  };

  it('a new password removes the old one and ends the sessions', async () => {
    const { auth, user_id: userId, change, kept } = await open();
    await change({ password: NEXT });
    expect(kept()).to.deep.equal([[NEXT], []]);
    expect([...auth.credentials.passwords().keys()]).to.deep.equal([(await auth.stateOf(userId)).credential_id]);
  });

  it('disabling a user ends the sessions; other changes do not', async () => {
    const { auth, user_id: userId, change, kept } = await open();
    await change({ changes: { display_name: 'A. Lee', is_approved: true } });
    expect(kept()).to.deep.equal([['the first password'], ['old']]);
    await change({ changes: { is_approved: false } });
    expect(kept()).to.deep.equal([['the first password'], []]);
    expect(await auth.stateOf(userId)).to.include({ display_name: 'A. Lee', is_approved: false });
  });

  it('a request is rejected before the slow hash is computed, and leaves nothing behind', async () => {
    const { auth, change, kept } = await open();
    let hashed = 0;
    const { addPassword } = auth.credentials.store;
    auth.credentials.store.addPassword = (...args) => {
      hashed++;
      return addPassword(...args);
    };
    expect(await outcomeOf(change({ workspace: 9, password: NEXT }))).to.equal('404');
    expect(hashed).to.equal(0);
    expect(kept()).to.deep.equal([['the first password'], ['old']]);
  });

  it('a password that comes too late for the user is removed', async () => {
    const { auth, user_id, change, kept } = await open();
    const { addPassword } = auth.credentials.store;
    auth.credentials.store.addPassword = async (...args) => {
      const id = await addPassword(...args);
      await auth.world
        .process()
        .record(`user-${user_id}`, auth.context(), [userDeleted.draft({ user_id, username: 'ann' })]);
      return id;
    };
    expect(await outcomeOf(change({ password: NEXT }))).to.equal('404');
    expect(kept()[0], 'the one that the log names').to.deep.equal(['the first password']);
  });

  it('a password is kept if the outcome of the change is unknown', async () => {
    const { auth, change, kept } = await open();
    auth.world.breakStreams();
    expect(await failureOf(change({ password: NEXT }))).to.match(/the disk is full/);
    expect(kept()).to.deep.equal([['the first password', NEXT], ['old']]);
  });

  it('deletion ends the sessions, removes the password and frees the name', async () => {
    const { auth, user_id, kept } = await open();
    const request = { user_id, reach: 'all' as const, callerId: 0 };
    await deleteUser(auth.commands, auth.context(), auth.credentials.store, async () => [], request);
    expect(kept()).to.deep.equal([[], []]);
    // In its workspace, and among all users.
    expect(auth.events('NameReleased').map(({ data }) => [data.kind, data.name])).to.deep.equal([
      ['name', 'ann'],
      ['name', 'ann'],
    ]);
    const again = await auth.make();
    expect(again).to.not.equal(user_id);
  });
});
