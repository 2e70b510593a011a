/** The first run, and users named by a trusted proxy: through real HTTP. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { prepareFirstStart } from '../../../infra/credentials/first-start.ts';
import { createLogger } from '../../../infra/logging.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { wasSetUp } from '../../../queries/auth/users.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { cookieOf, PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';

describe('contract: first-run setup and trusted proxies', function () {
  this.timeout(60_000);
  const world = fixture(() =>
    startAuthWorld({
      // Everybody knows it: no admin is created.
      AUTH_PASS: 'changeme',
      MC_PROXY_AUTH_HEADER: 'X-Remote-User',
      MC_PROXY_AUTH_TRUSTED_IPS: '127.0.0.1',
      MC_PROXY_AUTH_DEFAULT_ROLE: 'operator',
    }),
  );

  const setup = (body: unknown) => world.ask('POST', '/api/setup', { body });

  it('requires setup while there are no users, and sign-in reports this', async () => {
    expect((await world.ask('GET', '/api/setup')).body).to.deep.equal({ needsSetup: true });
    const reply = await world.ask('POST', '/api/auth/login', { body: { username: 'admin', password: 'changeme' } });
    expect([reply.status, reply.body.code]).to.deep.equal([401, 'NO_USERS']);
    expect(reply.body.hint).to.be.a('string');
  });

  it('returns 400 for invalid input', async () => {
    for (const body of [
      {},
      { username: 'root' },
      { username: 'r', password: PASSWORD },
      { username: 'r oot', password: PASSWORD },
      { username: 'x'.repeat(65), password: PASSWORD },
      { username: 'root', password: 'eleven char' },
      { username: 'root', password: 'change-me-on-first-login' },
      '{',
    ]) {
      expect((await setup(body)).status, JSON.stringify(body)).to.equal(400);
    }
    expect((await world.ask('GET', '/api/setup')).body).to.deep.equal({ needsSetup: true });
  });

  it('works only under a loopback name or a name that a trusted proxy forwards', async () => {
    const under = async (headers: Record<string, string>, body?: unknown) => {
      const { status, body: answer } = await world.ask(body ? 'POST' : 'GET', '/api/setup', { body, headers });
      return [status, answer.error ?? answer.needsSetup];
    };
    const port = new URL(world.url).port;
    const refused = /^This call is served only under localhost/;
    for (const headers of [
      { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
      { 'x-forwarded-host': 'evil.example' },
    ] as Record<string, string>[]) {
      const [status, error] = await under(headers, { username: 'root', password: PASSWORD });
      expect(status, JSON.stringify(headers)).to.equal(403);
      expect(error).to.match(refused);
      expect((await under(headers))[0]).to.equal(403);
    }
    const known: Record<string, string>[] = [{ host: `localhost:${port}` }, { 'x-forwarded-host': 'localhost' }];
    for (const headers of known) expect(await under(headers), JSON.stringify(headers)).to.deep.equal([200, true]);
  });

  it('makes one of several concurrent callers the admin and signs them in, then closes', async () => {
    const replies = await Promise.all(
      Array.from({ length: 5 }, (_, i) => setup({ username: ` Root${i} `, password: PASSWORD })),
    );
    const winners = replies.filter((reply) => reply.status === 200);
    expect(winners).to.have.length(1);
    for (const reply of replies) expect(reply.status).to.be.oneOf([200, 403, 409]);
    const winner = winners[0];
    const { user } = winner?.body ?? {};
    expect(user.username).to.match(/^root\d$/);
    expect(user).to.deep.include({ role: 'admin', display_name: `R${user.username.slice(1)}` });
    const cookie = winner ? cookieOf(winner) : '';
    expect((await world.ask('GET', '/api/auth/me', { as: cookie })).body.user.id).to.equal(user.id);
    expect((await world.ask('GET', '/api/setup')).body).to.deep.equal({ needsSetup: false });
    expect((await setup({ username: 'late', password: PASSWORD })).status).to.equal(403);
    expect((await world.ask('GET', '/api/auth/users', { as: cookie })).body.users).to.have.length(1);
    const id = user.id;
    for (const [method, body] of [
      ['DELETE', { id }],
      ['PUT', { id, role: 'operator' }],
      ['PUT', { id, is_approved: 0 }],
    ] as const) {
      const reply = await world.ask(method, '/api/auth/users', { as: world.adminKey, body });
      expect([reply.status, reply.body.code]).to.deep.equal([409, 'LAST_ADMIN']);
    }
    expect((await world.audit('setup_admin_created'))[0]).to.deep.include({ actor: user.username, target_id: user.id });
  });

  describe('a trusted proxy', () => {
    const named = (name: string, path = '/api/auth/me', as?: string) =>
      world.ask('GET', path, { as, headers: { 'x-remote-user': name } });

    it('names known and new users on every path', async () => {
      await world.makeUser({ username: 'known', role: 'admin' });
      expect((await named('known')).body.user).to.deep.include({ username: 'known', role: 'admin' });
      expect((await named('known', '/api/auth/users')).status).to.equal(200);
      const replies = await Promise.all(Array.from({ length: 6 }, () => named('newcomer')));
      for (const reply of replies) expect(reply.body.user).to.deep.include({ username: 'newcomer', role: 'operator' });
      expect(new Set(replies.map((reply) => reply.body.user.id)).size).to.equal(1);
      const { users } = (await world.ask('GET', '/api/auth/users', { as: world.adminKey })).body;
      const providers = Object.fromEntries(users.map((one: Record<string, string>) => [one.username, one.provider]));
      expect(providers).to.include({ newcomer: 'proxy', known: 'local' });
      expect((await world.audit('user_create')).find((entry) => entry.actor === 'proxy')?.detail).to.deep.include({
        username: 'newcomer',
        provider: 'proxy',
        source: 'proxy',
      });
    });

    it('refuses a name that looks like that of an agent', async () => {
      const agent = { as: world.adminKey, body: { name: 'courier', role: 'x' } };
      expect((await world.ask('POST', '/api/agents', agent)).status).to.equal(201);
      for (const name of ['courier', 'Courier', 'c0urier', 'aegis', 'coordinator'])
        expect((await named(name)).status, name).to.equal(401);
    });

    it('takes precedence over other credentials, except if it names no valid user', async () => {
      await world.makeUser({ username: 'disabled', is_approved: false });
      expect((await named('known', '/api/auth/me', world.adminKey)).body.user.username).to.equal('known');
      expect((await named('disabled', '/api/auth/me', world.adminKey)).body.user.username).to.equal('api');
      expect((await named('disabled')).status).to.equal(401);
      expect((await named('   ')).status).to.equal(401);
    });

    it('denies access to a disabled or deleted user at once', async () => {
      const id = (await named('newcomer')).body.user.id;
      await world.ask('PUT', '/api/auth/users', { as: world.adminKey, body: { id, is_approved: 0 } });
      expect((await named('newcomer')).status).to.equal(401);
    });
  });
});

describe('contract: first-run setup happens once', function () {
  this.timeout(60_000);
  const world = fixture(() => startAuthWorld({ AUTH_PASS: 'changeme' }));

  it('a deployment that has had a user cannot be set up again, even if no user is left', async () => {
    const users = (method: string, body: unknown) => world.ask(method, '/api/auth/users', { as: world.adminKey, body });
    const { id } = (await users('POST', { username: 'only', password: PASSWORD, role: 'viewer' })).body.user;
    expect((await users('DELETE', { id })).status).to.equal(200);
    expect((await world.ask('GET', '/api/setup')).body).to.deep.equal({ needsSetup: false });
    const body = { username: 'stranger', password: PASSWORD };
    expect((await world.ask('POST', '/api/setup', { body })).status).to.equal(403);
    const refused = await world.ask('POST', '/api/auth/login', { body });
    expect([refused.status, refused.body.code]).to.deep.equal([401, undefined]);

    // Nor by the next start, and not even by one whose read model knows of nobody.
    const { commands, credentials, reads } = world.service.core;
    const log = createLogger('silent');
    const config = { ...world.config, authPass: 'a password of the environment' };
    expect(await prepareFirstStart({ config, commands, credentials, reads, log })).to.deep.equal([]);
    await allCaughtUp(world.service.core);
    await sql`DELETE FROM ${sql.table(`${schemaOf(usersProjection)}.first_user`)}`.execute(
      world.service.core.database.db,
    );
    expect(await wasSetUp(reads)).to.equal(false);
    expect((await world.ask('POST', '/api/setup', { body })).status).to.equal(409);
    await prepareFirstStart({ config, commands, credentials, reads, log });
    expect((await world.ask('GET', '/api/auth/users', { as: world.adminKey })).body.users).to.deep.equal([]);
  });
});
