/** The egress proxy: which requests go through it. A local proxy records what it is asked for. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { createOutgoing } from '../../../infra/outgoing/post.ts';
import { proxyOf } from '../../../infra/outgoing/proxy.ts';
import { createReleases } from '../../../infra/outgoing/releases.ts';
import { createAddressRule } from '../../../shared/addresses.ts';
import { fixture } from '../../support/fixture.ts';
import { listen } from '../../support/listen.ts';

const NAMES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);

describe('the egress proxy', () => {
  const before = NAMES.map((name) => [name, process.env[name]] as const);
  const seen: string[] = [];
  const proxy = fixture(async () => {
    const listening = await listen((req, res) => {
      seen.push(`${req.method} ${req.url}`);
      res.end(JSON.stringify({ tag_name: 'v1.2.3', html_url: 'https://example.org/r/1.2.3' }));
    });
    return listening;
  });
  beforeEach(() => {
    for (const name of NAMES) delete process.env[name];
    seen.length = 0;
  });
  after(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });

  it('receives requests to http URLs of the operator, but not to those of users', async () => {
    process.env.http_proxy = proxy.url;
    const releases = createReleases({ releasesUrl: 'http://releases.example/latest' });
    expect(await releases.latest()).to.include({ version: '1.2.3' });
    expect(seen).to.deep.equal(['GET http://releases.example/latest']);
    const outgoing = createOutgoing({
      rule: createAddressRule([]),
      timeoutMs: 5_000,
      lookup: ((_host: string, _options: object, done: (error: null, found: object[]) => void) =>
        done(null, [{ address: '10.1.2.3', family: 4 }])) as never,
    });
    const { error } = await outgoing.post({ url: 'http://hook.example/', headers: {}, body: '{}' });
    expect(error).to.equal('hook.example does not resolve to a public address.');
    expect(seen).to.have.length(1);
  });

  it('tunnels https by CONNECT, with the credentials of its URL, and TLS inside', async () => {
    const hellos: Buffer[] = [];
    const target = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (first: Buffer) => {
        hellos.push(first);
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
    proxy.server.once('connect', (req, socket) => {
      seen.push(`CONNECT ${req.url} ${req.headers['proxy-authorization']}`);
      const up = connect((target.address() as AddressInfo).port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        up.pipe(socket).pipe(up);
      });
      for (const end of [up, socket]) end.on('error', () => undefined);
    });
    try {
      process.env.HTTPS_PROXY = proxy.url.replace('//', '//me:secret@');
      const latest = await createReleases({ releasesUrl: 'https://releases.example/latest' }).latest();
      expect(latest)
        .to.have.property('error')
        .that.matches(/^The release feed could not be reached/);
      expect(seen).to.deep.equal([`CONNECT releases.example:443 Basic ${btoa('me:secret')}`]);
      // A TLS record with the name of the target.
      expect(hellos[0]?.[0]).to.equal(0x16);
      expect(hellos[0]?.includes('releases.example')).to.equal(true);
    } finally {
      target.close();
    }
  });

  it('is not used for the host itself and what NO_PROXY lists', () => {
    const used = (url: string, NO_PROXY = '') =>
      proxyOf(new URL(url), { HTTPS_PROXY: 'proxy.example:3128', NO_PROXY }) !== undefined;
    expect(proxyOf(new URL('https://id.example/'), { https_proxy: 'proxy.example:3128' })).to.equal(
      'http://proxy.example:3128',
    );
    expect(used('http://id.example/'), 'another scheme').to.equal(false);
    for (const host of ['localhost', '127.0.0.1', '[::1]', 'app.localhost'])
      expect(used(`https://${host}:8443/`), host).to.equal(false);
    const EXCLUDED: readonly (readonly [url: string, list: string])[] = [
      ['https://id.example/', '*'],
      ['https://id.example/', 'other.example, ID.example'],
      ['https://id.corp.example/', 'corp.example'],
      ['https://id.corp.example/', '.corp.example'],
      ['https://id.corp.example/', '*.corp.example'],
      ['https://id.example:8443/', 'id.example:8443'],
      ['https://10.2.3.4/', '10.0.0.0/8'],
      ['https://[fd00::7]/', 'fd00::/8'],
      ['https://192.0.2.1/', '192.0.2.1'],
    ];
    for (const [url, list] of EXCLUDED) expect(used(url, list), `${url} ${list}`).to.equal(false);
    for (const [url, list] of [
      ['https://id.example/', 'd.example'],
      ['https://id.example/', 'id.example:8443'],
      ['https://11.2.3.4/', '10.0.0.0/8'],
    ] as const)
      expect(used(url, list), `${url} ${list}`).to.equal(true);
  });
});
