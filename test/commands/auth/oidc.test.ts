/** Users of an OpenID Connect provider: which rule fits an account, and what a sign-in changes. */
import { expect } from 'chai';
import { decideOidcUpdate, ruleFor, ruleWithoutGroups } from '../../../commands/auth/oidc.ts';
import { type UserState, userDecider } from '../../../commands/auth/users.ts';
import { AppError } from '../../../shared/errors.ts';

const RULES = [
  { group: 'admins', role: 'admin', workspace: null },
  { group: 'acme', role: 'operator', workspace: 'acme' },
  { group: '*', role: 'viewer', workspace: null },
] as const;

describe('group rules of an OpenID Connect provider', () => {
  it('are tried in order, and the first match counts', () => {
    expect(ruleFor(RULES, ['acme', 'admins']).role).to.equal('admin');
    expect(ruleFor(RULES, ['acme'])).to.include({ role: 'operator', workspace: 'acme' });
    expect(ruleFor(RULES, []).role).to.equal('viewer');
  });

  it('name the groups of an account without a match', () => {
    expect(() => ruleFor(RULES.slice(0, 2), ['ops', 'a,b'])).to.throw('("ops", "a,b")');
    const many = Array.from({ length: 12 }, (_, n) => `g${n}`);
    expect(() => ruleFor(RULES.slice(0, 2), many)).to.throw('"g9" and 2 more');
    expect(() => ruleFor(RULES.slice(0, 2), [])).to.throw('(it has none)');
  });

  it('reject an account without a match, with the code NO_ROLE', () => {
    expect(() => ruleFor(RULES.slice(0, 2), ['Admins', '*']))
      .to.throw(AppError)
      .that.deep.includes({ status: 403, extras: { code: 'NO_ROLE' } });
  });
});

describe('group rules for a new account whose groups are unknown', () => {
  it('apply to every account if the provider sent no claim', () => {
    expect(ruleWithoutGroups(RULES, 'absent')).to.include({ group: '*', role: 'viewer' });
  });

  it('do not apply after a rule for a group if the provider has groups that it did not send', () => {
    for (const unknown of ['overage', 'unreadable'] as const) {
      expect(() => ruleWithoutGroups(RULES, unknown))
        .to.throw(AppError)
        .that.deep.includes({ status: 403, extras: { code: 'NO_ROLE' } });
      expect(ruleWithoutGroups(RULES.slice(2), unknown).role).to.equal('viewer');
    }
  });

  it('name the remedy if there is no rule for every account', () => {
    expect(() => ruleWithoutGroups(RULES.slice(0, 2), 'absent')).to.throw(/sent no groups.*OIDC_GROUPS_CLAIM/);
    expect(() => ruleWithoutGroups(RULES.slice(0, 2), 'overage')).to.throw(/assigned to this application/);
  });
});

describe('OpenID Connect sign-in of an existing user', () => {
  const ann: UserState = {
    ...userDecider.initial,
    exists: true,
    username: 'ann',
    role: 'viewer',
    provider: 'oidc',
    provider_id: 'https://id.example#1',
    is_approved: true,
    tenant: 1,
    workspace: 1,
    email: 'ann@example.com',
  };
  const profile: { readonly email: string | null; readonly picture: null } = {
    email: 'ann@example.com',
    picture: null,
  };
  const decided = (
    state: UserState,
    changes: { readonly email?: string | null },
    role: 'viewer' | 'admin',
    place = null as null | { tenant: number; workspace: number },
  ) =>
    decideOidcUpdate(state, 7, { ...profile, ...changes }, { role, place }).map(({ type, data }) => ({ type, data }));

  it('changes nothing if nothing differs or the provider sends no data', () => {
    expect(decided(ann, {}, 'viewer')).to.deep.equal([]);
    expect(decided(ann, { email: null }, 'viewer', { tenant: 1, workspace: 1 })).to.deep.equal([]);
  });

  it('keeps role and workspace if the groups are unknown', () => {
    const events = decideOidcUpdate(ann, 7, { ...profile, email: 'lee@example.com' }, null);
    expect(events.map(({ type, data }) => ({ type, data }))).to.deep.equal([
      {
        type: 'UserUpdated',
        data: { user_id: 7, username: 'ann', email: 'lee@example.com', password_changed: false, by: 'oidc' },
      },
    ]);
  });

  it('sets role and email address, and moves the user to the workspace of the rule', () => {
    const events = decided(ann, { email: 'lee@example.com' }, 'admin', { tenant: 2, workspace: 7 });
    expect(events.map(({ type }) => type)).to.deep.equal(['UserUpdated', 'UserTransferred']);
    expect(events[0]?.data).to.include({ role: 'admin', email: 'lee@example.com', by: 'oidc' });
    expect(events[1]?.data).to.include({ tenant: 2, workspace: 7 });
  });

  it('is rejected for a disabled or deleted user', () => {
    expect(() => decided({ ...ann, is_approved: false }, {}, 'viewer'))
      .to.throw(AppError)
      .that.includes({ status: 403 });
    expect(() => decided({ ...ann, exists: false }, {}, 'viewer'))
      .to.throw(AppError)
      .that.includes({ status: 404 });
  });
});
