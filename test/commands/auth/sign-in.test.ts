/** Sign-in and sign-out on a log in memory: who gets in, what is recorded, which session begins. */
import { expect } from 'chai';
import { hashToken, SESSION_SECONDS } from '../../../commands/auth/sessions.ts';
import { signInWithGoogle, signInWithPassword, signOut } from '../../../commands/auth/sign-in.ts';
import { DAY } from '../../../shared/time.ts';
import { authMemory, SESSIONS_NOW } from '../../support/auth-memory.ts';
import { fixtureForEach } from '../../support/fixture.ts';
import { failureOf, outcomeOf, refusalFrom } from '../../support/kit.ts';
import { testOrigin } from '../../support/world.ts';

const PASSWORD = 'a long enough password';
const profile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };

describe('sign-in with a password', () => {
  const auth = fixtureForEach(() => authMemory());
  const signIn = (username: string, password = PASSWORD) =>
    signInWithPassword(auth.parts, auth.context(), { username, password });

  it('starts a session of seven days and records who signed in, in their workspace', async () => {
    const id = await auth.make({ tenant: 2 }, PASSWORD);
    const { user, token } = await signIn('ann');
    expect(user).to.include({ id, username: 'ann' });
    expect(token).to.match(/^[0-9a-f]{64}$/);
    const createdAt = Math.floor(SESSIONS_NOW / 1_000);
    expect(auth.credentials.sessions()).to.deep.equal([
      {
        token,
        session: {
          userId: id,
          credential: user.sessionMark,
          ip: testOrigin.ip,
          userAgent: null,
          createdAt,
          expiresAt: createdAt + 7 * DAY,
        },
      },
    ]);
    expect(SESSION_SECONDS).to.equal(7 * DAY);
    const [event] = auth.world.written().slice(-1);
    expect(event).to.deep.include({
      type: 'UserSignedIn',
      stream: `sign_ins-${id}`,
      data: { user_id: id, username: 'ann', method: 'password' },
    });
    expect((event as { meta?: unknown }).meta).to.deep.include({
      tenant: 2,
      workspace: 3,
      actor: { type: 'user', id, name: 'ann' },
    });
  });

  it('returns the same response for every failure and records the reason', async () => {
    const id = await auth.make({}, PASSWORD);
    const other = await auth.make({ username: 'off', is_approved: false }, PASSWORD);
    const google = await auth.make({ username: 'goo', provider: 'google', provider_id: 'sub-9' }, PASSWORD);
    const proxied = await auth.make({ username: 'prue', provider: 'proxy' });
    const attempts = [
      ['ann', 'wrong password', id, 'invalid_password'],
      ['off', PASSWORD, other, 'not_approved'],
      ['goo', PASSWORD, google, 'wrong_provider'],
      ['prue', PASSWORD, proxied, 'wrong_provider'],
      ['nobody', PASSWORD, null, 'user_not_found'],
    ] as const;
    for (const [username, password, userId, reason] of attempts) {
      const error = await refusalFrom(signIn(username, password));
      expect([error.status, error.message, error.extras.code], reason).to.deep.equal([
        401,
        'Invalid credentials',
        undefined,
      ]);
      const [event] = auth.world.written().slice(-1);
      expect(event, reason).to.deep.include({ type: 'SignInFailed', stream: `sign_ins-${userId ?? 'unknown'}` });
      expect(event?.data).to.include({ user_id: userId, reason, month: new Date().toISOString().slice(0, 7) });
      expect((event as { meta?: { workspace: number } }).meta?.workspace).to.equal(userId === null ? 1 : 3);
    }
    expect(auth.credentials.sessions()).to.deep.equal([]);
  });

  it('accepts a password that an admin has set for a user of a proxy', async () => {
    await auth.make({ username: 'prue', provider: 'proxy' }, PASSWORD);
    expect((await signIn('prue', PASSWORD)).user.username).to.equal('prue');
  });

  it('takes as long for an unknown name, because it verifies a password anyway', async () => {
    await auth.make({ username: 'off', is_approved: false }, PASSWORD);
    const verified: (string | null)[] = [];
    const { verifyPassword } = auth.parts.credentials;
    auth.parts.credentials.verifyPassword = (id, password) => {
      verified.push(id);
      return verifyPassword(id, password);
    };
    await refusalFrom(signIn('nobody'));
    await refusalFrom(signIn('off'));
    expect(verified).to.deep.equal([null, null]);
  });

  it('explains how to create the first user if there is none', async () => {
    const { status, extras } = await refusalFrom(signIn('admin'));
    expect([status, extras.code, extras.hint]).to.deep.equal([
      401,
      'NO_USERS',
      'There are no users yet; create the first admin at /setup (POST /api/setup).',
    ]);
    await auth.make();
    expect((await refusalFrom(signIn('admin'))).extras.code).to.equal(undefined);
  });

  it('leaves no session that is missing from the audit trail', async () => {
    await auth.make({}, PASSWORD);
    auth.world.breakStreams();
    const failure = await failureOf(signIn('ann'));
    expect(failure).to.match(/the disk is full/);
    const [session] = auth.credentials.sessions();
    expect(auth.credentials.removed()).to.deep.equal([hashToken(session?.token ?? '')]);
    expect(hashToken('a')).to.equal('ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb');
  });
});

describe('sign-in with Google', () => {
  const auth = fixtureForEach(() => authMemory());
  const signIn = (more: Partial<typeof profile> = {}) =>
    signInWithGoogle(auth.parts, auth.context(), { ...profile, ...more });

  it('updates the user, then starts a session', async () => {
    const id = await auth.make({ provider: 'google', provider_id: 'sub-1', email: 'old@example.com' });
    const { user, token } = await signIn();
    expect(user.id).to.equal(id);
    expect(auth.credentials.sessions().map((one) => one.token)).to.deep.equal([token]);
    expect((await auth.stateOf(id)).email).to.equal('ann@example.com');
    const [updated, signedIn] = auth.world.written().slice(-2);
    expect(updated).to.include({ type: 'UserUpdated', stream: `user-${id}` });
    expect(signedIn?.data).to.deep.equal({ user_id: id, username: 'ann', method: 'google' });
  });

  it('with an unknown account creates one access request per account', async () => {
    await auth.make({ provider: 'google', provider_id: 'sub-1', is_approved: false });
    for (const more of [{}, { sub: 'sub-2', email: 'eve@example.com' }]) {
      const { status, extras } = await refusalFrom(signIn(more));
      expect([status, extras.code]).to.deep.equal([403, 'PENDING_APPROVAL']);
    }
    expect(auth.events('AccessRequested').map(({ stream }) => stream)).to.deep.equal([
      'access_request-1',
      'access_request-2',
    ]);
    // The read model knows it by now: the same request again.
    auth.known.request = 2;
    expect(await outcomeOf(signIn({ sub: 'sub-2', email: 'eve@example.com' }))).to.equal('PENDING_APPROVAL');
    expect(auth.events('AccessRequested').at(-1)?.stream).to.equal('access_request-2');
    expect(auth.credentials.sessions()).to.deep.equal([]);
  });

  it('twice at once with one account creates one request, and its claim does not name the account', async () => {
    await refusalFrom(signIn());
    await refusalFrom(signIn());
    expect(auth.events('AccessRequested')).to.have.length(1);
    const [claim] = auth.events('NameClaimed').filter(({ data }) => data.kind === 'google_account');
    expect(claim?.data.name).to.match(/^[0-9a-f]{64}$/);
    await refusalFrom(signIn({ sub: 'sub-2' }));
    expect(auth.events('AccessRequested'), 'another account').to.have.length(2);
  });

  it('fails if claiming the account fails for another reason than a taken name', async () => {
    auth.world.breakStreams();
    expect(await failureOf(signIn())).to.match(/the disk is full/);
  });
});

describe('sign-out', () => {
  it('ends each of the sessions, and is recorded for callers with an account', async () => {
    const auth = authMemory();
    const id = await auth.make();
    const user = { id, username: 'ann', tenant: 1, workspace: 3 };
    await signOut(auth.parts, auth.context(), ['t1', 't2'], user);
    expect(auth.credentials.removed()).to.deep.equal([hashToken('t1'), hashToken('t2')]);
    expect(auth.world.written().at(-1)).to.deep.include({
      type: 'UserSignedOut',
      stream: `sign_ins-${id}`,
      data: { user_id: id, username: 'ann' },
    });
    const before = auth.world.written().length;
    await signOut(auth.parts, auth.context(), ['t3'], undefined);
    expect(auth.credentials.removed()).to.have.length(3);
    expect(auth.world.written()).to.have.length(before);
  });
});
