/** Which addresses requests on behalf of users may go to. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ADMINS_ADDRESSES, createAddressRule, networksOf, parseNetwork, plainAddress } from '../../shared/addresses.ts';

const words = (text: string): string[] => text.split(/\s+/);

const NOT_PUBLIC = words(`0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
  172.31.255.255 192.0.2.1 192.168.1.1 198.18.0.1 198.19.255.255 203.0.113.9 224.0.0.1 240.0.0.1
  255.255.255.255`);
const NOT_PUBLIC_6 =
  words(`:: ::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 100::1 2001:db8::1 2002:7f00:1:: 64:ff9b::7f00:1
  2001::1 ::127.0.0.1 4000::1`);
const PUBLIC = ['1.1.1.1', '8.8.8.8', '172.15.0.1', '172.32.0.1', '100.63.0.1', '2606:4700::1111', '2a00:1450::1'];

describe('network addresses', () => {
  const rule = createAddressRule([]);

  it('public addresses are allowed, all others are not', () => {
    for (const address of PUBLIC) expect(rule.allows(address), address).to.equal(true);
    for (const address of [...NOT_PUBLIC, ...NOT_PUBLIC_6]) expect(rule.allows(address), address).to.equal(false);
    for (const text of ['', 'example.org', '1.1.1', '1.1.1.1/8']) expect(rule.allows(text), text).to.equal(false);
  });

  it('an IPv4 address is the same in IPv6, in either form', () => {
    const hex = (n: number) => n.toString(16).padStart(2, '0');
    fc.assert(
      fc.property(fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)), ([a, b, c, d]) => {
        const plain = `${a}.${b}.${c}.${d}`;
        const allowed = rule.allows(plain);
        expect(rule.allows(`::ffff:${plain}`)).to.equal(allowed);
        expect(rule.allows(`::ffff:${hex(a)}${hex(b)}:${hex(c)}${hex(d)}`)).to.equal(allowed);
      }),
    );
  });

  it('every address has one spelling; ports, brackets and zones are left out', () => {
    for (const [text, plain] of [
      ['203.0.113.8', '203.0.113.8'],
      [' 203.0.113.8:4711 ', '203.0.113.8'],
      ['[2001:db8::1]:4711', '2001:db8::1'],
      ['[2001:DB8:0::1]', '2001:db8::1'],
      ['0:0:0:0:0:0:0:1', '::1'],
      ['::ffff:10.0.0.5', '10.0.0.5'],
      ['0:0:0:0:0:ffff:a00:5', '10.0.0.5'],
      ['fe80::1%eth0', 'fe80::1'],
      ['[fe80::1%25eth0]:80', 'fe80::1'],
    ] as const)
      expect(plainAddress(text), text).to.equal(plain);
    for (const text of ['', 'unknown', '_hidden', '10.0.0', '010.0.0.1', '10.0.0.1:', '[10.0.0.1', '::1]:3', '1 2'])
      expect(plainAddress(text), text).to.equal(undefined);
  });

  it('networks contain addresses in any spelling', () => {
    const inside = networksOf(['10.0.0.0/8', '::ffff:192.168.0.0/112', '0:0:0:0:0:0:0:1', 'fd00::/8']);
    for (const text of ['10.1.2.3', '::ffff:10.1.2.3', '192.168.255.1', '::1', 'fd12::7%eth0'])
      expect(inside(text), text).to.equal(true);
    for (const text of ['11.0.0.1', '192.169.0.1', '::2', 'fe00::1', 'unknown', ''])
      expect(inside(text), text).to.equal(false);
  });

  it('networks named by the operator are allowed, and no others', () => {
    const own = createAddressRule(['10.0.0.0/8', '127.0.0.1', 'fd00::/8']);
    for (const address of ['10.9.8.7', '127.0.0.1', '::ffff:10.0.0.1', 'fd00::1', '1.1.1.1']) {
      expect(own.allows(address), address).to.equal(true);
    }
    for (const address of ['127.0.0.2', '192.168.0.1', '::1', 'fe80::1']) {
      expect(own.allows(address), address).to.equal(false);
    }
    expect(own.fault('http://localhost:3000/'), 'its address decides').to.equal(undefined);
  });

  it('a URL is rejected for its scheme, its address, or a known local name', () => {
    for (const [url, says] of [
      ['', /absolute URL/],
      ['/hook', /absolute URL/],
      ['javascript:alert(1)', /https:\/\/ or http/],
      ['gopher://example.org', /https:\/\/ or http/],
      ['http://127.1/', /127\.0\.0\.1/],
      ['http://0177.0.0.1/', /127\.0\.0\.1/],
      ['http://2130706433/', /127\.0\.0\.1/],
      ['https://[::ffff:7f00:1]/', /not a public address/],
      ['http://localhost/', /localhost/],
      ['http://LOCALHOST./', /localhost/],
      ['http://db.local:5432/', /not a public name/],
      ['http://db.internal/', /not a public name/],
    ] as const)
      expect(rule.fault(url), url).to.match(says);
    for (const url of words(
      'https://example.org/hook?x=1 http://example.org:8080 https://1.1.1.1/ https://localhost.example.org/',
    ))
      expect(rule.fault(url), url).to.equal(undefined);
  });

  it('cloud metadata services are rejected, whatever is allowed', () => {
    const all = createAddressRule(['0.0.0.0/0', '::/0', '168.63.129.16', '169.254.169.254']);
    for (const one of [rule, all]) {
      for (const address of words(`168.63.129.16 ::ffff:168.63.129.16 169.254.169.254 169.254.170.2 169.254.170.23
        fd00:ec2::254 fd00:ec2::23 fd20:ce::254`))
        expect(one.allows(address), address).to.equal(false);
      for (const host of words(`metadata.google.internal METADATA.google.internal. metadata.internal metadata.goog metadata
        instance-data 168.63.129.16 [::ffff:a83f:8110]`))
        expect(one.fault(`http://${host}/latest`), host).to.match(/metadata of a machine/);
      expect(one.fault('https://instance-data.example.org/')).to.equal(undefined);
    }
    expect(all.allows('169.254.169.253')).to.equal(true);
    expect(all.allows('168.63.129.17')).to.equal(true);
  });

  it('admins may name private addresses, but no link-local ones', () => {
    for (const address of ['127.0.0.1', '::1', '10.0.0.1', 'fd00::1', '1.1.1.1'])
      expect(ADMINS_ADDRESSES.allows(address), address).to.equal(true);
    for (const address of [
      '169.254.169.254',
      '169.254.1.1',
      '::ffff:169.254.1.1',
      'fe80::1',
      'fe80::1%eth0',
      '168.63.129.16',
    ])
      expect(ADMINS_ADDRESSES.allows(address), address).to.equal(false);
    for (const url of ['http://169.254.1.1/', 'http://[fe80::1]:80/', 'ws://[::ffff:a9fe:101]/', 'http://metadata/'])
      expect(ADMINS_ADDRESSES.fault(url), url).to.match(/^must not point to/);
    for (const url of ['http://localhost:18789/', 'ws://10.0.0.1/', 'https://gate.example.org'])
      expect(ADMINS_ADDRESSES.fault(url), url).to.equal(undefined);
  });

  it('a network may be an address or in CIDR notation', () => {
    for (const text of ['10.0.0.0/8', '10.1.2.3', '::1', 'fd00::/8'])
      expect(parseNetwork(text), text).to.be.an('array');
    for (const text of ['10', '10.0.0.0/33', 'example.org', '', '10.0.0.0/', '010.0.0.0/8', '10.0.0.0/8/8'])
      expect(parseNetwork(text), text).to.equal(undefined);
  });
});
