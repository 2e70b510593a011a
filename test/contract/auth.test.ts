/** Sign-in, sessions, the own profile, users: through real HTTP. */
import { expect } from 'chai';
import { moveUser } from '../../commands/users.ts';
import { TEST_ADMIN } from '../support/service.ts';
import { testOrigin } from '../support/world.ts';
import { type AuthWorld, cookieOf, freshAddress, PASSWORD, startAuthWorld } from './auth-world.ts';

describe('contract: sign-in and users', function () {
  this.timeout(60_000);
  let world: AuthWorld;
  let admin: string;
  before(async () => {
    world = await startAuthWorld();
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });
  after(() => world?.close());

  const login = (body: unknown, ip = freshAddress(), headers: Record<string, string> = {}) =>
    world.ask('POST', '/api/auth/login', { body, ip, headers });
  const me = (as?: string) => world.ask('GET', '/api/auth/me', { as });

  describe('POST /api/auth/login', () => {
    it('gives the user and the cookie', async () => {
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

    it('names the cookie by the scheme', async () => {
      const https = { 'x-forwarded-proto': 'https' };
      const reply = await login({ username: 'admin', password: TEST_ADMIN.password }, freshAddress(), https);
      expect(cookieOf(reply)).to.match(/^__Host-mc-session=/);
      expect((await me(cookieOf(reply))).status).to.equal(200);
    });

    it('400 for what is missing or malformed', async () => {
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

    it('401, the same for unknown, wrong, other provider, not approved', async () => {
      await world.makeUser({ username: 'gina', provider: 'google', providerId: 'sub-gina' });
      await world.makeUser({ username: 'nora', isApproved: false });
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

    it('audit entries name who and from where', async () => {
      const ip = freshAddress();
      await login({ username: 'admin', password: TEST_ADMIN.password }, ip, { 'user-agent': 'probe/1' });
      await login({ username: 'admin', password: 'wrong' }, ip, { 'user-agent': 'probe/1' });
      const [good] = await world.audit('login');
      expect(good).to.deep.include({ actor: 'admin', actor_id: 1, ip_address: ip, user_agent: 'probe/1' });
      const [bad] = await world.audit('login_failed');
      expect(bad).to.deep.include({ actor: 'admin', ip_address: ip, user_agent: 'probe/1' });
    });

    it('429 with the sixth of a minute from one address, right or wrong, whatever MC_DISABLE_RATE_LIMIT says', async () => {
      const ip = freshAddress();
      for (let i = 0; i < 5; i++) expect((await login({ username: 'x', password: 'y' }, ip)).status).to.equal(401);
      const reply = await login({ username: 'admin', password: TEST_ADMIN.password }, ip);
      expect(reply.status).to.equal(429);
      expect(Number(reply.headers.get('retry-after'))).to.be.within(1, 60);
      expect((await world.ask('POST', '/api/auth/google', { body: { credential: 'x' }, ip })).status).to.equal(429);
      expect((await login({ username: 'admin', password: TEST_ADMIN.password })).status).to.equal(200);
    });
  });

  describe('sessions', () => {
    it('both names are accepted; an invalid one does not hide the other', async () => {
      const token = admin.split('=')[1];
      const bad = 'f'.repeat(64);
      expect((await me(`__Host-mc-session=${token}`)).status).to.equal(200);
      expect((await me(`__Host-mc-session=; mc-session=${token}`)).status).to.equal(200);
      expect((await me(`__Host-mc-session=${bad}; mc-session=${token}`)).status).to.equal(200);
      expect((await me(`__Host-mc-session=${token}; mc-session=${bad}`)).status).to.equal(200);
      expect((await me(`mc-session=${bad}`)).status).to.equal(401);
      expect((await me()).status).to.equal(401);
    });

    it('an invalid cookie does not hide a key', async () => {
      const reply = await world.ask('GET', '/api/auth/me', {
        as: world.adminKey,
        headers: { cookie: `mc-session=${'f'.repeat(64)}` },
      });
      expect(reply.body.user.username).to.equal('api');
    });

    it('logout ends the session and clears the cookie; 401 for nobody; a key has nothing to end', async () => {
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

    it('expire on the second, however often they were used', async () => {
      const cookie = await world.signIn('admin', TEST_ADMIN.password);
      expect((await me(cookie)).status).to.equal(200);
      const { pool } = world.service.core.database;
      await pool.query(
        'UPDATE credentials.sessions SET expires_at = extract(epoch from now())::bigint + 1 WHERE created_at = (SELECT max(created_at) FROM credentials.sessions)',
      );
      // A session more: what was looked up before is looked up again.
      admin = await world.signIn('admin', TEST_ADMIN.password);
      const end = Date.now() + 10_000;
      while ((await me(cookie)).status !== 401) expect(Date.now()).to.be.lessThan(end);
    });

    it('end when the user is disabled, gets another password, or is deleted, and stay ended', async () => {
      const id = await world.makeUser({ username: 'sam', role: 'operator' });
      const put = (body: object) => world.ask('PUT', '/api/auth/users', { as: world.adminKey, body: { id, ...body } });
      let cookie = await world.signIn('sam');
      expect((await me(cookie)).status).to.equal(200);
      expect((await put({ is_approved: 0 })).body.user.is_approved).to.equal(0);
      expect((await me(cookie)).status).to.equal(401);
      expect((await login({ username: 'sam', password: PASSWORD })).status).to.equal(401);
      await put({ is_approved: 1 });
      expect((await me(cookie)).status).to.equal(401);
      cookie = await world.signIn('sam');
      expect((await put({ password: 'another long password' })).status).to.equal(200);
      expect((await me(cookie)).status).to.equal(401);
      expect((await login({ username: 'sam', password: PASSWORD })).status).to.equal(401);
      cookie = await world.signIn('sam', 'another long password');
      // A change of role is seen at once, in the same session.
      await put({ role: 'viewer' });
      expect((await me(cookie)).body.user.role).to.equal('viewer');
      await world.ask('DELETE', '/api/auth/users', { as: world.adminKey, body: { id } });
      expect((await me(cookie)).status).to.equal(401);
    });
  });

  describe('GET and PATCH /api/auth/me', () => {
    const patch = (as: string | undefined, body: unknown) => world.ask('PATCH', '/api/auth/me', { as, body });

    it('GET: the global key is an admin without an account', async () => {
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
      await world.makeUser({ username: 'dora' });
      const cookie = await world.signIn('dora');
      const reply = await patch(cookie, { display_name: '  Dora D.  ' });
      expect([reply.status, reply.body.success, reply.body.user.display_name]).to.deep.equal([200, true, 'Dora D.']);
      expect(reply.headers.getSetCookie()).to.deep.equal([]);
      expect((await me(cookie)).body.user.display_name).to.equal('Dora D.');
      expect((await world.audit('profile_update'))[0]).to.deep.include({
        actor: 'dora',
        detail: { display_name: 'Dora D.' },
      });
    });

    it('changes the password: every session ends, a new one begins', async () => {
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
      const { rows } = await world.service.core.database.pool.query(
        "SELECT count(*)::int AS n FROM credentials.passwords p JOIN users_v1.users u ON u.id = p.user_id WHERE u.username = 'emil'",
      );
      expect(rows[0].n).to.equal(1);
    });

    it('400, 403', async () => {
      await world.makeUser({ username: 'fay' });
      const cookie = await world.signIn('fay');
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
      // A key is told that it has no profile before anything else is looked at.
      for (const body of [{ display_name: 'x' }, { current_password: 'a', new_password: 'b' }, {}]) {
        expect((await patch(world.adminKey, body)).status).to.equal(403);
      }
      const key = await world.makeKey(await world.makeAgent('profiler'), ['admin']);
      expect((await patch(key, { display_name: 'x' })).status).to.equal(403);
    });

    it('429 with the sixth password of a minute; names are not counted', async () => {
      await world.makeUser({ username: 'gus' });
      const cookie = await world.signIn('gus');
      for (let i = 0; i < 8; i++) expect((await patch(cookie, { display_name: `Gus ${i}` })).status).to.equal(200);
      const wrong = { current_password: 'wrong', new_password: 'long enough 1' };
      for (let i = 0; i < 5; i++) expect((await patch(cookie, wrong)).status).to.equal(403);
      expect((await patch(cookie, wrong)).status).to.equal(429);
      expect((await patch(cookie, { display_name: 'Gus' })).status).to.equal(200);
    });

    it('of two password changes at once one wins, and only its password works', async () => {
      await world.makeUser({ username: 'hal' });
      const cookie = await world.signIn('hal');
      const next = ['first new one', 'second new one'];
      const replies = await Promise.all(
        next.map((new_password) => patch(cookie, { current_password: PASSWORD, new_password })),
      );
      const winner = replies.findIndex((reply) => reply.status === 200);
      expect(replies.filter((reply) => reply.status === 200)).to.have.length(1);
      expect(replies[1 - winner]?.status).to.equal(403);
      expect((await login({ username: 'hal', password: next[winner] })).status).to.equal(200);
      expect((await login({ username: 'hal', password: next[1 - winner] })).status).to.equal(401);
    });
  });

  describe('/api/auth/users', () => {
    const users = (method: string, body?: unknown, as: string | undefined = world.adminKey, headers = {}) =>
      world.ask(method, '/api/auth/users', { as, body, headers });
    let boss: string;
    let bossId: number;
    beforeEach(async () => {
      // Another admin each time: the limit is per user.
      const username = `boss-${Math.random().toString(36).slice(2)}`;
      bossId = await world.makeUser({ username, role: 'admin' });
      boss = await world.signIn(username);
    });

    it('401 for nobody, 403 for the others, and the refusal is audited', async () => {
      await world.makeUser({ username: `op-${bossId}`, role: 'operator' });
      const operator = await world.signIn(`op-${bossId}`);
      for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
        const body = method === 'GET' ? undefined : {};
        expect((await world.ask(method, '/api/auth/users', { body })).status, method).to.equal(401);
        const reply = await users(method, body, operator);
        expect(reply.status, method).to.equal(403);
        expect(reply.body.error).to.include('admin');
      }
      const end = Date.now() + 10_000;
      while (!(await world.audit('access_denied')).some((entry) => entry.actor === `op-${bossId}`)) {
        expect(Date.now()).to.be.lessThan(end);
      }
    });

    it('creates, lists, changes, deletes', async () => {
      const body = {
        username: 'ivy',
        password: PASSWORD,
        role: 'viewer',
        email: 'Ivy@Example.com',
        display_name: 'Ivy',
      };
      const created = await users('POST', body, boss);
      expect(created.status).to.equal(201);
      const { id } = created.body.user;
      expect(created.body.user).to.deep.include({
        username: 'ivy',
        display_name: 'Ivy',
        role: 'viewer',
        provider: 'local',
        email: 'Ivy@Example.com',
        avatar_url: null,
        is_approved: 1,
        workspace_id: 1,
        last_login_at: null,
      });
      const listed = (await users('GET', undefined, boss)).body.users;
      expect(listed.at(-1)).to.deep.equal(created.body.user);
      expect(listed[0].username).to.equal('admin');
      expect(await world.signIn('ivy')).to.include('mc-session=');

      const changed = await users(
        'PUT',
        { id: String(id), role: 'operator', email: null, avatar_url: 'https://x/y' },
        boss,
      );
      expect(changed.status).to.equal(200);
      expect(changed.body.user).to.deep.include({ role: 'operator', email: null, avatar_url: 'https://x/y' });
      const same = await users('PUT', { id, password: '' }, boss);
      expect(same.body.user).to.deep.include({ role: 'operator', updated_at: changed.body.user.updated_at });

      expect((await users('DELETE', { id }, boss)).body).to.deep.equal({ success: true });
      expect((await users('DELETE', { id }, boss)).status).to.equal(404);
      expect((await users('GET', undefined, boss)).body.users.map((user: { id: number }) => user.id)).not.to.include(
        id,
      );
      // The name is free again.
      expect((await users('POST', body, boss)).status).to.equal(201);

      const about = async (action: string) => (await world.audit(action)).find((entry) => entry.target_id === id);
      expect(await about('user_create')).to.deep.include({
        target_type: 'user',
        detail: { username: 'ivy', role: 'viewer', provider: 'local', email: 'Ivy@Example.com' },
      });
      expect((await about('user_update'))?.detail).to.deep.equal({ role: 'operator', password_changed: false });
      expect(await about('user_delete')).to.deep.include({ target_type: 'user', detail: { username: 'ivy' } });
    });

    it('fills in what POST leaves out', async () => {
      const { body } = await users('POST', { username: 'jo', password: PASSWORD, role: 'admin' }, boss);
      expect(body.user).to.deep.include({ display_name: 'jo', email: null, provider: 'local' });
    });

    it('400', async () => {
      const good = { username: 'kim', password: PASSWORD, role: 'viewer' };
      for (const body of [
        { ...good, role: undefined },
        { ...good, role: 'owner' },
        { ...good, password: 'eleven char' },
        { ...good, password: 'change-me-on-first-login' },
        { ...good, username: '' },
        { ...good, username: ' kim' },
        { ...good, username: 'k\nim' },
        { ...good, username: 'x'.repeat(300) },
        { ...good, provider: 'github' },
        { ...good, email: 5 },
      ]) {
        const reply = await users('POST', body, boss);
        expect(reply.status, JSON.stringify(body)).to.equal(400);
        expect(reply.body.details, JSON.stringify(body)).to.be.an('array').with.length.above(0);
      }
      for (const body of [
        {},
        { id: 0 },
        { id: -1 },
        { id: 1.5 },
        { id: 'x' },
        { id: '99999999999999999999' },
        { id: bossId, role: 'owner' },
        { id: 1, password: 'too short' },
        { id: 1, is_approved: 2 },
        { id: 1, display_name: '  ' },
      ]) {
        expect((await users('PUT', body, boss)).status, JSON.stringify(body)).to.equal(400);
      }
    });

    it('400: nobody demotes, disables or deletes themselves', async () => {
      for (const change of [{ role: 'viewer' }, { is_approved: 0 }]) {
        expect((await users('PUT', { id: bossId, ...change }, boss)).status).to.equal(400);
      }
      expect((await users('PUT', { id: bossId, role: 'admin', display_name: 'B' }, boss)).status).to.equal(200);
      expect((await users('DELETE', { id: bossId }, boss)).status).to.equal(400);
      const none = await users('DELETE', undefined, boss);
      expect([none.status, none.body.error]).to.satisfy(
        ([status, error]: [number, string]) => status === 400 && error.includes('body required'),
      );
      expect((await users('DELETE', {}, boss)).status).to.equal(400);
      expect((await users('DELETE', '{', boss)).status).to.equal(400);
      expect((await users('PUT', { id: 4_000_000, role: 'viewer' }, boss)).status).to.equal(404);
    });

    it('409: a username is one over all workspaces, and one of many at once gets it', async () => {
      await world.makeUser({ username: 'lea', workspace: 2 });
      const body = { username: 'lea', password: PASSWORD, role: 'viewer' };
      expect((await users('POST', body, boss)).status).to.equal(409);
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => users('POST', { ...body, username: 'max' }, boss)),
      );
      const statuses = replies.map((reply) => reply.status).sort();
      expect(statuses).to.deep.equal([201, ...Array.from({ length: 9 }, () => 409)]);
    });

    it('sees its own workspace only; a moved user changes sides', async () => {
      const id = await world.makeUser({ username: `w2-${bossId}`, role: 'admin', workspace: 2 });
      const there = await world.signIn(`w2-${bossId}`);
      const names = async (as: string) =>
        (await users('GET', undefined, as)).body.users.map((user: { username: string }) => user.username);
      expect(await names(boss)).not.to.include(`w2-${bossId}`);
      expect(await names(there))
        .to.include(`w2-${bossId}`)
        .and.not.include('admin');
      expect((await users('PUT', { id, display_name: 'x' }, boss)).status).to.equal(404);
      expect((await users('DELETE', { id }, boss)).status).to.equal(404);
      expect((await users('PUT', { id: bossId, display_name: 'x' }, there)).status).to.equal(404);
      const created = await users('POST', { username: `of2-${bossId}`, password: PASSWORD, role: 'viewer' }, there);
      expect(created.body.user.workspace_id).to.equal(2);
      const { commands } = world.service.core;
      await moveUser(commands, { origin: testOrigin }, created.body.user.id, { tenant: 1, workspace: 1 });
      expect(await names(boss)).to.include(`of2-${bossId}`);
      expect(await names(there)).not.to.include(`of2-${bossId}`);
    });

    it('Idempotency-Key: the same user, not two', async () => {
      const headers = { 'idempotency-key': `create-${bossId}` };
      const body = { username: `twice-${bossId}`, password: PASSWORD, role: 'viewer' };
      const first = await users('POST', body, boss, headers);
      const second = await users('POST', body, boss, headers);
      expect([first.status, second.status]).to.deep.equal([201, 201]);
      expect(second.body).to.deep.equal(first.body);
    });

    it('429 with the 21st change of a minute', async () => {
      for (let i = 0; i < 20; i++) expect((await users('PUT', { id: bossId }, boss)).status).to.equal(200);
      expect((await users('PUT', { id: bossId }, boss)).status).to.equal(429);
      expect((await users('GET', undefined, boss)).status).to.equal(200);
    });
  });

  it('no password, token, address or e-mail stands readable in the log', async () => {
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
    expect(raw).to.include('UserPasswordChanged'.slice(0, 0)).and.include('zoe');
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
