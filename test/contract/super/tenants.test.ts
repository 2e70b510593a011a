/** Super Admin: tenants that can be used, and their provisioning jobs, through real HTTP. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, TEST_ADMIN } from '../../support/service.ts';
import { PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';

describe('contract: super admin', function () {
  this.timeout(60_000);
  let ann: string;
  let bob: string;
  const world = fixture(() => startAuthWorld({ MC_TENANT_HOME_ROOT: '/srv' }));
  before(async () => {
    ann = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
    bob = await world.makeSession({ username: 'bob', role: 'admin' });
  });

  const ask = (method: string, path: string, body?: unknown, as: string | undefined = ann) =>
    world.ask(method, path, { as, body });
  let names = 0;
  const newTenant = async (body: object = {}) => {
    const slug = `tenant-${++names}`;
    return bodyOf(
      await ask('POST', '/api/super/tenants', { slug, display_name: slug, gateway_port: 2_000, ...body }),
      201,
    );
  };
  const job = (id: number, action: string, as = bob) => ask('POST', `/api/super/provision-jobs/${id}`, { action }, as);
  const run = (id: number, as = ann) => ask('POST', `/api/super/provision-jobs/${id}/run`, undefined, as);

  it('creates a tenant with a job, shows both, and encrypts secrets in its configuration', async () => {
    const { tenant, job } = await newTenant({
      slug: ' Acme-1 ',
      name: 'ignored',
      display_name: 'Acme',
      config: { apiKey: 'sk-very-secret-value-1', colour: 'red' },
      dashboard_port: 2_001,
      plan_tier: 'PRO',
    });
    expect(tenant).to.deep.include({
      slug: 'acme-1',
      display_name: 'Acme',
      linux_user: 'acme-1',
      plan_tier: 'pro',
      status: 'pending',
      workspace_root: '/srv/acme-1/workspace',
      gateway_port: 2_000,
      dashboard_port: 2_001,
      config: { apiKey: 'sk-very-secret-value-1', colour: 'red' },
      created_by: TEST_ADMIN.username,
      owner_gateway: 'primary',
    });
    expect(job).to.deep.include({
      tenant_id: tenant.id,
      job_type: 'bootstrap',
      status: 'queued',
      dry_run: 1,
      requested_by: TEST_ADMIN.username,
      tenant_slug: 'acme-1',
      tenant_display_name: 'Acme',
      linux_user: 'acme-1',
    });
    expect(job.request_json).to.include({ dry_run: true });
    expect(job.plan_json[0]).to.have.keys('key', 'title', 'command', 'requires_root');
    expect(job.idempotency_key).to.match(/^[0-9a-f-]{36}$/);
    expect(job.events.map(({ step_key }: { step_key: string }) => step_key)).to.deep.equal(['queued']);
    const listed = (await ask('GET', '/api/super/tenants')).body.tenants;
    const latest = { latest_job_id: job.id, latest_job_status: 'queued', latest_job_created_at: job.created_at };
    expect(listed[0]).to.deep.equal({ ...tenant, ...latest });
    expect(listed.at(-1)).to.include({ id: 1, slug: 'default', status: 'active', workspace_id: 1 });
    const shown = await ask('GET', `/api/super/provision-jobs/${job.id}`);
    expect(shown.body.job).to.deep.equal(job);
    expect(await world.rawLog()).not.to.include('sk-very-secret-value-1');
    const [entry] = await world.audit('tenant_bootstrap_requested');
    expect(entry).to.deep.include({ target_type: 'tenant', target_id: tenant.id });
  });

  it('returns 400 with the field, 409 with the taken name, and 404 for an unknown tenant', async () => {
    const good = { slug: 'elm', display_name: 'Elm', gateway_port: 2_000 };
    for (const [change, field] of [
      [{ slug: 'x' }, 'slug'],
      [{ slug: '-elm' }, 'slug'],
      [{ slug: 'e'.repeat(33) }, 'slug'],
      [{ display_name: undefined }, 'display_name'],
      [{ display_name: ' ' }, 'display_name'],
      [{ linux_user: '1elm' }, 'linux_user'],
      [{ gateway_port: undefined }, 'gateway_port'],
      [{ gateway_port: 80 }, 'gateway_port'],
      [{ dashboard_port: 70_000 }, 'dashboard_port'],
      [{ dry_run: 'no' }, 'dry_run'],
      [{ config: [] }, 'config'],
      [{ owner_gateway: 'x'.repeat(121) }, 'owner_gateway'],
    ] as const) {
      const reply = await ask('POST', '/api/super/tenants', { ...good, ...change });
      expect([reply.status, String(reply.body.error).split(':')[0]], JSON.stringify(change)).to.deep.equal([
        400,
        field,
      ]);
    }
    await newTenant({ slug: 'elm', linux_user: 'elm_user' });
    expect((await ask('POST', '/api/super/tenants', good)).status).to.equal(409);
    const account = await ask('POST', '/api/super/tenants', { ...good, slug: 'elm-2', linux_user: 'elm_user' });
    expect([account.status, account.body.error.includes('linux_user')]).to.deep.equal([409, true]);
    // The main workspace of a tenant has its slug.
    expect((await ask('POST', '/api/workspaces', { name: 'elm' })).status).to.equal(409);
    for (const path of ['provision-jobs/99999', 'tenants/99999/decommission', 'provision-jobs/99999/run']) {
      const method = path.endsWith('jobs/99999') ? 'GET' : 'POST';
      expect((await ask(method, `/api/super/${path}`)).status, path).to.equal(404);
    }
    expect((await job(99_999, 'approve')).status).to.equal(404);
    expect((await ask('GET', '/api/super/provision-jobs/x')).status).to.equal(400);
    expect((await ask('POST', '/api/super/provision-jobs', { tenant_id: 99_999 })).status).to.equal(404);
    expect((await ask('POST', '/api/super/provision-jobs', { tenant_id: 1 })).status).to.equal(400);
    expect((await ask('POST', '/api/super/tenants/1/decommission')).status).to.equal(400);
  });

  it('creates a usable tenant: its first admin belongs to its workspace and sees only that', async () => {
    const { tenant } = await newTenant();
    const user = { username: `founder-${tenant.id}`, password: PASSWORD, role: 'admin' };
    const body = bodyOf(await ask('POST', '/api/auth/users', { ...user, workspace_id: tenant.workspace_id }), 201);
    expect(body.user).to.deep.include({ workspace_id: tenant.workspace_id, tenant_id: tenant.id });
    const founder = await world.signIn(user.username);
    const { workspaces } = (await ask('GET', '/api/workspaces', undefined, founder)).body;
    expect(workspaces.map(({ id }: { id: number }) => id)).to.deep.equal([tenant.workspace_id]);
    const more = await ask('POST', '/api/workspaces', { name: `more of ${tenant.id}` }, founder);
    expect(more.body.workspace).to.deep.include({ tenant_id: tenant.id });
    const colleague = { username: `colleague-${tenant.id}`, password: PASSWORD, role: 'viewer' };
    const placed = await ask(
      'POST',
      '/api/auth/users',
      { ...colleague, workspace_id: more.body.workspace.id },
      founder,
    );
    expect(placed.body.user).to.deep.include({ tenant_id: tenant.id, workspace_id: more.body.workspace.id });
    expect((await ask('POST', '/api/agents', { name: 'scout', role: 'r' }, founder)).status).to.equal(201);
    expect((await ask('POST', '/api/tasks', { title: 'First' }, founder)).body.task.ticket_ref).to.equal('TASK-001');
    // Who runs the deployment is no business of the tenant.
    const { entries } = (await ask('GET', '/api/audit?limit=200', undefined, founder)).body;
    expect(JSON.stringify(entries)).not.to.include(`"actor":"${TEST_ADMIN.username}"`);
    expect((await ask('GET', '/api/super/tenants', undefined, founder)).status).to.equal(403);
    // The last admin cannot be taken away from a tenant.
    const away = await ask('PUT', '/api/auth/users', { id: body.user.id, workspace_id: 1 });
    expect([away.status, away.body.code]).to.deep.equal([409, 'LAST_ADMIN']);
  });

  it('goes through every step in a dry run and executes none', async () => {
    const { tenant, job: queued } = await newTenant();
    expect((await run(queued.id)).status).to.equal(400);
    const approved = await job(queued.id, 'approve', ann);
    expect(approved.body.job).to.include({ status: 'approved', approved_by: TEST_ADMIN.username });
    expect((await job(queued.id, 'approve')).status).to.equal(400);
    const body = bodyOf(await run(queued.id));
    expect(body.job).to.include({ status: 'completed', error_text: null });
    const { result_json: result, plan_json: plan } = body.job;
    expect(result).to.deep.include({ dry_run: true, steps_executed: 0 });
    expect(result.steps).to.deep.equal(plan.map(({ key }: { key: string }) => ({ key, ok: true, skipped: true })));
    const keys = body.job.events.map(({ step_key }: { step_key: string }) => step_key);
    expect(keys).to.deep.equal([
      'queued',
      'approval',
      'start',
      ...plan.map(({ key }: { key: string }) => key),
      'finish',
    ]);
    const [listed] = (await ask('GET', '/api/super/tenants')).body.tenants;
    expect(listed).to.include({ id: tenant.id, status: 'active', latest_job_status: 'completed' });
    for (const action of ['approve', 'reject', 'cancel'])
      expect((await job(queued.id, action)).status, action).to.equal(400);
    expect((await run(queued.id)).status).to.equal(400);
    expect((await world.audit('tenant_bootstrap_completed'))[0]).to.deep.include({ target_id: tenant.id });
  });

  it('requires two people for a live run, which fails without a provisioner', async () => {
    const { tenant, job: queued } = await newTenant({ dry_run: false });
    await job(queued.id, 'approve', ann);
    expect(bodyOf(await run(queued.id, bob), 400).error).to.include('two people');
    await job(queued.id, 'reject', ann);
    await job(queued.id, 'approve', bob);
    expect(bodyOf(await run(queued.id, bob), 400).error).to.include('two people');
    const { code, error } = bodyOf(await run(queued.id, ann), 400);
    expect(code).to.equal('NO_PROVISIONER');
    const shown = (await ask('GET', `/api/super/provision-jobs/${queued.id}`)).body.job;
    expect(shown).to.include({ status: 'failed', error_text: error });
    const [listed] = (await ask('GET', '/api/super/tenants')).body.tenants;
    expect(listed).to.include({ id: tenant.id, status: 'error' });
  });

  it('queues jobs of every type, under both field names, and lists them', async () => {
    const { tenant } = await newTenant();
    const queue = (body: object) => ask('POST', '/api/super/provision-jobs', { tenant_id: tenant.id, ...body });
    const update = await queue({ type: 'update', params: { channel: 'beta' } });
    expect(update.status).to.equal(201);
    expect(update.body.job).to.deep.include({
      job_type: 'update',
      idempotency_key: null,
      request_json: { channel: 'beta', dry_run: true },
    });
    const step = { key: 'a', title: 'A', command: ['echo', 'hello'], timeout_ms: 1_000 };
    const own = await queue({ tenant_id: String(tenant.id), plan_json: [step] });
    expect(own.body.job.plan_json).to.deep.equal([{ ...step, requires_root: false }]);
    const empty = await queue({ plan_json: [] });
    await job(empty.body.job.id, 'approve');
    expect((await run(empty.body.job.id)).body.error).to.match(/^plan_json: /);
    for (const [body, field] of [
      [{ job_type: 'delete' }, 'job_type'],
      [{ dry_run: false, request_json: { dry_run: true } }, 'request_json.dry_run'],
      [{ plan_json: [step, step] }, 'plan_json'],
      [{ plan_json: [{ key: 'a' }] }, 'plan_json.0.title'],
    ] as const) {
      const reply = await queue(body);
      expect([reply.status, String(reply.body.error).split(':')[0]], JSON.stringify(body)).to.deep.equal([400, field]);
    }
    const down = await ask('POST', `/api/super/tenants/${tenant.id}/decommission`, {
      remove_state_dirs: true,
      reason: 'left',
    });
    expect(down.status).to.equal(201);
    expect(down.body.tenant).to.deep.include({ id: tenant.id });
    expect(down.body.job).to.deep.include({
      job_type: 'decommission',
      request_json: { remove_linux_user: false, remove_state_dirs: true, reason: 'left', dry_run: true },
    });
    expect((await world.audit('tenant_decommission_requested'))[0]).to.deep.include({ target_id: tenant.id });
    await job(down.body.job.id, 'approve');
    expect((await run(down.body.job.id)).body.job).to.include({ status: 'completed' });
    // A dry run takes nothing down.
    expect((await ask('GET', '/api/super/tenants')).body.tenants[0]).to.include({ id: tenant.id, status: 'pending' });

    const list = async (query: string) =>
      (await ask('GET', `/api/super/provision-jobs?${query}`)).body.jobs.map(({ id }: { id: number }) => id);
    const mine = await list(`tenant_id=${tenant.id}`);
    expect(mine[0]).to.equal(down.body.job.id);
    expect(mine).to.include.members([update.body.job.id, own.body.job.id]);
    expect(await list(`tenant_id=${tenant.id}&limit=1`)).to.deep.equal([down.body.job.id]);
    expect(await list(`tenant_id=${tenant.id}&limit=2&offset=1`)).to.deep.equal(mine.slice(1, 3));
    // Jobs may have 200 kB each, so a page of them has a bound.
    const steps = Array.from({ length: 90 }, (_, n) => ({ key: `k${n}`, title: 'x', command: ['x'.repeat(2_000)] }));
    for (let n = 0; n < 25; n++)
      bodyOf(await ask('POST', '/api/super/provision-jobs', { tenant_id: tenant.id, plan_json: steps }), 201);
    const large = await ask('GET', `/api/super/provision-jobs?tenant_id=${tenant.id}&limit=25`);
    expect(large.body.jobs.length).to.be.within(20, 24);
    expect(await list(`tenant_id=${tenant.id}&limit=1&offset=25`)).to.deep.equal([down.body.job.id]);
    expect(await list(`tenant_id=${tenant.id}&status=completed`)).to.deep.equal([down.body.job.id]);
    expect(await list('status=nothing')).to.deep.equal([]);
    expect((await ask('GET', '/api/super/provision-jobs?tenant_id=x')).status).to.equal(400);
  });
});
