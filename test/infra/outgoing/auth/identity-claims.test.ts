/** The groups of an account in the forms in which providers send them. */
import { expect } from 'chai';
import { groupsOf } from '../../../../infra/outgoing/auth/identity-claims.ts';

describe('the groups claim of an identity provider', () => {
  const known = (claims: Record<string, unknown>, claim = 'groups') => {
    const groups = groupsOf(claims, claim);
    return 'known' in groups ? groups.known : groups;
  };

  it('is read as a list of names, of objects with a name, a text with commas, or a map by name', () => {
    expect(known({ groups: ['ops', 'a,b'] })).to.deep.equal(['ops', 'a,b']);
    expect(known({ groups: [{ id: 7, name: 'ops' }, { name: 'a,b' }] })).to.deep.equal(['ops', 'a,b']);
    expect(known({ groups: 'ops, staff,' })).to.deep.equal(['ops', 'staff']);
    // Another group than ops, which any user may have made.
    expect(known({ groups: ['ops ', ' ops', '', { name: 'ops\t' }] })).to.deep.equal(['ops ', ' ops', 'ops\t']);
    // Zitadel sends roles as keys, with the organizations that granted them.
    expect(known({ 'urn:roles': { ops: { '17': 'example.com' }, old: null, off: false } }, 'urn:roles')).to.deep.equal([
      'ops',
    ]);
  });

  it('is read whole, however many groups there are', () => {
    const groups = Array.from({ length: 2_500 }, (_, n) => `group-${n}`);
    expect(known({ groups: [...groups, 'admins'] })).to.deep.equal([...groups, 'admins']);
  });

  it('is found by its name, which may have dots, and by a path', () => {
    expect(known({ 'https://example.com/groups': ['ops'] }, 'https://example.com/groups')).to.deep.equal(['ops']);
    expect(known({ realm_access: { roles: ['ops'] } }, 'realm_access.roles')).to.deep.equal(['ops']);
    expect(known({}, 'constructor.name')).to.deep.equal({ unknown: 'absent' });
  });

  it('is known when it is empty, and unknown when it is absent or null', () => {
    for (const empty of [[], '', {}]) expect(known({ groups: empty }), JSON.stringify(empty)).to.deep.equal([]);
    for (const claims of [{}, { groups: null }, { realm_access: {} }])
      expect(groupsOf(claims, 'groups')).to.deep.equal({ unknown: 'absent' });
    expect(groupsOf({ realm_access: {} }, 'realm_access.roles')).to.deep.equal({ unknown: 'absent' });
  });

  it('is an overage when the provider refers to another place for it', () => {
    const reference = {
      _claim_names: { groups: 'src1' },
      _claim_sources: { src1: { endpoint: 'https://graph.example' } },
    };
    expect(groupsOf(reference, 'groups')).to.deep.equal({ unknown: 'overage' });
    expect(groupsOf({ hasgroups: true }, 'groups')).to.deep.equal({ unknown: 'overage' });
    expect(groupsOf({ hasgroups: 'true' }, 'groups')).to.deep.equal({ unknown: 'overage' });
    expect(groupsOf(reference, 'roles'), 'another claim').to.deep.equal({ unknown: 'absent' });
    expect(known({ ...reference, groups: ['ops'] }), 'the claim itself').to.deep.equal(['ops']);
  });

  it('is unreadable rather than empty in any other form', () => {
    for (const groups of [true, 7, [7], [{ id: 7 }]])
      expect(groupsOf({ groups }, 'groups'), JSON.stringify(groups)).to.deep.equal({ unknown: 'unreadable' });
  });
});
