/** Sign-in, sessions, the own profile: through real HTTP. */
import { expect } from 'chai';
import { usersProjection } from '../../../projections/auth/users.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { TEST_ADMIN } from '../../support/service.ts';
import { cookieOf, freshAddress, PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';
import { expectAuditForAdminsOnly, expectStreamsToEnd } from '../monitoring/events.endings.ts';

describe('contract: sign-in', function () {
  this.timeout(60_000);
  let admin: string;
  const world = fixture(startAuthWorld);
  before(async () => {
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });

  const login = (body: unknown, ip = freshAddress(), headers: Record<string, string> = {}) =>
    world.ask('POST', '/api/auth/login', { body, ip, headers });
  const me = (as?: string) => world.ask('GET', '/api/auth/me', { as });

  describe('POST /api/auth/login', () => {
    it('returns the user and the cookie', async () => {
      const reply = await login({ username: 'admin', password: TEST_ADMIN.password });
      expect(reply.status).to.equal(200);
      expect(reply.body.user).to.deep.include({
        username: 'admin',
        display_name: 'Admin',
        role: 'admin',
        provider: 'local',
        email: null,
        avatar_url: null,
        is_approved: 1,
        workspace_id: 1,
        tenant_id: 1,
      });
      expect(reply.body.user.last_login_at).to.be.a('number');
      expect(JSON.stringify(reply.body)).not.to.match(/credential|password|provider_id|session_mark/);
      const [line] = reply.headers.getSetCookie();
      expect(line).to.match(/^mc-session=[0-9a-f]{64}; /);
      for (const part of ['Path=/', 'Max-Age=604800', 'HttpOnly', 'Secure', 'SameSite=Strict']) {
        expect(line?.split('; ')).to.include(part);
      }
      expect((await me(cookieOf(reply))).body.user.username).to.equal('admin');
    });

    it('returns 400 for missing or malformed fields', async () => {
      const bodies = [
        {},
        { username: 'admin' },
        { password: 'x' },
        { username: '', password: 'x' },
        { username: 'admin', password: '' },
        { username: 5, password: 'x' },
        { username: 'a\u0000b', password: 'x' },
        { username: 'a\ud800b', password: 'x' },
        [],
        'null',
        '{"username":',
      ];
      for (const body of bodies) {
        const reply = await login(body);
        expect(reply.status, JSON.stringify(body)).to.equal(400);
        expect(reply.body.error).to.be.a('string');
      }
    });

    it('returns the same 401 for an unknown, wrong, non-local or unapproved login', async () => {
      await world.makeUser({ username: 'gina', provider: 'google', provider_id: 'sub-gina' });
      await world.makeUser({ username: 'nora', is_approved: false });
      await world.makeUser({ username: 'paul' }, null);
      const bodies: string[] = [];
      for (const [username, password] of [
        ['nobody-here', 'x'],
        ['admin', 'wrong'],
        ['Admin', TEST_ADMIN.password],
        ['gina', PASSWORD],
        ['nora', PASSWORD],
        ['paul', PASSWORD],
      ]) {
        const reply = await login({ username, password });
        expect(reply.status).to.equal(401);
        expect(reply.headers.getSetCookie()).to.deep.equal([]);
        bodies.push(JSON.stringify(reply.body));
      }
      expect(new Set(bodies).size).to.equal(1);
      const entries = await world.audit('login_failed');
      const reasons = entries.map(({ actor, detail }) => [actor, (detail as { reason: string }).reason]);
      expect(reasons).to.deep.include.members([
        ['nobody-here', 'user_not_found'],
        ['admin', 'invalid_password'],
        ['Admin', 'user_not_found'],
        ['gina', 'wrong_provider'],
        ['nora', 'not_approved'],
        ['paul', 'invalid_password'],
      ]);
    });

    it('records who signed in and from where', async () => {
      const ip = freshAddress();
      await login({ username: 'admin', password: TEST_ADMIN.password }, ip, { 'user-agent': 'probe/1' });
      await login({ username: 'admin', password: 'wrong' }, ip, { 'user-agent': 'probe/1' });
      const [good] = await world.audit('login');
      expect(good).to.deep.include({ actor: 'admin', actor_id: 1, ip_address: ip, user_agent: 'probe/1' });
      const [bad] = await world.audit('login_failed');
      expect(bad).to.deep.include({ actor: 'admin', ip_address: ip, user_agent: 'probe/1' });
    });

    it('returns 429 for the sixth attempt per minute from one address, even with MC_DISABLE_RATE_LIMIT', async () => {
      const ip = freshAddress();
      for (let i = 0; i < 5; i++) expect((await login({ username: 'x', password: 'y' }, ip)).status).to.equal(401);
      const reply = await login({ username: 'admin', password: TEST_ADMIN.password }, ip);
      expect(reply.status).to.equal(429);
      expect(Number(reply.headers.get('retry-after'))).to.be.within(1, 60);
      // Google is a class of its own: wrong passwords of one colleague do not stop the others behind the address.
      expect((await world.ask('POST', '/api/auth/google', { body: { credential: 'x' }, ip })).status).to.equal(400);
      expect((await login({ username: 'admin', password: TEST_ADMIN.password })).status).to.equal(200);
    });
  });

  describe('sessions', () => {
    it('have the cookie __Host- over https; an invalid cookie does not hide the other', async () => {
      const body = { username: 'admin', password: TEST_ADMIN.password };
      const host = cookieOf(await login(body, undefined, { 'x-forwarded-proto': 'https' }));
      expect(host).to.match(/^__Host-mc-session=/);
      const bad = `mc-session=${'f'.repeat(64)}`;
      for (const cookies of [host, `__Host-${bad}; ${admin}`, `${host}; ${bad}`])
        expect((await me(cookies)).status, cookies).to.equal(200);
    });

    it('do not hide a key if the cookie is invalid', async () => {
      const reply = await world.ask('GET', '/api/auth/me', {
        as: world.adminKey,
        headers: { cookie: `mc-session=${'f'.repeat(64)}` },
      });
      expect(reply.body.user.username).to.equal('api');
    });

    it('end on logout, with their cookie; logout returns 401 without a credential; keys have no session', async () => {
      const cookie = await world.signIn('admin', TEST_ADMIN.password);
      const reply = await world.ask('POST', '/api/auth/logout', { as: cookie });
      expect([reply.status, reply.body.ok]).to.deep.equal([200, true]);
      expect(reply.headers.getSetCookie()[0]).to.match(/^mc-session=; .*Max-Age=0;.*HttpOnly; Secure; SameSite=Strict/);
      expect((await me(cookie)).status).to.equal(401);
      expect((await me(admin)).status).to.equal(200);
      expect((await world.ask('POST', '/api/auth/logout', { as: cookie })).status).to.equal(401);
      expect((await world.ask('POST', '/api/auth/logout')).status).to.equal(401);
      expect((await world.ask('POST', '/api/auth/logout', { as: world.adminKey })).status).to.equal(200);
      expect((await world.audit('logout'))[0]).to.deep.include({ actor: 'admin', actor_id: 1 });
    });

    it('expire exactly on time, however often they are used', async () => {
      const cookie = await world.signIn('admin', TEST_ADMIN.password);
      expect((await me(cookie)).status).to.equal(200);
      const { pool } = world.service.core.database;
      await pool.query(
        'UPDATE credentials.sessions SET expires_at = extract(epoch from now())::bigint + 1 WHERE created_at = (SELECT max(created_at) FROM credentials.sessions)',
      );
      // Another session invalidates earlier look-ups.
      admin = await world.signIn('admin', TEST_ADMIN.password);
      const end = Date.now() + 10_000;
      while ((await me(cookie)).status !== 401) expect(Date.now()).to.be.lessThan(end);
    });

    it('end for good when the user is disabled, gets a new password, or is deleted', async () => {
      const id = await world.makeUser({ username: 'sam', role: 'operator' });
      const put = (body: object) => world.ask('PUT', '/api/auth/users', { as: world.adminKey, body: { id, ...body } });
      let cookie = await world.signIn('sam');
      expect((await me(cookie)).status).to.equal(200);
      expect((await put({ is_approved: 0 })).body.user.is_approved).to.equal(0);
      expect((await me(cookie)).status).to.equal(401);
      expect((await login({ username: 'sam', password: PASSWORD })).status).to.equal(401);
      expect((await put({ is_approved: 1 })).status).to.equal(200);
      expect((await me(cookie)).status).to.equal(401);
      cookie = await world.signIn('sam');
      expect((await put({ password: 'another long password' })).status).to.equal(200);
      expect((await me(cookie)).status).to.equal(401);
      expect((await login({ username: 'sam', password: PASSWORD })).status).to.equal(401);
      cookie = await world.signIn('sam', 'another long password');
      // A change of role is seen at once, in the same session.
      expect((await put({ role: 'viewer' })).status).to.equal(200);
      expect((await me(cookie)).body.user.role).to.equal('viewer');
      await world.ask('DELETE', '/api/auth/users', { as: world.adminKey, body: { id } });
      expect((await me(cookie)).status).to.equal(401);
    });
  });

  describe('GET and PATCH /api/auth/me', () => {
    const patch = (as: string | undefined, body: unknown) => world.ask('PATCH', '/api/auth/me', { as, body });

    it('returns the global key as an admin without an account', async () => {
      const { user } = (await me(world.adminKey)).body;
      expect(user).to.deep.include({
        id: 0,
        username: 'api',
        display_name: 'API Access',
        role: 'admin',
        provider: 'local',
        email: null,
        avatar_url: null,
        workspace_id: 1,
      });
    });

    it('changes the display name', async () => {
      const cookie = await world.makeSession({ username: 'dora' });
      const reply = await patch(cookie, { display_name: '  Dora D.  ' });
      expect([reply.status, reply.body.success, reply.body.user.display_name]).to.deep.equal([200, true, 'Dora D.']);
      expect(reply.headers.getSetCookie()).to.deep.equal([]);
      expect((await me(cookie)).body.user.display_name).to.equal('Dora D.');
      expect((await world.audit('profile_update'))[0]).to.deep.include({
        actor: 'dora',
        detail: { display_name: 'Dora D.' },
      });
    });

    it('changes the password, which ends every session and starts a new one', async () => {
      await world.makeUser({ username: 'emil' });
      const [one, two] = [await world.signIn('emil'), await world.signIn('emil')];
      const reply = await patch(one, { current_password: PASSWORD, new_password: '8 chars!', display_name: 'Emil' });
      expect(reply.status).to.equal(200);
      expect(reply.body.user.display_name).to.equal('Emil');
      expect([(await me(one)).status, (await me(two)).status]).to.deep.equal([401, 401]);
      expect((await me(cookieOf(reply))).status).to.equal(200);
      expect((await login({ username: 'emil', password: PASSWORD })).status).to.equal(401);
      expect((await login({ username: 'emil', password: '8 chars!' })).status).to.equal(200);
      expect((await world.audit('password_change'))[0]).to.deep.include({ actor: 'emil' });
      await allCaughtUp(world.service.core);
      const { rows } = await world.service.core.database.pool.query(
        `SELECT count(*)::int AS n FROM credentials.passwords p JOIN ${schemaOf(usersProjection)}.users u ON u.id = p.user_id WHERE u.username = 'emil'`,
      );
      expect(rows[0].n).to.equal(1);
    });

    it('returns 400 for invalid input, and 403 for a wrong password and for keys', async () => {
      const cookie = await world.makeSession({ username: 'fay' });
      for (const [body, status] of [
        [{}, 400],
        [{ unknown: 1 }, 400],
        [{ new_password: 'long enough 1' }, 400],
        [{ current_password: PASSWORD, new_password: '7 chars' }, 400],
        [{ current_password: PASSWORD, new_password: 12345678 }, 400],
        [{ display_name: '   ' }, 400],
        [{ display_name: 'a\u0000' }, 400],
        [{ current_password: 'wrong', new_password: 'long enough 1' }, 403],
      ] as const) {
        expect((await patch(cookie, body)).status, JSON.stringify(body)).to.equal(status);
      }
      expect((await patch(undefined, { display_name: 'x' })).status).to.equal(401);
      // A key gets the answer that it has no profile before anything else is checked.
      for (const body of [{ display_name: 'x' }, { current_password: 'a', new_password: 'b' }, {}]) {
        expect((await patch(world.adminKey, body)).status).to.equal(403);
      }
      const key = await world.makeKey(await world.makeAgent('profiler'), ['admin']);
      expect((await patch(key, { display_name: 'x' })).status).to.equal(403);
    });

    it('returns 429 for the sixth password per minute; name changes do not count', async () => {
      const cookie = await world.makeSession({ username: 'gus' });
      for (let i = 0; i < 8; i++) expect((await patch(cookie, { display_name: `Gus ${i}` })).status).to.equal(200);
      const wrong = { current_password: 'wrong', new_password: 'long enough 1' };
      for (let i = 0; i < 5; i++) expect((await patch(cookie, wrong)).status).to.equal(403);
      expect((await patch(cookie, wrong)).status).to.equal(429);
      expect((await patch(cookie, { display_name: 'Gus' })).status).to.equal(200);
    });
  });

  describe('GET /api/events', () => {
    it('ends with the credential that opened it', () => expectStreamsToEnd(world, world));
    it('sends audit-only data to admins only', () => expectAuditForAdminsOnly(world));
  });

  it('no password, token, address or e-mail address is readable in the log', async () => {
    const ip = '203.0.113.77';
    const body = {
      username: 'zoe',
      password: 'zoes-own-password',
      role: 'viewer',
      email: 'zoe@private.example',
      display_name: 'Zoe Z. Private',
    };
    await world.ask('POST', '/api/auth/users', { as: world.adminKey, body, ip });
    const reply = await login({ username: 'zoe', password: 'zoes-own-password' }, ip);
    await login({ username: 'zoe@private.example', password: 'wrong-zoes-password' }, ip);
    await world.ask('PATCH', '/api/auth/me', {
      as: cookieOf(reply),
      ip,
      body: {
        current_password: 'zoes-own-password',
        new_password: 'zoes-next-password',
        display_name: 'Zoe Z. Secret',
      },
    });
    const raw = await world.rawLog();
    expect(raw).to.include('zoe');
    for (const secret of [
      'zoes-own-password',
      'wrong-zoes-password',
      'zoes-next-password',
      'argon2',
      'private.example',
      'Zoe Z.',
      ip,
      cookieOf(reply).split('=')[1] as string,
      world.adminKey,
      TEST_ADMIN.password,
    ]) {
      expect(raw.includes(secret), secret).to.equal(false);
    }
  });
});
