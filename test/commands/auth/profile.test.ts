import { expect } from 'chai';
import { decideProfile, updateProfile } from '../../../commands/auth/profile.ts';
import { userPasswordChanged, userUpdated } from '../../../shared/events/auth/users.ts';
import { created, given, NEW, OLD } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { outcomeOf, refusalOf } from '../../support/kit.ts';

describe('own profile', () => {
  it('changes the name, the password, or both', () => {
    const both = decideProfile(given(created()).state, {
      userId: 7,
      displayName: 'A. Lee',
      password: { verified: OLD, credentialId: NEW },
    });
    expect(both).to.deep.equal([
      userPasswordChanged.draft({ userId: 7, username: 'ann', credentialId: NEW, by: 'self' }),
      userUpdated.draft({ userId: 7, username: 'ann', displayName: 'A. Lee', passwordChanged: false, by: 'self' }),
    ]);
    given(created()).when(decideProfile, { userId: 7, displayName: 'Ann' }).then();
  });
  it('refuses when the password it was checked against is no longer the one', () => {
    const state = given(
      created(),
      userPasswordChanged.draft({ userId: 7, username: 'ann', credentialId: NEW, by: 'admin' }),
    ).state;
    const error = refusalOf(() => decideProfile(state, { userId: 7, password: { verified: OLD, credentialId: NEW } }));
    expect(error.status).to.equal(403);
  });
});

describe('an update of the own profile', () => {
  const FIRST = 'the first password';
  const NEXT = 'the next password';
  const open = async (password: string | null = FIRST) => {
    const auth = authMemory();
    const userId = await auth.make({}, password);
    await auth.parts.credentials.addSession('old', {
      userId,
      credential: 'x',
      ip: null,
      userAgent: null,
      createdAt: 1,
      expiresAt: 2,
    });
    const update = (request: { displayName?: string; password?: { current: string; next: string } }) =>
      updateProfile(auth.parts, auth.context(), { userId, displayName: undefined, password: undefined, ...request });
    const sessions = () => auth.credentials.sessions().map(({ token }) => token);
    const passwords = () => [...auth.credentials.passwords().values()];
    return { auth, userId, update, sessions, passwords };
  };

  it('of the name keeps the sessions and the password', async () => {
    const { auth, userId, update, sessions, passwords } = await open();
    const { user, token } = await update({ displayName: 'A. Lee' });
    expect(token).to.equal(undefined);
    expect(user.record.display_name).to.equal('A. Lee');
    expect((await auth.stateOf(userId)).displayName).to.equal('A. Lee');
    expect([sessions(), passwords()]).to.deep.equal([['old'], [FIRST]]);
  });

  it('of the password ends all sessions but the one that begins, and removes the old password', async () => {
    const { auth, userId, update, sessions, passwords } = await open();
    const { user, token } = await update({ password: { current: FIRST, next: NEXT } });
    expect(token).to.match(/^[0-9a-f]{64}$/);
    expect([sessions(), passwords()]).to.deep.equal([[token], [NEXT]]);
    const [session] = auth.credentials.sessions();
    expect(session?.session).to.include({ userId, credential: user.sessionMark });
    expect(auth.credentials.passwords().has((await auth.stateOf(userId)).credentialId ?? '')).to.equal(true);
  });

  it('is refused with a wrong password, or to a user without one', async () => {
    for (const [password, current] of [
      [FIRST, 'a wrong password'],
      [null, FIRST],
    ] as const) {
      const { auth, update, sessions, passwords } = await open(password);
      const before = auth.world.written().length;
      expect(await outcomeOf(update({ displayName: 'x', password: { current, next: NEXT } }))).to.equal('403');
      expect(auth.world.written()).to.have.length(before);
      expect([sessions(), passwords()]).to.deep.equal([['old'], password === null ? [] : [FIRST]]);
    }
  });

  it('is refused if the password was changed in the meantime, and leaves no unused password', async () => {
    const { auth, userId, update, passwords } = await open();
    const { verifyPassword } = auth.parts.credentials;
    auth.parts.credentials.verifyPassword = async (id, password) => {
      const right = await verifyPassword(id, password);
      await auth.parts.credentials
        .addPassword(userId, 'of the admin')
        .then((credentialId) =>
          auth.world
            .process()
            .record(`user-${userId}`, auth.context(), [
              userPasswordChanged.draft({ userId, username: 'ann', credentialId, by: 'admin' }),
            ]),
        );
      return right;
    };
    expect(await outcomeOf(update({ password: { current: FIRST, next: NEXT } }))).to.equal('403');
    expect(passwords()).to.deep.equal(['of the admin']);
  });

  it('that the log did not take keeps both passwords: it may have been written', async () => {
    const { auth, update, passwords, sessions } = await open();
    auth.world.beforeAppend = async () => {
      throw new Error('the disk is full');
    };
    const failure = await update({ password: { current: FIRST, next: NEXT } }).catch((error: Error) => error.message);
    expect(failure).to.match(/the disk is full/);
    expect([passwords(), sessions()]).to.deep.equal([[FIRST, NEXT], ['old']]);
  });

  it('returns 404 for an unknown one', async () => {
    const { auth } = await open();
    const nobody = { userId: 99, displayName: 'x', password: undefined };
    expect(await outcomeOf(updateProfile(auth.parts, auth.context(), nobody))).to.equal('404');
  });
});
