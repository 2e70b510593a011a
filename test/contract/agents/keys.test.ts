/** Keys of agents and of the deployment, and what is recorded about refused callers: through real HTTP. */
import { request } from 'node:http';
import { expect } from 'chai';
import { agentDeleted, agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { fixture } from '../../support/fixture.ts';
import { sample } from '../../support/kit.ts';
import { bodyOf, TEST_ADMIN } from '../../support/service.ts';
import { testOrigin } from '../../support/world.ts';
import { freshAddress, startAuthWorld } from '../../support/worlds/auth.ts';

describe('contract: API keys', function () {
  this.timeout(60_000);
  let admin: string;
  // No proxy is trusted to name users: the header must be ignored.
  const world = fixture(() => startAuthWorld({ MC_PROXY_AUTH_HEADER: 'X-Remote-User' }));
  before(async () => {
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });

  const me = (as?: string, headers: Record<string, string> = {}) => world.ask('GET', '/api/auth/me', { as, headers });

  describe('agent keys', () => {
    const keys = (method: string, agent: number | string, body?: unknown, as: string | undefined = admin) =>
      world.ask(method, `/api/agents/${agent}/keys`, { as, body });

    it('are issued, listed, used and revoked', async () => {
      const agent = await world.makeAgent('scout');
      const { key, api_key: apiKey } = bodyOf(
        await keys('POST', agent, { name: 'laptop', scopes: ['operator', 'unknown', 'operator'] }),
        201,
      );
      expect(apiKey).to.match(/^mca_[0-9a-f]{48}$/);
      expect(key).to.deep.include({
        name: 'laptop',
        key_prefix: apiKey.slice(0, 12),
        scopes: ['operator'],
        expires_at: null,
      });
      expect((await me(apiKey)).body.user).to.deep.include({
        id: -key.id,
        username: 'agent:scout',
        display_name: 'scout',
        role: 'operator',
        workspace_id: 1,
      });
      for (const scheme of ['Bearer', 'ApiKey', 'token']) {
        expect((await me(undefined, { authorization: `${scheme} ${apiKey}` })).status).to.equal(200);
      }
      expect((await me('mca_wrong', { authorization: `Bearer ${apiKey}` })).status).to.equal(401);
      const second = await keys('POST', agent);
      expect(second.body.key).to.deep.include({ name: 'default', scopes: ['viewer', 'agent:self'] });

      const list = (await keys('GET', agent)).body;
      expect(list.agent).to.deep.equal({ id: agent, name: 'scout' });
      expect(list.keys.map((one: { id: number }) => one.id)).to.deep.equal([second.body.key.id, key.id]);
      expect(list.keys[1].last_used_at).to.be.a('number');
      expect(list.keys[1]).to.deep.include({ created_by: 'admin', revoked_at: null });
      expect(list.keys[0].last_used_at).to.equal(null);
      expect(JSON.stringify(list)).not.to.include(apiKey);

      expect((await keys('GET', 'scout')).body).to.deep.equal(list);
      const third = bodyOf(await keys('POST', 'scout'), 201);
      expect((await keys('DELETE', 'scout', { key_id: third.key.id })).status).to.equal(200);

      const revoked = await keys('DELETE', agent, { key_id: key.id });
      expect(revoked.body).to.deep.include({ success: true, key_id: key.id });
      expect(revoked.body.revoked_at).to.be.a('number');
      expect((await me(apiKey)).status).to.equal(401);
      expect((await me(second.body.api_key)).status).to.equal(200);
      expect((await keys('DELETE', agent, { key_id: key.id })).status).to.equal(404);
      expect((await keys('GET', agent)).body.keys.at(-1).last_used_at).to.be.a('number');
      expect((await world.audit('agent_key_issued')).length).to.be.at.least(2);
      expect((await world.audit('agent_key_revoked'))[0]).to.deep.include({ actor: 'admin', target_id: agent });
      expect(await world.rawLog()).not.to.include(apiKey.slice(13));
    });

    it('return 400, 401, 403 and 404 as documented', async () => {
      const agent = await world.makeAgent('strict');
      for (const body of [
        { name: '   ' },
        { name: 5 },
        { name: 'a\u0000' },
        { scopes: 'admin' },
        { expires_at: 0 },
        { expires_at: 'soon' },
        { expires_in_days: 0 },
        { expires_in_days: 3_651 },
      ]) {
        expect((await keys('POST', agent, body)).status, JSON.stringify(body)).to.equal(400);
      }
      expect((await keys('POST', agent, { name: 'x'.repeat(300) })).body.key.name).to.have.length(128);
      expect((await keys('DELETE', agent)).status).to.equal(400);
      expect((await keys('DELETE', agent, { key_id: 0 })).status).to.equal(400);
      expect((await keys('GET', 'abc')).status).to.equal(404);
      const key = await world.makeKey(agent, ['operator']);
      for (const method of ['GET', 'POST', 'DELETE']) {
        const body = method === 'GET' ? undefined : { key_id: 1 };
        expect((await keys(method, 4_000_000, body)).status, method).to.equal(404);
        expect((await world.ask(method, `/api/agents/${agent}/keys`, { body })).status, method).to.equal(401);
        expect((await keys(method, agent, body, key)).status, method).to.equal(403);
      }
      // Another workspace's agent does not exist here.
      const elsewhere = await world.makeAgent('elsewhere', 2);
      for (const method of ['GET', 'POST', 'DELETE']) {
        const body = method === 'GET' ? undefined : { key_id: 1 };
        expect((await keys(method, elsewhere, body)).status, method).to.equal(404);
      }
      expect((await me(await world.makeKey(elsewhere, ['viewer'], 2))).body.user.workspace_id).to.equal(2);
    });

    it('expire exactly on time, and are checked on every use', async () => {
      const agent = await world.makeAgent('mayfly');
      const dead = await keys('POST', agent, { expires_at: 1_000_000, expires_in_days: 10 });
      expect([dead.status, dead.body.key.expires_at]).to.deep.equal([201, 1_000_000]);
      expect((await me(dead.body.api_key)).status).to.equal(401);
      const days = await keys('POST', agent, { expires_in_days: 0.5 });
      expect(days.body.key.expires_at - days.body.key.created_at).to.be.closeTo(43_200, 2);
      const soon = Math.floor(Date.now() / 1_000) + 2;
      const brief = (await keys('POST', agent, { expires_at: soon })).body.api_key;
      const statuses = new Set<number>();
      const end = Date.now() + 20_000;
      while (!statuses.has(401)) {
        statuses.add((await me(brief)).status);
        expect(Date.now()).to.be.lessThan(end);
      }
      expect(Date.now() / 1_000).to.be.at.least(soon);
    });

    it('need the scope admin for another x-agent-name; sessions and the global key may use any name', async () => {
      const agent = await world.makeAgent('ranger');
      const viewer = await world.makeKey(agent, ['viewer', 'agent:self']);
      const boss = await world.makeKey(agent, ['admin']);
      const as = (key: string, name: string) => me(key, { 'x-agent-name': name });
      expect((await as(viewer, 'ranger')).status).to.equal(200);
      expect((await as(viewer, ' ranger ')).status).to.equal(200);
      expect((await as(viewer, 'scout')).status).to.equal(401);
      expect((await as(viewer, '')).status).to.equal(200);
      expect((await as(boss, 'scout')).body.user.username).to.equal('agent:ranger');
      expect((await as(world.adminKey, 'scout')).body.user.username).to.equal('api');
      expect((await as(admin, 'scout')).body.user.username).to.equal('admin');
    });

    it('follow their agent when it is renamed, and disappear with it', async () => {
      const agent = await world.makeAgent('caterpillar');
      const key = await world.makeKey(agent, ['viewer']);
      expect((await me(key)).body.user.username).to.equal('agent:caterpillar');
      const { commands } = world.service.core;
      const stream = `agent-1-${agent}`;
      await commands.record(stream, { origin: testOrigin }, [
        sample(agentDetailsChanged, {
          agent_id: agent,
          name: 'caterpillar',
          changes: { name: 'butterfly' },
          via: 'id',
        }),
      ]);
      expect((await me(key)).body.user.username).to.equal('agent:butterfly');
      await commands.record(stream, { origin: testOrigin }, [
        agentDeleted.draft({ agent_id: agent, name: 'butterfly', role: 'tester', remove_workspace: false }),
      ]);
      expect((await me(key)).status).to.equal(401);
      expect((await keys('GET', agent)).status).to.equal(404);
    });
  });

  describe('security events', () => {
    const events = async (type: string) => {
      const found = [];
      for await (const batch of world.service.core.eventLog.readAll())
        found.push(...batch.filter((e) => e.type === type));
      return found;
    };

    it('record denials, limits, uses of the global key and untrusted proxy headers', async () => {
      const agent = await world.makeAgent('nosy');
      const key = await world.makeKey(agent, ['viewer']);
      for (let i = 0; i < 4; i++) expect((await world.ask('GET', '/api/auth/users', { as: key })).status).to.equal(403);
      const ip = freshAddress();
      for (let i = 0; i < 7; i++)
        await world.ask('POST', '/api/auth/login', { body: { username: 'x', password: 'x' }, ip });
      for (let i = 0; i < 3; i++) expect((await me(undefined, { 'x-remote-user': 'admin' })).status).to.equal(401);
      await world.service.securityEvents?.drain();
      const denied = (await world.audit('access_denied')).filter((entry) => entry.actor === 'agent:nosy');
      expect(denied.map((entry) => (entry.detail as { count: number }).count).sort()).to.deep.equal([1, 3]);
      expect(denied[0]?.detail).to.deep.include({ route: 'GET /api/auth/users', needed: 'admin' });
      const limited = (await events('RateLimitHit')).map((event) => event.data);
      expect(limited).to.deep.include({ route: 'POST /api/auth/login', limit: 'login', count: 1 });
      expect((await events('GlobalKeyUsed')).length).to.be.at.least(1);
      expect((await events('ProxyAuthMisconfigured')).map((event) => event.data)[0]).to.deep.equal({
        header: 'X-Remote-User',
        count: 1,
      });
    });
  });

  describe('/api/tokens/rotate', () => {
    const rotate = (method: string, as: string | undefined, headers = {}) =>
      world.ask(method, '/api/tokens/rotate', { as, headers });

    it('shows admins the source of the key', async () => {
      expect((await rotate('GET', admin)).body).to.deep.equal({
        masked_key: 'test-****-****-bcdef',
        source: 'environment',
        last_rotated_at: null,
        last_rotated_by: null,
        configured: true,
      });
    });

    it('activates the new key and disables the old one at once, repeatedly', async () => {
      const body = bodyOf(await rotate('POST', admin));
      const { key } = body;
      expect(key).to.match(/^mc_[0-9a-f]{48}$/);
      expect(body).to.deep.include({
        masked_key: `${key.slice(0, 4)}-****-****-${key.slice(-5)}`,
        rotated_by: 'admin',
      });
      expect((await me(world.adminKey)).status).to.equal(401);
      expect((await me(key)).body.user.username).to.equal('api');
      expect((await me(undefined, { authorization: `Bearer ${key}` })).status).to.equal(200);
      expect((await rotate('GET', key)).body).to.deep.equal({
        masked_key: null,
        source: 'database',
        last_rotated_at: body.rotated_at,
        last_rotated_by: 'admin',
        configured: true,
      });
      const next = (await rotate('POST', key)).body;
      expect([next.rotated_by, (await me(key)).status, (await me(next.key)).status]).to.deep.equal(['api', 401, 200]);
      const entries = (await world.ask('GET', '/api/audit?action=api_key_rotated', { as: admin })).body.entries;
      expect(entries[1].detail).to.deep.equal({
        old_source: 'environment',
        old_key_masked: 'test-****-****-bcdef',
        new_key_masked: body.masked_key,
      });
      const raw = await world.rawLog();
      for (const secret of [key, next.key]) expect(raw.includes(secret)).to.equal(false);
    });
  });

  it('duplicate cookies, duplicate headers and garbage get 401, never 500', async () => {
    const { port } = new URL(world.url);
    const status = await new Promise((resolve, reject) => {
      const req = request({ port, path: '/api/auth/me', headers: { cookie: ['mc-session=x', 'mc-session=%E0%A4%A'] } });
      req.once('response', (res) => {
        res.resume();
        resolve(res.statusCode);
      });
      req.once('error', reject);
      req.end();
    });
    expect(status).to.equal(401);
    for (const headers of [
      { cookie: 'mc-session=j:{"a":1}' },
      { authorization: 'Bearer' },
      { authorization: `Bearer ${'x'.repeat(5_000)}` },
      { 'x-api-key': '\u00ff\u00fe' },
    ] as Record<string, string>[]) {
      expect((await me(undefined, headers)).status).to.equal(401);
    }
  });
});
