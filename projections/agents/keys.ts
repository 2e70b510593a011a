/**
 * The API keys: those of agents, and that of the deployment. It also has the data of agents with keys that their keys
 * need: whether they exist, and their names.
 */

import { agentDeleted, agentDetailsChanged } from '../../shared/events/agents/agents.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../shared/events/agents/keys.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { seconds } from '../../shared/time.ts';
import { globalKeyHandlers, globalKeyTable } from '../auth/global-key.ts';
import { change, defineProjection, defineTable, on, remove, set, update } from '../projection.ts';

export const agentKeysTable = defineTable(
  'agent_keys',
  {
    id: 'bigint',
    workspace_id: 'int',
    tenant_id: 'int',
    agent_id: 'bigint',
    name: 'text',
    prefix: 'text',
    scopes: 'jsonb',
    created_by: 'text',
    expires_at: 'bigint?',
    revoked_at: 'bigint?',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['id'], indexes: ['workspace_id, agent_id, id'] },
);

/**
 * Agents that have had a key, until they are deleted. Others have no row, because each change of these tables makes
 * every process look up every credential again, and agents are created by the hundred.
 */
export const keyAgentsTable = defineTable(
  'key_agents',
  { workspace_id: 'int', id: 'bigint', name: 'text' },
  { key: ['workspace_id', 'id'] },
);

export const agentKeysProjection = defineProjection({
  name: 'agent_keys',
  version: 1,
  tables: [agentKeysTable, keyAgentsTable, globalKeyTable],
  // Every request checks whether keys have changed, and agents report their state all the time.
  wants: ({ type, data }) =>
    type !== agentDetailsChanged.type ||
    (data as EventOf<typeof agentDetailsChanged>['data']).changes.name !== undefined,
  handlers: [
    on(agentDetailsChanged, ({ data, meta }) => {
      const { name } = data.changes;
      if (name === undefined) return [];
      return [
        update(keyAgentsTable, { workspace_id: meta.workspace, id: data.agent_id }, (row) =>
          row.name === name ? row : { ...row, name },
        ),
      ];
    }),
    // The rows of its keys stay, but they are not found without the agent.
    on(agentDeleted, ({ data, meta }) => [remove(keyAgentsTable, { workspace_id: meta.workspace, id: data.agent_id })]),
    on(agentKeyIssued, ({ data: { key_id: id, agent_name: name, ...fields }, meta }) => [
      change(agentKeysTable, { id }, () => ({
        id,
        workspace_id: meta.workspace,
        tenant_id: meta.tenant,
        ...fields,
        revoked_at: null,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      })),
      change(keyAgentsTable, { workspace_id: meta.workspace, id: fields.agent_id }, (row) => {
        return row ?? { workspace_id: meta.workspace, id: fields.agent_id, name };
      }),
    ]),
    on(agentKeyRevoked, ({ data, meta }) => [
      set(agentKeysTable, { id: data.key_id }, meta, { revoked_at: seconds(meta.at) }),
    ]),
    ...globalKeyHandlers,
  ],
});
