/** Sign-in with Google and access requests, with a local server in place of Google: through real HTTP. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { CLIENT_ID, ISSUER, startFakeGoogle } from '../../support/google.ts';
import { bodyOf, TEST_ADMIN } from '../../support/service.ts';
import { cookieOf, PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';

describe('contract: Google and access requests', function () {
  this.timeout(60_000);
  let admin: string;
  const google = fixture(startFakeGoogle);
  const world = fixture(() =>
    startAuthWorld({ GOOGLE_CLIENT_ID: CLIENT_ID, GOOGLE_KEYS_URL: google.url, GOOGLE_ISSUERS: ISSUER }),
  );
  before(async () => {
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });

  const me = (as?: string) => world.ask('GET', '/api/auth/me', { as });

  describe('sign-in', () => {
    const signIn = async (claims: Record<string, unknown> = {}) =>
      world.ask('POST', '/api/auth/google', { body: { credential: await google.token(claims) } });
    const requests = async (query = '') =>
      (await world.ask('GET', `/api/auth/access-requests${query}`, { as: admin })).body.requests;
    const decide = (body: unknown, as = admin) => world.ask('POST', '/api/auth/access-requests', { as, body });
    const account = (name: string) => ({ sub: `sub-${name}`, email: `${name}@Example.com`, name });

    it('returns 400 for invalid tokens', async () => {
      for (const body of [{}, { credential: '' }, { credential: 5 }, { credential: 'rubbish' }]) {
        expect((await world.ask('POST', '/api/auth/google', { body })).status).to.equal(400);
      }
      expect((await signIn({ aud: 'somebody-else' })).status).to.equal(400);
      expect((await signIn({ email_verified: false })).status).to.equal(400);
      expect(await requests()).to.deep.equal([]);
    });

    it('makes a new person wait, counts every attempt, and creates one request for two concurrent ones', async () => {
      const replies = await Promise.all([signIn(account('ann')), signIn(account('ann'))]);
      for (const reply of replies) {
        expect([reply.status, reply.body.code]).to.deep.equal([403, 'PENDING_APPROVAL']);
        expect(reply.headers.getSetCookie()).to.deep.equal([]);
      }
      const before = (await requests())[0].attempt_count;
      await signIn({ ...account('ann'), name: 'Ann\u202e\u200b Lee' });
      const all = await requests();
      expect(all).to.have.length(1);
      expect(all[0]).to.deep.include({
        email: 'ann@example.com',
        username: 'Ann Lee',
        reason: null,
        status: 'pending',
        provider: 'google',
        display_name: 'Ann Lee',
        attempt_count: before + 1,
        reviewed_by: null,
      });
      expect((await world.audit('google_login_pending_approval'))[0]).to.deep.include({
        actor: 'ann@example.com',
        detail: { email: 'ann@example.com', sub: 'sub-ann' },
      });
    });

    it('returns 400 for an invalid decision, and 404 for an unknown request', async () => {
      const [{ id }] = await requests();
      for (const body of [
        {},
        { id },
        { action: 'approve' },
        { id, action: 'maybe' },
        { id, action: 'approve', role: 'owner' },
      ]) {
        expect((await decide(body)).status, JSON.stringify(body)).to.equal(400);
      }
      for (const action of ['approve', 'reject'])
        expect((await decide({ id: 4_000_000, action })).status).to.equal(404);
    });

    it('approval creates a user who can sign in', async () => {
      const [{ id }] = await requests('?status=pending');
      const body = bodyOf(await decide({ id, action: 'approve', role: 'operator', note: 'welcome' }));
      expect(body).to.deep.include({ success: true, ok: true });
      expect(body.user).to.deep.include({
        username: 'ann',
        display_name: 'Ann Lee',
        email: 'ann@example.com',
        role: 'operator',
        provider: 'google',
        is_approved: 1,
        workspace_id: 1,
      });
      expect((await requests('?status=approved'))[0]).to.deep.include({
        reviewed_by: 'admin',
        review_note: 'welcome',
        approved_user_id: body.user.id,
      });
      expect(await requests('?status=pending')).to.deep.equal([]);
      expect((await world.audit('access_request_approved'))[0]?.detail).to.deep.equal({
        request_id: id,
        email: 'ann@example.com',
        role: 'operator',
        user_id: body.user.id,
        note: 'welcome',
      });

      const signedIn = await signIn({ ...account('ann'), picture: 'https://example.com/new.png' });
      expect(signedIn.status).to.equal(200);
      expect(signedIn.body.user).to.deep.include({ username: 'ann', avatar_url: 'https://example.com/new.png' });
      expect((await me(cookieOf(signedIn))).body.user.username).to.equal('ann');
      expect((await world.audit('login_google'))[0]).to.deep.include({ actor: 'ann', actor_id: body.user.id });
      // The address belongs to an account; another account with the same address is another person.
      expect((await signIn({ ...account('ann'), sub: 'sub-of-somebody-else' })).status).to.equal(403);
      // A disabled user waits again.
      await world.ask('PUT', '/api/auth/users', { as: admin, body: { id: body.user.id, is_approved: 0 } });
      expect((await me(cookieOf(signedIn))).status).to.equal(401);
      expect((await signIn(account('ann'))).status).to.equal(403);
      // Approving again, under the older field name, lets the same user in.
      const again = await decide({ request_id: id, action: 'approve' });
      expect(again.body.user).to.deep.include({ id: body.user.id, role: 'viewer', is_approved: 1 });
      expect((await signIn(account('ann'))).status).to.equal(200);
    });

    it('approval shows a person by the username if the name looks like that of an agent or of another user', async () => {
      const agent = { name: 'courier', role: 'x' };
      bodyOf(await world.ask('POST', '/api/agents', { as: admin, body: agent }), 201);
      for (const [name, shown] of [
        ['fay', 'Courier'],
        ['gil', 'c\u043eurier'],
        ['hal', 'Admin'],
      ] as const) {
        await signIn({ ...account(name), name: shown });
        const [{ id }] = await requests('?status=pending');
        const { user } = bodyOf(await decide({ id, action: 'approve', role: 'viewer' }));
        expect(user, shown).to.include({ username: name });
        expect(user.display_name.toLowerCase(), shown).to.be.oneOf([name, `${name}@example.com`]);
      }
    });

    it('rejection denies access until the next decision', async () => {
      await signIn(account('bob'));
      const [{ id }] = await requests('?status=pending');
      expect((await decide({ id, action: 'reject', note: 'who?' })).body).to.deep.equal({ success: true, ok: true });
      expect((await requests('?status=rejected'))[0]).to.deep.include({
        id,
        review_note: 'who?',
        reviewed_by: 'admin',
      });
      expect((await world.audit('access_request_rejected'))[0]?.detail).to.deep.equal({
        request_id: id,
        email: 'bob@example.com',
        note: 'who?',
      });
      expect((await signIn(account('bob'))).status).to.equal(403);
      expect((await requests())[0]).to.deep.include({ id, status: 'pending', attempt_count: 2 });
    });

    it('a Google account takes over a local user with its address only if an admin approves', async () => {
      await world.makeUser({ username: 'dan', email: 'Dan@Example.com' });
      expect((await signIn(account('dan'))).status).to.equal(403);
      const cookie = await world.signIn('dan');
      const [{ id }] = await requests('?status=pending');
      const { user } = (await decide({ id, action: 'approve', role: 'operator' })).body;
      expect(user).to.deep.include({ username: 'dan', provider: 'google', role: 'operator' });
      expect((await me(cookie)).status).to.equal(401);
      const login = { body: { username: 'dan', password: PASSWORD } };
      expect((await world.ask('POST', '/api/auth/login', login)).status).to.equal(401);

      const signedIn = cookieOf(await signIn(account('dan')));
      const reply = await world.ask('POST', '/api/auth/google/disconnect', { as: signedIn });
      expect([reply.status, reply.body.ok]).to.deep.equal([200, true]);
      expect((await me(signedIn)).status).to.equal(401);
      expect((await me(cookieOf(reply))).body.user.provider).to.equal('local');
      expect((await world.ask('POST', '/api/auth/login', login)).status).to.equal(200);
      expect((await world.audit('google_disconnect'))[0]).to.deep.include({ actor: 'dan' });
    });

    it('disconnect returns 400 without a password or Google, and 401 for keys and without a credential', async () => {
      const disconnect = (as?: string) => world.ask('POST', '/api/auth/google/disconnect', { as });
      expect((await disconnect(cookieOf(await signIn(account('ann'))))).status).to.equal(400);
      expect((await disconnect(admin)).status).to.equal(400);
      expect((await disconnect(world.adminKey)).status).to.equal(401);
      expect((await disconnect()).status).to.equal(401);
    });

    it('an admin can create Google users, and their first sign-in records the account', async () => {
      await world.makeUser({ username: 'eva', provider: 'google', email: 'eva@example.com' });
      expect((await signIn(account('eva'))).status).to.equal(200);
      expect((await signIn({ ...account('eva'), email: 'eva@new.example.com' })).body.user.email).to.equal(
        'eva@new.example.com',
      );
    });

    it('no account data is readable in the log', async () => {
      const raw = await world.rawLog();
      for (const secret of ['sub-ann', 'ann@example.com', 'Ann Lee', 'example.com/new.png', 'eva@']) {
        expect(raw.includes(secret), secret).to.equal(false);
      }
    });
  });
});
