/** What a request's headers say of its client: which address and which scheme count. */
import { expect } from 'chai';
import { beginContext } from '../../api/http/context.ts';
import { networksOf } from '../../shared/addresses.ts';

type Headers = Readonly<Record<string, string>>;
type Parameters4 = Parameters<typeof beginContext>;

const contextOf = (headers: Headers, { peer = '10.0.0.1', proxies = ['10.0.0.0/8'] } = {}) =>
  beginContext(
    { headers, socket: { remoteAddress: peer } } as unknown as Parameters4[0],
    {} as Parameters4[1],
    { responseStallMs: 1 },
    networksOf(proxies),
  );

describe('client of a request', () => {
  const ip = (forwarded: string, more: Parameters<typeof contextOf>[1] = {}) =>
    contextOf({ 'x-forwarded-for': forwarded }, more).ip;

  it('has the right-most forwarded address that is not a trusted proxy, without its port', () => {
    expect(ip('203.0.113.8:4711')).to.equal('203.0.113.8');
    expect(ip('192.0.2.1, 203.0.113.8:4712, 10.9.9.9:80')).to.equal('203.0.113.8');
    expect(ip('[2001:DB8::0:1]:4711')).to.equal('2001:db8::1');
    expect(ip('::ffff:203.0.113.8')).to.equal('203.0.113.8');
    expect(ip('203.0.113.8, 10.0.0.1', { peer: '::ffff:10.0.0.1' })).to.equal('203.0.113.8');
    expect(ip('0:0:0:0:0:0:0:1', { proxies: ['10.0.0.1', '::1'] }), 'only proxies').to.equal('10.0.0.1');
    expect(contextOf({ 'x-real-ip': '[2001:db8::1]:9' }).ip).to.equal('2001:db8::1');
  });

  it('has the address of the proxy if the forwarded text is no address', () => {
    for (const text of ['unknown', '_id1', '192.0.2.1, unknown', '192.0.2.1, x:1, 10.0.0.2', 'a'.repeat(200)])
      expect(ip(text), text).to.equal('10.0.0.1');
    expect(contextOf({ 'x-real-ip': 'unknown' }).ip).to.equal('10.0.0.1');
  });

  it('has the address of the connection if that is not from a trusted proxy', () => {
    expect(ip('203.0.113.8', { peer: '::ffff:192.0.2.7' })).to.equal('192.0.2.7');
    expect(contextOf({}, { peer: 'fe80::1%eth0' })).to.include({ ip: 'fe80::1', peer: 'fe80::1', trusted: false });
  });

  it('has the scheme that the first proxy names, in any case', () => {
    const secure: readonly Headers[] = [
      { 'x-forwarded-proto': 'https' },
      { 'x-forwarded-proto': 'HTTPS' },
      { 'x-forwarded-proto': ' https , http' },
      { forwarded: 'for=192.0.2.1;proto=https' },
      { forwarded: 'proto="HTTPS";for=192.0.2.1, for=10.0.0.1;proto=http' },
    ];
    for (const headers of secure) expect(contextOf(headers).secure, JSON.stringify(headers)).to.equal(true);
    const plain: readonly Headers[] = [
      {},
      { 'x-forwarded-proto': 'http, https' },
      { 'x-forwarded-proto': 'http', forwarded: 'proto=https' },
      { forwarded: 'for=192.0.2.1, proto=https' },
      { forwarded: 'xproto=https' },
    ];
    for (const headers of plain) expect(contextOf(headers).secure, JSON.stringify(headers)).to.equal(false);
  });
});
