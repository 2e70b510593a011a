import { expect } from 'chai';
import { allowlistDecider, decideAllowlist } from '../../../commands/admin/exec-approvals.ts';
import {
  addressOf,
  changesOf,
  decideAdd,
  decideChange,
  decideRemove,
  gatewaysDecider,
  MAX_GATEWAYS,
} from '../../../commands/admin/gateways.ts';
import { allowlistHash } from '../../../shared/contract/admin/exec-approvals.ts';
import { execAllowlistChanged } from '../../../shared/events/admin/exec-approvals.ts';
import { gatewayAdded, gatewayChanged, gatewayRemoved } from '../../../shared/events/admin/gateways.ts';
import { givenFor, refusalOf } from '../../support/kit.ts';

const given = givenFor(gatewaysDecider);
const added = (gatewayId: number, isPrimary = false) =>
  gatewayAdded.draft({
    gateway_id: gatewayId,
    name: `g${gatewayId}`,
    url: 'http://x',
    bare: false,
    token: 'secret',
    is_primary: isPrimary,
  });
const two = given(added(1, true), added(2));
const three = { id: 3, name: 'g3', url: 'http://y', bare: false, token: null, is_primary: true };

describe('commands: gateways', () => {
  it('a new primary gateway demotes the previous one first', () => {
    two
      .when(decideAdd, three)
      .then(
        gatewayChanged.draft({ gateway_id: 1, is_primary: false }),
        gatewayAdded.draft({ gateway_id: 3, name: 'g3', url: 'http://y', bare: false, token: null, is_primary: true }),
      );
    const drafts = decideChange(two.state, 2, { is_primary: true });
    const after = given(added(1, true), added(2), ...drafts).state;
    expect(after.gateways.map(({ is_primary: isPrimary }) => isPrimary)).to.deep.equal([false, true]);
  });

  it('names are unique, and the number of gateways is limited', () => {
    two.when(decideAdd, { ...three, name: 'g1' }).thenRefuses(409);
    two.when(decideChange, 2, { name: 'g1' }).thenRefuses(409);
    expect(decideChange(two.state, 2, { name: 'g2' })).to.have.length(1);
    const full = given(...Array.from({ length: MAX_GATEWAYS }, (_, n) => added(n + 1))).state;
    expect(refusalOf(() => decideAdd(full, { ...three, id: 999, name: 'more' })).message).to.include('50');
  });

  it('an update keeps the token unless it sets one', () => {
    const changed = (changes: object) => given(added(1), ...decideChange(given(added(1)).state, 1, changes)).state;
    expect(changed({ name: 'new' }).gateways[0]).to.include({ name: 'new', token: 'secret' });
    expect(changed({ token: null }).gateways[0]).to.include({ token: null });
    expect(changed({ token: 'other' }).gateways[0]).to.include({ token: 'other' });
  });

  it('an address without a scheme is remembered as such until the URL changes', () => {
    const state = (...changes: readonly object[]) =>
      given(
        ...decideAdd({ gateways: [] }, { ...three, bare: true }),
        ...changes.map((data) => gatewayChanged.draft({ gateway_id: 3, ...data })),
      ).state.gateways[0];
    expect(state()).to.include({ url: 'http://y', bare: true });
    expect(state({ name: 'new' })).to.include({ bare: true });
    expect(state({ url: 'http://z', bare: false })).to.include({ bare: false });
    expect(state({ url: 'http://z', bare: false }, { url: 'http://y', bare: true })).to.include({ bare: true });
  });

  it('the primary gateway cannot be removed, and removing an unknown one records no event', () => {
    two.when(decideRemove, 1).thenRefuses(400);
    two.when(decideRemove, 2).then(gatewayRemoved.draft({ gateway_id: 2, name: 'g2' }));
    two.when(decideRemove, 5).then();
  });

  it('addresses are stripped of parts that do not belong to them', () => {
    expect(addressOf({ url: 'HTTP://Gate:80/a/?token=t&x=1#f' })).to.deep.equal({
      ...{ url: 'http://gate/a', bare: false, token: 't' },
    });
    expect(addressOf({ host: ' gate ', port: 18_789 })).to.deep.equal({
      ...{ url: 'http://gate:18789', bare: true, token: undefined },
    });
    expect(addressOf({})).to.equal(undefined);
    for (const url of ['', 'javascript:alert(1)', 'http://', 'file:///etc', 'gate way', 'gate:port', 'mailto:a@b'])
      for (const body of [{ url }, { host: url }])
        expect(refusalOf(() => addressOf(body)).status, JSON.stringify(body)).to.equal(400);
  });

  it('parts given in the address override the fields, whichever field holds it', () => {
    for (const [text, port, url] of [
      ['gate', 81, 'http://gate:81'],
      ['gate:82', 81, 'http://gate:82'],
      ['gate/base?token=t', 81, 'http://gate:81/base'],
      ['::1', 5, 'http://[::1]:5'],
      ['[::1]', 5, 'http://[::1]:5'],
      ['[::1]:6', 5, 'http://[::1]:6'],
      ['10.0.0.1', 18_789, 'http://10.0.0.1:18789'],
      ['https://gate', 8_443, 'https://gate:8443'],
      ['https://gate', 18_789, 'https://gate'],
      ['https://gate:18789', 81, 'https://gate:18789'],
      ['https://gate:443/x', 81, 'https://gate/x'],
      ['ws://gate:80', 81, 'ws://gate'],
      ['wss://gate/a/', 81, 'wss://gate:81/a'],
    ] as const)
      for (const body of [
        { url: text, port },
        { host: text, port },
      ])
        expect(addressOf(body)?.url, JSON.stringify(body)).to.equal(url);
    expect(addressOf({ host: 'gate/base?token=t' })).to.deep.include({ bare: true, token: 't' });
  });

  it('changing the host keeps the port, and changing the port keeps the host', () => {
    const stored = { url: 'https://gate:9443/base', bare: false };
    for (const [body, url] of [
      [{ port: 9444 }, 'https://gate:9444/base'],
      [{ host: 'other' }, 'http://other:9443'],
      [{ host: 'other:81' }, 'http://other:81'],
      [{ host: 'other', port: 82 }, 'http://other:82'],
      [{ host: 'ws://other' }, 'ws://other'],
    ] as const)
      expect(changesOf({ id: 1, ...body }, stored).url, JSON.stringify(body)).to.equal(url);
    expect(changesOf({ id: 1, host: 'other' }, stored)).to.include({ bare: true });
    expect(changesOf({ id: 1, port: 1 }, { ...stored, bare: true })).to.include({ bare: true });
    expect(changesOf({ id: 1, url: 'http://other?token=t', token: 'u' }, stored)).to.include({ token: 't' });
  });
});

describe('commands: allowed commands', () => {
  const stored = givenFor(allowlistDecider)(execAllowlistChanged.draft({ agents: [{ agent: 'a', patterns: ['x'] }] }));

  it('only differences are recorded', () => {
    stored.when(decideAllowlist, { a: ['x'], b: [] }).then();
    stored
      .when(decideAllowlist, { a: ['x'], b: ['y'] })
      .then(execAllowlistChanged.draft({ agents: [{ agent: 'b', patterns: ['y'] }] }));
  });

  it('an outdated hash is rejected; the hash ignores the order of agents', () => {
    expect(decideAllowlist(stored.state, { a: [] }, allowlistHash({ a: ['x'] }))).to.have.length(1);
    stored.when(decideAllowlist, { a: [] }, allowlistHash({})).thenRefuses('CONFLICT');
    expect(allowlistHash({ a: ['1'], b: ['2'] })).to.equal(allowlistHash({ b: ['2'], a: ['1'] }));
  });
});
