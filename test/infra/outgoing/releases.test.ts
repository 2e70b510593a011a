/** The feed of releases, played by a local server that answers, fails, hangs and sends too much. */
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { createReleases } from '../../../infra/outgoing/releases.ts';
import { isNewer } from '../../../shared/contract/releases.ts';
import { fixture } from '../../support/fixture.ts';
import { listen } from '../../support/listen.ts';

describe('the release feed', () => {
  let answer: RequestListener;
  let asked = 0;
  const server = fixture(() =>
    listen((req, res) => {
      asked++;
      answer(req, res);
    }),
  );
  beforeEach(() => {
    asked = 0;
  });
  const RELEASE = { tag_name: 'v1.2.3', html_url: 'https://example.org/r/1.2.3', body: 'News' };
  const sends =
    (status: number, body: unknown, headers: Record<string, string> = {}): RequestListener =>
    (_req, res) =>
      res.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  const errorOf = async (options: { releasesUrl?: string; timeoutMs?: number } = {}) => {
    const latest = await createReleases({ releasesUrl: `${server.url}/latest`, ...options }).latest();
    return 'error' in latest ? latest.error : JSON.stringify(latest);
  };

  it('is requested once an hour, and once for concurrent callers', async () => {
    answer = sends(200, RELEASE);
    let now = 0;
    const releases = createReleases({ releasesUrl: `${server.url}/latest` }, () => now);
    const found = { version: '1.2.3', url: RELEASE.html_url, notes: 'News' };
    expect(await Promise.all([releases.latest(), releases.latest()])).to.deep.equal([found, found]);
    now = 3_599_999;
    await releases.latest();
    expect(asked).to.equal(1);
    now = 3_600_000;
    await releases.latest();
    expect(asked).to.equal(2);
  });

  it('is requested again ten minutes after a failure', async () => {
    answer = sends(500, '');
    let now = 0;
    const releases = createReleases({ releasesUrl: `${server.url}/latest` }, () => now);
    expect(await releases.latest()).to.deep.equal({ error: 'The release feed responded with status 500.' });
    answer = sends(200, RELEASE);
    now = 599_999;
    expect(await releases.latest()).to.have.property('error');
    now = 600_000;
    expect(await releases.latest()).to.include({ version: '1.2.3' });
  });

  it('has a time limit, and an error message for every failure', async () => {
    answer = () => undefined;
    expect(await errorOf({ timeoutMs: 100 })).to.equal('The release feed did not respond within 100 ms.');
    answer = (_req, res) => res.writeHead(200).write('{"tag_name":');
    expect(await errorOf({ timeoutMs: 100 })).to.equal('The release feed did not respond within 100 ms.');
    answer = (req) => req.socket.destroy();
    expect(await errorOf()).to.match(/^The release feed could not be reached \(\w+\)\.$/);
    answer = sends(302, '', { location: `${server.url}/latest` });
    expect(await errorOf()).to.equal('The release feed responded with status 302.');
    expect(asked, 'redirects are not followed').to.equal(4);
    answer = sends(200, ' '.repeat(1_000_001));
    expect(await errorOf()).to.equal('The release feed sent more than 1000000 bytes.');
    for (const body of ['<html>', [], { ...RELEASE, html_url: 'no URL' }, { tag_name: '' }]) {
      answer = sends(200, body);
      expect(await errorOf()).to.equal('The release feed returned something other than a release.');
    }
    expect(await errorOf({ releasesUrl: 'http://127.0.0.1:1/latest' })).to.match(/could not be reached/);
    expect(await createReleases({ releasesUrl: undefined }).latest())
      .to.have.property('error')
      .that.includes('RELEASES_URL');
  });
});

describe('a newer version', () => {
  it('is detected by comparing versions number by number', () => {
    for (const [version, than] of [
      ['1.10.0', '1.9.9'],
      ['v2', '1.99'],
      ['1.0.1', '1'],
      ['V1.2.3.4', 'v1.2.3'],
    ] as const) {
      expect(isNewer(version, than), `${version} than ${than}`).to.equal(true);
      expect(isNewer(than, version), `${than} than ${version}`).to.equal(false);
    }
    for (const [version, than] of [
      ['1.0', '1'],
      ['latest', '1.0.0'],
      ['1.0.0-beta', '1.0.0'],
      ['', ''],
    ] as const) {
      expect(isNewer(version, than), `${version} than ${than}`).to.equal(false);
    }
  });
});
