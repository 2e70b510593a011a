/** The audit trail: who did or tried what, from where; with totals per action and actor. */
import { catalogue } from '../../shared/events/catalogue.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { defineProjection, defineTable, type Handler, insert, tally } from '../projection.ts';

export const auditTable = defineTable(
  'audit',
  {
    workspace_id: 'int',
    id: 'bigint',
    action: 'text',
    actor: 'text',
    actor_id: 'bigint?',
    target_type: 'text?',
    target_id: 'bigint?',
    detail: 'jsonb?',
    ip_address: 'text?',
    user_agent: 'text?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, position DESC',
      'workspace_id, action, position DESC',
      'workspace_id, actor, position DESC',
      'workspace_id, created_at',
    ],
  },
);

export const auditCountsTable = defineTable(
  'audit_counts',
  { workspace_id: 'int', action: 'text', actor: 'text', count: 'bigint' },
  { key: ['workspace_id', 'action', 'actor'] },
);

const handlers: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.audit)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = auditOf(definition, event);
      if (!record) return [];
      const { workspace_id, action, actor } = record;
      const key = { workspace_id, action, actor };
      return [insert(auditTable, record), tally(auditCountsTable, key)];
    },
  }));

export const auditProjection = defineProjection({
  name: 'audit',
  version: 1,
  tables: [auditTable, auditCountsTable],
  handlers,
});
