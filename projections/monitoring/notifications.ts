/** Notifications of all resources, by recipient. */
import { recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import {
  notificationForwarded,
  notificationOf,
  notificationsDeleted,
  notificationsDelivered,
  notificationsRead,
} from '../../shared/events/monitoring/notifications.ts';
import { seconds } from '../../shared/time.ts';
import {
  type Change,
  change,
  defineProjection,
  defineTable,
  type Handler,
  insert,
  observed,
  on,
  type RowOf,
  type Turn,
} from '../projection.ts';

export const notificationsTable = defineTable(
  'notifications',
  {
    workspace_id: 'int',
    tenant_id: 'int',
    id: 'bigint',
    recipient: 'text',
    type: 'text',
    title: 'text',
    message: 'text',
    /** The user whose name begins or ends one of these texts: in which of these ways, and the username. */
    by_key: 'text?',
    by_name: 'text?',
    source_type: 'text?',
    source_id: 'bigint?',
    read_at: 'bigint?',
    delivered_at: 'bigint?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, recipient, created_at DESC, id DESC',
      '(workspace_id, recipient, created_at DESC, id DESC) WHERE read_at IS NULL',
      '(workspace_id, created_at, id) INCLUDE (recipient) WHERE delivered_at IS NULL',
      '(workspace_id, delivered_at DESC, id DESC) WHERE delivered_at IS NOT NULL',
      '(workspace_id, recipient, delivered_at DESC, id DESC) WHERE delivered_at IS NOT NULL',
      'created_at',
    ],
  },
);

/** Number of notifications, and of unread and delivered ones. */
export const notificationTotalsTable = defineTable(
  'notification_totals',
  { workspace_id: 'int', total: 'bigint', unread: 'bigint', delivered: 'bigint' },
  { key: ['workspace_id'] },
);

type NotificationRow = RowOf<(typeof notificationsTable)['columns']>;

const isDelivered = (row: NotificationRow | undefined): number => (row && row.delivered_at !== null ? 1 : 0);
const isUnread = (row: NotificationRow | undefined): number => (row && row.read_at === null ? 1 : 0);

/** The totals after some notifications were changed, added or removed. */
const totals = (workspace_id: number, turns: readonly Turn<(typeof notificationsTable)['columns']>[]): Change =>
  change(notificationTotalsTable, { workspace_id }, (row) => {
    const changed = turns.map((turn) => turn()).filter(({ before, now }) => before !== now);
    if (changed.length === 0) return row;
    const sum = (field: 'total' | 'unread' | 'delivered', of: (one: NotificationRow | undefined) => number) =>
      changed.reduce((all, { before, now }) => all + of(now) - of(before), row?.[field] ?? 0);
    return {
      workspace_id,
      total: sum('total', (one) => (one ? 1 : 0)),
      unread: sum('unread', isUnread),
      delivered: sum('delivered', isDelivered),
    };
  });

/** Changes of several rows; missing rows are skipped. */
const each = (
  workspace_id: number,
  ids: readonly number[],
  apply: (row: NotificationRow) => NotificationRow | undefined,
): Change[] => {
  const all = ids.map((id) => observed(notificationsTable, { workspace_id, id }, (row) => row && apply(row)));
  const turns = all.map(({ turn }) => turn);
  return [...all.map((one) => one.change), totals(workspace_id, turns)];
};

/** The first time counts. */
const deliveredAt = (at: number) => (row: NotificationRow) =>
  row.delivered_at === null ? { ...row, delivered_at: seconds(at) } : row;

const raised: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.notification)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = notificationOf(definition, event);
      if (!record) return [];
      const by = definition.notification?.(event)?.by;
      const named = { by_key: by?.key ?? null, by_name: by?.username ?? null };
      const now = { tenant_id: event.meta.tenant, read_at: null, delivered_at: null, ...named, ...record };
      return [insert(notificationsTable, now), totals(record.workspace_id, [() => ({ now })])];
    },
  }));

export const notificationsProjection = defineProjection({
  name: 'notifications',
  // 2: indexes for lists, deliveries and retention. 3: the tenant, for removals by retention. 4: totals. 5: users in
  // texts.
  version: 1,
  tables: [notificationsTable, notificationTotalsTable],
  handlers: [
    ...raised,
    on(notificationsRead, ({ data, meta }) =>
      each(meta.workspace, data.notification_ids, (row) =>
        row.read_at === null ? { ...row, read_at: seconds(meta.at) } : row,
      ),
    ),
    on(notificationsDelivered, ({ data, meta }) => each(meta.workspace, data.notification_ids, deliveredAt(meta.at))),
    on(notificationForwarded, ({ data, meta }) => each(meta.workspace, [data.notification_id], deliveredAt(meta.at))),
    on(recordsPurged, ({ data, meta }) =>
      data.table === 'notifications' ? each(meta.workspace, data.ids, () => undefined) : [],
    ),
    on(notificationsDeleted, ({ data, meta }) => each(meta.workspace, data.notification_ids, () => undefined)),
  ],
});
