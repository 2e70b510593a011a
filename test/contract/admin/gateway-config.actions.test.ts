/** What the primary gateway does with the stored configuration, through HTTP. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { startFakeGateway } from '../../support/gateway.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('Gateway configuration with a primary gateway', function () {
  this.timeout(120_000);
  const gateway = fixture(startFakeGateway);
  const world = fixture(startAuthWorld);

  let admin = '';
  let id = 0;
  before(async () => {
    await ask('PUT', '/api/gateway-config', { agents: { list: [{ id: 'known', name: 'known' }] } });
    gateway.mark = 'its-own-0815';
    // Another caller, because 20 of these calls a minute are allowed to each.
    admin = await world.makeSession({ username: 'operator-of-gateways', role: 'admin' });
    const added = { name: 'main', url: gateway.url, token: 'gateway-token', is_primary: true };
    id = (await ask('POST', '/api/gateways', added)).body.gateway.id;
  });
  const ask = (method: string, path: string, body?: unknown, as = world.adminKey) =>
    world.ask(method, path, { as, body });
  const act = (action: string, body?: unknown, as = admin) =>
    ask(action === 'schema' ? 'GET' : 'PUT', `/api/gateway-config?action=${action}`, body, as);
  const statuses = async (action: string) => (await world.audit(action)).map(({ detail }) => detail);

  it('returns the schema of the gateway', async () => {
    const reply = await act('schema');
    expect([reply.status, reply.body]).to.deep.equal([200, { type: 'object', title: 'its-own-0815' }]);
    const { line, authorization } = gateway.seen.at(-1) ?? {};
    expect([line, authorization]).to.deep.equal(['GET /api/config/schema', 'Bearer gateway-token']);
  });

  it('sends the stored document to the gateway, and masks secrets in the response', async () => {
    const { hash } = (await ask('GET', '/api/gateway-config')).body;
    const stored = await world.service.core.store.readStream('gateway_config-1');
    const reply = await act('apply');
    expect([reply.status, reply.body]).to.deep.equal([200, { ok: true, restarted: true, hash, token: '--------' }]);
    const seen = gateway.seen.at(-1);
    expect(seen?.line).to.equal('POST /api/config/apply');
    expect(JSON.parse(seen?.body ?? '')).to.deep.equal({ config: stored.at(-1)?.data.document, hash });
    expect((await act('apply', { hash })).status).to.equal(200);
    const [entry] = await world.audit('gateway_config_apply');
    expect(entry).to.deep.include({ actor: 'operator-of-gateways', detail: { status: 200 } });
  });

  it('requests an update of the gateway itself', async () => {
    const reply = await act('update');
    expect([reply.status, reply.body]).to.deep.equal([200, { ok: true, version: '2.5.0' }]);
    expect(gateway.seen.at(-1)).to.include({ line: 'POST /api/system/update', body: '{}' });
    expect(await statuses('gateway_config_system_update')).to.deep.equal([{ status: 200 }]);
  });

  it('sends only a stored document, and only the version that the caller has read', async () => {
    const before = gateway.seen.length;
    const old = await act('apply', { hash: 'a'.repeat(64) });
    expect([old.status, old.body.code]).to.deep.equal([409, 'CONFLICT']);
    const more = await act('apply', { config: {} });
    expect([more.status, more.body.error]).to.deep.equal([400, more.body.details[0]]);
    const there = await world.makeSession({ username: 'empty-handed', role: 'admin', workspace: 2 });
    expect((await act('apply', undefined, there)).status).to.equal(404);
    expect((await act('apply', { hash: 'a'.repeat(64) }, there)).status).to.equal(409);
    expect(gateway.seen.length).to.equal(before);
  });

  it('is not accessible to other tenants', async () => {
    const before = gateway.seen.length;
    const other = await world.makeSession({ username: 'other-tenant', role: 'admin', workspace: 3, tenant: 2 });
    expect((await ask('PUT', '/api/gateway-config', { mine: true }, other)).status).to.equal(200);
    for (const action of ['schema', 'apply', 'update']) {
      const reply = await act(action, undefined, other);
      expect(reply.status, action).to.equal(502);
      expect(reply.body.error).to.match(/^No gateway is connected/);
    }
    expect(gateway.seen.length).to.equal(before);
  });

  it('reports and audits a gateway that refuses or is unreachable', async () => {
    const asked = (await statuses('gateway_config_apply')).length;
    gateway.mode = 'broken';
    for (const action of ['schema', 'apply', 'update']) {
      const reply = await act(action);
      expect([reply.status, reply.body.error]).to.deep.equal([
        502,
        'The gateway responded with status 500: out of order',
      ]);
    }
    gateway.mode = 'redirects';
    expect((await act('apply')).body.error).to.equal('The gateway responded with status 302: out of order');
    gateway.mode = 'well';
    await ask('PUT', '/api/gateways', { id, url: 'http://127.0.0.1:1' });
    for (const action of ['schema', 'apply', 'update']) {
      const reply = await act(action);
      expect(reply.status, action).to.equal(502);
      expect(reply.body.error).to.match(/could not be reached/);
    }
    const told = (await statuses('gateway_config_apply')).slice(0, -asked);
    expect(told).to.deep.equal([{ status: null }, { status: 302 }, { status: 500 }]);
  });
});
