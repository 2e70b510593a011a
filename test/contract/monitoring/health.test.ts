/** Probes and metrics. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

describe('probes', () => {
  const base = fixture(startTestService);

  const agent = (name: string) => makeAgent(base, name);
  it('are public and list their checks', async () => {
    const none = { 'x-api-key': '' };
    expect((await call(base, 'GET', '/health/live', undefined, none)).body).to.deep.equal({ status: 'ok' });
    const body = bodyOf(await call(base, 'GET', '/health/ready', undefined, none));
    expect(body.checks).to.include({ database: 'ok', 'projection agents': 'ok', log_tree: 'ok' });
    expect((await call(base, 'GET', '/api/health', undefined, none)).body).to.include({ status: 'ok', db: 'ok' });
  });

  it('show positions and reasons only to admins of the default tenant', async () => {
    const anonymous = await call(base, 'GET', '/health/ready', undefined, { 'x-api-key': '' });
    expect(Object.values(anonymous.body.checks)).to.include('ok').and.not.include.members(['behind', 'stuck']);
    expect(JSON.stringify(anonymous.body)).not.to.match(/position/);
    expect(anonymous.body).not.to.have.property('details');
    const { id } = await agent('probing');
    const { body } = await call(base, 'POST', `/api/agents/${id}/keys`, { scopes: ['operator'] });
    const asAgent = await call(base, 'GET', '/health/ready', undefined, { 'x-api-key': body.api_key });
    expect(asAgent.body).to.deep.equal(anonymous.body);
    const asAdmin = await call(base, 'GET', '/health/ready');
    expect(asAdmin.body.details.event_log).to.match(/^position \d+$/);
    expect(asAdmin.body.details.log_tree).to.match(/^\d+ events, position \d+$/);
  });

  it('show the tree of the log and its latest checkpoint', async () => {
    await until(
      'a checkpoint is signed',
      async () => (await call(base, 'GET', '/api/history/checkpoint')).status === 200,
    );
    const { body } = await call(base, 'GET', '/health/ready');
    expect(body.details.log_checkpoint).to.match(/^\d+ events, signed \d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const shown = async (name: string) => {
      const metrics = (await call(base, 'GET', '/metrics')).body as string;
      return Number(new RegExp(`^${name} (.+)$`, 'm').exec(metrics)?.[1]);
    };
    await until('the tree has every event', async () => {
      const head = await shown('signalbox_log_position');
      return (await shown('signalbox_log_tree_position')) >= head;
    });
    const size = await shown('signalbox_log_tree_size');
    const { events } = (await call(base, 'GET', '/api/history/events?limit=1000')).body;
    expect(events.filter(({ index }: { index: number }) => index < size)).to.have.length(Math.min(size, 1000));
    expect(await shown('signalbox_log_checkpoint_size')).to.be.within(1, await shown('signalbox_log_tree_size'));
    expect(await shown('signalbox_log_checkpoint_timestamp_seconds')).to.be.within(
      Date.now() / 1_000 - 3_600,
      Date.now() / 1_000 + 1,
    );
  });

  it('return 503 while the tree of the log is stuck', async () => {
    const { pool } = base.service.core.database;
    const set = (at: number | null, reason: string | null) =>
      pool.query(`UPDATE service.checkpoints SET stuck_at = $1, stuck_reason = $2 WHERE schema_name = 'log_tree'`, [
        at,
        reason,
      ]);
    await set(1, 'out of order');
    try {
      const body = bodyOf(await call(base, 'GET', '/health/ready'), 503);
      expect(body.checks.log_tree).to.equal('stuck');
      expect(body.details.log_tree).to.equal('stuck at position 1: out of order');
    } finally {
      await set(null, null);
    }
  });

  it('return metrics in the Prometheus format', async () => {
    await call(base, 'GET', '/api/activities');
    const { body } = await call(base, 'GET', '/metrics');
    expect(body).to.match(/^signalbox_projection_position\{projection="agents"\} \d+$/m);
    expect(body).to.match(
      /^signalbox_http_request_seconds_count\{method="GET",route="\/api\/activities",status="200"\} \d+$/m,
    );
  });
});
