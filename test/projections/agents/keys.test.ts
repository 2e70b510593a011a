import { expect } from 'chai';
import { agentKeysProjection } from '../../../projections/agents/keys.ts';
import { agentDeleted, agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../../shared/events/agents/keys.ts';
import { globalKeyConfigured, globalKeyRotated } from '../../../shared/events/auth/global-key.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter as rowsOfAll } from '../../support/kit.ts';

const registered = registeredAgent({
  agent_id: 2,
  name: 'scout',
  role: 'researcher',
});
const issued = agentKeyIssued.draft({
  key_id: 5,
  agent_id: 2,
  agent_name: 'scout',
  name: 'default',
  prefix: 'mca_00000000',
  scopes: ['viewer'],
  created_by: 'admin',
  expires_at: 1_800_000_000,
});
const changed = (changes: object) =>
  agentDetailsChanged.draft({ agent_id: 2, name: 'scout', changes, via: 'id', write_to_gateway: false, status: null });
const renamed = changed({ name: 'ranger' });

function rowsAfter(...drafts: readonly Draft[]) {
  const { agent_keys: keys, key_agents: agents, global_key: global } = rowsOfAll(agentKeysProjection, eventsOf(drafts));
  return { keys, agents, global };
}

describe('projection agent_keys', () => {
  it('shows keys with the agent’s current name', () => {
    const { keys, agents } = rowsAfter(registered, issued, renamed);
    expect(keys[0]).to.deep.include({ id: 5, agent_id: 2, revoked_at: null, created_at: 1_700_000_002 });
    expect(agents[0]).to.deep.include({ id: 2, name: 'ranger' });
  });
  it('does not write the agent’s row while its name is unchanged', () => {
    for (const same of [
      changed({ role: 'lead' }),
      changed({ name: 'scout' }),
      { ...issued, data: { ...issued.data, keyId: 6 } },
    ])
      expect(rowsAfter(registered, issued, same).agents).to.deep.equal([
        { workspace_id: 1, id: 2, name: 'scout', position: 2 },
      ]);
  });
  it('has no rows of agents without a key, so that they cause no new credential look-up', () => {
    expect(rowsAfter(registered, renamed)).to.deep.equal({ keys: [], agents: [], global: [] });
    expect(agentKeysProjection.handles.has(registered.type)).to.equal(false);
  });
  it('stores the new name for a key issued after a rename', () => {
    const { agents } = rowsAfter(registered, renamed, { ...issued, data: { ...issued.data, agent_name: 'ranger' } });
    expect(agents[0]).to.deep.include({ id: 2, name: 'ranger' });
  });
  it('takes tenant and workspace from the metadata of the event', () => {
    const events = eventsOf([registered, issued], { tenant: 4, workspace: 9 });
    const { agent_keys, key_agents } = rowsOfAll(agentKeysProjection, events);
    expect(agent_keys[0]).to.include({ tenant_id: 4, workspace_id: 9 });
    expect(key_agents[0]).to.include({ workspace_id: 9 });
  });
  it('keeps revoked keys', () => {
    const { keys } = rowsAfter(
      registered,
      issued,
      agentKeyRevoked.draft({ key_id: 5, agent_id: 2, agent_name: 'scout' }),
    );
    expect(keys[0]).to.deep.include({ revoked_at: 1_700_000_003, updated_at: 1_700_000_003 });
  });
  it('removes deleted agents', () => {
    const gone = agentDeleted.draft({ agent_id: 2, name: 'scout', role: 'researcher', remove_workspace: false });
    expect(rowsAfter(registered, issued, gone).agents).to.deep.equal([]);
  });
  it('stores the current global key and the time of its last rotation', () => {
    const configured = globalKeyConfigured.draft({ key_id: 1, source: 'environment', masked: '****' });
    expect(rowsAfter(configured).global).to.deep.equal([
      { one: 1, key_id: 1, source: 'environment', masked: '****', rotated_at: null, rotated_by: null, position: 1 },
    ]);
    const rotated = globalKeyRotated.draft({ key_id: 2, masked: 'm', old_source: 'environment', old_masked: '****' });
    expect(rowsAfter(configured, rotated).global[0]).to.deep.include({
      key_id: 2,
      source: 'database',
      rotated_at: 1_700_000_002,
      rotated_by: 'admin',
    });
    const restarted = globalKeyConfigured.draft({ key_id: 3, source: 'environment', masked: '*****' });
    expect(
      rowsAfter(configured, rotated, restarted).global,
      'the key of the environment after a rotation',
    ).to.deep.equal([
      {
        one: 1,
        key_id: 3,
        source: 'environment',
        masked: '*****',
        rotated_at: 1_700_000_002,
        rotated_by: 'admin',
        position: 3,
      },
    ]);
  });
});
