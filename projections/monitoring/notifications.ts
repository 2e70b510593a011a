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
  defineProjection,
  defineTable,
  type Handler,
  insert,
  on,
  type Row,
  update,
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
      '(workspace_id, created_at, id) WHERE delivered_at IS NULL',
      '(workspace_id, delivered_at DESC, id DESC) WHERE delivered_at IS NOT NULL',
      'created_at',
    ],
  },
);

type NotificationRow = Omit<Row<typeof notificationsTable>, 'position'>;

/** Changes of several rows, as far as they are still there. */
const each = (
  workspace_id: number,
  ids: readonly number[],
  apply: (row: NotificationRow) => NotificationRow | undefined,
): Change[] => ids.map((id) => update(notificationsTable, { workspace_id, id }, apply));

/** The first time counts. */
const deliveredAt = (at: number) => (row: NotificationRow) =>
  row.delivered_at === null ? { ...row, delivered_at: seconds(at) } : row;

const raised: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.notification)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = notificationOf(definition, event);
      return record
        ? [insert(notificationsTable, { ...record, tenant_id: event.meta.tenant, read_at: null, delivered_at: null })]
        : [];
    },
  }));

export const notificationsProjection = defineProjection({
  name: 'notifications',
  // 2: indexes for lists, deliveries and retention. 3: the tenant, to whom what retention removes is recorded.
  version: 3,
  tables: [notificationsTable],
  handlers: [
    ...raised,
    on(notificationsRead, ({ data, meta }) =>
      each(meta.workspace, data.notificationIds, (row) =>
        row.read_at === null ? { ...row, read_at: seconds(meta.at) } : row,
      ),
    ),
    on(notificationsDelivered, ({ data, meta }) => each(meta.workspace, data.notificationIds, deliveredAt(meta.at))),
    on(notificationForwarded, ({ data, meta }) => each(meta.workspace, [data.notificationId], deliveredAt(meta.at))),
    on(recordsPurged, ({ data, meta }) =>
      data.table === 'notifications' ? each(meta.workspace, data.ids, () => undefined) : [],
    ),
    on(notificationsDeleted, ({ data, meta }) => each(meta.workspace, data.notificationIds, () => undefined)),
  ],
});
