/**
 * docs/deployment.md: its nginx configuration in front of the real service, with TLS and below a path, and what its
 * systemd unit and its Kubernetes manifests name. Needs TEST_NGINX, and TEST_CHROMIUM for the console.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:https';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { SETTINGS } from '../../infra/config.ts';
import { Browser, CHROMIUM } from '../console/browser.ts';
import { needs } from '../support/needs.ts';
import { type Certificate, makeCertificate, NGINX, startNginx } from '../support/nginx.ts';
import { OIDC_CLIENT, OIDC_SECRET, startOidcProvider, type TestProvider } from '../support/oidc.ts';
import { send, startTestService, TEST_ADMIN, type TestService } from '../support/service.ts';
import { commandLine, freePort } from '../support/service-process.ts';

const top = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/deployment.md', top), 'utf8');

function blockOf(name: string): string {
  const block = new RegExp(`<!-- ${name}:start -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\`\n<!-- ${name}:end -->`).exec(
    page,
  )?.[1];
  if (block === undefined) throw new Error(`docs/deployment.md has no ${name}`);
  return block;
}

/** A name that browsers of the tests resolve to this machine (`test/console/browser.ts`). */
const HOST = 'signalbox.test';

/** Each change of the configuration that the page allows. */
const PROXIES: readonly (readonly [title: string, change: (config: string) => string])[] = [
  ['removes the path', (config) => config],
  ['passes the path on', (config) => config.replace(/(proxy_pass http:\/\/[\d.:]+)\/;/, '$1;')],
];

describe('deployment.md: nginx with TLS and a path', function () {
  this.timeout(180_000);
  let certificate: Certificate;
  let provider: TestProvider;
  let world: TestService;
  let browser: Browser;
  let port: number;
  let url: string;
  let agent: Agent;

  const configured = (change: (config: string) => string) =>
    change(
      blockOf('nginx')
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('127.0.0.1:3000', new URL(world.url).host)
        .replaceAll('/etc/ssl/certs/example.com.pem', certificate.cert)
        .replaceAll('/etc/ssl/private/example.com.key', certificate.key)
        .replaceAll('example.com', HOST),
    );

  before(async function () {
    needs('TEST_NGINX', NGINX, this);
    certificate = await makeCertificate(`DNS:${HOST},IP:127.0.0.1`);
    agent = new Agent({ ca: readFileSync(certificate.cert), keepAlive: true });
    port = await freePort();
    url = `https://${HOST}:${port}/signalbox`;
    provider = await startOidcProvider(() => [`${url}/`]);
    world = await startTestService({
      PUBLIC_URL: url,
      MC_TRUSTED_PROXIES: '127.0.0.1',
      MC_ALLOWED_HOSTS: 'other.example',
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT,
      OIDC_CLIENT_SECRET: OIDC_SECRET,
      OIDC_NAME: 'Example ID',
      OIDC_ROLES: 'staff=operator',
    });
    if (CHROMIUM) browser = await Browser.open();
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    agent?.destroy();
    await browser?.close();
    await world?.close();
    await provider?.stop();
    await certificate?.remove();
  });

  /** A request as a client of the public URL sends it. */
  const call = (path: string, options: RequestOptions = {}, body?: unknown) =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
      const headers = { host: `${HOST}:${port}`, ...options.headers };
      request(`https://127.0.0.1:${port}${path}`, { agent, servername: HOST, ...options, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
      })
        .on('error', reject)
        .end(body === undefined ? undefined : JSON.stringify(body));
    });
  const key = () => ({ 'x-api-key': world.adminKey });
  const open = async () => {
    const shown = await browser.page();
    await shown.send('Security.setIgnoreCertificateErrors', { ignore: true });
    return shown;
  };

  for (const [title, change] of PROXIES) {
    describe(`that ${title}`, () => {
      let nginx: { stop(): Promise<void> };

      before(async () => {
        nginx = await startNginx(configured(change), port);
      });
      after(() => nginx?.stop());

      it('serves the console: signing in, live changes, links and reloading', async function () {
        needs('TEST_CHROMIUM', CHROMIUM, this);
        const shown = await open();
        await shown.goto(`https://${HOST}:${port}/signalbox`);
        await shown.click('input[name=username]');
        await shown.type(TEST_ADMIN.username);
        await shown.click('input[name=password]');
        await shown.type(TEST_ADMIN.password);
        await shown.press('Enter');
        await shown.until("document.querySelector('main#view h1')");
        await shown.click('nav a', 'Tasks');
        await shown.until(`location.href === ${JSON.stringify(`${url}/tasks`)}`);
        const task = await call(
          '/signalbox/api/tasks',
          { method: 'POST', headers: key() },
          { title: `Way out, ${title}` },
        );
        expect(task.status, task.body).to.equal(201);
        const { id } = JSON.parse(task.body).task as { id: number };
        await shown.has(`Way out, ${title}`);
        await shown.click(`a.card[href$="/tasks/${id}"]`);
        await shown.until(`location.pathname === '/signalbox/tasks/${id}'`);
        await shown.send('Page.reload');
        await shown.has('History');
        const { cookies } = (await shown.send('Network.getCookies', { urls: [`${url}/`] })) as {
          cookies: { name: string; path: string; secure: boolean; httpOnly: boolean; sameSite: string }[];
        };
        expect(
          cookies.map(({ name, path, secure, httpOnly, sameSite }) => [name, path, secure, httpOnly, sameSite]),
        ).to.deep.equal([['__Secure-mc-session', '/signalbox', true, true, 'Strict']]);
        const foreign = await shown.send('Network.getCookies', { urls: [`https://${HOST}:${port}/other`] });
        expect(foreign.cookies).to.deep.equal([]);
        expect(shown.faults).to.deep.equal([]);
      });

      it('signs in through the identity provider, which sends the browser back below the path', async function () {
        needs('TEST_CHROMIUM', CHROMIUM, this);
        provider.accounts.set('sub-ida', { preferred_username: 'ida', groups: ['staff'] });
        const shown = await open();
        await shown.goto(`${url}/agents`);
        await shown.click('button', 'Sign in with Example ID');
        await shown.until('document.querySelector("input[name=login]")');
        await shown.click('input[name=login]');
        await shown.type('sub-ida');
        await shown.click('input[name=password]');
        await shown.type('any');
        await shown.press('Enter');
        await shown.until('document.querySelector("input[value=consent]")');
        await shown.click('button', 'Continue');
        await shown.until("document.querySelector('main#view h1')");
        expect(await shown.ask('location.href')).to.equal(`${url}/agents`);
        expect(shown.faults).to.deep.equal([]);
      });

      it('names the public URL in the description, and knows the client and the scheme', async () => {
        const { servers } = JSON.parse((await call('/signalbox/api/docs')).body);
        expect(servers).to.deep.equal([{ url, description: 'This server' }]);
        const signedIn = await call('/signalbox/api/auth/login', { method: 'POST' }, TEST_ADMIN);
        expect(signedIn.headers['set-cookie']).to.match(/^__Secure-mc-session=\w+; Path=\/signalbox; .*Secure/);
        expect((await call('/signalbox/health/ready')).status).to.equal(200);
        expect((await call('/signalbox/nowhere')).status).to.equal(404);
      });

      it('serves the MCP bridge and the client, which take the whole URL', async () => {
        const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: certificate.cert, SIGNALBOX_KEY: world.adminKey };
        const reached = `https://127.0.0.1:${port}/signalbox`;
        const running = promisify(execFile)(process.execPath, commandLine('mcp', '--url', reached), { env });
        running.child.stdin?.end(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`);
        const { stdout } = await running;
        expect(JSON.parse(stdout).result.tools, stdout).to.have.length.above(20);
        const script = `
          import { createClient } from ${JSON.stringify(new URL('../../client/index.js', import.meta.url).href)};
          const client = createClient({ url: ${JSON.stringify(`${reached}/`)}, apiKey: process.env.SIGNALBOX_KEY });
                    const frames = client.events({ onState: ({ state }) => state === 'live' && client.call('POST /api/tasks', { body: { title: 'by the client' } }) });
          for await (const { type } of frames) { console.log(type); break; }
        `;
        const client = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env });
        expect(client.stdout).to.equal('task.created\n');
      });
    });
  }

  describe('that removes the path, and /docs', () => {
    it('serves the page, from which calls reach the service', async function () {
      needs('TEST_CHROMIUM', CHROMIUM, this);
      const nginx = await startNginx(
        configured((config) => config),
        port,
      );
      try {
        const shown = await open();
        await shown.goto(`${url}/docs`);
        await shown.click('.opblock-summary-control', 'GET');
        await shown.until("document.querySelector('.opblock.is-open')");
        // The address to which Swagger UI sends calls.
        await shown.until("document.querySelector('.servers select')?.value");
        expect(await shown.ask("document.querySelector('.servers select').value")).to.equal(url);
        const health = "fetch(document.querySelector('.servers select').value + '/api/health')";
        expect(await shown.ask(`${health}.then(({ status }) => status)`)).to.equal(200);
        expect(shown.faults).to.deep.equal([]);
      } finally {
        await nginx.stop();
      }
    });
  });

  describe('that replaces the Host header', () => {
    it('accepts writes of pages of the public URL, and no others', async () => {
      const nginx = await startNginx(
        configured((config) => config.replace(/ *proxy_set_header Host .*\n/, '')),
        port,
      );
      try {
        const write = (origin: string) =>
          call(
            '/signalbox/api/auth/login',
            { method: 'POST', headers: { origin, 'sec-fetch-site': 'same-origin' } },
            TEST_ADMIN,
          );
        expect((await write(`https://${HOST}:${port}`)).status).to.equal(200);
        for (const origin of [`http://${HOST}:${port}`, `https://${HOST}`, 'https://other.test', 'null'])
          expect((await write(origin)).status, origin).to.equal(403);
      } finally {
        await nginx.stop();
      }
    });
  });
});

describe('deployment.md: systemd and Kubernetes', () => {
  const known = [...Object.values(SETTINGS).map(({ env }) => env), 'NODE_ENV', 'MALLOC_MMAP_THRESHOLD_'];
  const bin = Object.values(JSON.parse(readFileSync(new URL('package.json', top), 'utf8')).bin)[0] as string;

  it('the unit starts the program with known settings, and stops it no sooner than it may take', () => {
    const lines = blockOf('systemd')
      .split('\n')
      .map((line) => line.split(/=(.*)/));
    const valuesOf = (name: string) => lines.filter(([key]) => key === name).map(([, value = '']) => value);
    expect(valuesOf('ExecStart')[0]).to.match(new RegExp(`/opt/signalbox/${bin} start$`));
    for (const value of valuesOf('Environment')) expect(known).to.include(value.split('=')[0]);
    expect(Number(valuesOf('TimeoutStopSec')[0]) * 1_000).to.be.above(SETTINGS.shutdownTimeoutMs.fallback + 5_000);
  });

  it('the manifests fit together, with known settings and probes that respond to the kubelet', async function () {
    this.timeout(60_000);
    const manifests = parseAllDocuments(blockOf('kubernetes')).map((one) => one.toJS());
    // biome-ignore lint/suspicious/noExplicitAny: manifests are looked into freely.
    const of = (kind: string): any => manifests.find((one) => one.kind === kind);
    const { replicas, strategy, selector, template } = of('Deployment').spec;
    const [container] = template.spec.containers;
    expect([replicas, strategy.type]).to.deep.equal([1, 'Recreate']);
    expect(template.metadata.labels).to.deep.equal(selector.matchLabels).and.deep.equal(of('Service').spec.selector);
    expect(template.spec.volumes[0].persistentVolumeClaim.claimName).to.equal(
      of('PersistentVolumeClaim').metadata.name,
    );
    expect(container.envFrom[0].secretRef.name).to.equal(of('Secret').metadata.name);
    expect(readFileSync(new URL('docker-compose.yml', top), 'utf8')).to.include(`image: ${container.image}\n`);
    expect(readFileSync(new URL('Dockerfile', top), 'utf8')).to.include(
      `PORT=${container.ports[0].containerPort} DATA_DIR=${container.volumeMounts[0].mountPath}\n`,
    );
    expect(template.spec.terminationGracePeriodSeconds * 1_000).to.be.above(
      SETTINGS.shutdownTimeoutMs.fallback + 5_000,
    );
    const { periodSeconds, failureThreshold } = container.startupProbe;
    expect(periodSeconds * failureThreshold * 1_000).to.be.above(SETTINGS.startTimeoutMs.fallback);
    const env: Record<string, string> = Object.fromEntries(
      container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
    );
    for (const name of [...Object.keys(env), ...Object.keys(of('Secret').stringData)]) expect(known).to.include(name);
    const service = await startTestService(env);
    try {
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        const { path } = container[probe].httpGet;
        const headers = { host: '10.42.0.7:3000', 'user-agent': 'kube-probe/1.34' };
        expect((await send(service, 'GET', path, headers)).resume().statusCode, path).to.equal(200);
      }
      for (const [host, status] of [
        ['10.42.0.7:3000', 403],
        ['signalbox:3000', 200],
        ['example.com', 200],
      ] as const)
        expect((await send(service, 'GET', '/api/setup', { host })).resume().statusCode, host).to.equal(status);
    } finally {
      await service.close();
    }
  });
});
