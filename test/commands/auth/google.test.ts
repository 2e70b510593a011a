import { expect } from 'chai';
import { decideApproval } from '../../../commands/auth/access-requests.ts';
import { decideDisconnect, decideGoogleSignIn, disconnectGoogle } from '../../../commands/auth/google.ts';
import { ann, created, given, google, OLD, profile } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { outcomeOf, refusalOf } from '../../support/kit.ts';

describe('Google accounts', () => {
  it('record newer profile data at sign-in, and nothing if it is unchanged', () => {
    given(created(google)).when(decideGoogleSignIn, 7, profile).then();
    const [event] = decideGoogleSignIn(given(created(google)).state, 7, { ...profile, email: 'new@example.com' });
    expect(event?.data).to.deep.equal({
      user_id: 7,
      username: 'ann',
      email: 'new@example.com',
      password_changed: false,
      by: 'google',
    });
    const [withPicture] = decideGoogleSignIn(given(created(google)).state, 7, {
      ...profile,
      picture: 'https://x/y.png',
    });
    expect(withPicture?.data).to.include({ avatar_url: 'https://x/y.png' });
    const pictured = given(created({ ...google, avatar_url: 'https://x/y.png' })).state;
    expect(decideGoogleSignIn(pictured, 7, profile), 'an account without a picture').to.deep.equal([]);
  });
  it('reject local users and unapproved users', () => {
    for (const user of [ann, { ...google, is_approved: false }]) {
      const error = refusalOf(() => decideGoogleSignIn(given(created(user)).state, 7, profile));
      expect([error.status, error.extras.code]).to.deep.equal([403, 'PENDING_APPROVAL']);
    }
  });
  it('are connected to a local user by an approval, which keeps the password for later', () => {
    const state = given(created(), ...decideApproval(given(created()).state, 7, profile, 'admin', 1)).state;
    expect(state).to.deep.include({ provider: 'google', provider_id: 'sub-1', role: 'admin', credential_id: OLD });
    const back = given(
      created(),
      ...decideApproval(given(created()).state, 7, profile, 'admin', 1),
      ...decideDisconnect(state, 7),
    ).state;
    expect(back).to.deep.include({ provider: 'local', provider_id: null, credential_id: OLD });
  });
  it('cannot be disconnected from a user who could not sign in again', () => {
    given(created(google, null)).when(decideDisconnect, 7).thenRefuses(400);
    given(created()).when(decideDisconnect, 7).thenRefuses(400);
  });
});

describe('disconnecting Google', () => {
  const open = async (password: string | null) => {
    const auth = authMemory();
    const userId = await auth.make({ provider: 'google', provider_id: 'sub-1' }, password);
    const session = { userId, credential: 'x', ip: null, userAgent: null, createdAt: 1, expiresAt: 2 };
    await auth.parts.credentials.addSession('old', session);
    const leave = (hasSession: boolean) =>
      disconnectGoogle(auth.parts, auth.context(), { user_id: userId, hasSession });
    return { auth, user_id: userId, leave, sessions: () => auth.credentials.sessions().map(({ token }) => token) };
  };

  it('ends all sessions, and starts one for a caller with a session', async () => {
    const { auth, user_id, leave, sessions } = await open('a long enough password');
    const token = await leave(true);
    expect(token).to.match(/^[0-9a-f]{64}$/);
    expect(sessions()).to.deep.equal([token]);
    expect(await auth.stateOf(user_id)).to.include({ provider: 'local', provider_id: null });
    expect(auth.events('GoogleDisconnected')[0]?.data).to.deep.equal({ user_id, username: 'ann' });
  });

  it('starts no session for a caller with a key', async () => {
    const { leave, sessions } = await open('a long enough password');
    expect(await leave(false)).to.equal(undefined);
    expect(sessions()).to.deep.equal([]);
  });

  it('is rejected without a password, and changes nothing', async () => {
    const { auth, user_id: userId, leave, sessions } = await open(null);
    expect(await outcomeOf(leave(true))).to.equal('400');
    expect(sessions()).to.deep.equal(['old']);
    expect((await auth.stateOf(userId)).provider).to.equal('google');
  });
});
