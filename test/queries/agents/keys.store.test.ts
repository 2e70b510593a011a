/** Keys of agents, and the deployment's own. */
import { expect } from 'chai';
import { agentKeysProjection } from '../../../projections/agents/keys.ts';
import { findLiveKey, findLiveKeys, listAgentKeys } from '../../../queries/agents/keys.ts';
import { findGlobalKey } from '../../../queries/auth/global-key.ts';
import { agentDeleted } from '../../../shared/events/agents/agents.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../../shared/events/agents/keys.ts';
import { globalKeyConfigured } from '../../../shared/events/auth/global-key.ts';
import { sample } from '../../support/kit.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';

const NAMES: Readonly<Record<number, string>> = { 1: 'ada', 2: 'bob', 3: 'cyn', 4: 'dan' };
const issued = (keyId: number, agentId: number) =>
  sample(agentKeyIssued, {
    key_id: keyId,
    agent_id: agentId,
    agent_name: String(NAMES[agentId]),
    name: `key ${keyId}`,
    prefix: 'mca_00000000',
    scopes: ['viewer'],
    created_by: 'admin',
  });
const elsewhere = { workspace: 2, tenant: 3 };

describe('key queries', () => {
  const models = readModels([agentKeysProjection], () => [
    agentRegisteredAs(1, 'ada'),
    issued(1, 1),
    issued(2, 1),
    agentKeyRevoked.draft({ key_id: 1, agent_id: 1, agent_name: 'ada' }),
    agentRegisteredAs(2, 'bob'),
    issued(3, 2),
    agentDeleted.draft({ agent_id: 2, name: 'bob', role: 'coder', remove_workspace: false }),
    [agentRegisteredAs(3, 'cyn'), elsewhere],
    [issued(4, 3), elsewhere],
    agentRegisteredAs(4, 'dan'),
    issued(5, 4),
  ]);

  it('treat a key as valid until it is revoked or its agent is deleted', async () => {
    const live = await findLiveKeys(models.reads, [1, 2, 3, 4]);
    expect(live.sort((a, b) => a.id - b.id)).to.deep.equal([
      { id: 2, workspace_id: 1, tenant_id: 1, agent_id: 1, scopes: ['viewer'], expires_at: null, agent_name: 'ada' },
      { id: 4, workspace_id: 2, tenant_id: 3, agent_id: 3, scopes: ['viewer'], expires_at: null, agent_name: 'cyn' },
    ]);
    expect(await findLiveKey(models.reads, 2)).to.include({ id: 2 });
    expect(await findLiveKey(models.reads, 1)).to.equal(undefined);
  });

  it('list the keys of an agent newest first, including revoked ones, with their last use', async () => {
    const used = secondsOf(99);
    const asked: (readonly number[])[] = [];
    const keys = await listAgentKeys(models.reads, 1, 1, async (ids) => {
      asked.push(ids);
      return new Map([[2, used]]);
    });
    const key = { key_prefix: 'mca_00000000', scopes: ['viewer'], created_by: 'admin', expires_at: null };
    expect(keys).to.deep.equal([
      {
        ...key,
        id: 2,
        name: 'key 2',
        revoked_at: null,
        last_used_at: used,
        created_at: secondsOf(3),
        updated_at: used,
      },
      {
        ...key,
        id: 1,
        name: 'key 1',
        revoked_at: secondsOf(4),
        last_used_at: null,
        created_at: secondsOf(2),
        updated_at: secondsOf(4),
      },
    ]);
    expect(asked).to.deep.equal([[2, 1]]);
    expect(await listAgentKeys(models.reads, 2, 1, async () => new Map())).to.deep.equal([]);
  });

  it('return one current global key', async () => {
    expect(await findGlobalKey(models.reads)).to.equal(undefined);
    await models.tell(globalKeyConfigured.draft({ key_id: 9, source: 'environment', masked: '****' }));
    expect(await findGlobalKey(models.reads)).to.include({ key_id: 9, source: 'environment', masked: '****' });
  });
});
