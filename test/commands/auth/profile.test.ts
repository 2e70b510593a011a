import { expect } from 'chai';
import { decideProfile, updateProfile } from '../../../commands/auth/profile.ts';
import { userPasswordChanged, userUpdated } from '../../../shared/events/auth/users.ts';
import { created, given, NEW, OLD } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { failureOf, outcomeOf, refusalOf } from '../../support/kit.ts';

describe('own profile', () => {
  it('changes the name, the password, or both', () => {
    const both = decideProfile(given(created()).state, {
      user_id: 7,
      display_name: 'A. Lee',
      password: { verified: OLD, credential_id: NEW },
    });
    expect(both).to.deep.equal([
      userPasswordChanged.draft({ user_id: 7, username: 'ann', credential_id: NEW, by: 'self' }),
      userUpdated.draft({ user_id: 7, username: 'ann', display_name: 'A. Lee', password_changed: false, by: 'self' }),
    ]);
    given(created()).when(decideProfile, { user_id: 7, display_name: 'Ann' }).then();
  });
  it('is rejected if the verified password is no longer the current one', () => {
    const state = given(
      created(),
      userPasswordChanged.draft({ user_id: 7, username: 'ann', credential_id: NEW, by: 'admin' }),
    ).state;
    const error = refusalOf(() =>
      decideProfile(state, { user_id: 7, password: { verified: OLD, credential_id: NEW } }),
    );
    expect(error.status).to.equal(403);
  });
});

describe('updating the own profile', () => {
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
    const update = (request: { display_name?: string; password?: { current: string; next: string } }) =>
      updateProfile(auth.parts, auth.context(), {
        user_id: userId,
        display_name: undefined,
        password: undefined,
        ...request,
      });
    const sessions = () => auth.credentials.sessions().map(({ token }) => token);
    const passwords = () => [...auth.credentials.passwords().values()];
    return { auth, user_id: userId, update, sessions, passwords };
  };

  it('keeps the sessions and the password if only the name changes', async () => {
    const { auth, user_id: userId, update, sessions, passwords } = await open();
    const { user, token } = await update({ display_name: 'A. Lee' });
    expect(token).to.equal(undefined);
    expect(user.record.display_name).to.equal('A. Lee');
    expect((await auth.stateOf(userId)).display_name).to.equal('A. Lee');
    expect([sessions(), passwords()]).to.deep.equal([['old'], [FIRST]]);
  });

  it('ends all sessions except a new one and removes the old password if the password changes', async () => {
    const { auth, user_id, update, sessions, passwords } = await open();
    const { user, token } = await update({ password: { current: FIRST, next: NEXT } });
    expect(token).to.match(/^[0-9a-f]{64}$/);
    expect([sessions(), passwords()]).to.deep.equal([[token], [NEXT]]);
    const [session] = auth.credentials.sessions();
    expect(session?.session).to.include({ userId: user_id, credential: user.sessionMark });
    expect(auth.credentials.passwords().has((await auth.stateOf(user_id)).credential_id ?? '')).to.equal(true);
  });

  it('is rejected with a wrong password, or for a user without one', async () => {
    for (const [password, current] of [
      [FIRST, 'a wrong password'],
      [null, FIRST],
    ] as const) {
      const { auth, update, sessions, passwords } = await open(password);
      const before = auth.world.written().length;
      expect(await outcomeOf(update({ display_name: 'x', password: { current, next: NEXT } }))).to.equal('403');
      expect(auth.world.written()).to.have.length(before);
      expect([sessions(), passwords()]).to.deep.equal([['old'], password === null ? [] : [FIRST]]);
    }
  });

  it('is rejected if the password has changed meanwhile, and leaves no unused password', async () => {
    const { auth, user_id, update, passwords } = await open();
    const { verifyPassword } = auth.parts.credentials;
    auth.parts.credentials.verifyPassword = async (id, password) => {
      const right = await verifyPassword(id, password);
      await auth.parts.credentials
        .addPassword(user_id, 'of the admin')
        .then((credentialId) =>
          auth.world
            .process()
            .record(`user-${user_id}`, auth.context(), [
              userPasswordChanged.draft({ user_id, username: 'ann', credential_id: credentialId, by: 'admin' }),
            ]),
        );
      return right;
    };
    expect(await outcomeOf(update({ password: { current: FIRST, next: NEXT } }))).to.equal('403');
    expect(passwords()).to.deep.equal(['of the admin']);
  });

  it('keeps both passwords if the append fails, because it may have been written', async () => {
    const { auth, update, passwords, sessions } = await open();
    auth.world.breakStreams();
    const failure = await failureOf(update({ password: { current: FIRST, next: NEXT } }));
    expect(failure).to.match(/the disk is full/);
    expect([passwords(), sessions()]).to.deep.equal([[FIRST, NEXT], ['old']]);
  });

  it('returns 404 for an unknown user', async () => {
    const { auth } = await open();
    const nobody = { user_id: 99, display_name: 'x', password: undefined };
    expect(await outcomeOf(updateProfile(auth.parts, auth.context(), nobody))).to.equal('404');
  });
});
