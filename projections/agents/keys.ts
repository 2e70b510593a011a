/**
 * The keys that open the API: those of agents, and the one of the deployment. Agents stand here with what their keys
 * need: whether they exist, and their name.
 */

import { agentDeleted, agentDetailsChanged, agentRegistered } from '../../shared/events/agents/agents.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../shared/events/agents/keys.ts';
import { globalKeyConfigured, globalKeyRotated } from '../../shared/events/auth/access.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, on, update } from '../projection.ts';

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
  { key: ['id'], indexes: ['workspace_id, agent_id, id DESC'] },
);

/** Agents that exist. */
export const keyAgentsTable = defineTable(
  'key_agents',
  { workspace_id: 'int', id: 'bigint', name: 'text' },
  { key: ['workspace_id', 'id'] },
);

/** One row: the key in force. */
export const globalKeyTable = defineTable(
  'global_key',
  {
    one: 'int',
    key_id: 'bigint',
    source: 'text',
    masked: 'text',
    rotated_at: 'bigint?',
    rotated_by: 'text?',
  },
  { key: ['one'] },
);

export const agentKeysProjection = defineProjection({
  name: 'agent_keys',
  version: 1,
  tables: [agentKeysTable, keyAgentsTable, globalKeyTable],
  handlers: [
    on(agentRegistered, ({ data, meta }) => {
      const key = { workspace_id: meta.workspace, id: data.agentId };
      return [change(keyAgentsTable, key, () => ({ ...key, name: data.name }))];
    }),
    on(agentDetailsChanged, ({ data, meta }) => {
      const { name } = data.changes;
      if (name === undefined) return [];
      return [
        update(keyAgentsTable, { workspace_id: meta.workspace, id: data.agentId }, (row) =>
          row.name === name ? row : { ...row, name },
        ),
      ];
    }),
    // The rows of its keys stay; without the agent they are not found.
    on(agentDeleted, ({ data, meta }) => [
      update(keyAgentsTable, { workspace_id: meta.workspace, id: data.agentId }, () => undefined),
    ]),
    on(agentKeyIssued, ({ data, meta }) => [
      change(agentKeysTable, { id: data.keyId }, () => ({
        id: data.keyId,
        workspace_id: meta.workspace,
        tenant_id: meta.tenant,
        agent_id: data.agentId,
        name: data.name,
        prefix: data.prefix,
        scopes: data.scopes,
        created_by: data.createdBy,
        expires_at: data.expiresAt,
        revoked_at: null,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      })),
    ]),
    on(agentKeyRevoked, ({ data, meta }) => [
      update(agentKeysTable, { id: data.keyId }, (row) => ({
        ...row,
        revoked_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      })),
    ]),
    on(globalKeyConfigured, ({ data }) => [
      change(globalKeyTable, { one: 1 }, (row) => ({
        one: 1,
        key_id: data.keyId,
        source: data.source,
        masked: data.masked,
        rotated_at: row?.rotated_at ?? null,
        rotated_by: row?.rotated_by ?? null,
      })),
    ]),
    on(globalKeyRotated, ({ data, meta }) => [
      change(globalKeyTable, { one: 1 }, () => ({
        one: 1,
        key_id: data.keyId,
        source: 'database',
        masked: data.masked,
        rotated_at: seconds(meta.at),
        rotated_by: meta.actor.name,
      })),
    ]),
  ],
});
