/** /api/auth/users through real HTTP. */
import { expect } from 'chai';
import { moveUser } from '../../commands/users.ts';
import { adminsIn } from '../../queries/users.ts';
import { testOrigin } from '../support/world.ts';
import { type AuthWorld, PASSWORD, startAuthWorld } from './auth-world.ts';

describe('contract: users', function () {
  this.timeout(60_000);
  let world: AuthWorld;
  before(async () => {
    world = await startAuthWorld();
  });
  after(() => world?.close());

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
      const { commands, reads } = world.service.core;
      const place = { tenant: 1, workspace: 1 };
      await moveUser(commands, { origin: testOrigin }, adminsIn(reads), created.body.user.id, place);
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
});
