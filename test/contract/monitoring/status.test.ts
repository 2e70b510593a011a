/** The state of the service in numbers. */
import { expect } from 'chai';
import { overallOf } from '../../../api/routes/monitoring/status.ts';
import { dashboardOf } from '../../../queries/monitoring/status.ts';
import { type HealthCheck, statusResponse } from '../../../shared/contract/monitoring/status.ts';
import { seconds } from '../../../shared/time.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeAgent, makeTask } from '../../support/worlds/monitoring.ts';

describe('/api/status', () => {
  const base = fixture(startTestService);

  const get = async (action?: string) =>
    conforms(statusResponse, await call(base, 'GET', `/api/status${action ? `?action=${action}` : ''}`));

  it('shows the machine and the sessions', async () => {
    const body = await get();
    expect(body.timestamp).to.be.within(Date.now() - 60_000, Date.now());
    const { total, used, available } = body.memory;
    expect(total).to.be.above(100);
    expect(used + available).to.be.within(total - 2, total + 2);
    expect(body.disk.usage).to.match(/^\d{1,3}%$/);
    expect(body.disk.total).to.match(/^\d+G$/);
    const before = body.sessions.total;
    await call(base, 'POST', '/api/agents', {
      name: 'sitting',
      role: 'coder',
      status: 'idle',
      session_key: 'status-1',
    });
    await call(base, 'POST', '/api/agents', {
      name: 'gone',
      role: 'coder',
      status: 'offline',
      session_key: 'status-2',
    });
    const after = (await get('overview')).sessions;
    expect(after).to.deep.equal({ total: before + 2, active: body.sessions.active + 1 });
  });

  it('counts the records of the workspace', async () => {
    const before = (await get('dashboard')).db;
    await makeAgent(base, 'counted');
    await makeTask(base, { status: 'review' });
    const after = (await get('dashboard')).db;
    expect(after.tasks.total).to.equal(before.tasks.total + 1);
    expect(after.tasks.byStatus.review).to.equal((before.tasks.byStatus.review ?? 0) + 1);
    expect(after.agents.total).to.equal(before.agents.total + 1);
    expect(after.activities.day).to.be.above(before.activities.day);
    expect(after.dbSizeBytes).to.be.above(100_000);
    expect(after.backup).to.equal(null);
    for (const { total, byStatus } of [after.tasks, after.agents]) {
      expect(Object.values(byStatus as Record<string, number>).reduce((sum, count) => sum + count, 0)).to.equal(total);
    }
  });

  it('counts no records of other workspaces', async () => {
    await call(base, 'POST', '/api/agents', { name: 'assigned', role: 'coder', session_key: 'status-3' });
    await call(base, 'POST', '/api/tasks', { title: 'counted', assigned_to: 'assigned' });
    await call(base, 'POST', '/api/webhooks', { name: 'hook', url: 'https://example.org/hook', events: ['*'] });
    const counted = async (workspace: number) => dashboardOf(base.service.core.reads, workspace, seconds(Date.now()));
    const { sessions, db } = await counted(1);
    const here = { sessions: sessions.total, unread: db.notifications.unread, webhooks: db.webhookCount };
    for (const [name, count] of Object.entries(here)) expect(count, `${name} of this one`).to.be.above(0);
    expect(await counted(4_711)).to.deep.equal({
      sessions: { total: 0, active: 0 },
      db: {
        tasks: { total: 0, byStatus: {} },
        agents: { total: 0, byStatus: {} },
        audit: { day: 0, week: 0, loginFailures: 0 },
        activities: { day: 0 },
        notifications: { unread: 0 },
        pipelines: { active: 0, recentDay: 0 },
        webhookCount: 0,
      },
    });
  });

  it('checks the database and the machine', async () => {
    const { checks, status, version, uptime } = await get('health');
    expect(checks.map(({ name }: HealthCheck) => name)).to.deep.equal([
      ...['Database', 'Process Memory', 'Disk Space', 'Memory Usage'],
    ]);
    expect(status).to.equal(overallOf(checks));
    expect(checks[0]).to.deep.equal({ name: 'Database', status: 'healthy', message: 'The database responds.' });
    expect(checks[1].detail).to.have.all.keys('rss', 'heapUsed', 'heapTotal');
    expect(version).to.match(/^\d+\.\d+\.\d+/);
    expect(uptime).to.be.above(0);
  });

  it('combines the checks into one status', () => {
    const verdict = (...checks: [name: string, status: HealthCheck['status']][]) =>
      overallOf(checks.map(([name, status]) => ({ name, status, message: '' })));
    expect(verdict(['Database', 'healthy'], ['Disk Space', 'healthy'])).to.equal('healthy');
    expect(verdict(['Database', 'healthy'], ['Disk Space', 'warning'])).to.equal('warning');
    expect(verdict(['Database', 'warning'], ['Disk Space', 'warning'])).to.equal('degraded');
    expect(verdict(['Database', 'warning'], ['Disk Space', 'critical'])).to.equal('unhealthy');
    expect(verdict(['Database', 'healthy'], ['Disk Space', 'error'])).to.equal('unhealthy');
    expect(verdict(['Database', 'unhealthy'])).to.equal('unhealthy');
  });

  it('lists models, the gateway and the capabilities for clients', async () => {
    const { models } = await get('models');
    expect(models).to.have.length(15);
    expect(models[0]).to.deep.include({
      alias: 'haiku',
      provider: 'anthropic',
      costPerMTok: { input: 1, output: 5 },
    });
    expect(await get('gateway')).to.deep.equal({
      ...{ running: false, port: 18_789, pid: null, uptime: 0 },
      ...{ version: null, connections: 0, port_listening: false },
    });
    expect(await get('capabilities')).to.deep.include({
      gateway: false,
      subscription: null,
      interfaceMode: 'essential',
    });
  });

  it('rejects unknown actions', async () => {
    expect((await call(base, 'GET', '/api/status?action=other')).status).to.equal(400);
  });
});
