/** Who may call what, and how often: the table of `test/support/access.ts`, compared with the routes, then row by row. */
import { finished } from 'node:stream/promises';
import { expect } from 'chai';
import { routes } from '../../api/routes/index.ts';
import type { Role } from '../../shared/identity.ts';
import { ACCESS, type AccessRow } from '../support/access.ts';
import { fixture } from '../support/fixture.ts';
import { send } from '../support/service.ts';
import { freshAddress, startAuthWorld } from '../support/worlds/auth.ts';

/** Calls a minute, by class. */
const LIMITS: Readonly<Record<string, number>> = {
  login: 5,
  mutation: 60,
  heavy: 10,
  read: 120,
  'self-register': 5,
  'agent-heartbeat': 30,
  'agent-poll': 20,
  users: 20,
  'access-requests': 20,
  'api-key': 20,
  'gateway-config': 20,
  'exec-approvals': 30,
  backup: 10,
};

/** With an unknown id: authorization comes before the lookup. */
const rows = ACCESS.map((row) => ({ ...row, path: row.path.replace(/\{\w+\}/g, '999999') }));

const BELOW: Readonly<Record<Role, Role | undefined>> = { viewer: undefined, operator: 'viewer', admin: 'operator' };

describe('contract: routes', function () {
  this.timeout(120_000);
  let agent: number;
  const world = fixture(() => startAuthWorld({ MC_DISABLE_RATE_LIMIT: '0' }));
  before(async () => {
    agent = await world.makeAgent('caller');
  });

  it('the table matches the routes', () => {
    const found = routes.map(({ method, path, access, limit, scope }) => ({
      name: `${method.toUpperCase()} ${path}`,
      role: access === 'public' ? 'none' : access === 'any' ? 'viewer' : access,
      limit: limit ?? '-',
      scope: scope === 'deployment' ? scope : '-',
    }));
    expect(ACCESS.map(({ name, role, limit, scope }) => ({ name, role, limit, scope }))).to.have.deep.members(found);
  });

  /** Status of one call; a stream is left at once. */
  async function statusOf({ method, path }: AccessRow, as: { readonly [header: string]: string }, ip = freshAddress()) {
    const headers = { 'x-forwarded-for': ip, 'content-type': 'application/json', ...as };
    const response = await send(world, method, path, headers, method === 'GET' ? undefined : '{}');
    if (response.headers['content-type'] === 'text/event-stream') response.destroy();
    else await finished(response.resume());
    return { status: response.statusCode, headers: response.headers };
  }

  const sessions = new Map<Role, string>();
  let users = 0;
  let callers = 0;
  /** A session of a user with this role; a new one if a call has ended it. */
  async function session(role: Role): Promise<{ cookie: string }> {
    const known = sessions.get(role);
    if (known && (await world.ask('GET', '/api/auth/me', { as: known })).status === 200) return { cookie: known };
    const username = `somebody-${++users}`;
    const cookie = await world.makeSession({ username, role });
    sessions.set(role, cookie);
    return { cookie };
  }

  it('only public routes can be called without a credential', async () => {
    for (const row of rows) {
      const { status } = await statusOf(row, {});
      // A sign-in is refused for what it lacks, which is no credential of a caller.
      if (row.role === 'none') expect(status, row.name).not.to.equal(401);
      else expect(status, row.name).to.equal(401);
    }
  });

  it('every route requires exactly its documented role, with a session and with a key', async () => {
    const keys = new Map<Role, string>();
    const key = async (role: Role) => {
      const known = keys.get(role) ?? (await world.makeKey(agent, [role]));
      keys.set(role, known);
      return { 'x-api-key': known };
    };
    for (const row of rows) {
      if (row.role === 'none') continue;
      const below = BELOW[row.role];
      for (const as of below ? [await session(below), await key(below)] : []) {
        expect((await statusOf(row, as)).status, `${row.name} as ${below}`).to.equal(403);
      }
      const { status } = await statusOf(row, await session(row.role));
      expect(status, `${row.name} as ${row.role}`).not.to.be.oneOf([401, 403]);
    }
  });

  it('deployment-wide routes are closed to other tenants and open to other workspaces', async () => {
    const cookie = await world.makeSession({ username: 'stranger', role: 'admin', tenant: 2, workspace: 2 });
    const key = await world.makeKey(await world.makeAgent('far', 2), ['admin'], 2, 2);
    const outside: Record<string, string>[] = [{ cookie }, { 'x-api-key': key }];
    for (const row of rows.filter(({ scope }) => scope === 'deployment'))
      for (const as of outside) expect((await statusOf(row, as)).status, row.name).to.equal(403);
    const { body } = await world.ask('GET', '/api/tokens/rotate', { as: cookie });
    expect(body.error).to.include('default tenant');
    await world.service.securityEvents?.drain();
    const path = '/api/audit?action=tenant_access_denied&limit=200';
    const { entries } = (await world.ask('GET', path, { as: cookie })).body;
    for (const actor of ['stranger', 'agent:far'])
      expect(
        entries.find((entry: { actor: string }) => entry.actor === actor),
        actor,
      ).to.deep.include({
        target_type: 'workspace',
        target_id: 2,
      });
    const as = await world.makeSession({ username: 'second', role: 'admin', workspace: 3 });
    expect((await world.ask('GET', '/api/tokens/rotate', { as })).status).to.equal(200);
  });

  for (const row of rows.filter(({ limit }) => limit !== '-')) {
    it(`${row.name} is limited: ${row.limit}, ${LIMITS[row.limit]} a minute`, async () => {
      const limit = LIMITS[row.limit] as number;
      // An agent of its own each, where agents may call: some limits are counted by agent.
      const caller = async (): Promise<Record<string, string>> => {
        const name = `caller-${++callers}`;
        if (row.role === 'none') return {};
        if (!['closed', 'bound'].includes(row.agents))
          return { 'x-api-key': await world.makeKey(await world.makeAgent(name), [row.role]) };
        await world.makeUser({ username: name, role: row.role });
        return { cookie: await world.signIn(name) };
      };
      // Each call counts, and what a POST does is done once: ten backups would take as many seconds.
      const as = { ...(await caller()), 'idempotency-key': 'limit' };
      const ip = freshAddress();
      for (let n = 0; n < limit; n++) {
        expect((await statusOf(row, as, ip)).status, `call ${n + 1}`).not.to.equal(429);
      }
      const { status, headers } = await statusOf(row, as, ip);
      expect(status).to.equal(429);
      expect(headers['x-ratelimit-limit']).to.equal(String(limit));
      expect(Number(headers['retry-after'])).to.be.within(1, 60);
      // Callers from other addresses are not affected.
      expect((await statusOf(row, await caller())).status).not.to.equal(429);
    });
  }
});
