import { expect } from 'chai';
import { execApprovalsProjection } from '../../../projections/admin/exec-approvals.ts';
import { gatewaysProjection, KEPT_PROBES } from '../../../projections/admin/gateways.ts';
import { execAllowlistChanged } from '../../../shared/events/admin/exec-approvals.ts';
import { gatewayAdded, gatewayChanged, gatewayRemoved, gatewaysProbed } from '../../../shared/events/admin/gateways.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const added = (gatewayId: number, name = `g${gatewayId}`) =>
  gatewayAdded.draft({ gateway_id: gatewayId, name, url: 'http://x', bare: false, token: 't', is_primary: false });
const probed = (probe: number, status: 'online' | 'offline' = 'online', gatewayId = 7) =>
  gatewaysProbed.draft({
    probe,
    results: [{ gateway_id: gatewayId, name: 'g7', status, latency: status === 'online' ? 3 : null, error: null }],
  });
const told = (...drafts: Draft[]) => rowsAfter(gatewaysProjection, eventsOf(drafts));

describe('projection: gateways', () => {
  it('a new gateway has a token but does not show it', () => {
    const [row] = told(added(7)).gateways;
    expect(row).to.include({ id: 7, status: 'unknown', token_set: true, last_health_check: null, last_seen: null });
    expect(JSON.stringify(row)).not.to.include('"t"');
  });

  it('an update sets the given fields, including null', () => {
    const row = (changes: object) => told(added(7), gatewayChanged.draft({ gateway_id: 7, ...changes })).gateways[0];
    expect(row({ name: 'new' })).to.include({ name: 'new', token_set: true });
    expect(row({ token_set: false, token: null })).to.include({ name: 'g7', token_set: false });
    expect(row({ latency: 4, last_seen: 5 })).to.include({ latency: 4, last_seen: 5, last_health_check: null });
  });

  it('a probe without a response is a health check, but no sign of life', () => {
    const [row] = told(added(7), probed(1), probed(2, 'offline')).gateways;
    expect(row).to.include({ status: 'offline', latency: null, last_seen: seconds(timeOf(2)) });
    expect(row?.last_health_check).to.equal(seconds(timeOf(3)));
  });

  it('a limited number of probes is kept per gateway', () => {
    const many = Array.from({ length: KEPT_PROBES + 5 }, (_, n) => probed(n + 1));
    const { gateway_probes: rows } = told(added(7), ...many);
    expect(rows).to.have.length(KEPT_PROBES);
    expect(Math.min(...rows.map(({ position }) => position))).to.equal(7);
  });

  it('a removed gateway leaves no rows', () => {
    const rows = told(added(7), added(8), probed(1), gatewayRemoved.draft({ gateway_id: 7, name: 'g7' }), probed(2));
    expect(rows.gateways.map(({ id }) => id)).to.deep.equal([8]);
    expect(rows.gateway_probes.map(({ slot }) => slot)).to.deep.equal([2]);
  });
});

describe('projection: allowed commands', () => {
  it('replaces the patterns of the named agents', () => {
    const set = (agent: string, ...patterns: string[]) => execAllowlistChanged.draft({ agents: [{ agent, patterns }] });
    const rows = rowsAfter(execApprovalsProjection, eventsOf([set('a', 'x'), set('b', 'y'), set('a', 'z'), set('b')]));
    expect(rows.exec_allowlist.map(({ agent, patterns }) => [agent, patterns])).to.deep.equal([['a', ['z']]]);
  });
});
