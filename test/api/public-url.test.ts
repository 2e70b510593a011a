import { expect } from 'chai';
import { hostAllowed, hostKnown, isCrossSite } from '../../api/http/hosts.ts';
import { checkBasePath, pathRemover } from '../../api/http/public-url.ts';
import { routes } from '../../api/routes/index.ts';

type Headers = Readonly<Record<string, string>>;
const asked = (headers: Headers) =>
  ({ req: { headers }, trusted: false, secure: true }) as unknown as Parameters<typeof isCrossSite>[0];

describe('the public URL', () => {
  const publicUrl = 'https://box.example.com:8443/signalbox';

  it('has a path that is removed from requests; paths without it stay', () => {
    const remove = pathRemover({ publicUrl });
    const cases: readonly (readonly [sent: string, seen: string])[] = [
      ['/signalbox', '/'],
      ['/signalbox/', '/'],
      ['/signalbox?code=1', '/?code=1'],
      ['/signalbox/api/agents?limit=1', '/api/agents?limit=1'],
      ['/signalbox/signalbox', '/signalbox'],
      ['/api/agents', '/api/agents'],
      ['/signalboxes', '/signalboxes'],
      ['/Signalbox/', '/Signalbox/'],
      ['*', '*'],
    ];
    for (const [sent, seen] of cases) {
      const req = { url: sent };
      remove(req);
      expect(req.url, sent).to.equal(seen);
    }
    const req = { url: '/signalbox' };
    pathRemover({})(req);
    pathRemover({ publicUrl: 'https://box.example.com' })(req);
    expect(req.url).to.equal('/signalbox');
  });

  it('is refused if its path begins like a path of the service', () => {
    const paths = routes.map(({ path }) => path);
    for (const path of ['/api', '/tasks', '/docs/box', '/mcp', '/health'])
      expect(() => checkBasePath({ publicUrl: `https://example.com${path}` }, paths), path).to.throw(
        /PUBLIC_URL: its path begins with \/.*Choose another path/,
      );
    for (const url of [undefined, 'https://example.com', publicUrl, 'https://example.com/apis/x'])
      checkBasePath({ publicUrl: url }, paths);
  });

  it('has a host that is allowed and known, and an origin whose pages may write', () => {
    const settings = { publicUrl, allowAnyHost: false, allowedHosts: ['other.example.com'] };
    expect(hostAllowed(asked({ host: 'box.example.com' }), settings)).to.equal(true);
    expect(hostAllowed(asked({ host: 'evil.example.com' }), settings)).to.equal(false);
    expect(hostKnown(asked({ host: 'box.example.com:8443' }), { ...settings, allowedHosts: [] })).to.equal(true);
    expect(hostKnown(asked({ host: 'evil.example.com' }), { ...settings, allowedHosts: [] })).to.equal(false);
    const isRefused = (origin: string, more: Headers = {}) =>
      isCrossSite(asked({ host: 'upstream', origin, ...more }), settings, false);
    expect(isRefused('https://box.example.com:8443')).to.equal(false);
    expect(isRefused('https://box.example.com:8443', { 'sec-fetch-site': 'cross-site' })).to.equal(true);
    for (const origin of ['https://box.example.com', 'http://box.example.com:8443', 'https://evil.example.com', 'null'])
      expect(isRefused(origin), origin).to.equal(true);
  });
});
