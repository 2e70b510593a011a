/** The audit trail: who did or tried what, from where; with totals per action. */
import { auditEntriesPurged } from '../../shared/events/admin/cleanup.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { defineProjection, defineTable, type Handler, insert, on, tally, update } from '../projection.ts';

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

/**
 * Not by actor: entries that are too old are removed by events, which would have to name the actors, and some of these are
 * names and addresses that the log holds only sealed.
 */
export const auditCountsTable = defineTable(
  'audit_counts',
  { workspace_id: 'int', action: 'text', count: 'bigint' },
  { key: ['workspace_id', 'action'] },
);

const handlers: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.audit)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = auditOf(definition, event);
      if (!record) return [];
      const { workspace_id, action } = record;
      return [insert(auditTable, record), tally(auditCountsTable, { workspace_id, action })];
    },
  }));

export const auditProjection = defineProjection({
  name: 'audit',
  version: 2,
  tables: [auditTable, auditCountsTable],
  handlers: [
    ...handlers,
    on(auditEntriesPurged, ({ data: { ids, counts }, meta: { workspace: workspace_id } }) => [
      ...ids.map((id) => update(auditTable, { workspace_id, id }, () => undefined)),
      ...counts.map(({ action, count }) =>
        update(auditCountsTable, { workspace_id, action }, (row) =>
          row.count > count ? { ...row, count: row.count - count } : undefined,
        ),
      ),
    ]),
  ],
});
