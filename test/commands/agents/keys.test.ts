import { expect } from 'chai';
import { decideIssue, decideRevoke, type NewAgentKey } from '../../../commands/agents/keys.ts';
import { refusalOf } from '../../support/kit.ts';

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
    expect(refusalOf(() => decideIssue({ ...agent, registered: false }, key)).status).to.equal(404);
    expect(refusalOf(() => decideIssue({ ...agent, deleted: true }, key)).status).to.equal(404);
  });
  it('are revoked once', () => {
    expect(decideRevoke(agent, 2, 3)[0]?.data).to.deep.equal({ keyId: 3, agentId: 2, agentName: 'scout' });
    for (const keyId of [4, 99]) expect(refusalOf(() => decideRevoke(agent, 2, keyId)).status).to.equal(404);
  });
});
