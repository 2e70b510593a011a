/** What runs on a schedule: what each turn does, and that settings switch it off. */
import { expect } from 'chai';
import { openJobs } from '../../../infra/jobs/jobs.ts';
import { schedulesOf } from '../../../infra/schedules.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { notificationRaised } from '../../../shared/events/monitoring/notifications.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { sample } from '../../support/kit.ts';
import { call, startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';

describe('scheduled tasks', function () {
  this.timeout(60_000);
  const service = fixture(() => startTestService());

  /** Runs a scheduled job as of `minutes` after the start of the process. */
  async function turn(name: string, minutes: number): Promise<void> {
    let shift = 0;
    const schedules = schedulesOf(service.service.core, () => Date.now() + shift);
    const schedule = schedules.find(({ kind }) => kind.name === name);
    if (!schedule) throw new Error(`no schedule ${name}`);
    shift = minutes * 60_000;
    await schedule.handler.accept({})({ id: 'turn', attempt: 1, last: false, signal: new AbortController().signal });
  }

  const midnight = Math.ceil(Date.now() / 86_400_000) * 86_400_000;
  /** An hour of a later day, minutes from now. */
  const at = (days: number, hour: number) => (midnight + (days * 24 + hour) * 3_600_000 - Date.now()) / 60_000;

  it('set inactive agents offline, but not before they could report to this process', async () => {
    const made = await call(service, 'POST', '/api/agents', { name: 'quiet', role: 'coder', status: 'idle' });
    const path = `/api/agents/${made.body.agent.id}`;
    const status = async () => (await call(service, 'GET', path)).body.agent.status;
    await turn('liveness-sweep', 4);
    await turn('liveness-sweep', 9);
    expect(await status()).to.equal('idle');
    await turn('liveness-sweep', 11);
    expect(await status()).to.equal('offline');
  });

  it('disconnect inactive tools, but not before they could report to this process', async () => {
    await call(service, 'POST', '/api/connect', { tool_name: 'cli', agent_name: 'tooled' });
    const status = async () => (await call(service, 'GET', '/api/connect')).body.connections[0].status;
    await turn('stale-connections', 4);
    expect(await status()).to.equal('connected');
    await turn('stale-connections', 6);
    expect(await status()).to.equal('disconnected');
    expect((await call(service, 'GET', '/api/agents/tooled')).body.agent.status).to.equal('offline');
  });

  it('take tasks back from absent agents, and create due recurring tasks', async () => {
    const made = async (fields: object) =>
      (await call(service, 'POST', '/api/tasks', { title: 'scheduled', ...fields })).body.task as { id: number };
    const stale = await made({ status: 'in_progress', assigned_to: 'ghost' });
    // Once a year, so that the service does not make one by itself meanwhile.
    await made({ metadata: { recurrence: { cron_expr: '0 0 1 1 *', enabled: true } } });
    const tasks = async () => (await call(service, 'GET', '/api/tasks')).body.tasks as Record<string, unknown>[];
    await turn('stale-tasks', 9);
    expect((await tasks()).find(({ id }) => id === stale.id)).to.include({ status: 'in_progress' });
    await turn('stale-tasks', 11);
    expect((await tasks()).find(({ id }) => id === stale.id)).to.include({ status: 'assigned', assigned_to: null });
    const due = Date.UTC(new Date().getUTCFullYear() + 1, 0, 1);
    await turn('recurring-tasks', (due + 30_000 - Date.now()) / 60_000);
    expect((await tasks()).filter(({ created_by }) => created_by === 'scheduler')).to.have.length(1);
  });

  const lastRun = async () => {
    const { rows } = await service.service.core.database.pool.query(
      `SELECT last_message FROM service.schedule_runs WHERE schedule = 'auto-cleanup'`,
    );
    return rows[0]?.last_message;
  };

  it('remove old notifications once a day, if enabled', async () => {
    const { commands, database } = service.service.core;
    await commands.record('notifications-7', { origin: { ...testOrigin, workspace: 7 } }, [
      sample(notificationRaised, { recipient: 'ada', type: 'mention', title: 't', message: 'm' }),
    ]);
    const left = async () => {
      await allCaughtUp(service.service.core);
      return (
        (await call(service, 'GET', '/api/scheduler')).status === 200 &&
        (
          await database.pool.query(
            `SELECT * FROM ${schemaOf(notificationsProjection)}.notifications WHERE workspace_id = 7`,
          )
        ).rowCount
      );
    };
    await turn('auto-cleanup', at(70, 4.5));
    expect(await left(), 'it is off').to.equal(1);
    await call(service, 'PUT', '/api/settings', { settings: { 'general.auto_cleanup': true } });
    await turn('auto-cleanup', at(70, 3.9));
    await turn('auto-cleanup', at(70, 5.1));
    expect(await lastRun(), 'not its hour').to.equal(undefined);
    await turn('auto-cleanup', at(50, 4.1));
    expect(await lastRun()).to.equal('0 notifications were removed.');
    await turn('auto-cleanup', at(71, 3.9));
    expect(await left(), 'made up for, later than its hour').to.equal(0);
    const said = await lastRun();
    expect(said).to.match(/^[1-9]/);
    await turn('auto-cleanup', at(71, 3.95));
    expect(await lastRun(), 'once a day').to.equal(said);
    const { entries } = (await call(service, 'GET', '/api/audit?action=auto_cleanup')).body;
    expect(entries).to.have.length(1);
    expect(entries[0]).to.deep.include({ actor: 'scheduler', detail: { total_deleted: Number.parseInt(said, 10) } });
    await turn('auto-cleanup', at(71, 4.5));
    expect(await lastRun()).to.equal('0 notifications were removed.');
  });

  it('remove old activities, pipeline runs and token reports in the same cleanup', async () => {
    const counted = async (path: string) => (await call(service, 'GET', path)).body.total as number;
    const used = { model: 'm', sessionId: 'sweeper:cli', inputTokens: 7, outputTokens: 1 };
    expect((await call(service, 'POST', '/api/tokens', used)).status).to.equal(200);
    expect((await call(service, 'POST', '/api/agents', { name: 'sweeper', role: 'coder' })).status).to.equal(201);
    expect(await counted('/api/tokens')).to.be.above(0);
    expect(await counted('/api/activities')).to.be.above(0);
    const settings = {
      ...{ 'general.auto_cleanup': true, 'retention.activities_days': 30, 'retention.token_usage_days': 30 },
    };
    expect((await call(service, 'PUT', '/api/settings', { settings })).status).to.equal(200);
    await turn('auto-cleanup', at(80, 4.5));
    expect(await counted('/api/tokens')).to.equal(0);
    expect(await counted('/api/activities')).to.equal(0);
    expect(await lastRun()).to.match(/^\d+ notifications?, \d+ activit(?:y|ies), \d+ token reports? were removed\.$/);
    const [entry] = (await call(service, 'GET', '/api/audit?action=auto_cleanup')).body.entries;
    expect(entry.actor).to.equal('scheduler');
    expect(entry.detail.results.map(({ table }: { table: string }) => table)).to.include.members([
      'activities',
      'token_usage',
    ]);
  });

  it('stay off if disabled by a setting', async () => {
    await call(service, 'POST', '/api/agents', { name: 'silent', role: 'coder', status: 'idle' });
    const status = async () =>
      (await call(service, 'GET', '/api/agents?limit=200')).body.agents.find(
        ({ name }: { name: string }) => name === 'silent',
      ).status;
    const set = (settings: object) => call(service, 'PUT', '/api/settings', { settings });
    await set({ 'general.agent_heartbeat': false });
    await turn('liveness-sweep', 60);
    expect(await status()).to.equal('idle');
    await set({ 'general.agent_heartbeat': true, 'general.agent_timeout_minutes': 90 });
    await turn('liveness-sweep', 60);
    expect(await status()).to.equal('idle');
    await turn('liveness-sweep', 91);
    expect(await status()).to.equal('offline');
  });

  it('remove expired sessions and old idempotency keys', async () => {
    const { pool } = service.service.core.database;
    const now = Math.floor(Date.now() / 1000);
    for (const [token, expiresAt] of [
      ['old', now + 60],
      ['new', now + 7_200],
    ] as const) {
      await pool.query(
        `INSERT INTO credentials.sessions (token_hash, user_id, credential, created_at, expires_at)
         VALUES ($1, 1, 'none', 0, $2)`,
        [Buffer.from(token), expiresAt],
      );
    }
    await call(service, 'POST', '/api/agents', { name: 'keyed', role: 'coder' }, { 'idempotency-key': 'key-1' });
    const rows = async (table: string) => (await pool.query(`SELECT * FROM ${table}`)).rows;
    expect(await rows('service.idempotency')).to.have.length(1);
    await turn('purge-sessions', 60);
    await turn('purge-idempotency-keys', 60);
    expect((await rows('credentials.sessions')).map((row) => String(row.token_hash))).to.deep.equal(['new']);
    expect(await rows('service.idempotency')).to.have.length(1);
    // They age by the database's clock.
    await pool.query('UPDATE service.idempotency SET created_at = created_at - $1', [25 * 3_600_000]);
    await turn('purge-idempotency-keys', 60);
    expect(await rows('service.idempotency')).to.have.length(0);
  });

  it('are in the job store as soon as the service runs', async () => {
    const jobs = await openJobs(service.service.core);
    const due = await until('all are due', async () => {
      const delayed = await jobs.list('delayed');
      return delayed.length >= schedulesOf(service.service.core).length && delayed;
    });
    expect(due.map(({ kind }) => kind)).to.have.members([
      'aegis-review',
      'alert-evaluation',
      'auto-backup',
      'auto-cleanup',
      'cron-jobs',
      'github-sync',
      'heartbeat-summary',
      'liveness-sweep',
      'project-deletions',
      'workspace-removals',
      'purge-idempotency-keys',
      'purge-history',
      'purge-logs',
      'purge-sessions',
      'recurring-tasks',
      'stale-connections',
      'stale-tasks',
      'task-dispatch',
      'task-routing',
      'webhook-retry',
      'agent-references',
    ]);
    await jobs.close();
  });
});
