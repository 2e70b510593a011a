/** What holds for every request: idempotency keys, bad input, methods, origins and hosts. */

import { randomInt } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { agentStream } from '../../commands/agents/agents.ts';
import { fixture } from '../support/fixture.ts';
import { bodyOf, call, startTestService, TEST_ADMIN, TEST_KEY } from '../support/service.ts';
import { cookieOf } from '../support/worlds/auth.ts';

describe('contract: requests', () => {
  /** The session of an admin. */
  let cookie: string;
  const base = fixture(() => startTestService({ MC_ALLOWED_HOSTS: 'box.example.com,*.inner.example' }));
  before(async () => {
    cookie = cookieOf(await call(base, 'POST', '/api/auth/login', TEST_ADMIN, { 'x-api-key': '' }));
    await agent('probing');
  });

  const agent = async (name: string) =>
    (await call(base, 'POST', '/api/agents', { name, role: 'coder' })).body.agent as { id: number };

  it('name the position of the last event that a write has appended, also if repeated', async () => {
    const post = (name: string, headers = {}) =>
      call(base, 'POST', '/api/agents', { name, role: 'coder' }, { 'x-api-key': '', cookie, ...headers });
    const key = { 'idempotency-key': 'positioned' };
    for (const reply of [await post('once'), await post('repeated', key), await post('repeated', key)]) {
      const stream = agentStream(1, bodyOf(reply, 201).agent.id);
      const { events } = bodyOf(await call(base, 'GET', `/api/history/events?stream=${stream}&limit=1000`));
      expect(reply.headers.get('x-signalbox-position')).to.equal(String(events.at(-1).position));
    }
  });

  describe('Idempotency-Key', () => {
    const post = (key: string, body: unknown, path = '/api/agents') =>
      call(base, 'POST', path, body, { 'idempotency-key': key });

    it('returns the stored response for the same key and body, and 409 for a different body', async () => {
      const body = { name: 'idem', role: 'coder' };
      const first = await post('key-1', body);
      expect(first.status).to.equal(201);
      const again = await post('key-1', body);
      expect(again.status).to.equal(201);
      expect(again.body).to.deep.equal(first.body);
      expect(again.headers.get('idempotency-replayed')).to.equal('true');
      expect(bodyOf(await post('key-1', { ...body, role: 'reviewer' }), 409).code).to.equal('IDEMPOTENCY_KEY_REUSED');
      expect(
        (await call(base, 'GET', '/api/agents?role=coder&limit=200')).body.agents.filter(
          (one: { name: string }) => one.name === 'idem',
        ),
      ).to.have.length(1);
    });

    it('executes twenty concurrent requests once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => post('key-2', { name: 'idem-2', role: 'coder' })),
      );
      expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).to.equal(1);
      expect(answers.every((answer) => answer.status === 201)).to.equal(true);
    });

    it('is free again after a rejected request, and is rejected if invalid', async () => {
      expect((await post('key-3', { name: 'idem', role: 'coder' })).status).to.equal(409);
      expect((await post('key-3', { name: 'idem-3', role: 'coder' })).status).to.equal(201);
      expect((await post('key with spaces', { name: 'x', role: 'y' })).status).to.equal(400);
    });

    it('returns an issued key again, but stores it nowhere in the database', async () => {
      const { id } = await agent('idem-keys');
      const first = await post('key-4', { name: 'k' }, `/api/agents/${id}/keys`);
      const again = await post('key-4', { name: 'k' }, `/api/agents/${id}/keys`);
      expect(again.body).to.deep.equal(first.body);
      const { rows } = await base.service.core.database.pool.query(
        'SELECT encode(box, $1) AS box FROM service.idempotency',
        ['escape'],
      );
      expect(rows.length).to.be.greaterThan(0);
      expect(JSON.stringify(rows)).not.to.contain(first.body.api_key);
    });
  });

  describe('invalid input', () => {
    /** As `call`, with a body of bytes. */
    const proxied = fixture(() => startTestService({ MC_TRUSTED_PROXIES: '127.0.0.1' }));

    async function send(
      method: string,
      path: string,
      body: string | Buffer,
      headers: Record<string, string>,
      { url } = base,
    ) {
      const all = new Headers({ 'x-api-key': TEST_KEY, 'content-type': 'application/json', ...headers });
      if (headers['x-api-key'] === '') all.delete('x-api-key');
      const response = await fetch(`${url}${path}`, {
        method,
        headers: all,
        body: new Uint8Array(Buffer.from(body)),
      });
      return { status: response.status, body: (await response.json()) as { error: string } };
    }

    it('returns 4xx with a helpful message for malformed JSON, wrong types, huge bodies and absurd ids', async () => {
      const cases: [string, string, unknown, number, RegExp][] = [
        ['POST', '/api/agents', '{"name":', 400, /not valid JSON/],
        ['POST', '/api/agents', '', 400, /JSON body required/],
        ['DELETE', '/api/webhooks', '{', 400, /body required/],
        ['POST', '/api/alerts', [1, 2], 400, /^body: must be an object$/],
        ['POST', '/api/tasks', { title: 'x', due_date: 1e308 }, 400, /^due_date: must be at most 4102444800$/],
        ['GET', '/api/tasks?status=inbox&status=done', undefined, 400, /^status: must be given only once$/],
        ['GET', '/api/tasks?as_of=1&status=inbox&status=done', undefined, 400, /^status: must be given only once$/],
        [
          'GET',
          '/api/activities?stats&hours=100000',
          undefined,
          400,
          /^hours: must be a whole number from 1 to 87600$/,
        ],
        ['POST', '/api/agents', [1, 2], 400, /^body: must be an object$/],
        ['POST', '/api/agents', 'null', 400, /^body: must be an object$/],
        ['POST', '/api/agents', { name: 5, role: 'coder' }, 400, /^name: must be a string$/],
        [
          'POST',
          '/api/agents',
          { name: 'x'.repeat(101), role: 'coder' },
          400,
          /^name: must have at most 100 characters$/,
        ],
        [
          'POST',
          '/api/agents',
          { name: 'big', role: 'x', config: { text: 'x'.repeat(3_000_000) } },
          413,
          /larger than 2 MB/,
        ],
        [
          'POST',
          '/api/agents',
          { name: 'big', role: 'x', config: { text: 'x'.repeat(1_500_000) } },
          400,
          /^config: must have at most 200000 characters/,
        ],
        ['GET', '/api/agents/99999999999999999999', undefined, 400, /^id: must be a positive whole number/],
        ['GET', '/api/agents/%E0%A4%A', undefined, 400, /percent-encoding/],
        ['POST', '/api/agents', { name: 'nul\u0000', role: 'x' }, 400, /./],
        ['POST', '/api/agents', { name: 'half\ud800', role: 'x' }, 400, /./],
        ['GET', '/api/activities?actor=%00', undefined, 400, /U\+0000/],
        ['DELETE', '/api/agents/0', undefined, 400, /^id: must be a positive whole number/],
        ['PATCH', '/api/agents', {}, 405, /is not supported here; use GET, POST, PUT/],
        ['GET', '/api/nothing', undefined, 404, /No such endpoint/],
      ];
      for (const [method, path, body, status, sentence] of cases) {
        const reply = await call(base, method, path, body);
        expect(reply.status, `${method} ${path} ${JSON.stringify(body)?.slice(0, 60)}`).to.equal(status);
        expect(reply.body.error, path).to.match(sentence);
      }
    });

    it('rejects bodies that contradict their headers, thousands of nesting levels and compression bombs', async () => {
      const login = '{"username":"a","password":"b"}';
      // Decoding would replace the letters that are not UTF-8.
      const latin1 = Buffer.from('{"name":"Größe"}', 'latin1');
      const bomb = gzipSync(Buffer.alloc(200_000_000, ' '));
      const deep = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
      const cases: [string | Buffer, Record<string, string>, number, RegExp][] = [
        [bomb, { 'content-encoding': 'gzip' }, 413, /larger than 2 MB/],
        [latin1, {}, 400, /^The body is not valid UTF-8; send the JSON in UTF-8\.$/],
        [gzipSync(latin1), { 'content-encoding': 'gzip' }, 400, /^The body is not valid UTF-8/],
        [deep, {}, 400, /nested more than 100 levels/],
        [login, { 'content-encoding': 'gzip' }, 400, /Content-Encoding \(gzip\)/],
        [login, { 'content-encoding': 'deflate' }, 400, /Content-Encoding \(deflate\)/],
        [login, { 'content-encoding': 'br' }, 400, /Content-Encoding \(br\)/],
        [gzipSync(login).subarray(0, -9), { 'content-encoding': 'gzip' }, 400, /Content-Encoding \(gzip\)/],
        [login, { 'content-encoding': 'compress' }, 415, /encoding "compress"/],
        [login, { 'content-type': 'application/json; charset=latin1' }, 415, /charset "LATIN1"/],
        [login, { 'content-type': 'application/json; charset=utf-99' }, 415, /charset "UTF-99"/],
        [login, { 'content-type': 'application/json; charset=utf-99', 'content-encoding': 'gzip' }, 415, /UTF-99/],
        [`{"config":${deep}}`, { 'idempotency-key': 'deep' }, 400, /^config\.0\..* nested more than 100 levels/],
      ];
      const before = process.memoryUsage().rss;
      let openCalls = 0;
      // Limits of 127.0.0.1 are shared with other tests, where they are in Redis.
      const address = `203.0.113.${randomInt(1, 255)}`;
      for (const [body, headers, status, sentence] of cases) {
        for (const path of ['/api/agents', '/api/adapters', '/api/agents/message']) {
          const reply = await send('POST', path, body, headers);
          expect(reply.status, `${path} ${JSON.stringify(headers)}`).to.equal(status);
          expect(reply.body.error).to.match(sentence);
          expect((await send('POST', path, body, { ...headers, 'x-api-key': '' })).status).to.equal(401);
        }
        // At once: what the deep bodies leave behind until the next garbage collection is none of the bomb.
        if (body === bomb)
          expect(process.memoryUsage().rss - before, 'the bomb was not unpacked').to.be.below(150_000_000);
        // Anonymous callers get the same response where they are admitted, five times a minute.
        if (openCalls++ >= 4) continue;
        const anonymous = { 'x-api-key': '', 'x-forwarded-for': address };
        const open = await send('POST', '/api/setup', body, { ...headers, ...anonymous }, proxied);
        expect(open.status, `setup ${JSON.stringify(headers)}`).to.equal(status);
      }
    });

    it('handles numbers of any length', async () => {
      for (const digits of [
        '9'.repeat(12),
        '9'.repeat(13),
        '9'.repeat(16),
        '9'.repeat(17),
        '9'.repeat(400),
        '-1',
        '1e9',
      ]) {
        for (const path of [
          `/api/activities?since=${digits}`,
          `/api/activities?limit=${digits}&offset=${digits}`,
          `/api/activities?stats=1&hours=${digits}`,
          `/api/audit?since=${digits}&until=${digits}`,
          `/api/agents/comms?since=${digits}`,
          `/api/agents/${digits}`,
          `/api/agents?limit=${digits}&offset=${digits}`,
        ])
          expect((await call(base, 'GET', path)).status, path).to.be.oneOf([200, 400, 404]);
        const { status } = await call(base, 'HEAD', `/api/events?since=${digits}`);
        expect(status, digits).to.be.oneOf([200, 400]);
        for (const [method, path, field] of [
          ['PUT', '/api/auth/users', 'id'],
          ['DELETE', '/api/auth/users', 'id'],
          ['POST', '/api/agents/probing/keys', 'expires_at'],
          ['POST', '/api/agents/probing/keys', 'expires_in_days'],
          ['DELETE', '/api/agents/probing/keys', 'key_id'],
        ])
          for (const value of [digits, Number(digits)]) {
            const reply = await call(base, method as string, path as string, { [field as string]: value });
            expect(reply.status, `${method} ${path} ${digits}`).to.be.below(500);
          }
      }
    });

    /** Sends these bytes and gives the first answer. */
    const answerToRaw = async (request: string) => {
      const socket = connect(Number(new URL(base.url).port), '127.0.0.1');
      socket.end(request);
      const text = (await socket.toArray()).join('');
      const [head = '', body = ''] = text.split('\r\n\r\n');
      return { status: Number(head.split(' ')[1]), json: /content-type: application\/json/i.test(head), body };
    };

    it('rejects anything that is not HTTP, with an explanation in the body', async () => {
      const get = (...headers: string[]) => ['GET /health/live HTTP/1.1', ...headers, '', ''].join('\r\n');
      const cases: [status: number, request: string][] = [
        [400, get('Host: localhost', 'no colon here')],
        [400, get('Host: localhost', 'X-A: a\u0001b')],
        [400, get('Host: localhost', 'Content-Length: many')],
        [400, get('Host: localhost', 'Content-Length: 2', 'Transfer-Encoding: chunked')],
        [400, 'GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n'],
        [400, 'GET relative HTTP/1.1\r\nHost: localhost\r\n\r\n'],
        [400, '\u0016\u0003\u0001 no TLS here\r\n\r\n'],
        [400, get('Connection: close')],
        [400, 'POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n'],
        [417, get('Host: localhost', 'Expect: a miracle')],
        [431, get('Host: localhost', `X-Long: ${'a'.repeat(20_000)}`)],
      ];
      for (const [status, request] of cases) {
        const answer = await answerToRaw(request);
        const what = JSON.stringify(request.slice(0, 80));
        expect([answer.status, answer.json], what).to.deep.equal([status, true]);
        expect(JSON.parse(answer.body).error, what).to.match(/^[A-Z].*\.$/);
      }
    });

    it('does not write into a response that has started, and keeps running', async () => {
      const socket = connect(Number(new URL(base.url).port), '127.0.0.1');
      socket.write(`GET /api/events HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${TEST_KEY}\r\n\r\n`);
      let text = '';
      for await (const chunk of socket.setEncoding('utf8')) {
        text += chunk;
        if (text.includes('"connected"')) socket.write('this is no request\r\n\r\n');
      }
      expect(text.match(/HTTP\/1\.1/g)).to.have.length(1);
      expect((await fetch(`${base.url}/health/live`)).status).to.equal(200);
    });

    it('rejects malformed request targets', async () => {
      const answerTo = (target: string, method = 'GET') =>
        answerToRaw(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      for (const target of ['http://[bad/x', 'http://', 'ftp://localhost/x', '*', 'http://a:b/']) {
        const { status, json, body } = await answerTo(target);
        expect([status, json], target).to.deep.equal([400, true]);
        expect(JSON.parse(body).error).to.match(/request target/);
      }
      expect(await answerTo('http://localhost/health/live')).to.deep.include({ status: 200, body: '{"status":"ok"}' });
      for (const target of ['//x', '//[bad/x', '/%', '/api/%ff', '/\\', '/a|b?c=%%%', '/api/agents/%00'])
        expect((await answerTo(target)).status, target).to.be.oneOf([400, 401, 404]);
    });

    it('HEAD is handled like GET without a body, even for the stream', async () => {
      for (const path of ['/api/events', '/api/agents', '/health/live', '/api/docs', '/docs']) {
        const head = await call(base, 'HEAD', path);
        expect([head.status, head.body], path).to.deep.equal([200, '']);
      }
      expect((await call(base, 'HEAD', '/api/events')).headers.get('content-type')).to.match(/^text\/event-stream/);
      expect((await call(base, 'HEAD', '/api/events', undefined, { 'x-api-key': '' })).status).to.equal(401);
      expect((await call(base, 'HEAD', '/api/events?since=x')).status).to.equal(400);
    });

    it('responses are cacheable only if they declare it', async () => {
      const kept = async (method: string, path: string, body?: unknown) =>
        (await call(base, method, path, body)).headers.get('cache-control');
      expect(await kept('POST', '/api/auth/login', TEST_ADMIN)).to.equal('no-store');
      expect(await kept('POST', '/api/auth/login', { username: 'x', password: 'y' })).to.equal('no-store');
      expect(await kept('POST', '/api/agents/probing/keys', {})).to.equal('no-store');
      expect(await kept('GET', '/api/auth/me')).to.equal('no-store');
      expect(await kept('GET', '/api/nothing')).to.equal('no-store');
      expect(await kept('GET', '/api/agents')).to.equal('private, no-cache');
      expect(await kept('GET', '/api/docs')).to.equal('public, max-age=3600');
    });

    it('401 comes before 400 and 404', async () => {
      for (const [method, path] of [
        ['POST', '/api/agents'],
        ['GET', '/api/nothing'],
        ['GET', '/api/agents/1'],
      ] as const) {
        expect(
          (await call(base, method, path, method === 'POST' ? '{' : undefined, { 'x-api-key': '' })).status,
        ).to.equal(401);
      }
    });

    it('an Origin of another host is rejected on writes, even on public routes', async () => {
      const reply = await call(
        base,
        'POST',
        '/api/auth/login',
        { username: 'a', password: 'b' },
        { origin: 'https://evil.example' },
      );
      expect(reply.status).to.equal(403);
      expect(reply.body.error).to.match(/CSRF/);
      const evil = { origin: 'https://evil.example' };
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
        const { status, body } = await call(base, method, '/api/auth/me', method === 'PATCH' ? {} : undefined, evil);
        expect([status, body.error], method).to.deep.equal([403, reply.body.error]);
      }
      for (const method of ['GET', 'HEAD', 'OPTIONS'])
        expect((await call(base, method, '/api/auth/me', undefined, evil)).status, method).not.to.equal(403);
      const own = await call(base, 'POST', '/api/agents', { name: 'own-origin', role: 'x' }, { origin: base.url });
      expect(own.status).to.equal(201);
    });
  });

  describe('cross-site writes', () => {
    /** With the cookie, and in turn with each type that a form or a page without permission can send. */
    const write = async (headers: Record<string, string>, method = 'POST', path = '/api/agents') => {
      const body = { name: `forged-${++made}`, role: 'x' };
      const type = { 'content-type': TYPES[made % TYPES.length] as string };
      return call(base, method, path, body, { 'x-api-key': '', cookie, ...type, ...headers });
    };
    const TYPES = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''];
    let made = 0;
    const agents = async () => (await call(base, 'GET', '/api/agents')).body.total;

    it('are rejected with a session cookie, whatever their content type', async () => {
      const before = await agents();
      const { port } = new URL(base.url);
      for (const headers of [
        { origin: 'null' },
        { origin: '::' },
        { origin: 'https://evil.example' },
        { origin: `http://127.0.0.1:${Number(port) + 1}` },
        { origin: 'http://127.0.0.1' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'cross-site', origin: base.url },
        // A key beside it changes nothing: the session comes first.
        { origin: 'null', 'x-api-key': TEST_KEY },
      ] as Record<string, string>[]) {
        for (const _type of TYPES) {
          const { status, body } = await write(headers);
          expect([status, /CSRF/.test(body.error)], JSON.stringify(headers)).to.deep.equal([403, true]);
        }
        for (const method of ['PUT', 'PATCH', 'DELETE'])
          expect((await write(headers, method)).status, `${method} ${JSON.stringify(headers)}`).to.equal(403);
      }
      expect(await agents()).to.equal(before);
      const own: Record<string, string>[] = [
        {},
        { origin: base.url },
        { origin: base.url, 'sec-fetch-site': 'same-origin' },
        { 'sec-fetch-site': 'none' },
      ];
      for (const headers of own) expect((await write(headers)).status, JSON.stringify(headers)).to.equal(201);
    });

    it('are rejected for sign-ins, which need no cookie', async () => {
      for (const headers of [{ origin: 'null' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[]) {
        const reply = await call(base, 'POST', '/api/auth/login', TEST_ADMIN, { 'x-api-key': '', ...headers });
        expect([reply.status, reply.headers.getSetCookie()]).to.deep.equal([403, []]);
      }
    });

    it('are accepted with an API key, which a page cannot send', async () => {
      for (const headers of [{ origin: 'null' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[]) {
        const body = { name: `keyed-${++made}`, role: 'x' };
        expect((await call(base, 'POST', '/api/agents', body, headers)).status).to.equal(201);
      }
    });
  });

  it('disallowed hosts are rejected first, in plain text, whatever forwarded headers a client sends', async () => {
    const status = (host: string, more: Record<string, string> = {}, path = '/api/docs') =>
      new Promise<string>((resolve, reject) => {
        const asked = request(`${base.url}${path}`, { headers: { host, ...more } }, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => resolve(`${response.statusCode} ${text}`));
        });
        asked.on('error', reject);
        asked.end();
      });
    expect(await status('evil.example')).to.equal('403 Forbidden');
    expect(await status('inner.example')).to.equal('403 Forbidden');
    expect(await status('a.inner.example')).to.match(/^200/);
    expect(await status('BOX.example.com:3000')).to.match(/^200/);
    expect(await status('localhost')).to.match(/^200/);
    for (const header of ['x-forwarded-host', 'x-original-host', 'x-forwarded-server'])
      expect(await status('evil.example', { [header]: 'localhost' }), header).to.equal('403 Forbidden');
    expect(await status('evil.example', { forwarded: 'host=localhost' })).to.equal('403 Forbidden');
    // A probe names the address of the process.
    for (const path of ['/health/live', '/health/ready', '/api/health?x=1'])
      expect(await status('10.1.2.3:3000', {}, path), path).to.match(/^200 \{/);
    for (const path of ['/health', '/health/live/x', '/api/healthy'])
      expect(await status('10.1.2.3:3000', {}, path), path).to.equal('403 Forbidden');
  });

  it('without a valid credential get 401 with WWW-Authenticate', async () => {
    for (const [method, path] of [
      ['GET', '/api/agents'],
      ['DELETE', '/api/nowhere'],
      ['PATCH', '/api/agents'],
      ['POST', '/mcp'],
    ] as const) {
      const reply = await call(base, method, path, undefined, { 'x-api-key': 'wrong' });
      expect([reply.status, reply.headers.get('www-authenticate')], path).to.deep.equal([
        401,
        'Bearer realm="signalbox"',
      ]);
    }
  });
});
