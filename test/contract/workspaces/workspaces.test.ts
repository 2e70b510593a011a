/** Workspaces of a tenant, and users who are put into them: through real HTTP. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { sharedOf } from '../../../api/http/route.ts';
import { routes } from '../../../api/routes/index.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { webhookStream } from '../../../commands/webhooks/webhooks.ts';
import { schedulesOf } from '../../../infra/schedules.ts';
import { activeIn } from '../../../queries/workspaces/removal.ts';
import { tenantStream } from '../../../shared/events/super/tenants.ts';
import { webhookCreated } from '../../../shared/events/webhooks/webhooks.ts';
import { workspaceRemovalBegun } from '../../../shared/events/workspaces/workspaces.ts';
import { sources } from '../../map/map.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, TEST_ADMIN } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';
import { PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';
import { expectEnd, streamOf } from '../monitoring/events.endings.ts';

describe('contract: workspaces', function () {
  this.timeout(60_000);
  let admin: string;
  const world = fixture(startAuthWorld);
  before(async () => {
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });

  const ask = (method: string, path: string, body?: unknown, as: string | undefined = admin) =>
    world.ask(method, path, { as, body });
  let names = 0;
  async function newWorkspace(as?: string): Promise<number> {
    return bodyOf(await ask('POST', '/api/workspaces', { name: `Lab ${++names}` }, as), 201).workspace.id;
  }

  describe('/api/workspaces', () => {
    it('starts with the default workspace', async () => {
      const { body } = await ask('GET', '/api/workspaces');
      expect(body).to.deep.include({ active_workspace_id: 1, tenant_id: 1 });
      expect(body.workspaces[0]).to.deep.include({
        id: 1,
        slug: 'default',
        name: 'Default Workspace',
        tenant_id: 1,
        brand: null,
        isolation: 'shared',
      });
    });

    it('creates, lists, shows and updates workspaces', async () => {
      const body = bodyOf(await ask('POST', '/api/workspaces', { name: ' Ärzte & Co. ', brand: 'Acme' }), 201);
      const { workspace } = body;
      expect(workspace).to.deep.include({ name: 'Ärzte & Co.', slug: 'rzte-co', brand: 'Acme', isolation: 'shared' });
      const early = (await ask('POST', '/api/workspaces', { name: 'aaa', slug: 'A Slug', isolation: 'strict' })).body;
      expect(early.workspace).to.deep.include({ slug: 'a-slug', isolation: 'strict', tenant_id: 1 });
      const listed = (await ask('GET', '/api/workspaces')).body.workspaces;
      expect(listed.map(({ slug }: { slug: string }) => slug)).to.deep.equal(['default', 'a-slug', 'rzte-co']);
      expect(listed.at(-1)).to.deep.equal(workspace);
      const path = `/api/workspaces/${workspace.id}`;
      expect((await ask('GET', path)).body.workspace).to.deep.equal({ ...workspace, agent_count: 0 });

      const changed = await ask('PUT', path, { name: 'Doctors', slug: 'ignored', brand: null, isolation: 'strict' });
      expect(changed.status).to.equal(200);
      expect(changed.body.workspace).to.deep.include({ name: 'Doctors', slug: 'rzte-co', brand: null });
      expect((await ask('GET', path)).body.workspace).to.deep.equal({ ...changed.body.workspace, agent_count: 0 });
      const about = async (action: string) =>
        (await world.audit(action)).find(({ target_id }) => target_id === workspace.id);
      expect(await about('workspace_created')).to.deep.include({
        target_type: 'workspace',
        detail: { name: 'Ärzte & Co.', slug: 'rzte-co', brand: 'Acme', isolation: 'shared' },
      });
      expect((await about('workspace_updated'))?.detail).to.deep.equal({
        old_name: 'Ärzte & Co.',
        new_name: 'Doctors',
        brand: null,
        isolation: 'strict',
      });
    });

    it('returns 409 for a slug of any tenant, 400 with the correction, and 404 for an unknown one', async () => {
      for (const name of ['default', 'Default!', 'a slug']) {
        const reply = await ask('POST', '/api/workspaces', { name });
        expect(reply.status, name).to.equal(409);
        expect(reply.body.error).to.include('send another slug');
      }
      for (const [body, field] of [
        [{}, 'name'],
        [{ name: ' ' }, 'name'],
        [{ name: 'x'.repeat(201) }, 'name'],
        [{ name: '日本' }, 'slug'],
        [{ name: 'x', slug: '--' }, 'slug'],
        [{ name: 'x', brand: '' }, 'brand'],
        [{ name: 'x', brand: 'x'.repeat(65) }, 'brand'],
        [{ name: 'x', isolation: 'none' }, 'isolation'],
      ] as const) {
        const reply = await ask('POST', '/api/workspaces', body);
        expect([reply.status, String(reply.body.error).split(':')[0]], JSON.stringify(body)).to.deep.equal([
          400,
          field,
        ]);
      }
      expect((await ask('PUT', '/api/workspaces/1', { brand: 'x' })).body.error).to.match(/^name: /);
      for (const id of [99_999, 'x', 0]) {
        const status = typeof id === 'number' && id > 0 ? 404 : 400;
        expect((await ask('GET', `/api/workspaces/${id}`)).status).to.equal(status);
        expect((await ask('PUT', `/api/workspaces/${id}`, { name: 'x' })).status).to.equal(status);
      }
    });

    it('creates a general project with each workspace', async () => {
      const workspace = await newWorkspace();
      const there = await world.makeSession({ username: `in-${workspace}`, role: 'operator', workspace });
      const { projects } = (await ask('GET', '/api/projects', undefined, there)).body;
      expect(projects).to.have.length(1);
      expect(projects[0]).to.include({ slug: 'general', workspace_id: workspace });
      expect((await ask('POST', '/api/tasks', { title: 'First' }, there)).body.task.ticket_ref).to.equal('TASK-001');
    });

    it('hides everything from another tenant', async () => {
      const foreign = await world.makeSession({ username: 'foreign', role: 'admin', tenant: 90, workspace: 90 });
      expect((await ask('GET', '/api/workspaces', undefined, foreign)).body).to.deep.equal({
        workspaces: [],
        active_workspace_id: 90,
        tenant_id: 90,
      });
      expect((await ask('GET', '/api/workspaces/1', undefined, foreign)).status).to.equal(404);
      expect((await ask('PUT', '/api/workspaces/1', { name: 'x' }, foreign)).status).to.equal(404);
      const user = { username: 'planted', password: PASSWORD, role: 'admin' };
      const body = bodyOf(await ask('POST', '/api/auth/users', { ...user, workspace_id: 1 }, foreign), 400);
      expect(body.error).to.match(/^workspace_id: there is no workspace 1/);
      const id = await world.makeUser({ username: 'not-theirs', role: 'viewer' });
      for (const workspace_id of [1, 90])
        expect((await ask('PUT', '/api/auth/users', { id, workspace_id }, foreign)).status).to.be.oneOf([400, 404]);
    });
  });

  describe('strict isolation', () => {
    /** Filled with an id that nothing has. */
    const calls = routes.flatMap((route) => {
      const shared = sharedOf(route);
      const path = route.path.replace(/\{\w+\}/g, '99999');
      return shared === undefined ? [] : [{ method: route.method.toUpperCase(), path, shared }];
    });

    it('applies to everything that workspaces share, and to the whole deployment', () => {
      expect([...new Set(calls.map(({ shared }) => shared))]).to.have.members([
        'agents/sync',
        'soul templates',
        'backup',
        'resume',
        'cleanup',
        'cron',
        'gateway-config',
        'gateways',
        'exec-approvals',
        'claude/sessions',
        'sessions',
        'session-prefs',
        'scheduler',
        'settings',
        'logs',
        'auth/access-requests',
        'tokens/rotate',
        'super/tenants',
        'super/tenants/decommission',
        'super/provision-jobs',
        'super/provision-jobs/run',
        'github',
        'github/sync',
        'metrics',
        'history',
      ]);
      const groupOf = (path: string) => path.split('/')[2];
      const groups = new Set(
        calls
          .map(({ path }) => groupOf(path))
          .filter((group) => !['agents', 'chat', 'auth', 'tokens', undefined].includes(group)),
      );
      // No call of these groups is left out, but for the comparison of the caller's own records.
      const left = routes.filter((route) => groups.has(groupOf(route.path)) && sharedOf(route) === undefined);
      expect(left.map(({ path }) => path)).to.deep.equal(['/api/history/diff']);
      // Nor one of the scope that is for the whole deployment.
      const open = routes.filter((route) => route.scope === 'deployment' && sharedOf(route) === undefined);
      expect(open.map(({ path }) => path)).to.deep.equal([]);
    });

    it('is checked together with the tenant: no route checks the tenant alone', () => {
      const comparing = sources().filter(
        (file) => file.startsWith('api/routes/') && readFileSync(file, 'utf8').includes('DEFAULT_TENANT'),
      );
      expect(comparing, 'use isOfDeployment of the call').to.deep.equal([]);
    });

    /** A workspace with an admin and an admin's key of an agent. */
    async function labWithAdmins() {
      const workspace = await newWorkspace();
      const username = `strict-${workspace}`;
      const id = await world.makeUser({ username, role: 'admin', workspace });
      const session = await world.signIn(username);
      const key = await world.makeKey(await world.makeAgent(`lab-${workspace}`, workspace), ['admin'], workspace);
      const set = async (isolation: string) => {
        const body = { name: `Lab ${workspace}`, isolation };
        expect((await ask('PUT', `/api/workspaces/${workspace}`, body)).body.workspace).to.include({ isolation });
      };
      return { workspace, id, session, key, set };
    }

    it('denies callers of a strict workspace at once, and admits them again once it is lifted', async () => {
      const { workspace, session: there, key, set } = await labWithAdmins();
      const agent = (await ask('POST', '/api/agents', { name: 'kept', role: 'r', soul_content: 'calm' }, there)).body
        .agent;
      await set('strict');
      for (const as of [there, key]) {
        for (const { method, path, shared } of calls) {
          const reply = await ask(method, path, method === 'GET' ? undefined : {}, as);
          expect([method, path, reply.status]).to.deep.equal([method, path, 403]);
          expect(reply.body.error, path).to.include('strictly isolated').and.include(shared);
        }
      }
      const start = await ask('POST', '/api/pipelines/run', { action: 'start', pipeline_id: 99_999 }, there);
      expect(start.status).to.equal(403);
      const advance = await ask('POST', '/api/pipelines/run', { action: 'advance', run_id: 99_999 }, there);
      expect(advance.status).to.equal(403);
      expect((await ask('POST', '/api/pipelines/run', { action: 'cancel', run_id: 99_999 }, there)).status).to.equal(
        404,
      );
      // What is the workspace's own stays.
      expect((await ask('GET', `/api/agents/${agent.id}/soul`, undefined, there)).body.soul_content).to.equal('calm');
      expect((await ask('GET', `/api/agents/${agent.id}/memory`, undefined, there)).status).to.equal(200);
      const soul = (body: object) => ask('PUT', `/api/agents/${agent.id}/soul`, body, there);
      expect((await soul({ template_name: 'developer' })).status).to.equal(403);
      expect((await soul({ soul_content: 'calm' })).status).to.equal(200);
      const entries = await until('the refusals are audited', async () => {
        const path = '/api/audit?action=workspace_isolation_denied&limit=200';
        const { body } = await ask('GET', path, undefined, there);
        return body.entries.length > calls.length && body.entries;
      });
      expect(
        entries.find(({ detail }: { detail: { resource: string } }) => detail.resource === 'cron'),
      ).to.deep.include({
        target_type: 'workspace',
        target_id: workspace,
      });
      // No other user is affected.
      for (const path of ['/api/gateways', '/api/sessions', '/api/cron'])
        expect((await ask('GET', path)).status, path).to.equal(200);
      await set('shared');
      for (const path of ['/api/gateways', '/api/sessions', '/api/cron', '/api/settings', '/api/super/tenants'])
        expect((await ask('GET', path, undefined, there)).status, path).to.equal(200);
    });

    it('denies its admins access to users of other workspaces, but not to their own', async () => {
      const { workspace, id, session: there, set } = await labWithAdmins();
      const outside = await world.makeUser({ username: `outside-${workspace}`, role: 'viewer' });
      await set('strict');
      const users = (method: string, body: object) => ask(method, '/api/auth/users', body, there);
      const fresh = (place: object) => ({
        username: `u${++names}-strict`,
        password: PASSWORD,
        role: 'viewer',
        ...place,
      });
      expect((await users('POST', fresh({ workspace_id: 1 }))).status).to.equal(403);
      expect((await users('PUT', { id: outside, workspace_id: workspace })).status, 'taken in').to.equal(403);
      expect((await users('PUT', { id: outside, workspace_id: 1 })).status).to.equal(403);
      expect((await users('PUT', { id: outside, role: 'admin' })).status).to.equal(404);
      expect((await users('DELETE', { id: outside })).status).to.equal(404);
      const own = await users('POST', fresh({ workspace_id: workspace }));
      expect([own.status, own.body.user.workspace_id]).to.deep.equal([201, workspace]);
      expect((await users('PUT', { id: own.body.user.id, workspace_id: 1 })).status, 'put outside').to.equal(403);
      const changed = await users('PUT', { id: own.body.user.id, workspace_id: workspace, role: 'operator' });
      expect(changed.body.user).to.include({ role: 'operator', workspace_id: workspace });
      const { body } = await ask('GET', '/api/auth/users', undefined, there);
      expect(body.users.map((one: { id: number }) => one.id)).to.deep.equal([id, own.body.user.id]);
    });

    it('cannot be lifted by the admins whom it restricts', async () => {
      const { workspace, session: there, set } = await labWithAdmins();
      const other = await newWorkspace();
      await set('strict');
      const path = `/api/workspaces/${workspace}`;
      const name = `Renamed ${workspace}`;
      expect((await ask('PUT', path, { name, isolation: 'shared' }, there)).status).to.equal(403);
      expect((await ask('DELETE', path, undefined, there)).status, 'its users would go to the main one').to.equal(403);
      expect((await ask('POST', '/api/workspaces', { name: `More ${workspace}` }, there)).status).to.equal(403);
      for (const method of ['PUT', 'DELETE'])
        expect((await ask(method, `/api/workspaces/${other}`, { name }, there)).status, method).to.equal(403);
      const renamed = await ask('PUT', path, { name, isolation: 'strict' }, there);
      expect(renamed.body.workspace).to.include({ name, isolation: 'strict' });
      await set('shared');
      expect((await ask('POST', '/api/workspaces', { name: `More ${workspace}` }, there)).status).to.equal(201);
    });

    it('of a main workspace can be lifted by its own admins, because no one else could', async () => {
      const { tenant } = (
        await ask('POST', '/api/super/tenants', { slug: 'stern', display_name: 'Stern', gateway_port: 2_000 })
      ).body;
      const main = tenant.workspace_id;
      const there = await world.makeSession({ username: 'stern', role: 'admin', workspace: main, tenant: tenant.id });
      for (const isolation of ['strict', 'shared']) {
        const { body } = await ask('PUT', `/api/workspaces/${main}`, { name: 'Stern', isolation }, there);
        expect(body.workspace).to.include({ isolation });
      }
    });

    it('hides information about the machine', async () => {
      const { session: there, set } = await labWithAdmins();
      const seen = async () => ({
        memory: (await ask('GET', '/api/status', undefined, there)).body.memory.total > 0,
        disk: (await ask('GET', '/api/status?action=dashboard', undefined, there)).body.db.dbSizeBytes > 0,
        checks: (await ask('GET', '/api/status?action=health', undefined, there)).body.checks.length,
        user: (await ask('GET', '/api/status?action=capabilities', undefined, there)).body.processUser !== '',
        details: 'details' in (await ask('GET', '/health/ready', undefined, there)).body,
      });
      expect(await seen()).to.deep.include({ memory: true, disk: true, user: true });
      await set('strict');
      expect(await seen()).to.deep.equal({ memory: false, disk: false, checks: 1, user: false, details: false });
    });
  });

  describe('deleted workspaces', () => {
    /** One turn of the schedule. */
    const finishDeletions = async () => {
      const schedule = schedulesOf(world.service.core).find(({ kind }) => kind.name === 'workspace-removals');
      const run = { id: 'turn', attempt: 1, last: false, signal: new AbortController().signal };
      await schedule?.handler.accept({})(run);
    };

    it('move their users, agents and projects to the main workspace, and free their slug', async () => {
      const workspace = await newWorkspace();
      const slug = `lab-${names}`;
      const there = await world.makeSession({ username: `last-${workspace}`, role: 'admin', workspace });
      const name = `gone-${workspace}`;
      const body = {
        name,
        role: 'r',
        soul_content: 'calm',
        config: { apiKey: 'sk-secret-of-the-lab-1' },
        session_key: name,
      };
      const { agent } = (await ask('POST', '/api/agents', body, there)).body;
      await ask('PUT', `/api/agents/${agent.id}/memory`, { working_memory: 'remembered', more: 1 }, there);
      const key = (await ask('POST', `/api/agents/${agent.id}/keys`, {}, there)).body.api_key;
      await ask('POST', '/api/agents', { name: `twin-${workspace}`, role: 'r' }, there);
      await ask('POST', '/api/agents', { name: `twin-${workspace}`, role: 'r' });
      const project = { name: `P ${workspace}`, ticket_prefix: `P${workspace}` };
      const made = (await ask('POST', '/api/projects', project, there)).body.project;
      await ask('POST', '/api/tasks', { title: 'Left behind' }, there);

      expect((await ask('DELETE', `/api/workspaces/${workspace}`, undefined, there)).body).to.deep.equal({
        success: true,
        deleted: `Lab ${names}`,
        agents_moved_to: 1,
      });
      expect((await ask('GET', `/api/workspaces/${workspace}`)).status).to.equal(404);
      expect((await ask('DELETE', `/api/workspaces/${workspace}`)).status).to.equal(404);
      expect((await ask('GET', '/api/workspaces')).body.workspaces.map(({ id }: { id: number }) => id)).not.to.include(
        workspace,
      );
      // The session goes on where the user is now.
      expect((await ask('GET', '/api/auth/me', undefined, there)).body.user.workspace_id).to.equal(1);
      const moved = (await ask('GET', `/api/agents/${agent.id}`)).body.agent;
      expect(moved).to.deep.include({ name, session_key: name, soul_content: 'calm', workspace_id: 1 });
      expect(moved.config).to.deep.include({ apiKey: 'sk-secret-of-the-lab-1' });
      expect((await ask('GET', `/api/agents/${agent.id}/memory`)).body).to.deep.include({
        working_memory: 'remembered',
        more: 1,
      });
      expect((await ask('GET', '/api/auth/me', undefined, key)).status).to.equal(401);
      expect((await ask('GET', `/api/agents/twin-${workspace}-2`)).status).to.equal(200);
      expect((await ask('GET', `/api/projects/${made.id}`)).body.project).to.include({ name: project.name });
      expect(JSON.stringify((await ask('GET', '/api/tasks?limit=200')).body)).not.to.include('Left behind');
      const [entry] = await world.audit('workspace_deleted');
      expect(entry).to.deep.include({ target_type: 'workspace', target_id: workspace });
      expect(entry?.detail).to.deep.equal({
        name: `Lab ${names}`,
        slug,
        agents_moved: 2,
        moved_to_workspace: 1,
      });
      expect((await ask('POST', '/api/workspaces', { name: 'again', slug })).status).to.equal(201);
      const user = { username: `late-${workspace}`, password: PASSWORD, role: 'viewer', workspace_id: workspace };
      expect((await ask('POST', '/api/auth/users', user)).status).to.equal(400);
    });

    it('stop acting: webhooks, rules, recurring tasks and syncs are ended by events', async () => {
      const { core } = world.service;
      const KINDS = ['webhooks', 'rules', 'recurring tasks', 'synced projects'] as const;
      const active = async (workspace: number) =>
        (await Promise.all(KINDS.map((kind) => activeIn(core.reads, workspace, kind)))).map(({ length }) => length);
      const workspace = await newWorkspace();
      const there = await world.makeSession({ username: `busy-${workspace}`, role: 'admin', workspace });
      const made = async (path: string, body: unknown) => bodyOf(await ask('POST', path, body, there), 200, 201);
      for (const name of ['one', 'two']) {
        await made('/api/webhooks', { name, url: 'https://hooks.example.org/x', events: ['*'] });
        const condition = { condition_field: 'status', condition_operator: 'equals', condition_value: 'error' };
        await made('/api/alerts', { name, entity_type: 'agent', ...condition, action_type: 'notification' });
      }
      const metadata = { mine: 1, recurrence: { cron_expr: '0 9 * * *', enabled: true } };
      const { task } = await made('/api/tasks', { title: 'Daily', metadata });
      const { project } = await made('/api/projects', { name: `S ${workspace}`, ticket_prefix: `S${workspace}` });
      const sync = { github_repo: 'acme/web', github_sync_enabled: true };
      expect((await ask('PATCH', `/api/projects/${project.id}`, sync, there)).status).to.equal(200);
      expect(await active(workspace)).to.deep.equal([2, 2, 1, 1]);

      expect((await ask('DELETE', `/api/workspaces/${workspace}`, undefined, there)).status).to.equal(200);
      expect(await active(workspace)).to.deep.equal([0, 0, 0, 0]);
      const { state } = await core.commands.load(taskDecider, taskStream(workspace, task.id));
      const kept = { mine: 1, recurrence: { cron_expr: '0 9 * * *', enabled: false } };
      expect(state.task.metadata).to.deep.equal(kept);

      // Created by a request that had seen the workspace before.
      const late = await core.commands.counters.take('webhook');
      const hook = {
        webhook_id: late,
        name: 'late',
        url: 'https://hooks.example.org/x',
        secret: null,
        events: ['*'],
        format: 'json' as const,
      };
      const origin = { ...testOrigin, workspace };
      await core.commands.record(webhookStream(workspace, late), { origin }, [webhookCreated.draft(hook)]);
      expect(await active(workspace)).to.deep.equal([1, 0, 0, 0]);
      await finishDeletions();
      expect(await active(workspace)).to.deep.equal([0, 0, 0, 0]);
    });

    it('move a user whose name an agent has in the main workspace: both keep it', async () => {
      const workspace = await newWorkspace();
      const there = await world.makeSession({ username: 'doppel', role: 'admin', workspace });
      expect((await ask('POST', '/api/agents', { name: 'doppel', role: 'r' })).status).to.equal(201);
      expect((await ask('DELETE', `/api/workspaces/${workspace}`)).status).to.equal(200);
      const { user } = (await ask('GET', '/api/auth/me', undefined, there)).body;
      expect([user.username, user.workspace_id]).to.deep.equal(['doppel', 1]);
      expect((await ask('GET', '/api/agents/doppel')).status).to.equal(200);
    });

    it('deletion returns 400 for the main workspace and 404 for one of another tenant', async () => {
      const main = await ask('DELETE', '/api/workspaces/1');
      expect([main.status, main.body.error.includes('main workspace')]).to.deep.equal([400, true]);
      const stranger = await world.makeSession({ username: 'stranger', role: 'admin', tenant: 91, workspace: 91 });
      const workspace = await newWorkspace();
      expect((await ask('DELETE', `/api/workspaces/${workspace}`, undefined, stranger)).status).to.equal(404);
    });

    it('are completed by the schedule, which also moves users who were added at the last moment', async () => {
      const workspace = await newWorkspace();
      const { core } = world.service;
      const about = { tenant_id: 1, workspace_id: workspace, name: `Lab ${names}`, slug: `lab-${names}` };
      await world.makeUser({ username: `waiting-${workspace}`, role: 'viewer', workspace });
      // The process died right after the first event.
      await core.commands.record(tenantStream(1), { origin: testOrigin }, [
        workspaceRemovalBegun.draft({ ...about, moves_to: 1, agents: 0 }),
      ]);
      const placeOf = async (username: string) =>
        (await ask('GET', '/api/auth/users')).body.users.find((one: { username: string }) => one.username === username);
      expect(await placeOf(`waiting-${workspace}`)).to.equal(undefined);
      await finishDeletions();
      expect(await placeOf(`waiting-${workspace}`)).to.include({ workspace_id: 1 });
      expect((await world.audit('workspace_deleted')).map(({ target_id }) => target_id)).to.include(workspace);
      // Created by a request that had seen the workspace before.
      await world.makeUser({ username: `tardy-${workspace}`, role: 'viewer', workspace });
      await world.makeAgent(`tardy-agent-${workspace}`, workspace);
      await finishDeletions();
      expect(await placeOf(`tardy-${workspace}`)).to.include({ workspace_id: 1 });
      expect((await ask('GET', `/api/agents/tardy-agent-${workspace}`)).status).to.equal(200);
    });
  });

  describe('users of another workspace', () => {
    it('are created there, and recorded in the admin’s workspace', async () => {
      const workspace = await newWorkspace();
      const user = { username: `new-${workspace}`, password: PASSWORD, role: 'viewer' };
      const body = bodyOf(await ask('POST', '/api/auth/users', { ...user, workspace_id: String(workspace) }), 201);
      expect(body.user).to.deep.include({ workspace_id: workspace, tenant_id: 1 });
      const there = await world.signIn(user.username);
      const { active_workspace_id } = (await ask('GET', '/api/workspaces', undefined, there)).body;
      expect(active_workspace_id).to.equal(workspace);
    });

    it('keep their session when they move, and their open streams end', async () => {
      const workspace = await newWorkspace();
      await world.makeAgent(`old-${workspace}`);
      await world.makeAgent(`new-${workspace}`, workspace);
      const username = `moves-${workspace}`;
      const id = await world.makeUser({ username, role: 'operator' });
      const session = await world.signIn(username);
      const agents = async () =>
        (await ask('GET', '/api/agents?limit=200', undefined, session)).body.agents.map(
          ({ name }: { name: string }) => name,
        );
      expect(await agents())
        .to.include(`old-${workspace}`)
        .and.not.include(`new-${workspace}`);
      const stream = await streamOf(world, session);

      const body = bodyOf(await ask('PUT', '/api/auth/users', { id, workspace_id: workspace }));
      expect(body.user).to.deep.include({ id, workspace_id: workspace, tenant_id: 1 });
      expect(await agents()).to.deep.equal([`new-${workspace}`]);
      expect((await ask('GET', '/api/auth/me', undefined, session)).body.user.workspace_id).to.equal(workspace);
      await expectEnd(stream, 'the stream from before');
      // From the beginning of the log: nothing of the old workspace.
      const again = await streamOf(world, session, '?since=0');
      await ask('PUT', '/api/agents', { name: `new-${workspace}`, last_activity: 'here' }, session);
      await again.until(() => JSON.stringify(again.frames).includes('here'));
      expect(JSON.stringify(again.frames)).not.to.include(`old-${workspace}`);
      again.close();

      const entry = (await world.audit('user_update')).find(({ target_id }) => target_id === id);
      expect(entry?.detail).to.deep.equal({ workspace_id: workspace, tenant_id: 1 });
      // Again is no change; then back, found although the admin is elsewhere.
      expect((await ask('PUT', '/api/auth/users', { id, workspace_id: workspace })).status).to.equal(200);
      expect((await ask('PUT', '/api/auth/users', { id, workspace_id: 1 })).body.user.workspace_id).to.equal(1);
      expect(await agents()).to.include(`old-${workspace}`);
    });

    it('can only be moved, by others than themselves, to an existing workspace', async () => {
      const workspace = await newWorkspace();
      const id = await world.makeUser({ username: `away-${workspace}`, workspace });
      const me = (await ask('GET', '/api/auth/me')).body.user.id;
      for (const [body, says] of [
        [{ id, workspace_id: workspace, role: 'admin' }, /only workspace_id/],
        [{ id: me, workspace_id: workspace }, /own account/],
        [{ id, workspace_id: 99_999 }, /^workspace_id: there is no workspace 99999/],
      ] as const)
        expect(bodyOf(await ask('PUT', '/api/auth/users', body), 400).error).to.match(says);
    });
  });
});
