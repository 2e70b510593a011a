/** Probes and metrics. */
import { expect } from 'chai';
import { call, type TestService } from '../../support/service.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

export function describeHealth(service: () => TestService): void {
  describe('probes', () => {
    let base: TestService;
    before(() => {
      base = service();
    });
    const agent = (name: string) => makeAgent(base, name);
    it('are public and say what they checked', async () => {
      const none = { 'x-api-key': '' };
      expect((await call(base, 'GET', '/health/live', undefined, none)).body).to.deep.equal({ status: 'ok' });
      const ready = await call(base, 'GET', '/health/ready', undefined, none);
      expect(ready.status).to.equal(200);
      expect(ready.body.checks).to.include({ database: 'ok', 'projection agents': 'ok', log_tree: 'ok' });
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

    it('metrics are in the Prometheus format and need a credential', async () => {
      expect((await call(base, 'GET', '/metrics', undefined, { 'x-api-key': '' })).status).to.equal(401);
      await call(base, 'GET', '/api/activities');
      const { body } = await call(base, 'GET', '/metrics');
      expect(body).to.match(/^signalbox_projection_position\{projection="agents"\} \d+$/m);
      expect(body).to.match(
        /^signalbox_http_request_seconds_count\{method="GET",route="\/api\/activities",status="200"\} \d+$/m,
      );
    });
  });
}
