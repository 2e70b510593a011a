import { expect } from 'chai';
import {
  decideIssue,
  decideRevoke,
  issueAgentKey,
  type NewAgentKey,
  revokeAgentKey,
} from '../../../commands/agents/keys.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { memoryCredentials } from '../../support/auth-memory.ts';
import { failureOf, outcomeOf, refusalOf } from '../../support/kit.ts';

describe('agent key decisions', () => {
  const agent = { registered: true, deleted: false, name: 'scout', keys: { 3: null, 4: 500 } } as const;
  const limit = { most: 3, now: 400 };
  const key: NewAgentKey = {
    key_id: 5,
    agent_id: 2,
    name: 'default',
    prefix: 'mca_00000000',
    scopes: ['viewer'],
    created_by: 'admin',
    expires_at: null,
  };

  it('issue keys only to existing agents', () => {
    expect(decideIssue(agent, key, limit)[0]?.data).to.deep.equal({ ...key, agent_name: 'scout' });
    expect(refusalOf(() => decideIssue({ ...agent, registered: false }, key, limit)).status).to.equal(404);
    expect(refusalOf(() => decideIssue({ ...agent, deleted: true }, key, limit)).status).to.equal(404);
  });
  it('limit the number of keys; expired keys do not count', () => {
    const most = (count: number, now: number) => () => decideIssue(agent, key, { most: count, now });
    expect(refusalOf(most(2, 499)).message)
      .to.include('at most 2 valid keys')
      .and.include('revoke');
    expect(refusalOf(most(2, 499)).status).to.equal(409);
    expect(most(2, 500)()).to.have.length(1);
    expect(most(3, 499)()).to.have.length(1);
  });
  it('revoke a key once', () => {
    expect(decideRevoke(agent, 2, 3)[0]?.data).to.deep.equal({ key_id: 3, agent_id: 2, agent_name: 'scout' });
    for (const keyId of [5, 99]) expect(refusalOf(() => decideRevoke(agent, 2, keyId)).status).to.equal(404);
  });
});

describe('an agent key', () => {
  const NOW = 1_700_000_000_900;
  const open = async (most = 100) => {
    const agents = agentsMemory(() => NOW);
    const credentials = memoryCredentials();
    const agentId = await agents.make('scout');
    const issue = (of = agentId) =>
      issueAgentKey(
        agents.commands,
        agents.context(),
        credentials.store,
        {
          workspace: 1,
          agent_id: of,
          name: 'default',
          scopes: ['viewer'],
          expiresAt: null,
        },
        { most, now: 0 },
      );
    const revoke = (keyId: number) =>
      revokeAgentKey(agents.commands, agents.context(), { workspace: 1, agent_id: agentId, keyId });
    return { agents, credentials, agent_id: agentId, issue, revoke };
  };

  it('is shown once and can be identified by its stored prefix', async () => {
    const { agents, credentials, agent_id, issue } = await open();
    const { id, apiKey, prefix, created_at: createdAt } = await issue();
    expect(apiKey).to.match(/^mca_[0-9a-f]{48}$/);
    expect([id, prefix, createdAt]).to.deep.equal([1, apiKey.slice(0, 12), 1_700_000_000]);
    expect([...credentials.keys()]).to.deep.equal([[apiKey, { kind: 'agent', keyId: 1 }]]);
    expect(agents.events('AgentKeyIssued')[0]?.data).to.deep.equal({
      key_id: 1,
      agent_id,
      agent_name: 'scout',
      name: 'default',
      prefix,
      scopes: ['viewer'],
      created_by: 'tester',
      expires_at: null,
    });
  });

  it('is revoked once, with the time', async () => {
    const { agents, issue, revoke } = await open();
    const { id } = await issue();
    expect(await revoke(id)).to.equal(1_700_000_000);
    expect(agents.events('AgentKeyRevoked')[0]?.data).to.include({ key_id: id });
    expect(await outcomeOf(revoke(id))).to.equal('404');
  });

  it('is not issued beyond the limit, and the attempt leaves nothing behind', async () => {
    const { credentials, issue, revoke } = await open(2);
    const [{ id }] = await Promise.all([issue(), issue()]);
    expect(await outcomeOf(issue())).to.equal('409');
    expect(credentials.keys().size).to.equal(2);
    await revoke(id);
    expect(await outcomeOf(issue())).to.equal('done');
    expect(await outcomeOf(issue())).to.equal('409');
  });

  it('is not stored for an unknown agent, and stays if the outcome is unknown', async () => {
    const { agents, credentials, issue } = await open();
    expect(await outcomeOf(issue(99))).to.equal('404');
    expect(credentials.keys().size).to.equal(0);
    agents.breakStreams('agent-');
    expect(await failureOf(issue())).to.match(/the disk is full/);
    expect(credentials.keys().size).to.equal(1);
  });
});
