/** Access requests, the deployment's key, keys of agents: the decisions. */
import { expect } from 'chai';
import { decideIssue, decideRevoke, type NewAgentKey } from '../../../commands/agents/keys.ts';
import {
  accessRequestDecider,
  decideApprove,
  decideReject,
  decideRequest,
  usernameFrom,
  withSuffix,
} from '../../../commands/auth/access-requests.ts';
import {
  decideConfigure,
  decideRotate,
  globalKeyDecider,
  maskChosenKey,
  maskKey,
  newGlobalKey,
} from '../../../commands/auth/global-key.ts';
import type { Decider } from '../../../commands/decider.ts';
import { AppError } from '../../../shared/errors.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import type { EventDraft } from '../../../shared/events/define.ts';

const after = <S>(decider: Decider<S>, ...drafts: readonly EventDraft<string, object>[]): S =>
  drafts.reduce(
    (state, { type, data }) => decider.evolve(state, { type, data: data as Record<string, unknown>, at: 1 }),
    decider.initial,
  );
const status = (act: () => unknown): number => {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error.status;
    throw error;
  }
  return 200;
};

describe('access request decisions', () => {
  const profile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };
  const requests = (...drafts: readonly EventDraft<string, object>[]) => after(accessRequestDecider, ...drafts);
  const asked = () => decideRequest(requests(), 5, profile);

  it('every attempt counts, and makes it pending again', () => {
    const approved = requests(...asked(), ...decideApprove(requests(...asked()), 5, 9, 'viewer', null));
    expect(approved).to.deep.include({ status: 'approved', userId: 9 });
    const again = requests(
      ...asked(),
      ...decideApprove(requests(...asked()), 5, 9, 'viewer', null),
      ...decideRequest(approved, 5, { ...profile, name: 'Ann Lee' }),
    );
    expect(again).to.deep.include({ status: 'pending', userId: 9, displayName: 'Ann Lee' });
  });
  it('approves and rejects from any status, and nothing that never was', () => {
    const rejected = requests(...asked(), ...decideReject(requests(...asked()), 5, 'no'));
    expect(rejected.status).to.equal('rejected');
    expect(decideApprove(rejected, 5, 9, 'admin', 'yes')[0]?.data).to.deep.equal({
      requestId: 5,
      email: 'ann@example.com',
      role: 'admin',
      userId: 9,
      note: 'yes',
    });
    expect(status(() => decideApprove(requests(), 5, 9, 'admin', null))).to.equal(404);
    expect(status(() => decideReject(requests(), 5, null))).to.equal(404);
  });
  it('a request whose account was given to another one is not made', () => {
    const voided = requests(nameClaimVoided.draft({ kind: 'google_account', name: 'x' }));
    expect(status(() => decideRequest(voided, 5, profile))).to.equal(409);
  });
  it('usernames come from the address', () => {
    expect(usernameFrom('Ann.Lee+x@example.com')).to.equal('ann.leex');
    expect(usernameFrom('ÄÖ@example.com')).to.equal('user');
    expect(usernameFrom(`${'a'.repeat(40)}@example.com`)).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 0)).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 12)).to.equal(`${'a'.repeat(24)}-12`);
  });
});

describe('global key decisions', () => {
  const keys = (...drafts: readonly EventDraft<string, object>[]) => after(globalKeyDecider, ...drafts);
  const env = { keyId: 1, source: 'environment', masked: '****' } as const;

  it('the environment is noted once, and replaces a generated key', () => {
    expect(decideConfigure(keys(), env)).to.have.length(1);
    expect(decideConfigure(keys(...decideConfigure(keys(), env)), env)).to.have.length(0);
    const generated = keys(...decideConfigure(keys(), { keyId: 2, source: 'database', masked: 'm' }));
    expect(decideConfigure(generated, env)).to.have.length(1);
  });
  it('only one generated key is made', () => {
    const generated = keys(...decideConfigure(keys(), { keyId: 2, source: 'database', masked: 'm' }));
    expect(decideConfigure(generated, { keyId: 3, source: 'database', masked: 'n' })).to.have.length(0);
  });
  it('a rotated key wins over everything but the next rotation', () => {
    const rotation = decideRotate(keys(...decideConfigure(keys(), env)), { keyId: 4, masked: 'r' });
    expect(rotation[0]?.data).to.deep.equal({ keyId: 4, masked: 'r', oldSource: 'environment', oldMasked: '****' });
    const rotated = keys(...rotation);
    expect(decideConfigure(rotated, { ...env, keyId: 5 })).to.have.length(0);
    expect(decideRotate(rotated, { keyId: 6, masked: 's' })).to.have.length(1);
  });
  it('masks', () => {
    expect(maskKey('123456789')).to.equal('****');
    expect(maskKey('1234567890')).to.equal('1234-****-****-67890');
    expect(maskChosenKey('short-secret')).to.equal('****');
    expect(newGlobalKey()).to.match(/^mc_[0-9a-f]{48}$/);
  });
});

describe('agent key decisions', () => {
  const agent = { registered: true, deleted: false, name: 'scout', keys: { 3: 'active', 4: 'revoked' } } as const;
  const key: NewAgentKey = {
    keyId: 5,
    agentId: 2,
    name: 'default',
    prefix: 'mca_00000000',
    scopes: ['viewer'],
    createdBy: 'admin',
    expiresAt: null,
  };

  it('are issued to agents that exist', () => {
    expect(decideIssue(agent, key)[0]?.data).to.deep.equal({ ...key, agentName: 'scout' });
    expect(status(() => decideIssue({ ...agent, registered: false }, key))).to.equal(404);
    expect(status(() => decideIssue({ ...agent, deleted: true }, key))).to.equal(404);
  });
  it('are revoked once', () => {
    expect(decideRevoke(agent, 2, 3)[0]?.data).to.deep.equal({ keyId: 3, agentId: 2, agentName: 'scout' });
    for (const keyId of [4, 99]) expect(status(() => decideRevoke(agent, 2, keyId))).to.equal(404);
  });
});
