/** The Express app around the routes: which route a request finds, and handlers that are mounted beside them. */
import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Express } from 'express';
import pino from 'pino';
import { Registry } from 'prom-client';
import { PUBLIC, type Route } from '../../api/http/route.ts';
import { createApiServer } from '../../api/http/server.ts';
import { routes } from '../../api/routes/index.ts';
import type { Services } from '../../api/services.ts';

/** As much of the service as anonymous requests of public routes reach. */
const services = (lines: string[]) =>
  ({
    settings: {
      trustedProxies: [],
      proxyAuthTrustedIps: [],
      allowedHosts: [],
      enableHsts: true,
      responseStallMs: 60_000,
    },
    log: pino({ level: 'info' }, { write: (line: string) => lines.push(line) }),
    metrics: new Registry(),
    now: Date.now,
    reads: { at: () => ({}), response: () => ({}) },
    limitStore: () => ({}),
    securityEvents: {},
  }) as unknown as Services;

/** The routes of the service, public and without input; each responds with what it was called with. */
const echoing = routes.map(
  ({ method, path, responses }): Route => ({
    method,
    path,
    summary: path,
    access: 'public',
    rules: PUBLIC,
    responses: { 200: { description: '', ...(responses[200]?.type && { type: 'text/plain' }) } },
    handle: ({ context: { req } }) => ({
      body: { method, path, params: { ...req.params }, query: { ...req.query } },
    }),
  }),
);

describe('Express app', () => {
  const lines: string[] = [];
  let server: Server;
  let port: number;
  /** Prototypes of a request and its response when Node has made them. */
  const made: object[][] = [];

  function mount(app: Express): void {
    app.get('/mounted', (req, res) => {
      res.json({ id: req.context.id, ip: req.ip, host: req.get('host'), query: req.query, app: req.app === app });
    });
    app.get('/mounted/throws', () => {
      throw Object.assign(new Error('Too hot.'), { status: 418, expose: true });
    });
    app.get('/mounted/rejects', async () => {
      await Promise.resolve();
      throw new Error('a secret detail');
    });
    app.get('/mounted/prototypes', (req, res) => {
      res.json(made.at(-1)?.map((one, at) => one === Object.getPrototypeOf([req, res][at])));
    });
    app.use('/mounted/within', (req, res) => res.json({ url: req.url }));
  }

  before(async () => {
    server = createApiServer(echoing, services(lines), mount);
    server.prependListener('request', (req, res) =>
      made.push([Object.getPrototypeOf(req), Object.getPrototypeOf(res)]),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  /** With node's client, because fetch rewrites paths. */
  async function send(method: string, path: string) {
    const sent = request({ port, host: '127.0.0.1', method, path, agent: false }).end();
    const [response] = await once(sent, 'response');
    const text = (await response.setEncoding('utf8').toArray()).join('');
    return { status: response.statusCode as number, headers: response.headers, body: text && JSON.parse(text) };
  }
  const found = async (method: string, path: string) => {
    const { status, body } = await send(method, path);
    return status === 200 ? body : status;
  };

  it('finds every route by its path, with parameters and query', async () => {
    for (const { method, path } of routes) {
      const params = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, `x ${name}`]));
      const url = `${path.replace(/\{(\w+)\}/g, 'x%20$1')}?a=1&a=2&b=%41&c[d]=3`;
      const query = { a: ['1', '2'], b: 'A', 'c[d]': '3' };
      expect(await found(method.toUpperCase(), url), url).to.deep.equal({ method, path, params, query });
    }
  }).timeout(20_000);

  it('ignores one slash at the end, and nothing else', async () => {
    for (const url of ['/api/agents', '/api/agents/', '/api/agents/?a=1'])
      expect(await found('GET', url), url).to.include({ path: '/api/agents' });
    for (const url of ['/api//agents', '//api/agents', '/api/agents//', '/api', '/API/agents', '/%'])
      expect(await found('GET', url), url).to.be.oneOf([401, 404]);
    expect(await found('GET', '/api/agents/%zz')).to.equal(400);
    expect(await found('GET', '/api/agents/a%2Fb')).to.deep.include({
      path: '/api/agents/{id}',
      params: { id: 'a/b' },
    });
  });

  it('serves HEAD as GET without a body, and refuses other methods with those that exist', async () => {
    expect(await send('HEAD', '/api/agents')).to.deep.include({ status: 200, body: '' });
    for (const method of ['PATCH', 'OPTIONS', 'PROPFIND']) {
      const { status, headers, body } = await send(method, '/api/agents');
      expect([status, headers.allow], method).to.deep.equal([405, 'GET, POST, PUT']);
      expect(body.error).to.equal(`${method} is not supported here; use GET, POST, PUT.`);
    }
  });

  it('sends the same security headers with every response', async () => {
    for (const path of ['/api/agents', '/nowhere', '/mounted', '/mounted/rejects']) {
      const { headers } = await send('GET', path);
      expect(headers, path).to.include({
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'self';style-src 'self' 'unsafe-inline';img-src 'self' data:;frame-ancestors 'none';base-uri 'none';form-action 'self'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'origin-agent-cluster': '?1',
        'permissions-policy': 'camera=(), microphone=(), geolocation=()',
        'referrer-policy': 'strict-origin-when-cross-origin',
        'strict-transport-security': 'max-age=31536000; includeSubDomains',
        'x-content-type-options': 'nosniff',
        'x-dns-prefetch-control': 'off',
        'x-download-options': 'noopen',
        'x-frame-options': 'DENY',
        'x-permitted-cross-domain-policies': 'none',
        'x-xss-protection': '0',
      });
      expect(headers).not.to.have.any.keys('x-powered-by', 'etag');
    }
  });

  it('gives a mounted handler everything of Express, and the request context', async () => {
    const { status, headers, body } = await send('GET', '/mounted?a=1');
    expect(status).to.equal(200);
    expect(body).to.deep.equal({
      id: headers['x-request-id'],
      ip: '127.0.0.1',
      host: `127.0.0.1:${port}`,
      query: { a: '1' },
      app: true,
    });
    expect((await send('GET', '/mounted/within/path?a=1')).body).to.deep.equal({ url: '/path?a=1' });
    expect(lines.map((line) => JSON.parse(line).url)).to.include.members(['/mounted', '/mounted/within/path']);
  });

  it('sends the error of a mounted handler, without internal details', async () => {
    expect(await send('GET', '/mounted/throws')).to.deep.include({ status: 418, body: { error: 'Too hot.' } });
    expect(await send('GET', '/mounted/rejects')).to.deep.include({
      status: 500,
      body: { error: 'Internal server error' },
    });
  });

  it('leaves the prototypes of requests and responses as Node made them', async () => {
    const setPrototypeOf = Object.setPrototypeOf;
    let changes = 0;
    Object.setPrototypeOf = (one: object, prototype: object | null) => {
      if (Object.getPrototypeOf(one) !== prototype && made.flat().includes(Object.getPrototypeOf(one))) changes++;
      return setPrototypeOf(one, prototype);
    };
    try {
      expect((await send('GET', '/mounted/prototypes')).body).to.deep.equal([true, true]);
    } finally {
      Object.setPrototypeOf = setPrototypeOf;
    }
    expect(changes).to.equal(0);
  });
});
