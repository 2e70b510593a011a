/** Scheduled jobs through HTTP: added, run on request and on schedule, with their log and history. */
import { expect } from 'chai';
import { createCommands } from '../../../commands/handler.ts';
import { runDueJobs } from '../../../commands/schedules/admin/cron.ts';
import { projectDirectory } from '../../../queries/projects/projects.ts';
import { cronDoneResponse, cronResponse } from '../../../shared/contract/admin/cron.ts';
import { cronJobAdded } from '../../../shared/events/admin/cron.ts';
import { DAY, HOUR, MINUTE } from '../../../shared/time.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { testOrigin } from '../../support/world.ts';

describe('/api/cron', function () {
  this.timeout(120_000);
  const base = fixture(startTestService);

  const get = async (query = '') => {
    const reply = await call(base, 'GET', `/api/cron${query}`);
    if (reply.status === 200) expect(cronResponse.parse(reply.body)).to.deep.equal(reply.body);
    return reply;
  };
  const post = async (body: object) => {
    const reply = await call(base, 'POST', '/api/cron', body);
    if (reply.status === 200) expect(cronDoneResponse.parse(reply.body)).to.deep.equal(reply.body);
    return reply;
  };
  const job = async (name: string) =>
    (await get()).body.jobs.find((one: { readonly name: string }) => one.name === name);

  it('adds jobs that run a scheduled task of the service', async () => {
    expect((await get()).body).to.deep.equal({ jobs: [] });
    expect((await get('?action=logs')).body).to.deep.equal({ logs: [] });
    const added = await post({ action: 'add', name: 'sweep', schedule: '0 0 * * *', command: 'purge_sessions' });
    expect([added.status, added.body]).to.deep.equal([200, { success: true, enabled: true }]);
    const sweep = await job('sweep');
    expect(sweep).to.include({ schedule: '0 0 * * *', enabled: true, last_run: null, last_status: null });
    expect(sweep.nextRun).to.be.within(Date.now(), Date.now() + DAY * 1_000);
    expect(sweep.nextRun % (DAY * 1_000)).to.equal(0);
    for (const [more, message] of [
      [{ command: undefined }, /required/],
      [{ command: 'x'.repeat(5_001) }, /^command: /],
      [{ agentId: 'ada' }, /^agentId: /],
      [{ schedule: 'often' }, /^schedule: /],
      [{ schedule: '* * * * * *' }, /^schedule: /],
      [{ schedule: undefined }, /required/],
      [{ name: undefined }, /required/],
      [{ name: ' ' }, /required/],
    ] as const) {
      const body = { action: 'add', name: 'bad', schedule: '0 4 * * *', command: 'purge_sessions', ...more };
      const { status, body: answer } = await post(body);
      expect([status, message.test(answer.error)], answer.error).to.deep.equal([400, true]);
    }
  });

  it('runs a job on request, by any of its names, and returns the result', async () => {
    for (const selector of ['name', 'jobId', 'jobName']) {
      const body = bodyOf(await post({ action: 'trigger', [selector]: 'sweep' }));
      expect(body).to.include({ ran: true, status: 'success' });
      expect(body.message).to.match(/deleted/);
    }
    const sweep = await job('sweep');
    expect(sweep).to.include({ last_status: 'success', lastError: null });
    expect(sweep.last_run).to.be.closeTo(Date.now() / 1_000, 60);
    const { logs } = (await get('?action=logs&job=sweep')).body;
    expect(logs).to.have.length(6);
    expect(logs[0].message).to.match(/^Run 3: .*deleted/);
    expect((await get('?action=logs')).body.logs, 'of all jobs').to.have.deep.members(logs);
    const history = (await get('?action=history&jobId=sweep&query=succ')).body;
    expect(history).to.include({ total: 3, hasMore: false, page: 1 });
    expect((await get('?action=history&jobId=sweep&query=error')).body.total).to.equal(0);
  });

  it('supports a time zone per job, and spreads starts over some seconds', async () => {
    for (const [name, more] of [
      ['east', { timezone: 'Asia/Tokyo', staggerSeconds: 60 }],
      ['west', { schedule: '30 4 * * * (Europe/Berlin)' }],
    ] as const) {
      const { status } = await post({ action: 'add', name, schedule: '30 4 * * *', command: 'purge_logs', ...more });
      expect(status).to.equal(200);
    }
    const [east, west] = [await job('east'), await job('west')];
    expect(east).to.include({ schedule: '30 4 * * * (Asia/Tokyo)', timezone: 'Asia/Tokyo', staggerSeconds: 60 });
    // Tokyo has no summer time.
    expect((east.nextRun / 1_000) % DAY).to.be.within(19.5 * HOUR, 19.5 * HOUR + 60);
    expect(west).to.include({ schedule: '30 4 * * * (Europe/Berlin)', timezone: 'Europe/Berlin' });
    expect((west.nextRun / 1_000) % DAY).to.be.oneOf([2.5 * HOUR, 3.5 * HOUR]);
    expect((await post({ action: 'clone', name: 'east' })).body.clonedName).to.equal('east (copy)');
    expect(await job('east (copy)')).to.include({ schedule: east.schedule, staggerSeconds: 60 });
    const unknown = { action: 'add', name: 'x', schedule: '30 4 * * * (Mars/Olympus)', command: 'purge_logs' };
    const { status, body } = await post(unknown);
    expect([status, body.error]).to.deep.equal([
      400,
      'timezone: must be the name of a time zone, such as Europe/Berlin; Mars/Olympus is not',
    ]);
    for (const name of ['east', 'west', 'east (copy)']) await post({ action: 'remove', name });
  });

  it('runs each due time once, even with two processes', async () => {
    const { commands, store, counters, reads } = base.service.core;
    // As in another process: it shares nothing but the log.
    const others = createCommands({ store, counters });
    await post({ action: 'add', name: 'broken', schedule: '0-10 0 * * *', command: 'purge_logs' });
    // Midnight, a while from now: the service itself finds nothing to run meanwhile.
    const full = (Math.floor(Date.now() / 1_000 / DAY) + 2) * DAY * 1_000;
    let now = full;
    let runs = 0;
    const run = async (command: string) => {
      runs++;
      if (command === 'purge_logs') throw new Error('out of paper');
      return 'done';
    };
    const look = (by = commands) =>
      runDueJobs({ commands: by, projects: projectDirectory(reads), run, now: () => now }, 'UTC');
    await Promise.all([look(), look(others), look(), look(others)]);
    expect(runs).to.equal(2);
    await look();
    expect(runs).to.equal(2);
    now = full + MINUTE * 1_000;
    await look();
    expect(runs, 'only the one that is due each minute').to.equal(3);
    now = full + 10 * MINUTE * 1_000;
    await look();
    expect(runs, 'what was missed is made up for once').to.equal(4);
    const broken = await job('broken');
    expect(broken).to.include({ last_status: 'error', lastError: 'out of paper' });
    const { entries } = (await get('?action=history&jobId=broken')).body;
    expect(entries).to.have.length(3);
    expect(entries[0]).to.include({ status: 'error', error: 'out of paper' });
  });

  it('writes a backup, and keeps the configured number', async () => {
    const setting = 'general.backup_retention_count';
    await call(base, 'PUT', '/api/settings', { settings: { [setting]: 1 } });
    await post({ action: 'add', name: 'nightly', schedule: '0 2 * * *', command: 'auto_backup' });
    for (let n = 0; n < 2; n++) {
      const { body } = await post({ action: 'trigger', name: 'nightly' });
      expect(body).to.include({ ran: true, status: 'success' });
      expect(body.message).to.match(/^mc-backup-.*\.db was written: \d+ events\.$/);
    }
    const { backups } = (await call(base, 'GET', '/api/backup')).body;
    expect(backups).to.have.length(1);
    const { entries } = (await call(base, 'GET', '/api/audit?action=auto_backup')).body;
    expect(entries).to.have.length(2);
    expect(entries[0]).to.deep.include({
      actor: 'scheduler',
      detail: { name: backups[0].name, size: backups[0].size },
    });
    await call(base, 'DELETE', '/api/backup', { name: backups[0].name });
    await call(base, 'DELETE', `/api/settings?key=${setting}`, { key: setting });
    await post({ action: 'remove', name: 'nightly' });
  });

  it('creates a task from any other text, for an agent or the queue', async () => {
    const text = 'Read the gauges.\nThen write them down.';
    const add = { action: 'add', schedule: '* * * * *', command: text };
    // Switched on a while from now: the service itself finds nothing to run meanwhile.
    for (const more of [{ name: 'for gauge-reader', agentId: 'gauge-reader' }, { name: 'for the queue' }])
      expect((await post({ ...add, ...more, enabled: false })).status).to.equal(200);
    expect(await job('for gauge-reader')).to.include({ command: text, agentId: 'gauge-reader' });
    expect(await job('for the queue')).not.to.have.property('agentId');
    expect((await post({ action: 'clone', name: 'for gauge-reader' })).body.clonedName).to.equal(
      'for gauge-reader (copy)',
    );
    expect(await job('for gauge-reader (copy)')).to.include({ command: text, agentId: 'gauge-reader' });
    await post({ action: 'remove', name: 'for gauge-reader (copy)' });
    const made = async () => {
      const { tasks } = (await call(base, 'GET', '/api/tasks?limit=200')).body;
      return tasks.filter((one: { readonly description: string }) => one.description === text);
    };
    expect(await made()).to.deep.equal([]);
    const { body } = await post({ action: 'trigger', name: 'for the queue' });
    expect(body).to.include({ ran: true, status: 'success' });
    const [asked] = await made();
    expect(asked).to.include({ title: 'for the queue', status: 'inbox', assigned_to: null, created_by: 'scheduler' });
    expect(asked.metadata).to.deep.equal({ cron_job: 'for the queue', cron_due_at: null });
    expect(body.message).to.equal(`Task ${asked.id} was made.`);
    const { logs } = (await get('?action=logs')).body;
    expect(logs[0]).to.include({ job: 'for the queue', message: `Run 1: Task ${asked.id} was made.` });
    for (const name of ['for the queue', 'for gauge-reader']) await post({ action: 'remove', name });
  });

  it('disables, clones and removes jobs', async () => {
    expect((await post({ action: 'toggle', name: 'sweep' })).body.enabled).to.equal(false);
    expect(await job('sweep')).to.include({ enabled: false, nextRun: null });
    expect((await post({ action: 'toggle', name: 'sweep', enabled: false })).body.enabled).to.equal(false);
    expect((await post({ action: 'trigger', name: 'sweep', mode: 'due' })).body.ran).to.equal(false);
    expect((await post({ action: 'toggle', name: 'sweep' })).body.enabled).to.equal(true);
    expect((await post({ action: 'clone', name: 'sweep' })).body.clonedName).to.equal('sweep (copy)');
    expect((await post({ action: 'clone', name: 'sweep' })).body.clonedName).to.equal('sweep (copy 2)');
    // The name of a copy is cut, but never within a character.
    const long = `${'x'.repeat(179)}🚂`;
    await post({ action: 'add', name: long, schedule: '0 4 * * *', command: 'purge_logs' });
    expect((await post({ action: 'clone', name: long })).body.clonedName).to.equal(`${'x'.repeat(179)} (copy)`);
    for (const name of [long, `${'x'.repeat(179)} (copy)`]) await post({ action: 'remove', name });
    for (const name of ['sweep', 'sweep (copy)', 'sweep (copy 2)', 'broken'])
      expect((await post({ action: 'remove', name })).body).to.deep.equal({ success: true });
    expect((await get()).body).to.deep.equal({ jobs: [] });
    expect((await get('?action=logs&job=sweep')).status).to.equal(404);
  });

  it('rejects unknown jobs and actions', async () => {
    for (const action of ['toggle', 'trigger', 'remove', 'clone']) {
      expect((await post({ action, name: 'nothing' })).status, action).to.equal(404);
      const { status, body } = await post({ action });
      expect(status, action).to.equal(400);
      expect(body.error).to.include('Job ID required');
    }
    for (const body of [{ action: 'explode', name: 'x' }, {}]) {
      const { status, body: answer } = await post(body);
      expect([status, answer.error.includes('Invalid action')], answer.error).to.deep.equal([400, true]);
    }
    expect((await get('?action=nothing')).status).to.equal(400);
    expect((await get('?action=history')).body.error).to.include('Job ID required');
  });

  it('lists a job that cannot be planned with its reason, and runs the others', async () => {
    const { core } = base.service;
    await core.commands.record('cron', { origin: testOrigin }, [
      cronJobAdded.draft({
        ...{ name: 'lost', schedule: '0 0 * * *', command: 'purge_sessions', enabled: true, timezone: 'Nowhere/Land' },
      }),
    ]);
    await post({ action: 'add', name: 'well', schedule: '* * * * *', command: 'purge_sessions' });
    expect(await job('lost')).to.include({ last_status: 'error', nextRun: null });
    expect((await job('lost')).lastError).to.match(/time zone Nowhere\/Land is unknown/);
    expect((await job('well')).nextRun).to.be.a('number');
    const work = { ...core, projects: projectDirectory(core.reads), run: async () => 'ok' };
    const { failed } = await runDueJobs({ ...work, now: () => Date.now() + 2 * MINUTE * 1_000 }, 'UTC');
    expect(failed).to.equal(0);
    expect(await job('well')).to.include({ last_status: 'success' });
    for (const name of ['lost', 'well']) await post({ action: 'remove', name });
  });
});
