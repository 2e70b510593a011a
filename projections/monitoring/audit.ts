/**
 * The audit trail: actions and attempts, their actors and addresses; with totals per action.
 *
 * Each entry records whose personal fields it shows, and its text without them: erasing a person changes these entries,
 * each in its place, to the result of a rebuild.
 */

import { personOfAddress } from '../../shared/event-store/seal.ts';
import { auditEntriesPurged } from '../../shared/events/admin/cleanup.ts';
import { auditEntriesErased, personOf } from '../../shared/events/auth/people.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { asErased, type DomainEvent, type EventDefinition } from '../../shared/events/define.ts';
import { type AuditRecord, auditOf } from '../../shared/events/monitoring/audit.ts';
import {
  defineProjection,
  defineTable,
  type Handler,
  insert,
  on,
  type RowOf,
  remove,
  tally,
  update,
  updateInPlace,
} from '../projection.ts';

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
    /** The channel of the request; null: the REST interface, or none. */
    via: 'text?',
    created_at: 'bigint',
    /** The person whose address it is; null: no person who can be erased. */
    address_of: 'text?',
    /** The person whose personal fields are in `actor` or `detail`. */
    about: 'text?',
    /** `actor` and `detail` without them. */
    erased: 'jsonb?',
  },
  {
    key: ['workspace_id', 'id'],
    sized: true,
    indexes: [
      'workspace_id, position',
      'workspace_id, action, position',
      'workspace_id, actor, position',
      'workspace_id, created_at',
      '(address_of) WHERE address_of IS NOT NULL',
      '(about) WHERE about IS NOT NULL',
    ],
  },
);

/**
 * Not by actor: events remove old entries, and would have to name the actors, some of which are names and addresses
 * that the log contains only sealed.
 */
export const auditCountsTable = defineTable(
  'audit_counts',
  { workspace_id: 'int', action: 'text', count: 'bigint' },
  { key: ['workspace_id', 'action'] },
);

/** Names of keys that belong to people. */
const ERASABLE = /^(user|access_request):/;

/** The people whose personal fields an entry shows. */
function peopleIn(definition: EventDefinition, event: DomainEvent, record: AuditRecord) {
  const owner = personOfAddress(definition, event);
  const address_of = record.ip_address !== null && ERASABLE.test(owner) ? owner : null;
  const safe = asErased(definition, event);
  const erased = safe === event ? undefined : auditOf(definition, safe);
  const texts = ({ actor, detail }: AuditRecord) => ({ actor, detail });
  if (!definition.personal || !erased || JSON.stringify(texts(erased)) === JSON.stringify(texts(record)))
    return { address_of, about: null, erased: null };
  return { address_of, about: definition.personal.person(event.data), erased: texts(erased) };
}

const handlers: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.audit)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = auditOf(definition, event);
      if (!record) return [];
      const { workspace_id, action } = record;
      return [
        insert(auditTable, { ...record, via: event.meta.via ?? null, ...peopleIn(definition, event, record) }),
        tally(auditCountsTable, { workspace_id, action }),
      ];
    },
  }));

function erasedRow(row: RowOf<typeof auditTable.columns>, person: string): RowOf<typeof auditTable.columns> {
  const { erased } = row;
  const isAbout = row.about === person && erased !== null;
  if (row.address_of !== person && !isAbout) return row;
  return {
    ...row,
    ...(row.address_of === person && { ip_address: null, address_of: null }),
    ...(isAbout && { ...(erased as Pick<AuditRecord, 'actor' | 'detail'>), about: null, erased: null }),
  };
}

export const auditProjection = defineProjection({
  name: 'audit',
  version: 1,
  tables: [auditTable, auditCountsTable],
  handlers: [
    ...handlers,
    on(auditEntriesErased, ({ data, meta: { workspace: workspace_id } }) =>
      data.ids.map((id) => updateInPlace(auditTable, { workspace_id, id }, (row) => erasedRow(row, personOf(data)))),
    ),
    on(auditEntriesPurged, ({ data: { ids, counts }, meta: { workspace: workspace_id } }) => [
      ...ids.map((id) => remove(auditTable, { workspace_id, id })),
      ...counts.map(({ action, count }) =>
        update(auditCountsTable, { workspace_id, action }, (row) =>
          row.count > count ? { ...row, count: row.count - count } : undefined,
        ),
      ),
    ]),
  ],
});
