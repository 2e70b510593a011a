import { expect } from 'chai';
import { allowlistDecider, decideAllowlist } from '../../../commands/admin/exec-approvals.ts';
import {
  addressOf,
  decideAdd,
  decideChange,
  decideRemove,
  gatewaysDecider,
  MAX_GATEWAYS,
} from '../../../commands/admin/gateways.ts';
import { allowlistHash } from '../../../shared/contract/admin/exec-approvals.ts';
import { execAllowlistChanged } from '../../../shared/events/admin/exec-approvals.ts';
import { gatewayAdded, gatewayChanged, gatewayRemoved } from '../../../shared/events/admin/gateways.ts';
import { refusalOf, stateAfter } from '../../support/kit.ts';

const added = (gatewayId: number, isPrimary = false) =>
  gatewayAdded.draft({ gatewayId, name: `g${gatewayId}`, url: 'http://x', token: 'secret', isPrimary });
const two = stateAfter(gatewaysDecider, added(1, true), added(2));
const three = { id: 3, name: 'g3', url: 'http://y', token: null, isPrimary: true };

describe('commands: gateways', () => {
  it('one is primary: the one before steps back first', () => {
    expect(decideAdd(two, three)).to.deep.equal([
      gatewayChanged.draft({ gatewayId: 1, isPrimary: false }),
      gatewayAdded.draft({ gatewayId: 3, name: 'g3', url: 'http://y', token: null, isPrimary: true }),
    ]);
    const drafts = decideChange(two, 2, { isPrimary: true });
    const after = stateAfter(gatewaysDecider, added(1, true), added(2), ...drafts);
    expect(after.gateways.map(({ isPrimary }) => isPrimary)).to.deep.equal([false, true]);
  });

  it('names are unique, and there is a limit', () => {
    expect(refusalOf(() => decideAdd(two, { ...three, name: 'g1' })).status).to.equal(409);
    expect(refusalOf(() => decideChange(two, 2, { name: 'g1' })).status).to.equal(409);
    expect(decideChange(two, 2, { name: 'g2' })).to.have.length(1);
    const full = stateAfter(gatewaysDecider, ...Array.from({ length: MAX_GATEWAYS }, (_, n) => added(n + 1)));
    expect(refusalOf(() => decideAdd(full, { ...three, id: 999, name: 'more' })).message).to.include('50');
  });

  it('a change keeps the token unless it names one', () => {
    const changed = (changes: object) =>
      stateAfter(gatewaysDecider, added(1), ...decideChange(stateAfter(gatewaysDecider, added(1)), 1, changes));
    expect(changed({ name: 'new' }).gateways[0]).to.include({ name: 'new', token: 'secret' });
    expect(changed({ token: null }).gateways[0]).to.include({ token: null });
    expect(changed({ token: 'other' }).gateways[0]).to.include({ token: 'other' });
  });

  it('the primary one stays, an unknown one is no event', () => {
    expect(refusalOf(() => decideRemove(two, 1)).status).to.equal(400);
    expect(decideRemove(two, 2)).to.deep.equal([gatewayRemoved.draft({ gatewayId: 2, name: 'g2' })]);
    expect(decideRemove(two, 5)).to.deep.equal([]);
  });

  it('addresses lose what does not belong to them', () => {
    expect(addressOf({ url: 'HTTP://Gate:80/a/?token=t&x=1#f' })).to.deep.equal({ url: 'http://gate/a', token: 't' });
    expect(addressOf({ host: 'gate', port: 18_789 })).to.deep.equal({ url: 'http://gate:18789', token: undefined });
    expect(addressOf({ host: '[::1]', port: 5 })?.url).to.equal('http://[::1]:5');
    expect(addressOf({})).to.equal(undefined);
    for (const url of ['', 'gate', 'javascript:alert(1)', 'http://', 'file:///etc'])
      expect(refusalOf(() => addressOf({ url })).status, url).to.equal(400);
  });
});

describe('commands: allowed commands', () => {
  const stored = stateAfter(
    allowlistDecider,
    execAllowlistChanged.draft({ agents: [{ agent: 'a', patterns: ['x'] }] }),
  );

  it('only what changes is an event', () => {
    expect(decideAllowlist(stored, { a: ['x'], b: [] })).to.deep.equal([]);
    expect(decideAllowlist(stored, { a: ['x'], b: ['y'] })).to.deep.equal([
      execAllowlistChanged.draft({ agents: [{ agent: 'b', patterns: ['y'] }] }),
    ]);
  });

  it('an outdated hash is refused; the order of agents does not matter to it', () => {
    expect(decideAllowlist(stored, { a: [] }, allowlistHash({ a: ['x'] }))).to.have.length(1);
    expect(refusalOf(() => decideAllowlist(stored, { a: [] }, allowlistHash({}))).extras.code).to.equal('CONFLICT');
    expect(allowlistHash({ a: ['1'], b: ['2'] })).to.equal(allowlistHash({ b: ['2'], a: ['1'] }));
  });
});
