/** Which hosts a request is for, and which requests a page of another site may have made. */
import { expect } from 'chai';
import { hostAllowed, hostKnown, isCrossSite } from '../../api/http/hosts.ts';

type Headers = Readonly<Record<string, string>>;

const asked = (headers: Headers, { trusted = false, secure = false } = {}) =>
  ({ req: { headers }, trusted, secure }) as unknown as Parameters<typeof isCrossSite>[0];

const ALLOWED = { allowAnyHost: false, allowedHosts: ['box.example.com', '*.inner.example', '100.*', 'lab.*'] };

describe('allowed hosts of a request', () => {
  it('match by name, suffix or prefix; addresses match only as a whole', () => {
    const allowed = (host: string) => hostAllowed(asked({ host }), ALLOWED);
    for (const host of [
      'box.example.com',
      'BOX.example.com:3000',
      'a.inner.example',
      '100.64.0.7:80',
      'lab.example.org',
    ])
      expect(allowed(host), host).to.equal(true);
    for (const host of ['evil.example', 'inner.example', '100.evil.example', '10.0.0.1', 'evil.example,localhost'])
      expect(allowed(host), host).to.equal(false);
    for (const host of ['localhost:3000', '127.0.0.1', '[::1]:3000']) expect(allowed(host), host).to.equal(true);
  });

  it('are taken from forwarded headers only if a trusted proxy sends them', () => {
    const named: readonly Headers[] = [
      { 'x-forwarded-host': 'localhost' },
      { 'x-original-host': 'localhost' },
      { 'x-forwarded-server': 'localhost' },
      { forwarded: 'for=192.0.2.1;host="box.example.com";proto=https' },
    ];
    for (const header of named) {
      const headers = { host: 'evil.example', ...header };
      expect(hostAllowed(asked(headers), ALLOWED), JSON.stringify(header)).to.equal(false);
      expect(hostAllowed(asked(headers, { trusted: true }), ALLOWED), JSON.stringify(header)).to.equal(true);
    }
  });

  it('are the hosts named by the operator and loopback names', () => {
    const known = (headers: Headers, trusted = false, settings = ALLOWED) =>
      hostKnown(asked(headers, { trusted }), settings);
    for (const host of ['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'LOCALHOST.', 'box.example.com:8443'])
      expect(known({ host }), host).to.equal(true);
    for (const host of ['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '192.0.2.1', ''])
      expect(known({ host }), host).to.equal(false);
    expect(known({ host: 'evil.example' }, false, { allowAnyHost: true, allowedHosts: [] })).to.equal(false);
    // The name that the client used is the forwarded one, wherever the proxy sends the request.
    expect(known({ host: '127.0.0.1', 'x-forwarded-host': 'evil.example' }, true)).to.equal(false);
    expect(known({ host: 'upstream', 'x-forwarded-host': 'box.example.com' }, true)).to.equal(true);
    expect(known({ host: 'evil.example', 'x-forwarded-host': 'localhost' }, false)).to.equal(false);
  });
});

describe('cross-site requests', () => {
  const OWN = 'http://box.example.com:3000';
  const session = (headers: Headers, more: { trusted?: boolean; secure?: boolean } = {}) =>
    isCrossSite(asked({ host: 'box.example.com:3000', ...headers }, more), {}, false);

  it('are detected by Sec-Fetch-Site', () => {
    for (const site of ['cross-site', 'same-site', '', 'same-origin, none'])
      expect(session({ 'sec-fetch-site': site, origin: OWN }), site).to.equal(true);
    for (const site of ['same-origin', 'none']) {
      expect(session({ 'sec-fetch-site': site }), site).to.equal(false);
      expect(session({ 'sec-fetch-site': site, origin: OWN }), site).to.equal(false);
      expect(session({ 'sec-fetch-site': site, origin: 'null' }), `${site}, opaque`).to.equal(true);
    }
  });

  it('are detected by an Origin that is opaque, unparsable, or of another host or port', () => {
    for (const origin of [
      'null',
      '::',
      '',
      'http://',
      'https://evil.example',
      'http://box.example.com',
      'http://box.example.com:3001',
      'https://box.example.com:443',
      'http://a.box.example.com:3000',
      'http://box.example.com.evil.example:3000',
      'file://',
      'chrome-extension://box.example.com',
      `${OWN}, http://evil.example`,
    ])
      expect(session({ origin }), origin).to.equal(true);
    for (const origin of [OWN, 'http://BOX.example.com:3000']) expect(session({ origin }), origin).to.equal(false);
    expect(session({}), 'neither header').to.equal(false);
  });

  it('are detected without regard to the default port of the scheme', () => {
    const at = (host: string, origin: string, secure: boolean) =>
      isCrossSite(asked({ host, origin }, { secure }), {}, false);
    for (const host of ['box.example.com', 'box.example.com:443']) {
      expect(at(host, 'https://box.example.com', true), host).to.equal(false);
      // Behind a proxy that ends TLS and does not say so.
      expect(at(host, 'https://box.example.com', false), host).to.equal(false);
      expect(at(host, 'https://box.example.com:8443', true), host).to.equal(true);
    }
    expect(at('box.example.com', 'http://box.example.com', false)).to.equal(false);
    expect(at('box.example.com', 'http://box.example.com', true), 'port 80 for port 443').to.equal(true);
    expect(at('[::1]:3000', 'http://[0:0::1]:3000', false)).to.equal(false);
  });

  it('exclude requests from a forwarded host only if a trusted proxy forwards it', () => {
    const forwarded = { 'x-forwarded-host': 'public.example', origin: 'https://public.example' };
    expect(session(forwarded, { trusted: true, secure: true })).to.equal(false);
    expect(session(forwarded, { secure: true })).to.equal(true);
  });

  it('with only an API key are detected only by a different host name, as clients rely on', () => {
    const key = (headers: Headers) => isCrossSite(asked({ host: 'box.example.com:3000', ...headers }), {}, true);
    for (const origin of ['https://evil.example', 'http://a.box.example.com:3000'])
      expect(key({ origin }), origin).to.equal(true);
    for (const origin of ['null', '::', 'http://box.example.com:3001', OWN])
      expect(key({ origin }), origin).to.equal(false);
    expect(key({ 'sec-fetch-site': 'cross-site' })).to.equal(false);
  });
});
