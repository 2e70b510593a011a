/**
 * Who may call what, and how often: one table, written by hand and compared with the routes both ways, so that neither
 * changes alone; then every row of it through real HTTP.
 */
import { finished } from 'node:stream/promises';
import { expect } from 'chai';
import { routes } from '../../api/routes/index.ts';
import type { Role } from '../../shared/identity.ts';
import { fixture } from '../support/fixture.ts';
import { send } from '../support/service.ts';
import { freshAddress, PASSWORD, startAuthWorld } from '../support/worlds/auth.ts';

/** Method, path, least role, class of limits, and `deployment` where only the default tenant may call. */
const TABLE = `
POST    /api/auth/login               none      login
GET     /api/auth/google              none      -
POST    /api/auth/google              none      login
POST    /api/auth/google/disconnect   viewer    -
GET     /api/auth/oidc                none      -
POST    /api/auth/oidc                none      login
POST    /api/auth/oidc/begin          none      login
POST    /api/auth/logout              viewer    -
GET     /api/auth/me                  viewer    -
PATCH   /api/auth/me                  viewer    -
GET     /api/setup                    none      -
POST    /api/setup                    none      login
GET     /api/auth/users               admin     -
POST    /api/auth/users               admin     users
PUT     /api/auth/users               admin     users
DELETE  /api/auth/users               admin     users
DELETE  /api/people/{username}        admin     users
GET     /api/auth/access-requests     admin     -                deployment
POST    /api/auth/access-requests     admin     access-requests  deployment
GET     /api/tokens                   viewer    -
POST    /api/tokens                   operator  -
POST    /api/tokens/batch             operator  -
GET     /api/tokens/by-agent          viewer    -
GET     /api/tokens/prices            viewer    -
PUT     /api/tokens/prices            operator  mutation
DELETE  /api/tokens/prices            operator  mutation
GET     /api/tokens/rotate            admin     -                deployment
POST    /api/tokens/rotate            admin     api-key          deployment
GET     /api/agents                   viewer    -
POST    /api/agents                   operator  mutation
PUT     /api/agents                   operator  mutation
POST    /api/agents/register          viewer    self-register
GET     /api/agents/{id}              viewer    -
PUT     /api/agents/{id}              operator  mutation
DELETE  /api/agents/{id}              admin     mutation
POST    /api/agents/{id}/hide         operator  mutation
DELETE  /api/agents/{id}/hide         operator  mutation
GET     /api/agents/{id}/diagnostics  viewer    -
GET     /api/agents/{id}/attribution  viewer    -
GET     /api/agents/{id}/heartbeat    viewer    -
POST    /api/agents/{id}/heartbeat    operator  agent-heartbeat
POST    /api/agents/{id}/wake         operator  mutation
GET     /api/agents/{id}/memory       viewer    -
PUT     /api/agents/{id}/memory       operator  mutation
DELETE  /api/agents/{id}/memory       operator  mutation
GET     /api/agents/{id}/soul         viewer    -
PUT     /api/agents/{id}/soul         operator  mutation
PATCH   /api/agents/{id}/soul         viewer    -
POST    /api/agents/message           operator  mutation
GET     /api/agents/comms             viewer    -
GET     /api/agents/sync              admin     -
POST    /api/agents/sync              admin     mutation
GET     /api/agents/{id}/keys         admin     -
POST    /api/agents/{id}/keys         admin     mutation
DELETE  /api/agents/{id}/keys         admin     mutation
GET     /api/chat/conversations       viewer    -
GET     /api/chat/messages            viewer    -
POST    /api/chat/messages            operator  -
GET     /api/chat/messages/{id}       viewer    -
PATCH   /api/chat/messages/{id}       operator  -
GET     /api/connect                  viewer    -
POST    /api/connect                  operator  -
DELETE  /api/connect                  operator  -
GET     /api/claude/sessions          viewer    -
POST    /api/claude/sessions          operator  -
GET     /api/sessions                 viewer    -
POST    /api/sessions                 operator  mutation
DELETE  /api/sessions                 operator  mutation
POST    /api/sessions/{id}/control    operator  mutation
GET     /api/chat/session-prefs       viewer    -
PATCH   /api/chat/session-prefs       operator  -
GET     /api/adapters                 viewer    -
POST    /api/adapters                 operator  agent-heartbeat
GET     /api/workflows                viewer    -
POST    /api/workflows                operator  mutation
PUT     /api/workflows                operator  mutation
DELETE  /api/workflows                operator  mutation
GET     /api/pipelines                viewer    -
POST    /api/pipelines                operator  mutation
PUT     /api/pipelines                operator  -
DELETE  /api/pipelines                operator  -
GET     /api/pipelines/run            viewer    -
POST    /api/pipelines/run            operator  -
GET     /api/projects                 viewer    -
POST    /api/projects                 operator  mutation
GET     /api/projects/{id}            viewer    -
PATCH   /api/projects/{id}            operator  mutation
DELETE  /api/projects/{id}            admin     mutation
GET     /api/projects/{id}/tasks      viewer    -
GET     /api/projects/{id}/agents     viewer    -
POST    /api/projects/{id}/agents     operator  mutation
DELETE  /api/projects/{id}/agents     operator  mutation
GET     /api/mentions                 viewer    -
GET     /api/tasks                    viewer    -
POST    /api/tasks                    operator  mutation
PUT     /api/tasks                    operator  mutation
GET     /api/tasks/{id}               viewer    -
PUT     /api/tasks/{id}               operator  mutation
DELETE  /api/tasks/{id}               operator  mutation
GET     /api/tasks/{id}/comments      viewer    -
POST    /api/tasks/{id}/comments      operator  mutation
POST    /api/tasks/{id}/broadcast     operator  -
GET     /api/tasks/{id}/branch        viewer    -
POST    /api/tasks/{id}/branch        operator  mutation
GET     /api/tasks/queue              operator  agent-poll
GET     /api/quality-review           viewer    -
POST    /api/quality-review           operator  mutation
GET     /api/webhooks                 admin     -
POST    /api/webhooks                 admin     mutation
PUT     /api/webhooks                 admin     mutation
DELETE  /api/webhooks                 admin     mutation
GET     /api/webhooks/deliveries      admin     -
POST    /api/webhooks/test            admin     -
POST    /api/webhooks/retry           admin     -
GET     /api/webhooks/verify-docs     viewer    -
GET     /api/alerts                   viewer    -
POST    /api/alerts                   operator  mutation
PUT     /api/alerts                   operator  mutation
DELETE  /api/alerts                   admin     mutation
GET     /api/gateway-config           admin     -
PUT     /api/gateway-config           admin     gateway-config
GET     /api/export                   admin     heavy
GET     /api/history/causes/{id}      admin     -                deployment
GET     /api/history/checkpoint       viewer    -
GET     /api/history/consistency      admin     -                deployment
GET     /api/history/diff             admin     -
GET     /api/history/events           admin     -                deployment
GET     /api/history/events/{id}      admin     -                deployment
GET     /api/history/key              viewer    -
GET     /api/history/proof            admin     -                deployment
GET     /api/history/timeline         admin     -                deployment
GET     /api/cron                     admin     -                deployment
POST    /api/cron                     admin     -                deployment
GET     /api/backup                   admin     -                deployment
POST    /api/backup                   admin     backup           deployment
DELETE  /api/backup                   admin     backup           deployment
GET     /api/cleanup                  admin     -
POST    /api/cleanup                  admin     heavy
GET     /api/scheduler                admin     -                deployment
POST    /api/scheduler                admin     -                deployment
GET     /api/super/tenants            admin     -                deployment
POST    /api/super/tenants            admin     mutation         deployment
POST    /api/super/tenants/{id}/decommission  admin  mutation   deployment
GET     /api/super/provision-jobs     admin     -                deployment
POST    /api/super/provision-jobs     admin     mutation         deployment
GET     /api/super/provision-jobs/{id}  admin   -                deployment
POST    /api/super/provision-jobs/{id}  admin   mutation         deployment
POST    /api/super/provision-jobs/{id}/run  admin  mutation      deployment
GET     /api/workspaces               viewer    -
POST    /api/workspaces               admin     mutation
GET     /api/workspaces/{id}          viewer    -
PUT     /api/workspaces/{id}          admin     mutation
DELETE  /api/workspaces/{id}          admin     mutation
GET     /api/settings                 admin     -                deployment
PUT     /api/settings                 admin     mutation         deployment
DELETE  /api/settings                 admin     mutation         deployment
GET     /api/gateways                 viewer    -                deployment
POST    /api/gateways                 admin     mutation         deployment
PUT     /api/gateways                 admin     mutation         deployment
DELETE  /api/gateways                 admin     mutation         deployment
POST    /api/gateways/health          viewer    mutation         deployment
GET     /api/gateways/health/history  viewer    -                deployment
POST    /api/gateways/connect         viewer    -                deployment
GET     /api/exec-approvals           operator  -                deployment
POST    /api/exec-approvals           operator  exec-approvals   deployment
PUT     /api/exec-approvals           operator  exec-approvals   deployment
GET     /api/activities               viewer    -
GET     /api/audit                    admin     -
GET     /api/logs                     viewer    read
POST    /api/logs                     operator  mutation
GET     /api/notifications            viewer    -
PUT     /api/notifications            operator  mutation
POST    /api/notifications            operator  mutation
DELETE  /api/notifications            admin     mutation
GET     /api/notifications/deliver    viewer    -
POST    /api/notifications/deliver    operator  -
GET     /api/search                   viewer    heavy
GET     /api/workload                 viewer    -
GET     /api/standup                  viewer    -
POST    /api/standup                  operator  -
GET     /api/tasks/outcomes           viewer    -
GET     /api/tasks/regression         viewer    read
GET     /api/events                   viewer    -
GET     /health/live                  none      -
GET     /health/ready                 none      -
GET     /api/health                   none      -
GET     /api/status                   viewer    -
GET     /api/releases/check           viewer    -
GET     /api/github                   operator  -                deployment
POST    /api/github                   operator  mutation         deployment
GET     /api/github/sync              operator  -                deployment
POST    /api/github/sync              operator  mutation         deployment
GET     /metrics                      viewer    -                deployment
GET     /api/docs                     none      -
GET     /docs                         none      -
GET     /docs/swagger-ui.css          none      -
GET     /docs/swagger-ui-bundle.js    none      -
GET     /docs/page.css                none      -
GET     /docs/init.js                 none      -
GET     /docs/icon.svg                none      -
GET     /                             none      -
GET     /agents                       none      -
GET     /agents/{id}                  none      -
GET     /tasks                        none      -
GET     /tasks/{id}                   none      -
GET     /activity                     none      -
GET     /audit                        none      -
GET     /cost                         none      -
GET     /alerts                       none      -
GET     /webhooks                     none      -
GET     /chat                         none      -
GET     /chat/{id}                    none      -
GET     /log                          none      -
GET     /log/{view}                   none      -
GET     /admin                        none      -
GET     /admin/{view}                 none      -
GET     /console/{file}               none      -
POST    /mcp                          viewer    -
`;

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

interface Row {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly role: Role | 'none';
  readonly limit: string;
  readonly deployment: boolean;
}

const rows = TABLE.trim()
  .split('\n')
  .map((line): Row => {
    const [method = '', path = '', role, limit = '-', scope] = line.split(/\s+/);
    return {
      name: `${method} ${path}`,
      method,
      // An unknown id: authorization comes before the lookup.
      path: path.replace(/\{\w+\}/g, '999999'),
      role: role as Row['role'],
      limit,
      deployment: scope === 'deployment',
    };
  });

/** Calls that no agent's key of these roles may make. */
const closed = new Set(
  routes
    .filter(({ closedToAgents }) => closedToAgents === true || closedToAgents === 'bound')
    .map(({ method, path }) => `${method.toUpperCase()} ${path}`),
);

const BELOW: Readonly<Record<Role, Role | undefined>> = { viewer: undefined, operator: 'viewer', admin: 'operator' };

describe('contract: routes', function () {
  this.timeout(120_000);
  let agent: number;
  const world = fixture(() => startAuthWorld({ MC_DISABLE_RATE_LIMIT: '0' }));
  before(async () => {
    agent = await world.makeAgent('caller');
  });

  const lines = TABLE.trim().split('\n');

  it('the table matches the routes', () => {
    const written = lines.map((line) => line.split(/\s+/).join(' '));
    const found = routes.map(({ method, path, access, limit, scope }) =>
      [
        method.toUpperCase(),
        path,
        access === 'public' ? 'none' : access === 'any' ? 'viewer' : access,
        limit ?? '-',
        ...(scope === 'deployment' ? [scope] : []),
      ].join(' '),
    );
    expect([...found].sort()).to.deep.equal([...written].sort());
  });

  /** Status of one call; a stream is left at once. */
  async function statusOf({ method, path }: Row, as: { readonly [header: string]: string }, ip = freshAddress()) {
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

  it('deployment-wide routes are closed to admins of other tenants', async () => {
    const cookie = await world.makeSession({ username: 'stranger', role: 'admin', tenant: 2, workspace: 2 });
    for (const row of rows.filter(({ deployment }) => deployment)) {
      expect((await statusOf(row, { cookie })).status, row.name).to.equal(403);
    }
  });

  for (const row of rows.filter(({ limit }) => limit !== '-')) {
    it(`${row.name} is limited: ${row.limit}, ${LIMITS[row.limit]} a minute`, async () => {
      const limit = LIMITS[row.limit] as number;
      // An agent of its own each, where agents may call: some limits are counted by agent.
      const caller = async (): Promise<Record<string, string>> => {
        const name = `caller-${++callers}`;
        if (row.role === 'none') return {};
        if (!closed.has(row.name)) return { 'x-api-key': await world.makeKey(await world.makeAgent(name), [row.role]) };
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

  it('a signed-in caller can try only five passwords per minute', async () => {
    const as = await world.makeSession({ username: 'guesser' });
    const guess = async () => {
      const body = { current_password: 'not the password', new_password: `${PASSWORD}!` };
      return (await world.ask('PATCH', '/api/auth/me', { as, body })).status;
    };
    for (let n = 0; n < 5; n++) expect(await guess()).to.equal(403);
    expect(await guess()).to.equal(429);
  });
});
