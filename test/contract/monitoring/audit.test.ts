/** The audit trail: who did and tried what, from where. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

describe('GET /api/audit', () => {
  const base = fixture(startTestService);

  const agent = (name: string) => makeAgent(base, name);
  it('shows who did or attempted what and from where, including denials', async () => {
    await call(base, 'POST', '/api/auth/login', { username: 'nobody', password: 'wrong' }, { 'x-api-key': '' });
    const { id } = await agent('limited');
    const key = (await call(base, 'POST', `/api/agents/${id}/keys`, { name: 'viewer key' })).body.api_key;
    expect((await call(base, 'GET', '/api/audit', undefined, { 'x-api-key': key })).status).to.equal(403);
    const entries = async (query: string) => (await call(base, 'GET', `/api/audit?${query}`)).body;
    const failed = await entries('action=login_failed');
    expect(failed.entries[0]).to.include({ actor: 'nobody', ip_address: '127.0.0.1' });
    const denied = await until('the denial is recorded', async () => {
      const found = await entries('action=access_denied');
      return found.total > 0 ? found : undefined;
    });
    expect(denied.entries[0]).to.include({ actor: 'agent:limited', ip_address: '127.0.0.1' });
    expect((await entries('action=agent_key_issued')).entries[0].detail).to.include({ name: 'viewer key' });
    expect(JSON.stringify((await entries('limit=1000')).entries)).not.to.contain(key);
  });

  it('pages, filters by time, and returns limit and offset', async () => {
    const { body } = await call(base, 'GET', '/api/audit?limit=2&offset=1');
    expect(body).to.include({ limit: 2, offset: 1 });
    expect(body.entries).to.have.length(2);
    expect((await call(base, 'GET', '/api/audit?until=10')).body.total).to.equal(0);
    expect((await call(base, 'GET', '/api/audit?since=10')).body.total).to.equal(body.total);
  });
});
