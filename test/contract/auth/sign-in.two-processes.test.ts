/** Two API processes on the same stores: what ends a credential at one is seen by the other with the next request. */
import { expect } from 'chai';
import { needsServer } from '../../support/needs.ts';
import { type ServerStores, serverStores, TEST_ADMIN, twoApiProcesses } from '../../support/service.ts';
import { type AuthWorld, cookieOf, PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';
import { expectAuditForAdminsOnly, expectEnd, expectStreamsToEnd, streamOf } from '../monitoring/events.endings.ts';

describe('contract: credentials across processes', function () {
  this.timeout(60_000);
  const worlds: AuthWorld[] = [];
  let stores: ServerStores | undefined;

  before(async function () {
    needsServer('TEST_DATABASE_URL', this);
    stores = await serverStores();
    const { env } = stores;
    // At once, on an empty database: all migrate, both prepare the first start.
    const settled = await Promise.allSettled(twoApiProcesses().map((role) => startAuthWorld(env, role)));
    for (const one of settled) if (one.status === 'fulfilled') worlds.push(one.value);
    for (const one of settled) if (one.status === 'rejected') throw one.reason;
  });
  after(async () => {
    for (const world of worlds) await world.close();
    await stores?.close();
  });

  const both = () => worlds.slice(0, 2) as [AuthWorld, AuthWorld];
  const me = (world: AuthWorld, as: string) => world.ask('GET', '/api/auth/me', { as });

  it('the admin and the global key are valid in both processes', async () => {
    for (const world of both()) {
      expect((await me(world, world.adminKey)).status).to.equal(200);
      expect((await world.ask('GET', '/api/auth/users', { as: world.adminKey })).body.users).to.have.length(1);
      expect(await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password)).to.include('mc-session=');
    }
  });

  it('sessions start and end in both processes at once, many times', async () => {
    const [one, two] = both();
    const id = await one.makeUser({ username: 'ann', role: 'admin' });
    const put = (world: AuthWorld, body: object, as: string) =>
      world.ask('PUT', '/api/auth/users', { as, body: { id, ...body } });
    for (let round = 0; round < 5; round++) {
      const cookie = await one.signIn('ann');
      expect((await me(two, cookie)).status).to.equal(200);
      await put(two, { is_approved: 0 }, two.adminKey);
      expect((await me(one, cookie)).status).to.equal(401);
      await put(one, { is_approved: 1 }, one.adminKey);
      const again = await two.signIn('ann');
      expect((await me(one, again)).status).to.equal(200);
      await one.ask('POST', '/api/auth/logout', { as: again });
      expect((await me(two, again)).status).to.equal(401);
    }
    const cookie = await one.signIn('ann');
    expect((await me(two, cookie)).status).to.equal(200);
    const changed = await one.ask('PATCH', '/api/auth/me', {
      as: cookie,
      body: { current_password: PASSWORD, new_password: 'another password' },
    });
    expect((await me(two, cookie)).status).to.equal(401);
    expect((await me(two, cookieOf(changed))).status).to.equal(200);
  });

  it('streams in one process end when their credential ends in the other', async () => {
    const [one, two] = both();
    await expectStreamsToEnd(one, two);
    await expectAuditForAdminsOnly(two);
  });

  it('keys become valid and invalid in both processes at once', async () => {
    const [one, two] = both();
    const agent = await one.makeAgent('scout');
    const path = `/api/agents/${agent}/keys`;
    for (let round = 0; round < 5; round++) {
      const issued = (await one.ask('POST', path, { as: one.adminKey })).body;
      expect((await me(two, issued.api_key)).status).to.equal(200);
      await two.ask('DELETE', path, { as: two.adminKey, body: { key_id: issued.key.id } });
      expect((await me(one, issued.api_key)).status).to.equal(401);
      expect((await me(two, issued.api_key)).status).to.equal(401);
    }
    const streams = await Promise.all(both().map((world) => streamOf(world, world.adminKey)));
    const { key } = (await two.ask('POST', '/api/tokens/rotate', { as: two.adminKey })).body;
    for (const stream of streams) await expectEnd(stream, 'the deployment has another key');
    expect([(await me(one, key)).status, (await me(one, one.adminKey)).status]).to.deep.equal([200, 401]);
    expect([(await me(two, key)).status, (await me(two, two.adminKey)).status]).to.deep.equal([200, 401]);
  });

  it('a name requested in both processes is given once', async () => {
    const [one, two] = both();
    const as = await one.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
    const body = { username: 'bob', password: PASSWORD, role: 'viewer' };
    const replies = await Promise.all(
      [one, two, one, two].map((world) => world.ask('POST', '/api/auth/users', { as, body })),
    );
    expect(replies.map((reply) => reply.status).sort()).to.deep.equal([201, 409, 409, 409]);
  });
});
