/** Calls of the client against a server that answers as scripted: repetition, pauses, errors. */
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { type ClientOptions, createClient, SignalboxError } from '../../client/index.ts';
import { isRetried, pauseOf } from '../../client/retry.ts';
import { closing, fixture } from '../support/fixture.ts';
import { listen } from '../support/listen.ts';

interface Scripted {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
/** `cut`: the connection is ended without a response; `silent`: nothing is sent. */
type Step = Scripted | 'cut' | 'silent';

describe('client calls', () => {
  let steps: Step[] = [];
  const received: IncomingMessage[] = [];

  const server = fixture(() =>
    listen((req, res) => {
      received.push(req);
      const step = steps.shift() ?? { status: 200, body: {} };
      if (step === 'cut') req.socket.destroy();
      else if (step !== 'silent') {
        res.writeHead(step.status, { 'content-type': 'application/json', 'x-request-id': 'r-1', ...step.headers });
        res.end(JSON.stringify(step.body ?? {}));
      }
    }),
  );

  const clientOf = (script: readonly Step[], options: ClientOptions = {}) => {
    steps = [...script];
    received.length = 0;
    return createClient({ url: server.url, apiKey: 'key', ...options });
  };
  const keys = () => received.map(({ headers }) => headers['idempotency-key']);
  const body = { name: 'scout', role: 'researcher' };

  it('a POST is retried with the same key after a lost connection, 503 and 409 BUSY', async () => {
    const client = clientOf(['cut', { status: 503 }, { status: 409, body: { error: 'x', code: 'BUSY' } }]);
    await client.call('POST /api/agents', { body });
    expect(received).to.have.length(4);
    expect(new Set(keys()).size).to.equal(1);
    expect(keys()[0]).to.match(/^[0-9a-f]{32}$/);
  });
  it('a key given by the caller is sent', async () => {
    await clientOf([{ status: 503 }]).call('POST /api/agents', { body, idempotencyKey: 'mine' });
    expect(keys()).to.deep.equal(['mine', 'mine']);
  });
  it('two calls use two different keys', async () => {
    const client = clientOf([]);
    await client.call('POST /api/agents', { body });
    await client.call('POST /api/agents', { body });
    expect(new Set(keys()).size).to.equal(2);
  });
  it('a PUT with an unknown outcome is not retried, and carries no key', async () => {
    for (const step of ['cut', { status: 503 }] as const) {
      const { error } = await clientOf([step]).attempt('PUT /api/agents/{id}', { params: { id: 1 }, body: {} });
      expect(error).to.be.instanceOf(SignalboxError);
      expect(received).to.have.length(1);
      expect(keys()).to.deep.equal([undefined]);
    }
  });
  it('a PUT is retried after 429, once Retry-After has passed', async () => {
    const began = performance.now();
    await clientOf([{ status: 429, headers: { 'retry-after': '1' } }]).call('PUT /api/agents/{id}', {
      params: { id: 1 },
      body: {},
    });
    expect(received).to.have.length(2);
    expect(performance.now() - began).to.be.at.least(990);
  });
  it('a call that would have to wait too long fails at once and states the wait', async () => {
    const client = clientOf([{ status: 429, headers: { 'retry-after': '90' }, body: { error: 'Too many calls.' } }]);
    const { error } = await client.attempt('GET /api/agents');
    expect(received).to.have.length(1);
    expect(error).to.include({ status: 429, retryAfterMs: 90_000, message: 'Too many calls. Try again in 90 s.' });
  });
  it('the number of retries is limited', async () => {
    const { error } = await clientOf(['cut', 'cut', 'cut', 'cut'], { retries: 2, longestPauseMs: 5 }).attempt(
      'GET /api/agents',
    );
    expect(received).to.have.length(3);
    expect(error).to.include({ status: 0, code: 'UNREACHABLE' });
  });
  it('a rejected request is not retried, and exposes status, code, details and request id', async () => {
    const refusal = { error: 'role: is missing', details: ['role: is missing'], code: 'SOME_CODE' };
    for (const status of [400, 401, 403, 404, 409, 500]) {
      const { error } = await clientOf([{ status, body: refusal }]).attempt('POST /api/agents', { body });
      expect(received, String(status)).to.have.length(1);
      expect(error).to.deep.include({ status, code: 'SOME_CODE', details: ['role: is missing'], requestId: 'r-1' });
    }
  });
  it('an HTML page from a proxy becomes an error with its status', async () => {
    const { error } = await clientOf([{ status: 413, headers: { 'content-type': 'text/html' } }]).attempt(
      'POST /api/agents',
      { body },
    );
    expect(error).to.include({ status: 413, message: 'The service responded with status 413.' });
  });
  it('a redirect is an error that names its target, and nothing is sent there', async () => {
    const reached: IncomingMessage[] = [];
    await using other = closing(
      await listen((req, res) => {
        reached.push(req);
        res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      }),
    );
    const location = `${other.url.replace('//', '//user:secret@')}/api/agents?token=secret`;
    for (const status of [301, 302, 303, 307, 308]) {
      for (const send of [
        () => clientOf([{ status, headers: { location } }]).attempt('POST /api/agents', { body }),
        () => clientOf([{ status, headers: { location } }]).attempt('GET /api/agents'),
        () =>
          clientOf([{ status, headers: { location: '/elsewhere' } }]).attempt('DELETE /api/agents/{id}', {
            params: { id: 1 },
          }),
      ]) {
        const { error } = await send();
        expect(error).to.include({ status, code: 'REDIRECTED' });
        expect(error?.message)
          .to.match(/redirects to http:\/\/127\.0\.0\.1:\d+\/(api\/agents|elsewhere)\. /)
          .and.not.match(/secret/);
        expect(received, 'the call is not retried').to.have.length(1);
      }
    }
    expect(reached).to.have.length(0);
  });
  it('a redirect whose target the browser hides is an error too', async () => {
    const hidden = Object.defineProperties(Response.error(), { type: { value: 'opaqueredirect' } });
    let calls = 0;
    const client = createClient({
      url: 'http://localhost',
      fetch: async (_, init) => {
        calls++;
        expect(init?.redirect).to.equal('manual');
        return hidden;
      },
    });
    const { error } = await client.attempt('GET /api/agents');
    expect(error).to.include({ status: 0, code: 'REDIRECTED' });
    expect(error?.message).to.match(/^http:\/\/localhost\/api\/agents redirects to an address that/);
    expect(calls).to.equal(1);
  });
  it('an unresponsive service causes a time-out, and the call is retried', async () => {
    const client = clientOf(['silent', { status: 200, body: { agents: [] } }], { timeoutMs: 150 });
    const { data } = await client.call('GET /api/agents');
    expect(data.agents).to.deep.equal([]);
    const { error } = await clientOf(['silent'], { timeoutMs: 150, retries: 0 }).attempt('GET /api/agents');
    expect(error).to.include({ status: 0, code: 'TIMEOUT' });
  });
  it('an aborted call ends at once, even during a pause', async () => {
    const abort = new AbortController();
    const client = clientOf([{ status: 503, headers: { 'retry-after': '20' } }]);
    const running = client.attempt('GET /api/agents', { signal: abort.signal });
    setTimeout(() => abort.abort(), 100);
    expect((await running).error).to.include({ status: 0, code: 'ABORTED' });
  });
  it('position, request id and replay are read from the headers', async () => {
    const headers = { 'x-signalbox-position': '42', 'idempotency-replayed': 'true' };
    const answer = await clientOf([{ status: 200, headers }]).call('POST /api/agents', { body });
    expect(answer).to.include({ position: 42, requestId: 'r-1', replayed: true });
  });
  it('path, query, key, agent and extra headers are sent', async () => {
    let count = 0;
    const options = { agent: 'scout', headers: () => ({ traceparent: `t-${++count}` }) };
    const client = clientOf([], options);
    await client.call('GET /api/agents/{id}', { params: { id: 'a b/c' } });
    await client.call('GET /api/agents', { query: { limit: 5, role: undefined } });
    expect(received.map((one) => one.url)).to.deep.equal(['/api/agents/a%20b%2Fc', '/api/agents?limit=5']);
    expect(received.map((one) => one.headers.traceparent)).to.deep.equal(['t-1', 't-2']);
    expect(received[0]?.headers).to.include({ 'x-api-key': 'key', 'x-agent-name': 'scout' });
  });
});

describe('client retry rules', () => {
  it('pauses double up to a maximum, vary by half, and are never shorter than Retry-After', () => {
    const rules = { longestPauseMs: 2_000, firstPauseMs: 250 };
    expect([1, 2, 3, 4, 5].map((n) => pauseOf(n, rules, undefined, () => 0))).to.deep.equal([
      250, 500, 1_000, 2_000, 2_000,
    ]);
    expect(pauseOf(1, rules, undefined, () => 1)).to.equal(125);
    expect(pauseOf(1, rules, 5_000, () => 0)).to.equal(5_000);
  });
  it('depend on method and status', () => {
    const retried = (method: string) =>
      [0, 400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504].filter((status) =>
        isRetried(method, { status, code: undefined }),
      );
    expect(retried('GET')).to.deep.equal([0, 408, 429, 502, 503, 504]);
    expect(retried('POST')).to.deep.equal(retried('GET'));
    for (const method of ['PUT', 'PATCH', 'DELETE']) expect(retried(method)).to.deep.equal([429]);
  });
});
