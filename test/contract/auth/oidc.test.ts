/** Sign-in through an OpenID Connect provider, and its access tokens, against a real provider. */
import { expect } from 'chai';
import { generateKeyPair } from 'jose';
import { fixture } from '../../support/fixture.ts';
import { AUDIENCE, OIDC_CLIENT, OIDC_SECRET, startOidcProvider } from '../../support/oidc.ts';
import { bodyOf, type Reply } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { cookieOf, startAuthWorld } from '../../support/worlds/auth.ts';

describe('sign-in through an OpenID Connect provider', () => {
  /** The host that all requests name, so that the redirect URI is known before the service has a port. */
  const HOST = 'signalbox.example';

  const provider = fixture(() => startOidcProvider(() => [`http://${HOST}/`]));
  const world = fixture(() =>
    startAuthWorld({
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT,
      OIDC_CLIENT_SECRET: OIDC_SECRET,
      OIDC_AUDIENCE: AUDIENCE,
      OIDC_NAME: 'Example ID',
      OIDC_ROLES: 'admins=admin,acme-ops=operator@acme,nowhere=viewer@missing,staff=viewer,builders=operator',
    }),
  );
  before(async () => {
    const reply = await world.ask('POST', '/api/workspaces', {
      as: world.adminKey,
      body: { name: 'Acme', slug: 'acme' },
    });
    expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
  });

  const headers = { 'x-forwarded-host': HOST };
  const begin = (ip?: string) => world.ask('POST', '/api/auth/oidc/begin', { headers, ...(ip && { ip }) });
  const finish = (body: object, cookie: string, ip?: string) =>
    world.ask('POST', '/api/auth/oidc', { body, headers: { ...headers, cookie }, ...(ip && { ip }) });

  /** A whole sign-in of the account. */
  async function signIn(sub: string, ip?: string): Promise<Reply> {
    const begun = await begin(ip);
    expect(begun.status, JSON.stringify(begun.body)).to.equal(200);
    const back = await provider.approve(begun.body.url, sub);
    return finish(Object.fromEntries(['code', 'state', 'iss'].map((key) => [key, back.get(key)])), cookieOf(begun), ip);
  }
  const sessionOf = (reply: Reply) =>
    cookieOf(reply)
      .split('; ')
      .find((one) => one.includes('session=')) as string;
  const meOf = async (as: string) => (await world.ask('GET', '/api/auth/me', { as })).body.user;

  it('names the provider for the sign-in page', async () => {
    expect((await world.ask('GET', '/api/auth/oidc')).body).to.deep.equal({ name: 'Example ID' });
  });

  it('creates the user with the role of its group at the first sign-in, and finds it afterwards', async () => {
    provider.accounts.set('sub-ann', {
      preferred_username: 'ann.lee',
      email: 'Ann@Example.com',
      email_verified: true,
      name: 'Ann Lee',
      groups: ['everyone', 'staff'],
    });
    const first = await signIn('sub-ann');
    expect(first.status, JSON.stringify(first.body)).to.equal(200);
    expect(first.body.user).to.include({
      username: 'ann.lee',
      display_name: 'Ann Lee',
      role: 'viewer',
      provider: 'oidc',
      email: 'ann@example.com',
      workspace_id: 1,
    });
    expect(await meOf(sessionOf(first))).to.include({ id: first.body.user.id, username: 'ann.lee' });
    const second = await signIn('sub-ann');
    expect(second.body.user.id).to.equal(first.body.user.id);
    expect((await world.audit('login_oidc')).map(({ target_id }) => target_id)).to.deep.equal([
      first.body.user.id,
      first.body.user.id,
    ]);
    expect((await world.audit('user_create'))[0]).to.deep.include({
      actor: 'oidc',
      target_id: first.body.user.id,
    });
  });

  it('keeps the subject, email address and name of the account out of the log', async () => {
    const log = await world.rawLog();
    for (const text of ['sub-ann', 'ann@example.com', 'Ann Lee']) expect(log).not.to.include(text);
  });

  it('updates role and workspace from the groups at each sign-in', async () => {
    provider.accounts.set('sub-bo', { preferred_username: 'bo', groups: ['acme-ops', 'staff'] });
    const first = await signIn('sub-bo');
    expect(first.body.user).to.include({ role: 'operator', username: 'bo' });
    expect(first.body.user.workspace_id).to.be.above(1);
    const session = sessionOf(first);
    provider.accounts.set('sub-bo', { preferred_username: 'bo', groups: ['staff'] });
    expect((await signIn('sub-bo')).body.user).to.include({ role: 'viewer', id: first.body.user.id });
    expect(await meOf(session), 'an older session').to.include({ role: 'viewer' });
    provider.accounts.set('sub-bo', { preferred_username: 'bo', groups: [] });
    const refused = await signIn('sub-bo');
    expect([refused.status, refused.body.code]).to.deep.equal([403, 'NO_ROLE']);
    provider.accounts.set('sub-bea', { preferred_username: 'bea', groups: ['staff'] });
    const { user } = (await signIn('sub-bea')).body;
    provider.accounts.set('sub-bea', { preferred_username: 'bea', groups: ['admins'] });
    expect((await signIn('sub-bea')).body.user).to.include({ role: 'admin' });
    expect((await world.audit('user_update'))[0]).to.deep.include({
      actor: 'oidc',
      target_id: user.id,
      detail: { role: 'admin', password_changed: false },
    });
  });

  it('keeps role and workspace, also of open sessions, if the provider sends no groups, and logs the remedy', async () => {
    provider.accounts.set('sub-ivy', { preferred_username: 'ivy', groups: ['acme-ops'] });
    const first = await signIn('sub-ivy');
    const { id, workspace_id } = first.body.user;
    const kept = { id, role: 'operator', workspace_id };
    for (const claims of [{}, { hasgroups: true }, { groups: [{ id: 7 }] }]) {
      provider.accounts.set('sub-ivy', { preferred_username: 'ivy', ...claims });
      const reply = await signIn('sub-ivy');
      expect(reply.status, JSON.stringify([claims, reply.body])).to.equal(200);
      expect(reply.body.user).to.include(kept);
      expect(await meOf(sessionOf(first)), 'the open session').to.include(kept);
    }
    await until('the remedies are logged', async () => {
      const { logs } = (await world.ask('GET', '/api/logs?limit=200', { as: world.adminKey })).body;
      const lines = logs.map(({ message }: { message: string }) => message).join('\n');
      return ['OIDC_GROUPS_CLAIM names, as an empty list', 'assigned to this application', 'as a list of names'].every(
        (remedy) => lines.includes(remedy),
      );
    });
    provider.accounts.set('sub-ivy', { preferred_username: 'ivy', groups: [] });
    expect((await signIn('sub-ivy')).body.code, 'an empty claim counts').to.equal('NO_ROLE');
    provider.accounts.set('sub-jay', { preferred_username: 'jay' });
    const refused = await signIn('sub-jay');
    expect([refused.status, refused.body.code]).to.deep.equal([403, 'NO_ROLE']);
    expect(refused.body.error).to.include('sent no groups');
  });

  it('reads groups as objects, as a text and as a map', async () => {
    for (const groups of [[{ name: 'staff' }], 'everyone,staff', { staff: { '1': 'example.com' } }]) {
      provider.accounts.set('sub-kim', { preferred_username: 'kim', groups });
      expect((await signIn('sub-kim')).body.user, JSON.stringify(groups)).to.include({ role: 'viewer' });
    }
  });

  it('rejects accounts without a group with a role, and groups of an unknown workspace', async () => {
    provider.accounts.set('sub-cy', { preferred_username: 'cy', groups: ['visitors'] });
    const nothing = await signIn('sub-cy');
    expect([nothing.status, nothing.body.code]).to.deep.equal([403, 'NO_ROLE']);
    provider.accounts.set('sub-cy', { preferred_username: 'cy', groups: ['nowhere'] });
    const missing = await signIn('sub-cy');
    expect(missing.status).to.equal(403);
    expect(missing.body.error).to.include('"missing"');
    expect(cookieOf(missing)).not.to.include('session');
  });

  it('gives an account another name if its own is taken', async () => {
    const id = await world.makeUser({ username: 'dee', role: 'admin' });
    provider.accounts.set('sub-dee', { preferred_username: 'dee', groups: ['staff'] });
    const { user } = (await signIn('sub-dee')).body;
    expect(user).to.include({ username: 'dee-1', role: 'viewer' });
    expect(user.id).not.to.equal(id);
  });

  it('shows an account by its username if its name looks like that of an agent or of another user', async () => {
    const { id } = bodyOf(
      await world.ask('POST', '/api/agents', { as: world.adminKey, body: { name: 'courier', role: 'x' } }),
      201,
    ).agent;
    await world.makeUser({ username: 'chief', role: 'admin' });
    for (const [sub, name] of [
      ['sub-fay', 'Courier'],
      ['sub-gil', 'c\u043eurier'],
      ['sub-hal', 'CHIEF'],
      ['sub-ina', 'coordinator'],
      ['sub-jon', 'aegis'],
    ] as const) {
      const preferred_username = sub.slice(4);
      provider.accounts.set(sub, { preferred_username, name, groups: ['staff'] });
      expect((await signIn(sub)).body.user, name).to.include({
        username: preferred_username,
        display_name: preferred_username,
      });
    }
    const sent = await world.ask('POST', '/api/chat/messages', {
      as: world.adminKey,
      body: { content: 'hello', recipient: 'courier' },
    });
    expect(bodyOf(sent, 201).message.to_agent).to.equal('courier');
    const { total } = bodyOf(await world.ask('GET', '/api/notifications?recipient=fay', { as: world.adminKey }));
    expect([total, id > 0]).to.deep.equal([0, true]);
  });

  it('stores no email address that the provider has not verified', async () => {
    provider.accounts.set('sub-eve', { email: 'admin@example.com', email_verified: false, groups: ['staff'] });
    expect((await signIn('sub-eve')).body.user).to.include({ email: null, username: 'sub-eve' });
  });

  it('rejects a disabled user, and password sign-in for users of the provider', async () => {
    provider.accounts.set('sub-fay', { preferred_username: 'fay', groups: ['staff'] });
    const { user } = (await signIn('sub-fay')).body;
    const changed = await world.ask('PUT', '/api/auth/users', {
      as: world.adminKey,
      body: { id: user.id, is_approved: 0, password: 'a long enough password' },
    });
    expect(changed.status, JSON.stringify(changed.body)).to.equal(200);
    expect((await signIn('sub-fay')).status).to.equal(403);
    const login = await world.ask('POST', '/api/auth/login', {
      body: { username: 'fay', password: 'a long enough password' },
    });
    expect(login.status).to.equal(401);
  });

  it('creates one user for concurrent first sign-ins', async () => {
    provider.accounts.set('sub-gus', { preferred_username: 'gus', groups: ['staff'] });
    const replies = await Promise.all(Array.from({ length: 4 }, () => signIn('sub-gus')));
    const ids = replies.flatMap((reply) => (reply.status === 200 ? [reply.body.user.id] : []));
    expect(new Set(ids).size, JSON.stringify(replies.map(({ status, body }) => [status, body.error]))).to.equal(1);
    const { users } = (await world.ask('GET', '/api/auth/users', { as: world.adminKey })).body;
    expect(users.filter(({ username }: { username: string }) => username.startsWith('gus'))).to.have.length(1);
  });

  it('rejects a wrong state, a used code, and a browser that has not started a sign-in', async () => {
    provider.accounts.set('sub-hal', { preferred_username: 'hal', groups: ['staff'] });
    const begun = await begin();
    const back = await provider.approve(begun.body.url, 'sub-hal');
    const body = { code: back.get('code'), state: back.get('state'), iss: back.get('iss') };
    const cookie = cookieOf(begun);
    expect((await finish(body, '')).status, 'no cookie').to.equal(400);
    expect((await finish(body, cookieOf(await begin()))).status, 'the cookie of another sign-in').to.equal(400);
    expect((await finish({ ...body, state: 'other' }, cookie)).status, 'another state').to.equal(400);
    expect((await finish({ ...body, iss: 'https://other.example' }, cookie)).status, 'another issuer').to.equal(400);
    expect((await finish(body, cookie)).status).to.equal(200);
    const again = await finish(body, cookie);
    expect([again.status, again.body.error]).to.satisfy(
      ([status, error]: [number, string]) => status === 400 && error.includes('begin the sign-in again'),
    );
    expect((await finish({}, cookie)).status, 'no code').to.equal(400);
  });

  it('lets six colleagues behind one address sign in within a minute', async () => {
    for (const sub of ['sub-p1', 'sub-p2', 'sub-p3', 'sub-p4', 'sub-p5', 'sub-p6']) {
      provider.accounts.set(sub, { preferred_username: sub, groups: ['staff'] });
      expect((await signIn(sub, '203.0.113.7')).status, sub).to.equal(200);
    }
  });

  it('completes two sign-ins that one browser started at the same time, and keeps five of them', async () => {
    provider.accounts.set('sub-qin', { preferred_username: 'qin', groups: ['staff'] });
    const tabs = [await begin(), await begin()];
    const jar = tabs.map(cookieOf).join('; ');
    for (const tab of tabs) {
      const back = await provider.approve(tab.body.url, 'sub-qin');
      const body = { code: back.get('code'), state: back.get('state'), iss: back.get('iss') };
      expect((await finish(body, jar)).status).to.equal(200);
    }
    const many = await Promise.all(Array.from({ length: 6 }, () => begin()));
    const next = await world.ask('POST', '/api/auth/oidc/begin', {
      headers: { ...headers, cookie: many.map(cookieOf).join('; ') },
    });
    const deleted = next.headers.getSetCookie().filter((line) => line.includes('Max-Age=0'));
    expect(deleted.map((line) => line.split('=')[0])).to.deep.equal(
      many.slice(0, 2).map((one) => cookieOf(one).split('=')[0]),
    );
  });

  it('names HTTPS if the cookie is missing over plain HTTP', async () => {
    expect((await finish({ code: 'c', state: 's' }, '')).body.error).to.include('MC_COOKIE_SECURE=0');
  });

  it('rejects a sign-in from a page of another site', async () => {
    const reply = await world.ask('POST', '/api/auth/oidc', {
      body: { code: 'c', state: 's' },
      headers: { ...headers, 'sec-fetch-site': 'cross-site' },
    });
    expect(reply.status).to.equal(403);
  });

  it('accepts access tokens of programs as separate users, with the role of their groups', async () => {
    provider.machineGroups = ['builders'];
    const token = await provider.machineToken();
    const bearer = { authorization: `Bearer ${token}`, 'x-api-key': '' };
    const body = bodyOf(await world.ask('GET', '/api/auth/me', { headers: bearer }));
    expect(body.user).to.include({ username: 'build-server', role: 'operator', provider: 'oidc' });
    const made = await world.ask('POST', '/api/agents', { headers: bearer, body: { name: 'built', role: 'coder' } });
    expect(made.status).to.equal(201);
    expect((await world.audit('agent_created'))[0]).to.include({ actor: 'build-server', actor_id: body.user.id });
    expect((await world.ask('GET', '/api/audit', { headers: bearer })).status, 'an operator').to.equal(403);

    provider.machineGroups = ['staff'];
    const weaker = { ...bearer, authorization: `Bearer ${await provider.machineToken()}` };
    expect(
      (await world.ask('POST', '/api/agents', { headers: weaker, body: { name: 'x1', role: 'coder' } })).status,
    ).to.equal(403);
    provider.machineGroups = undefined;
    const silent = { ...bearer, authorization: `Bearer ${await provider.machineToken()}` };
    expect((await world.ask('GET', '/api/auth/me', { headers: silent })).body.user, 'no claim').to.include({
      role: 'viewer',
    });
    provider.machineGroups = [];
    const none = { ...bearer, authorization: `Bearer ${await provider.machineToken()}` };
    expect((await world.ask('GET', '/api/agents', { headers: none })).body.code).to.equal('NO_ROLE');
  });

  it('rejects modified tokens and ID tokens', async () => {
    provider.machineGroups = ['builders'];
    const [header, payload = '', signature] = (await provider.machineToken()).split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...claims, groups: ['admins'] })).toString('base64url');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${forged}.x`;
    for (const token of [`${header}.${forged}.${signature}`, unsigned, 'eyJx.eyJx.x']) {
      const reply = await world.ask('GET', '/api/agents', {
        headers: { authorization: `Bearer ${token}`, 'x-api-key': '' },
      });
      expect(reply.status, token).to.equal(401);
    }
  });

  it('rejects ID tokens that the provider has not signed', async () => {
    provider.accounts.set('sub-lou', { preferred_username: 'lou', groups: ['staff'] });
    const { privateKey: foreign } = await generateKeyPair('RS256');
    const altered = (token: string) => {
      const [header, payload = '', signature] = token.split('.');
      return { header, signature, claims: { ...JSON.parse(atob(payload)), groups: ['admins'] } };
    };
    const forgeries = {
      'a foreign key': (token: string) => provider.sign(altered(token).claims, foreign),
      'an altered payload': (token: string) => {
        const { header, signature, claims } = altered(token);
        return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
      },
    };
    try {
      for (const [name, forge] of Object.entries(forgeries)) {
        provider.idToken = forge;
        const reply = await signIn('sub-lou');
        expect(reply.status, `${name}: ${JSON.stringify(reply.body)}`).to.equal(400);
        expect(reply.body.error, name).to.include('signature of the ID token');
      }
      provider.idToken = (token) => provider.sign(altered(token).claims);
      expect((await signIn('sub-lou')).body.user, 'signed by the provider').to.include({ role: 'admin' });
    } finally {
      provider.idToken = undefined;
    }
  });

  it('accepts an access token for several audiences only if it names the client that it was issued for', async () => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: provider.issuer, sub: 'sub-mae', exp: now + 60, iat: now, groups: ['builders'] };
    const statusOf = async (more: object) => {
      const token = await provider.sign({ ...claims, ...more });
      const headers = { authorization: `Bearer ${token}`, 'x-api-key': '' };
      return (await world.ask('GET', '/api/auth/me', { headers })).status;
    };
    expect(await statusOf({ aud: AUDIENCE })).to.equal(200);
    expect(await statusOf({ aud: [AUDIENCE], jti: 'one of a list' })).to.equal(200);
    expect(await statusOf({ aud: [AUDIENCE, 'account'] })).to.equal(401);
    expect(await statusOf({ aud: [AUDIENCE, 'account'], azp: 'builder' })).to.equal(200);
    expect(await statusOf({ aud: [AUDIENCE, 'account'], azp: '' })).to.equal(401);
    expect(await statusOf({ aud: 'account', azp: 'builder' })).to.equal(401);
  });

  it('gives an account whose name is reserved its next name', async () => {
    provider.accounts.set('sub-ned', {
      preferred_username: 'Admin',
      email: 'ned@example.com',
      email_verified: true,
      groups: ['staff'],
    });
    expect((await signIn('sub-ned')).body.user.username).to.equal('ned');
    provider.accounts.set('sub-oli', { preferred_username: 'aegis', groups: ['staff'] });
    expect((await signIn('sub-oli')).body.user.username, 'the subject comes last').to.equal('sub-oli');
  });

  it('closes the stream of a token when its user is disabled', async () => {
    provider.machineGroups = ['builders'];
    const token = await provider.machineToken();
    const { user } = (
      await world.ask('GET', '/api/auth/me', { headers: { authorization: `Bearer ${token}`, 'x-api-key': '' } })
    ).body;
    const response = await fetch(`${world.url}/api/events`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).to.equal(200);
    const ended = response.text();
    await world.ask('PUT', '/api/auth/users', { as: world.adminKey, body: { id: user.id, is_approved: 0 } });
    expect(await ended).to.include('"type":"connected"');
    const after = await world.ask('GET', '/api/agents', {
      headers: { authorization: `Bearer ${token}`, 'x-api-key': '' },
    });
    expect(after.status).to.equal(403);
  });
});

describe('an unreachable OpenID Connect provider', () => {
  it('causes a 503 with an explanation, and sign-in works once the provider is back', async () => {
    const provider = await startOidcProvider(() => ['http://signalbox.example/']);
    await provider.stop();
    const world = await startAuthWorld({
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT,
      OIDC_ROLES: '*=viewer',
    });
    try {
      const begin = () =>
        world.ask('POST', '/api/auth/oidc/begin', { headers: { 'x-forwarded-host': 'signalbox.example' } });
      const away = await begin();
      expect([away.status, away.body.code]).to.deep.equal([503, 'OIDC_UNREACHABLE']);
      expect((await world.ask('GET', '/api/agents', { as: world.adminKey })).status).to.equal(200);
      await provider.start();
      await until('the provider is found', async () => (await begin()).status === 200, 15_000);
    } finally {
      await world.close();
      await provider.stop();
    }
  });
});

describe('a deployment without an OpenID Connect provider', () => {
  it('reports that none is configured', async () => {
    const world = await startAuthWorld();
    try {
      expect((await world.ask('GET', '/api/auth/oidc')).body).to.deep.equal({ name: null });
      expect(bodyOf(await world.ask('POST', '/api/auth/oidc/begin'), 400).error).to.include('OIDC_ISSUER');
    } finally {
      await world.close();
    }
  });
});
