/** Rate limits through HTTP: what they are counted by, and the guessing of API keys. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { LIMITS, WRONG_KEYS, WRONG_PASSWORDS } from '../../api/http/limits.ts';
import { STREAM_LIMITS } from '../../api/stream/limits.ts';
import { fixture } from '../support/fixture.ts';
import { openStream } from '../support/stream.ts';
import { freshAddress, PASSWORD, startAuthWorld } from '../support/worlds/auth.ts';

const wrongKey = () => `mc_${randomBytes(24).toString('hex')}`;

describe('contract: rate limits', function () {
  this.timeout(60_000);
  const world = fixture(() => startAuthWorld({ MC_DISABLE_RATE_LIMIT: '0' }));

  const agentsKey = async (name: string, workspace = 1) => {
    const id = await world.makeAgent(name, workspace);
    return { id, key: await world.makeKey(id, ['operator'], workspace) };
  };
  const statuses = async (count: number, ask: () => Promise<{ readonly status: number }>) => {
    const seen: number[] = [];
    for (let n = 0; n < count; n++) seen.push((await ask()).status);
    return seen;
  };

  it('an operator of one tenant does not use up the heartbeats of another tenant’s agent', async () => {
    const ip = freshAddress();
    const [mine, theirs] = [await agentsKey('worker', 1), await agentsKey('worker', 2)];
    const beat = ({ id, key }: typeof mine) => world.ask('POST', `/api/agents/${id}/heartbeat`, { as: key, ip });
    const { limit } = LIMITS['agent-heartbeat'];
    const seen = await statuses(limit + 1, () => beat(theirs));
    expect(seen).to.deep.equal([...Array(limit).fill(200), 429]);
    expect((await beat(mine)).status).to.equal(200);
    // Another agent of the same address has a limit of its own.
    expect((await beat(await agentsKey('other', 2))).status).to.equal(200);
  });

  it('an agent is counted by its id and not by a name that the caller invents', async () => {
    const ip = freshAddress();
    const { id } = await agentsKey('named');
    await agentsKey('named-too');
    const beat = (name: string) =>
      world.ask('POST', `/api/agents/${id}/heartbeat`, { as: world.adminKey, ip, headers: { 'x-agent-name': name } });
    const { limit } = LIMITS['agent-heartbeat'];
    let made = 0;
    const seen = await statuses(limit + 1, () => beat(`made-up-${++made}`));
    expect(seen).to.deep.equal([...Array(limit).fill(200), 429]);
    // Agents that there are have limits of their own, also at one caller.
    for (const name of ['named', 'named-too']) {
      expect(await statuses(limit + 1, () => beat(name))).to.deep.equal([...Array(limit).fill(200), 429]);
    }
    // The key of the agent is the same agent.
    const own = await world.makeKey(id, ['operator']);
    expect((await world.ask('POST', `/api/agents/${id}/heartbeat`, { as: own, ip: freshAddress() })).status).to.equal(
      429,
    );
  });

  it('tenants behind one address do not share address-based limits', async () => {
    const ip = freshAddress();
    const [mine, theirs] = [await agentsKey('a1', 1), await agentsKey('a2', 2)];
    const change = ({ id, key }: typeof mine) =>
      world.ask('PUT', `/api/agents/${id}`, { as: key, body: { status: 'x' }, ip });
    const { limit } = LIMITS.mutation;
    expect((await statuses(limit + 1, () => change(theirs))).indexOf(429)).to.equal(limit);
    expect((await change(mine)).status).to.equal(200);
  });

  it('IPv6 addresses are counted by their /64 network', async () => {
    let host = 0;
    const signIn = (network: string) =>
      world.ask('POST', '/api/auth/login', {
        body: { username: 'nobody', password: 'wrong password' },
        ip: `${network}:${(++host).toString(16)}:2:3:4`,
      });
    const { limit } = LIMITS.login;
    expect(await statuses(limit + 1, () => signIn('2001:db8:1:1'))).to.deep.equal([...Array(limit).fill(401), 429]);
    expect((await signIn('2001:db8:1:2')).status).to.equal(401);
  });

  it('a port after the address makes no new caller', async () => {
    const ip = freshAddress();
    let port = 4_000;
    const signIn = () =>
      world.ask('POST', '/api/auth/login', { body: { username: 'nobody', password: 'wrong' }, ip: `${ip}:${++port}` });
    const { limit } = LIMITS.login;
    expect(await statuses(limit + 1, signIn)).to.deep.equal([...Array(limit).fill(401), 429]);
    const [entry] = await world.audit('login_failed');
    expect(entry?.ip_address).to.equal(ip);
  });

  it('wrong passwords of an account from many addresses slow it, and do not lock it', async () => {
    await world.makeUser({ username: 'hunted' });
    const signIn = (password: string, ip = freshAddress()) =>
      world.ask('POST', '/api/auth/login', { body: { username: 'hunted', password }, ip });
    const home = freshAddress();
    expect((await signIn(PASSWORD, home)).status).to.equal(200);
    expect(new Set(await statuses(WRONG_PASSWORDS, () => signIn('wrong')))).to.deep.equal(new Set([401]));
    // Attempts take turns: of ten at once, some are refused before their password is checked.
    const attempts = Array.from({ length: 10 }, () => signIn('wrong'));
    expect(await Promise.race([...attempts, signIn(PASSWORD, home)].map(async (one) => (await one).status))).to.equal(
      429,
    );
    expect((await signIn(PASSWORD, home)).status, 'known network').to.equal(200);
    const seen = (await Promise.all(attempts)).map(({ status }) => status);
    expect(seen.filter((status) => status === 429)).to.have.length(5);
    expect(seen.filter((status) => status === 401)).to.have.length(5);
    const refused = await signIn(PASSWORD);
    expect(refused.status, 'slowed, not locked').to.equal(200);
  });

  it('an excess event stream is rejected and recorded like every other limit', async () => {
    const ip = freshAddress();
    const { key } = await agentsKey('listener');
    const open = () => openStream(`${world.url}/api/events`, { 'x-api-key': key, 'x-forwarded-for': ip });
    const streams = await Promise.all(Array.from({ length: STREAM_LIMITS.perCaller }, open));
    try {
      const refused = await world.ask('GET', '/api/events', { as: key, ip });
      expect([refused.status, refused.body.code]).to.deep.equal([429, 'TOO_MANY_STREAMS']);
      await world.service.securityEvents?.drain();
      const hits: object[] = [];
      for await (const events of world.service.core.eventLog.readAll()) {
        hits.push(...events.filter(({ type, data }) => type === 'RateLimitHit' && Object(data).limit === 'streams'));
      }
      expect(hits.map((event) => (event as { data: object }).data)).to.deep.equal([
        { route: 'GET /api/events', limit: 'streams', count: 1 },
      ]);
    } finally {
      for (const stream of streams) stream.close();
    }
  });

  describe('wrong API keys', () => {
    const me = (as: string, ip: string) => world.ask('GET', '/api/auth/me', { as, ip });

    it('are limited like wrong passwords if they are new', async () => {
      const ip = freshAddress();
      const { key } = await agentsKey('known');
      expect((await me(key, ip)).status).to.equal(200);
      const seen = await statuses(WRONG_KEYS, () => me(wrongKey(), ip));
      expect(seen).to.deep.equal(Array(WRONG_KEYS).fill(401));
      const refused = await me(wrongKey(), ip);
      expect(refused.status).to.equal(429);
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
      // The response does not reveal whether a guess is right.
      const { key: right } = await agentsKey('guessed');
      expect((await me(right, ip)).status).to.equal(429);
      expect((await me(right, freshAddress())).status).to.equal(200);
      expect((await me(key, ip)).status, 'a key that was good before').to.equal(200);
      expect((await world.ask('GET', '/api/health', { as: wrongKey(), ip })).status, 'public').to.equal(200);
    });

    it('that are sent repeatedly do not count as guesses, and still get 401', async () => {
      const ip = freshAddress();
      const key = wrongKey();
      expect(new Set(await statuses(WRONG_KEYS * 2, () => me(key, ip)))).to.deep.equal(new Set([401]));
      expect((await me(wrongKey(), ip)).status).to.equal(401);
    });

    it('are audited, without the key', async () => {
      const ip = freshAddress();
      const key = wrongKey();
      await statuses(3, () => me(key, ip));
      await world.service.securityEvents?.drain();
      const entries = (await world.audit('login_failed')).filter((entry) => entry.ip_address === ip);
      expect(entries.map((entry) => (entry.detail as { count: number }).count)).to.have.members([1, 2]);
      expect(entries[0]).to.deep.include({ actor: 'anonymous', actor_id: null });
      expect(entries[0]?.detail).to.include({ reason: 'invalid_api_key', route: 'GET /api/auth/me' });
      expect(await world.rawLog()).not.to.include(key.slice(3));
    });
  });
});
