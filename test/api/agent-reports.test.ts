/** Who may read the reports about an agent, and over which hours and sections. */
import { expect } from 'chai';
import fc from 'fast-check';
import { accessScopeOf, type SelfRule } from '../../api/routes/agents/scope.ts';
import { sectionsOf, windowOf } from '../../shared/contract/agents/scope.ts';
import type { Identity } from '../../shared/identity.ts';
import { refusalOf } from '../support/kit.ts';

const scout = { id: 7, name: 'scout' };
const caller = (given: Partial<Identity>): Identity => ({
  kind: 'user',
  id: 3,
  username: 'ada',
  displayName: 'Ada',
  role: 'viewer',
  seesSecrets: false,
  tenant: 1,
  workspace: 1,
  agentName: null,
  agentId: null,
  session: null,
  ...given,
});
const keyOf = (agentId: number, agentName: string, given: Partial<Identity> = {}) =>
  caller({ kind: 'agent-key', id: -1, username: `agent:${agentName}`, agentId, agentName, ...given });

const RULES: readonly SelfRule[] = ['name or username', 'name before username'];

describe('Access to reports about an agent', () => {
  for (const rule of RULES) {
    describe(`under the rule ${rule}`, () => {
      const scopeOf = (identity: Identity, privileged?: string) => accessScopeOf(identity, scout, privileged, rule);
      const refused = (identity: Identity, privileged?: string) => {
        const refusal = refusalOf(() => scopeOf(identity, privileged));
        expect(refusal.status).to.equal(403);
        return refusal.message;
      };

      it('lets a caller read as the agent if it names the agent, has its name or holds its key', () => {
        expect(scopeOf(caller({ agentName: 'scout' }))).to.equal('self');
        expect(scopeOf(caller({ username: 'scout' }))).to.equal('self');
        expect(scopeOf(keyOf(7, 'scout'))).to.equal('self');
      });

      it('follows the key of a renamed agent', () => {
        expect(scopeOf(keyOf(7, 'pathfinder'))).to.equal('self');
        refused(keyOf(8, 'scout'));
      });

      it('refuses other callers, except admins with privileged=1', () => {
        const admin = caller({ role: 'admin' });
        expect(refused(admin)).to.include('privileged=1');
        expect(scopeOf(admin, '1')).to.equal('privileged');
        for (const privileged of ['0', 'true', '', '11', ' 1']) refused(admin, privileged);
        for (const role of ['viewer', 'operator'] as const)
          expect(refused(caller({ role }), '1')).to.include('x-agent-name');
        refused(keyOf(8, 'other'), '1');
      });

      it('treats an admin who speaks for the agent as the agent', () => {
        expect(scopeOf(caller({ role: 'admin', agentName: 'scout' }), '1')).to.equal('self');
      });
    });
  }

  it('gives a caller with the agent’s name who speaks for another agent access under one rule only', () => {
    const both = caller({ username: 'scout', agentName: 'other' });
    expect(accessScopeOf(both, scout, undefined, 'name or username')).to.equal('self');
    expect(refusalOf(() => accessScopeOf(both, scout, undefined, 'name before username')).status).to.equal(403);
  });
});

describe('The time window of a report', () => {
  const now = 1_700_000_000_999;

  it('defaults to 24 hours', () => {
    expect(windowOf(undefined, now)).to.deep.equal({
      hours: 24,
      since: 1_700_000_000 - 86_400,
      until: 1_700_000_000,
    });
  });

  it('accepts any whole number of hours from 1 to 720', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 720 }), (hours) => {
        for (const text of [String(hours), `${hours}.0`, `0${hours}`])
          expect(windowOf(text, now)).to.include({ hours, since: 1_700_000_000 - hours * 3_600 });
      }),
    );
  });

  it('rejects other values with a message that states the range', () => {
    for (const hours of ['0', '721', '-1', '1.5', '', ' ', 'day', '1e2', '0x10', '24h', '٣', 'NaN', '9'.repeat(400)]) {
      const refusal = refusalOf(() => windowOf(hours, now));
      expect(refusal.status, hours).to.equal(400);
      expect(refusal.message).to.equal('hours: must be a whole number from 1 to 720');
      expect(refusal.extras.details).to.deep.equal([refusal.message]);
    }
  });
});

describe('The sections of a report', () => {
  const ALL = ['identity', 'audit', 'cost'] as const;
  const named = (section?: string) => [...sectionsOf(section, ALL)];

  it('default to all of them', () => {
    expect(named()).to.deep.equal(ALL);
    expect(named('')).to.deep.equal(ALL);
  });

  it('are those in the query, without duplicates, in the order of the report', () => {
    expect(named(' cost ,identity,,cost')).to.deep.equal(['identity', 'cost']);
  });

  it('are rejected with the unknown names, or if the list is empty', () => {
    expect(refusalOf(() => named('cost,Audit,rates')).message).to.equal(
      'section: unknown: "Audit", "rates"; known are identity, audit, cost',
    );
    for (const section of [',', ' ', ' , '])
      expect(refusalOf(() => named(section)).message).to.equal(
        'section: must name at least one of identity, audit, cost',
      );
    const long = refusalOf(() => named(Array.from({ length: 50 }, (_, n) => `${n}`.repeat(200)).join(',')));
    expect(long.message.length).to.be.lessThan(400);
  });
});
