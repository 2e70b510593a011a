/** Scheduled tasks of the service: the list, and a run on request. */
import { expect } from 'chai';
import { createScheduler } from '../../../infra/jobs/scheduler.ts';
import { schedulesOf } from '../../../infra/schedules.ts';
import { createScheduleRuns } from '../../../infra/stores/admin/scheduler.ts';
import { runTaskResponse, schedulerResponse } from '../../../shared/contract/admin/scheduler.ts';
import { READ_MODEL_BEHIND, unavailable } from '../../../shared/errors.ts';
import { JobsUnavailableError } from '../../../shared/ports/jobs.ts';
import { fixture } from '../../support/fixture.ts';
import { outcomeOf } from '../../support/kit.ts';
import { bodyOf } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('/api/scheduler', function () {
  this.timeout(120_000);
  const world = fixture(startAuthWorld);

  const PATH = '/api/scheduler';
  const IDS = [
    'heartbeat_summary',
    'agent_heartbeat',
    'stale_connections',
    'auto_backup',
    'auto_cleanup',
    'project_deletions',
    'workspace_removals',
    'agent_references',
    'stale_task_requeue',
    'recurring_task_spawn',
    'task_auto_route',
    'task_dispatch',
    'aegis_review',
    'github_sync',
    'webhook_retry',
    'alert_evaluation',
    'purge_idempotency_keys',
    'purge_logs',
    'purge_history',
    'purge_sessions',
    'cron',
  ];
  const ask = (method: string, body?: unknown) => world.ask(method, PATH, { as: world.adminKey, body });
  const tasks = async () => {
    const body = conforms(schedulerResponse, await ask('GET'));
    return schedulerResponse.parse(body).tasks;
  };
  const task = async (id: string) => (await tasks()).find((one) => one.id === id);
  const put = (settings: object) => world.ask('PUT', '/api/settings', { as: world.adminKey, body: { settings } });
  const schedule = (name: string) => {
    const found = schedulesOf(world.service.core).find(({ kind }) => kind.name === name);
    if (!found) throw new Error(`no schedule ${name}`);
    return found;
  };
  const turn = (name: string) =>
    schedule(name).handler.accept({})({ id: 'turn', attempt: 1, last: true, signal: new AbortController().signal });

  it('lists all scheduled tasks with their next run', async () => {
    const listed = await tasks();
    expect(listed.map(({ id }) => id)).to.have.members(IDS);
    const now = Date.now();
    for (const { id, nextRun } of listed) {
      expect(nextRun, id).to.be.within(now - 60_000, now + 86_400_000);
      expect(nextRun % 60_000, id).to.equal(0);
    }
    const cleanup = listed.find(({ id }) => id === 'auto_cleanup');
    expect(cleanup).to.deep.include({ enabled: false, lastRun: null, running: false });
    expect(cleanup).not.to.have.property('lastResult');
    expect(new Date(cleanup?.nextRun ?? 0).toISOString()).to.match(/T04:00:00\.000Z$/);
  });

  it('shows which tasks the settings enable and disable', async () => {
    const enabled = async () => (await tasks()).filter((one) => one.enabled).map(({ id }) => id);
    const off = [
      ...['auto_backup', 'auto_cleanup', 'task_auto_route', 'task_dispatch', 'aegis_review', 'github_sync'],
      'purge_history',
    ];
    expect(await enabled()).to.have.members(IDS.filter((id) => !off.includes(id)));
    await put({
      ...{ 'general.auto_cleanup': true, 'general.recurring_task_spawn': false },
      ...{ 'general.stale_task_requeue': false, 'general.agent_timeout_minutes': 0 },
    });
    expect(await enabled()).to.have.members([
      ...[
        'auto_cleanup',
        'project_deletions',
        'workspace_removals',
        'agent_references',
        'stale_connections',
        'webhook_retry',
        'alert_evaluation',
      ],
      ...['heartbeat_summary', 'purge_idempotency_keys', 'purge_logs', 'purge_sessions', 'cron'],
    ]);
    await put({
      ...{ 'general.auto_cleanup': false, 'general.recurring_task_spawn': true },
      ...{ 'general.stale_task_requeue': true, 'general.agent_timeout_minutes': 10 },
    });
  });

  it('assigns unassigned tasks to the best agent', async () => {
    const make = async (path: string, body: object) =>
      (await world.ask('POST', path, { as: world.adminKey, body })).body;
    const config = { capabilities: ['mosaics'] };
    await make('/api/agents', { name: 'routed-best', role: 'tiler', status: 'idle', config });
    await make('/api/agents', { name: 'routed-away', role: 'tiler mosaics', status: 'offline', config });
    await make('/api/agents', { name: 'routed-other', role: 'helper', status: 'idle' });
    const { task: made } = await make('/api/tasks', { title: 'Lay mosaics', priority: 'critical' });
    const taken = await make('/api/tasks', { title: 'More mosaics', priority: 'critical', assigned_to: 'ada' });
    const ran = await ask('POST', { task_id: 'task_auto_route' });
    expect(ran.body, JSON.stringify(ran.body)).to.deep.include({ ok: true });
    const now = async (id: number) => (await world.ask('GET', `/api/tasks/${id}`, { as: world.adminKey })).body.task;
    expect(await now(made.id)).to.deep.include({ status: 'assigned', assigned_to: 'routed-best' });
    expect(await now(taken.task.id)).to.deep.include({ assigned_to: 'ada' });
    const { activities } = (await world.ask('GET', '/api/activities?type=task_auto_routed', { as: world.adminKey }))
      .body;
    const [activity] = activities.filter((one: { entity_id: number }) => one.entity_id === made.id);
    expect(activity).to.deep.include({
      actor: 'scheduler',
      metadata: { agent: 'routed-best', role: 'tiler', score: 20 },
    });
  });

  it('shows the last run and its outcome', async () => {
    const before = Date.now();
    await turn('purge-sessions');
    const done = await task('purge_sessions');
    expect(done?.lastRun).to.be.within(before, Date.now());
    expect(done?.lastResult).to.deep.include({ ok: true, message: '0 sessions were deleted.' });
    expect(done?.running).to.equal(false);
    const { pool } = world.service.core.database;
    await pool.query('ALTER TABLE credentials.sessions RENAME TO away');
    try {
      const error = await turn('purge-sessions').catch((reason) => reason);
      expect(error.message).to.match(/sessions/);
      expect((await task('purge_sessions'))?.lastResult).to.deep.include({ ok: false, message: error.message });
      const body = bodyOf(await ask('POST', { task_id: 'purge_sessions' }), 500);
      expect(body).to.deep.equal({ ok: false, message: error.message, error: error.message });
    } finally {
      await pool.query('ALTER TABLE credentials.away RENAME TO sessions');
    }
    // A process that dies leaves a run that never ends.
    await pool.query(`UPDATE service.schedule_runs SET running_since = $1 WHERE schedule = 'purge-sessions'`, [
      Date.now() - 1_000,
    ]);
    expect((await task('purge_sessions'))?.running).to.equal(true);
    await pool.query(`UPDATE service.schedule_runs SET running_since = $1 WHERE schedule = 'purge-sessions'`, [
      Date.now() - 3_600_000,
    ]);
    expect((await task('purge_sessions'))?.running).to.equal(false);
  });

  it('runs a task on request, even a disabled one, without changing its schedule', async () => {
    const body = conforms(runTaskResponse, await ask('POST', { task_id: 'auto_cleanup' }));
    expect(body.message).to.equal('0 notifications were removed.');
    expect(await task('auto_cleanup')).to.deep.include({ enabled: false, lastRun: null });
    expect((await ask('POST', { task: 'agent_heartbeat' })).body).to.deep.equal({
      ok: true,
      message: '0 agents were set offline.',
    });
  });

  it('rejects unknown tasks and lists the known ones', async () => {
    for (const body of [{}, { task_id: 'purge-sessions' }, { task_id: 'no', task: 'purge_logs' }]) {
      const reply = await ask('POST', body);
      expect(reply.status, JSON.stringify(body)).to.equal(400);
      expect(reply.body.error).to.equal(`task_id: must be one of ${IDS.join(', ')}`);
    }
  });

  it('reports if no worker has taken the job yet or the job store is unavailable', async () => {
    const { database, log } = world.service.core;
    const parts = {
      schedules: [schedule('purge-logs')],
      runs: createScheduleRuns(database.pool, log),
      now: Date.now,
      gate: async () => undefined,
      waitMs: 10,
    };
    const waiting = createScheduler({ ...parts, jobs: async () => ({ enqueue: async () => undefined }) });
    expect((await waiting.runNow('purge_logs')).message).to.match(/has not ended yet/);
    const away = createScheduler({ ...parts, jobs: () => Promise.reject(new JobsUnavailableError('away')) });
    expect(await outcomeOf(away.runNow('purge_logs'))).to.equal('STORE_UNAVAILABLE');
  });

  it('reports a task that failed because a store was away as 503, and any other failure as such', async () => {
    const { database, log } = world.service.core;
    const runs = createScheduleRuns(database.pool, log);
    const runNow = (failure: Error) =>
      createScheduler({
        schedules: [schedule('purge-logs')],
        runs,
        now: Date.now,
        gate: async () => undefined,
        jobs: async () => ({
          enqueue: (kind, { asked }: { asked?: string }) =>
            runs.asked(kind.name, asked as string, () => Promise.reject(failure)),
        }),
      }).runNow('purge_logs');
    const starting = Object.assign(new Error('the database system is not yet accepting connections'), {
      code: '57P03',
    });
    expect(await outcomeOf(runNow(starting))).to.equal('STORE_UNAVAILABLE');
    expect(await outcomeOf(runNow(unavailable('behind', { code: READ_MODEL_BEHIND })))).to.equal(READ_MODEL_BEHIND);
    expect(await runNow(new Error('no luck'))).to.deep.equal({ ok: false, message: 'no luck' });
  });
});
