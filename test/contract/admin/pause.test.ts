/** A restored deployment begins paused: no call leaves and no schedule runs, in all processes, until it is resumed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { pauseResponse } from '../../../shared/contract/admin/pause.ts';
import { runHere } from '../../support/command.ts';
import { SERVERS } from '../../support/databases.ts';
import { fixture } from '../../support/fixture.ts';
import { needs } from '../../support/needs.ts';
import { startReceiver } from '../../support/receiver.ts';
import { bodyOf, call, freshDatabase, startTestService, TEST_ADMIN, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';

describe('/api/resume', function () {
  this.timeout(180_000);
  const receiver = fixture(startReceiver);
  const settings = () => ({
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    RELEASES_URL: `http://127.0.0.1:${receiver.port}/latest`,
    AUTH_PASS: '',
  });
  const undo: (() => Promise<unknown>)[] = [];
  let env: Record<string, string> = {};
  let path = '';
  let webhook = 0;

  const run = (...args: readonly string[]) => runHere(args, env);
  const started = async (role?: 'all' | 'api'): Promise<TestService> => {
    const service = await startTestService({ ...settings(), ...env }, role);
    undo.push(() => service.close());
    return service;
  };
  async function emptyStores(): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'sbx-paused-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    env = { DATA_DIR: join(folder, 'stores') };
    if (!SERVERS) return;
    const database = await freshDatabase();
    undo.push(database.drop);
    env.DATABASE_URL = database.url;
  }
  const restore = (...options: readonly string[]) =>
    run('restore', path, '--identity', join(dirname(path), '..', 'backup-key.txt'), ...options);
  const stopAll = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };

  before(async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    const base = await startTestService({ ...settings(), AUTH_PASS: TEST_ADMIN.password });
    after(() => base.close());
    const hook = { name: 'hook', url: receiver.url, events: ['activity.task_created'] };
    webhook = bodyOf(await call(base, 'POST', '/api/webhooks', hook), 200).id;
    expect((await call(base, 'GET', '/api/resume')).body).to.deep.equal({ paused: false, since: null });
    expect((await call(base, 'POST', '/api/resume')).status).to.equal(409);
    ({ path } = bodyOf(await call(base, 'POST', '/api/backup'), 200));
  });
  afterEach(stopAll);

  it('is needed after a restore: until then no call leaves, and no schedule runs; then what happened meanwhile is delivered', async () => {
    await emptyStores();
    const sent = receiver.requests.length;
    const restored = await restore();
    expect(restored.code, restored.err).to.equal(0);
    expect(restored.out).to.include('It begins paused: no call leaves, and no schedule runs');
    const status = await run('status');
    expect(status.out).to.match(/^Paused since \d{4}-.*signalbox resume$/m);

    const first = await started();
    let other = SERVERS ? await started('api') : first;
    const { paused, since } = conforms(pauseResponse, await call(other, 'GET', '/api/resume'));
    expect([paused, typeof since]).to.deep.equal([true, 'number']);
    bodyOf(await call(first, 'POST', '/api/tasks', { title: 'written while paused' }), 201);
    for (const [method, at, body] of [
      ['POST', '/api/webhooks/test', { id: webhook }],
      ['POST', '/api/scheduler', { task_id: 'purge_logs' }],
    ] as const) {
      const { status: code, body: refused } = await call(other, method, at, body);
      expect([code, refused.code], `${method} ${at}`).to.deep.equal([503, 'PAUSED']);
      expect(refused.error).to.include('signalbox resume');
    }
    expect((await call(other, 'GET', '/api/releases/check')).body.error).to.include('is paused');
    await first.close();
    expect(receiver.requests.slice(sent)).to.deep.equal([]);

    const worker = await started();
    expect((await call(worker, 'GET', '/api/resume')).body.paused, 'after a restart').to.equal(true);
    const { pool } = worker.service.core.database;
    const { rows } = await pool.query('SELECT * FROM service.schedule_runs');
    expect(rows, 'schedules that ran').to.deep.equal([]);
    if (!SERVERS) other = worker;
    await until('the webhook is registered', async () => (await pool.query('SELECT 1 FROM service.webhooks')).rows[0]);
    bodyOf(await call(other, 'POST', '/api/tasks', { title: 'meanwhile' }), 201);
    // It ends the pause in all processes.
    bodyOf(await call(other, 'POST', '/api/resume'), 200);
    expect((await call(worker, 'GET', '/api/resume')).body).to.deep.equal({ paused: false, since: null });
    await until('the event of the pause is delivered', () =>
      receiver.requests.some(({ path: at, text }) => at === '/hook' && text.includes('meanwhile')),
    );
    expect((await call(other, 'POST', '/api/scheduler', { task_id: 'purge_logs' })).status).to.equal(200);
    expect(bodyOf(await call(other, 'POST', '/api/webhooks/test', { id: webhook }), 200).success).to.equal(true);
    const [entry] = (await call(other, 'GET', '/api/audit?action=deployment_resume')).body.entries;
    expect(entry).to.include({ actor: 'api' });
    expect((await call(other, 'POST', '/api/resume')).status).to.equal(409);
  });

  it('has a command, and restore --active needs neither', async () => {
    await emptyStores();
    expect((await restore()).code).to.equal(0);
    const resumed = await run('resume');
    expect([resumed.code, resumed.out], resumed.err).to.deep.equal([
      0,
      'Resumed: calls leave and schedules run, in every process within a second or two.\n',
    ]);
    const again = await run('resume');
    expect([again.code, /is not paused/.test(again.err)]).to.deep.equal([1, true]);
    await stopAll();
    await emptyStores();
    const active = await restore('--active');
    expect([active.code, active.out.includes('paused')], active.err).to.deep.equal([0, false]);
    expect((await run('status')).out).not.to.include('Paused');
  });
});
