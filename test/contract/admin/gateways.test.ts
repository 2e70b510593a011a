/** Gateways through HTTP: kept with sealed tokens, probed, their history, connecting; commands that wait at the primary one. */
import { expect } from 'chai';
import { allowlistResponse, execApprovalsResponse } from '../../../shared/contract/admin/exec-approvals.ts';
import {
  gatewayChangedResponse,
  gatewayConnectResponse,
  gatewayDeletedResponse,
  gatewayHealthResponse,
  gatewayHistoryResponse,
  gatewayResponse,
  gatewaysResponse,
} from '../../../shared/contract/admin/gateways.ts';
import { fixture } from '../../support/fixture.ts';
import { startFakeGateway } from '../../support/gateway.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { cookieOf } from '../../support/worlds/auth.ts';

const SECRET = 'gateway-token-0815';

describe('/api/gateways', function () {
  this.timeout(120_000);
  const base = fixture(startTestService);

  const fake = fixture(startFakeGateway);

  const ask = (method: string, body?: unknown, path = '', headers: Record<string, string> = {}) =>
    call(base, method, `/api/gateways${path}`, body, headers);
  const list = async () => {
    const reply = await ask('GET');
    expect(gatewaysResponse.parse(reply.body)).to.deep.equal(reply.body);
    return reply.body.gateways;
  };
  const rawLog = async () => {
    let text = '';
    for await (const events of base.service.core.eventLog.readAll()) text += JSON.stringify(events);
    return text;
  };
  let id = 0;

  it('are empty at first; without a primary gateway no command waits and none can be decided', async () => {
    expect(await list()).to.deep.equal([]);
    expect((await ask('POST', {}, '/health')).body.results).to.deep.equal([]);
    expect((await call(base, 'GET', '/api/exec-approvals')).body).to.deep.equal({ approvals: [] });
    const body = bodyOf(await call(base, 'POST', '/api/exec-approvals', { id: 'a1', action: 'approve' }), 502);
    expect(body.error).to.include('/api/gateways');
  });

  it('have no link-local address, however it is written', async () => {
    const HOSTS = ['169.254.169.254', '169.254.1.1', '[fe80::1]', '[::ffff:a9fe:101]', '2852039166', '0xa9.0xfe.1.1'];
    for (const host of HOSTS)
      for (const body of [
        { name: 'x', url: `http://${host}/` },
        { name: 'x', host, port: 80 },
      ]) {
        const reply = await ask('POST', body);
        expect(reply.status, JSON.stringify([body, reply.body])).to.equal(400);
        expect(reply.body.error).to.match(/link-local|metadata/);
      }
    expect(await list()).to.deep.equal([]);
  });

  it('are added by URL or by host and port, and never show their tokens', async () => {
    const body = conforms(
      gatewayResponse,
      await ask('POST', { name: 'main', url: `${fake.url}/`, token: SECRET, is_primary: true }),
      201,
    );
    id = body.gateway.id;
    expect(body.gateway).to.include({
      url: fake.url,
      status: 'unknown',
      last_health_check: null,
      is_primary: 1,
    });
    expect(body.gateway).to.include({ token: '--------', token_set: true, host: '127.0.0.1' });
    const other = await ask('POST', { name: 'away', host: 'wss://gate.example.org/base', port: '9443' });
    expect(other.body.gateway).to.include({
      url: 'wss://gate.example.org:9443/base',
      port: 9443,
      token: '',
      token_set: false,
    });
    const fromUrl = await ask('POST', { name: 'from url', url: `http://gate.example.org/?token=${SECRET}` });
    expect(fromUrl.body.gateway).to.include({ url: 'http://gate.example.org', port: 80, token_set: true });
    expect((await list()).map(({ name }: { name: string }) => name)).to.deep.equal(['main', 'away', 'from url']);
    expect(await rawLog()).not.to.include(SECRET);
    const audit = (await call(base, 'GET', '/api/audit?action=gateway_added')).body.entries;
    expect(audit).to.have.length(3);
    expect(JSON.stringify(audit)).not.to.include(SECRET);
  });

  it('may be given as a URL or a bare host, and browsers can reach both', async () => {
    const https = { referer: 'https://box.example.org/gateways' };
    const forwarded = { 'x-forwarded-proto': 'https' };
    const local = { referer: 'http://localhost:3000/' };
    for (const [fields, headers, ws_url] of [
      [{ host: 'gate.example.org', port: 18_789 }, https, 'wss://gate.example.org'],
      [{ host: 'gate.example.org', port: 18_789 }, forwarded, 'wss://gate.example.org'],
      [{ host: 'gate.example.org', port: 18_789 }, { ...local, ...forwarded }, 'wss://gate.example.org'],
      [{ host: 'gate.example.org', port: 18_789 }, local, 'ws://gate.example.org:18789'],
      [{ host: 'gate.example.org', port: 8_443 }, https, 'wss://gate.example.org:8443'],
      [{ url: 'gate.example.org:8443/base' }, https, 'wss://gate.example.org:8443/base'],
      [{ host: 'gate.local', port: 18_789 }, https, 'ws://gate.local:18789'],
      [{ host: '127.0.0.1', port: 18_789 }, local, 'ws://127.0.0.1:18789'],
      [{ host: '127.0.0.1', port: 18_789 }, https, 'wss://box.example.org:18789'],
      [{ host: 'https://gate.example.org/sessions/x?token=t', port: 18_789 }, local, 'wss://gate.example.org'],
      [{ host: 'https://gate.example.org:8443', port: 18_789 }, local, 'wss://gate.example.org:8443'],
      [{ host: 'http://gate.example.org', port: 18_789 }, https, 'ws://gate.example.org'],
      [{ url: 'wss://gate.local/a/' }, local, 'wss://gate.local/a'],
    ] as const) {
      const { gateway } = bodyOf(await ask('POST', { name: 'one of many', ...fields }), 201);
      const connected = await ask('POST', { id: gateway.id }, '/connect', headers);
      expect(connected.body.ws_url, JSON.stringify({ fields, headers })).to.equal(ws_url);
      expect((await ask('DELETE', { id: gateway.id })).body.deleted).to.equal(true);
    }
  });

  it('reject invalid input with an explanation', async () => {
    for (const [body, message] of [
      [{ url: 'http://x' }, /^name: /],
      [{ name: 'x' }, /^url: /],
      [{ name: 'x', port: 1 }, /^host: /],
      [{ name: 'x', url: 'gate:port' }, /^url: /],
      [{ name: 'x', host: 'a b' }, /^host: /],
      [{ name: 'x', url: 'ftp://gate' }, /^url: /],
      [{ name: 'x', url: 'http://u:p@gate' }, /^url: .*password/],
      [{ name: 'x', host: 'gate', port: 70_000 }, /^port: /],
      [{ name: 'x', url: 'http://gate', token: '--------' }, /^token: /],
    ] as const) {
      const answer = bodyOf(await ask('POST', body), 400);
      expect(answer.error).to.match(message);
    }
    expect((await ask('POST', { name: 'main', url: 'http://x' })).status).to.equal(409);
    expect((await ask('PUT', { id, name: 'away' })).status).to.equal(409);
    expect((await ask('PUT', { id })).status).to.equal(400);
    expect((await ask('PUT', { name: 'x' })).status).to.equal(400);
    expect((await ask('PUT', { id: 987_654, name: 'x' })).status).to.equal(404);
  });

  it('can be updated, have one primary, and keep a token that is sent back masked', async () => {
    const [, away] = await list();
    const reply = await ask('PUT', {
      id: away.id,
      is_primary: 1,
      latency: 5,
      last_seen: 1_700_000_000,
      status: 'online',
    });
    expect(gatewayChangedResponse.parse(reply.body)).to.deep.equal(reply.body);
    expect(reply.body.gateway).to.include({ is_primary: 1, latency: 5, last_seen: 1_700_000_000, status: 'online' });
    expect((await list()).filter((one: { is_primary: number }) => one.is_primary === 1)).to.have.length(1);
    await ask('PUT', { id, is_primary: true, token: '--------' });
    const connected = await ask('POST', { id }, '/connect');
    expect(gatewayConnectResponse.parse(connected.body)).to.deep.equal(connected.body);
    expect(connected.body).to.deep.equal({
      id,
      ws_url: fake.url.replace('http', 'ws'),
      token: SECRET,
      token_set: true,
    });
  });

  it('return the URL without the token to viewers, and the browser’s own host to remote browsers', async () => {
    const onlooker = { username: 'onlooker', password: 'a long enough password' };
    await call(base, 'POST', '/api/auth/users', { ...onlooker, role: 'viewer' });
    const as = { 'x-api-key': '', cookie: cookieOf(await call(base, 'POST', '/api/auth/login', onlooker)) };
    expect((await ask('POST', { id }, '/connect', as)).body).to.include({ token: '', token_set: false });
    const { body } = await ask('POST', { id }, '/connect', { referer: 'https://box.example.org/gateways' });
    expect(body.ws_url).to.equal(`wss://box.example.org:${new URL(fake.url).port}`);
    for (const host of ['host.docker.internal', 'host.containers.internal', '172.16.0.2', '172.31.255.9']) {
      await ask('PUT', { id, url: `http://${host}:4711` });
      const near = await ask('POST', { id }, '/connect', { referer: 'http://localhost:3000/' });
      expect(near.body.ws_url).to.equal(`ws://${host}:4711`);
      const elsewhere = await ask('POST', { id }, '/connect', { referer: 'https://box.example.org/' });
      expect(elsewhere.body.ws_url, host).to.equal('wss://box.example.org:4711');
    }
    for (const host of ['172.15.0.2', '172.32.0.2', 'docker.internal.example.org']) {
      await ask('PUT', { id, url: `http://${host}:4711` });
      const { body: other } = await ask('POST', { id }, '/connect', { referer: 'https://box.example.org/' });
      expect(other.ws_url).to.equal(`ws://${host}:4711`);
    }
    await ask('PUT', { id, url: fake.url });
    const away = (await list())[1];
    expect((await ask('POST', { id: away.id }, '/connect')).body.ws_url).to.equal('wss://gate.example.org:9443/base');
    expect((await ask('POST', { id: 987_654 }, '/connect')).status).to.equal(404);
  });

  it('are probed one by one or all together, and store the results', async () => {
    const probe = async () => {
      const reply = await ask('POST', { gateway_id: id }, '/health');
      expect(gatewayHealthResponse.parse(reply.body)).to.deep.equal(reply.body);
      return reply.body.results[0];
    };
    expect(await probe()).to.include({ id, status: 'online', gateway_version: '2.4.0' });
    expect((await list())[0]).to.include({ status: 'online' });
    const seen = (await list())[0].last_health_check;
    expect(seen).to.be.closeTo(Date.now() / 1_000, 60);
    fake.mode = 'broken';
    expect(await probe()).to.include({ status: 'error', error: 'HTTP 500' });
    fake.mode = 'redirects';
    expect(await probe()).to.include({ status: 'error', error: 'HTTP 302' });
    fake.mode = 'silent';
    expect(await probe()).to.include({ status: 'offline', latency: null, error: 'timeout' });
    expect((await list())[0]).to.include({ status: 'offline', latency: null });
    fake.mode = 'well';
    expect(
      fake.seen.every(({ line, authorization }) => line === 'GET /health' && authorization === undefined),
    ).to.equal(true);
    await ask('PUT', { id, url: 'http://127.0.0.1:1' });
    expect(await probe()).to.include({ status: 'offline' });
    await ask('PUT', { id, url: fake.url });
    expect((await ask('POST', { gateway_id: 987_654 }, '/health')).status).to.equal(404);
    const { body } = await ask('GET', undefined, '/health/history');
    expect(gatewayHistoryResponse.parse(body)).to.deep.equal(body);
    const { entries } = body.history.find((one: { gatewayId: number }) => one.gatewayId === id);
    expect(entries.map(({ status }: { status: string }) => status)).to.deep.equal([
      'offline',
      'offline',
      'error',
      'error',
      'online',
    ]);
  }).timeout(60_000);

  it('list pending commands of the primary gateway; decisions are forwarded and recorded', async () => {
    const waiting = await call(base, 'GET', '/api/exec-approvals');
    expect(execApprovalsResponse.parse(waiting.body)).to.deep.equal(waiting.body);
    expect(waiting.body).to.deep.equal({ approvals: [{ id: 'a1', command: 'ls' }] });
    const decide = (body: object) => call(base, 'POST', '/api/exec-approvals', body);
    const decided = await decide({ id: 'a1', action: 'deny', reason: 'no' });
    expect([decided.status, decided.body]).to.deep.equal([200, { ok: true, id: 'a1' }]);
    expect(fake.seen.at(-1)).to.deep.equal({
      line: 'POST /api/exec-approvals',
      authorization: `Bearer ${SECRET}`,
      body: JSON.stringify({ id: 'a1', action: 'deny', reason: 'no' }),
    });
    const [entry] = (await call(base, 'GET', '/api/audit?action=exec_approval_decided')).body.entries;
    expect(entry.detail).to.deep.equal({ approval_id: 'a1', decision: 'deny', reason: 'no' });
    const outcomes = async () => (await call(base, 'GET', '/api/audit?action=exec_approval_answered')).body.entries;
    const about = { decision_id: entry.id, approval_id: 'a1', decision: 'deny' };
    expect((await outcomes())[0].detail).to.deep.equal({ ...about, outcome: 'taken', status: 200 });
    const unknown = await decide({ id: 'unknown', action: 'approve' });
    expect([unknown.status, unknown.body.error]).to.deep.equal([
      404,
      'The gateway responded with status 404: no such approval',
    ]);
    fake.mode = 'broken';
    expect((await decide({ id: 'a1', action: 'approve' })).status).to.equal(502);
    expect((await call(base, 'GET', '/api/exec-approvals')).body).to.deep.equal({ approvals: [] });
    fake.mode = 'silent';
    expect((await decide({ id: 'a1', action: 'approve' })).status).to.equal(504);
    const said = (await outcomes()).map(({ detail }: { detail: { outcome: string } }) => detail.outcome);
    expect(said).to.deep.equal(['unanswered', 'refused', 'refused', 'taken']);
    fake.mode = 'well';
    expect((await decide({ id: 'a1', action: 'maybe' })).status).to.equal(400);
    expect((await decide({ id: 'a1', action: 'approve', more: 1 })).status).to.equal(400);
  }).timeout(60_000);

  it('store patterns of commands that need no approval, per agent', async () => {
    const put = (body: object) => call(base, 'PUT', '/api/exec-approvals', body);
    const stored = async () => (await call(base, 'GET', '/api/exec-approvals?action=allowlist')).body;
    const nothing = await stored();
    expect(nothing).to.deep.equal({
      agents: {},
      hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    });
    const first = await put({
      agents: { ada: [{ pattern: 'ls *' }], bob: [{ pattern: 'git status' }] },
      hash: nothing.hash,
    });
    expect(allowlistResponse.parse(first.body)).to.deep.equal(first.body);
    expect(await stored()).to.deep.equal({
      agents: { ada: [{ pattern: 'ls *' }], bob: [{ pattern: 'git status' }] },
      hash: first.body.hash,
    });
    for (const hash of [nothing.hash, 'of an earlier client', '']) {
      const outdated = await put({ agents: { ada: [] }, hash });
      expect([outdated.status, outdated.body.code], hash).to.deep.equal([409, 'CONFLICT']);
    }
    expect((await put({ agents: { ada: [] }, hash: 7 })).status).to.equal(400);
    const second = await put({ agents: { ada: [], constructor: [{ pattern: 'x' }] } });
    expect(second.status, JSON.stringify(second.body)).to.equal(200);
    expect(Object.keys((await stored()).agents)).to.deep.equal(['bob', 'constructor']);
    expect((await stored()).hash).to.equal(second.body.hash);
    expect((await put({})).body.error).to.include('agents');
    const long = Object.fromEntries(Array.from({ length: 130 }, (_, n) => [`a${n}`, [{ pattern: 'x'.repeat(4_000) }]]));
    expect((await put({ agents: long })).status).to.equal(413);
  });

  it('are removed, except the primary one', async () => {
    const [main, away] = await list();
    expect((await ask('DELETE', { id: main.id })).status).to.equal(400);
    const gone = await ask('DELETE', { id: String(away.id) });
    expect(gatewayDeletedResponse.parse(gone.body)).to.deep.equal({ success: true, deleted: true });
    expect((await ask('DELETE', { id: away.id })).body).to.deep.equal({ success: true, deleted: false });
    expect((await ask('DELETE', {})).status).to.equal(400);
    expect((await list()).map(({ name }: { name: string }) => name)).to.deep.equal(['main', 'from url']);
  });

  it('register the agents that they name, or record a sign of life', async () => {
    const agents = [{ name: 'told-one', role: 'scout' }, { name: 'told-two' }, { name: 'told-one', role: 'scout' }];
    const body = conforms(gatewayResponse, await ask('POST', { name: 'telling', url: fake.url, agents }), 201);
    expect(body.agents_registered).to.equal(2);
    const agent = async (name: string) => (await call(base, 'GET', `/api/agents/${name}`)).body.agent;
    const one = await agent('told-one');
    expect(one).to.deep.include({ role: 'scout', status: 'idle', source: 'gateway' });
    expect(one.last_seen).to.be.a('number');
    expect(await agent('told-two')).to.deep.include({ role: 'agent', status: 'idle' });
    await call(base, 'PUT', '/api/agents/told-one', { status: 'offline' });
    const { id: told } = body.gateway;
    const again = await ask('PUT', { id: told, agents: agents.slice(0, 1) });
    expect(gatewayChangedResponse.parse(again.body)).to.deep.equal(again.body);
    expect(again.body.agents_registered).to.equal(1);
    expect(await agent('told-one')).to.deep.include({ status: 'idle' });
    const many = Array.from({ length: 60 }, () => ({ name: 'told-two' }));
    expect((await ask('PUT', { id: told, agents: many })).body.agents_registered).to.equal(1);
    expect((await ask('PUT', { id: 999, agents })).status).to.equal(404);
    expect((await ask('PUT', { id: told })).status).to.equal(400);
    expect((await ask('PUT', { id: told, agents: [{ role: 'x' }] })).status).to.equal(400);
    expect((await ask('DELETE', { id: told })).body.deleted).to.equal(true);
  });
});
