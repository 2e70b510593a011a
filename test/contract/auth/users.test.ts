/** /api/auth/users through real HTTP. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';

describe('contract: users', function () {
  this.timeout(60_000);
  const world = fixture(() =>
    startAuthWorld({
      MC_PROXY_AUTH_HEADER: 'X-Remote-User',
      MC_PROXY_AUTH_TRUSTED_IPS: '127.0.0.1',
      MC_PROXY_AUTH_DEFAULT_ROLE: 'viewer',
    }),
  );

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

    it('creates, lists, updates and deletes users', async () => {
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

    it('applies defaults to fields that POST omits', async () => {
      const { body } = await users('POST', { username: 'jo', password: PASSWORD, role: 'admin' }, boss);
      expect(body.user).to.deep.include({ display_name: 'jo', email: null, provider: 'local' });
    });

    it('returns 400 for invalid input', async () => {
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

    it('returns 400 if users demote, disable or delete themselves', async () => {
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

    it('returns 409 for a username taken in any workspace, and accepts one of many concurrent requests', async () => {
      await world.makeUser({ username: 'lea', workspace: 2 });
      const body = { username: 'lea', password: PASSWORD, role: 'viewer' };
      expect((await users('POST', body, boss)).status).to.equal(409);
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => users('POST', { ...body, username: 'max' }, boss)),
      );
      const statuses = replies.map((reply) => reply.status).sort();
      expect(statuses).to.deep.equal([201, ...Array.from({ length: 9 }, () => 409)]);
    });

    it('returns 400 for names that look like others or like the service itself, on every route', async () => {
      for (const username of ['testadmin\u200b', 'api', 'agent:ka', 'first start', 'a\u200fb', 'ａdmin', 'cli']) {
        const reply = await users('POST', { username, password: PASSWORD, role: 'viewer' }, boss);
        expect([username, reply.status]).to.deep.equal([username, 400]);
        expect(reply.body.details[0]).to.match(/^username: (must|is a name)/);
        const proxied = await world.ask('GET', '/api/auth/me', {
          headers: { 'x-remote-user': Buffer.from(username).toString('latin1') },
        });
        expect([username, proxied.status]).to.deep.equal([username, 401]);
      }
      const reply = await users('PUT', { id: bossId, display_name: 'API\u00a0Access' }, boss);
      expect([reply.status, reply.body.details?.[0]]).to.deep.equal([
        400,
        'display_name: is a name that the service itself uses, or looks like one; choose another one',
      ]);
      const own = { as: boss, body: { display_name: 'Boss\u202e' } };
      expect((await world.ask('PATCH', '/api/auth/me', own)).status).to.equal(400);

      const agents = (method: string, path: string, body: unknown) => world.ask(method, path, { as: boss, body });
      for (const name of ['a\nb', 'a\u001b[2Jb', 'a\u200bb', 'agent:ka', 'api', 'aegis', '..', '25', 'admin']) {
        const refused = await agents('POST', '/api/agents', { name, role: 'coder' });
        expect([name, refused.status]).to.deep.equal([name, 400]);
        expect(refused.body.details[0]).to.match(/^name: /);
      }
      const { agent } = (await agents('POST', '/api/agents', { name: `plain-${bossId}`, role: 'coder' })).body;
      const path = `/api/agents/${agent.id}`;
      expect((await agents('PUT', path, { name: 'x\u200b' })).status).to.equal(400);
      expect((await agents('POST', `${path}/keys`, { name: 'x\u202e' })).status).to.equal(400);
      expect((await agents('PUT', path, { name: agent.name, role: 'tester' })).status).to.equal(200);
    });

    it('treats all normalization forms alike; another letter case is taken but does not sign in', async () => {
      const make = (username: string) => users('POST', { username, password: PASSWORD, role: 'viewer' }, boss);
      expect((await make(`Jose\u0301-${bossId}`)).body.user.username).to.equal(`José-${bossId}`);
      expect((await make(`José-${bossId}`)).status).to.equal(409);
      for (const form of [`Jose\u0301-${bossId}`, `José-${bossId}`]) {
        expect(await world.signIn(form)).to.include('mc-session=');
      }
      const lower = { username: `josé-${bossId}`, password: PASSWORD };
      expect((await world.ask('POST', '/api/auth/login', { body: lower })).status).to.equal(401);
      expect((await make(lower.username)).status).to.equal(409);
    });

    it('returns 409 for a name shared by a user and an agent of a workspace', async () => {
      const make = (username: string) => users('POST', { username, password: PASSWORD, role: 'viewer' }, boss);
      const agent = (name: string) => world.ask('POST', '/api/agents', { as: boss, body: { name, role: 'coder' } });
      const of = (name: string) => `${name}-${bossId}`;
      await world.makeAgent(of('Older'));
      expect((await make(of('anders'))).status).to.equal(201);
      const made = (await agent(of('Birk'))).body.agent;
      for (const name of ['older', 'anders', 'birk', 'Older', 'Anders'].map(of)) {
        expect([name, (await make(name)).status]).to.deep.equal([name, 409]);
        if (name.toLowerCase() === made.name.toLowerCase()) continue;
        const [created, renamed] = [
          await agent(name),
          await world.ask('PUT', `/api/agents/${made.id}`, { as: boss, body: { name } }),
        ];
        expect([name, created.status, renamed.status]).to.deep.equal([name, 409, 409]);
        expect(created.body.error).to.match(/looks like it, already exists/);
      }
    });

    it('rejects display names that imitate the service or the admin', async () => {
      for (const display_name of ['Aegis', 'Adm\u0456n', '..']) {
        const replies = [
          await users('POST', { username: `d-${bossId}`, password: PASSWORD, role: 'viewer', display_name }, boss),
          await users('PUT', { id: bossId, display_name }, boss),
          await world.ask('PATCH', '/api/auth/me', { as: boss, body: { display_name } }),
        ];
        expect([display_name, ...replies.map(({ status }) => status)]).to.deep.equal([display_name, 400, 400, 400]);
        for (const { body } of replies) expect(body.error).to.match(/^display_name: /);
      }
    });

    it('shows only users of the caller’s workspace, and a moved user in the other one', async () => {
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
      const moved = await users('PUT', { id: created.body.user.id, workspace_id: 1 }, there);
      expect(moved.status, JSON.stringify(moved.body)).to.equal(200);
      expect(await names(boss)).to.include(`of2-${bossId}`);
      expect(await names(there)).not.to.include(`of2-${bossId}`);
    });

    it('returns 429 for the 21st change per minute', async () => {
      for (let i = 0; i < 20; i++) expect((await users('PUT', { id: bossId }, boss)).status).to.equal(200);
      expect((await users('PUT', { id: bossId }, boss)).status).to.equal(429);
      expect((await users('GET', undefined, boss)).status).to.equal(200);
    });
  });
});
