/** Notifications of all resources, by recipient. */
import { catalogue } from '../../shared/events/catalogue.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { defineProjection, defineTable, type Handler, insert } from '../projection.ts';

export const notificationsTable = defineTable(
  'notifications',
  {
    workspace_id: 'int',
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
  { key: ['workspace_id', 'id'], indexes: ['(workspace_id, recipient, position DESC) WHERE read_at IS NULL'] },
);

const handlers: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.notification)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = notificationOf(definition, event);
      return record ? [insert(notificationsTable, { ...record, read_at: null, delivered_at: null })] : [];
    },
  }));

export const notificationsProjection = defineProjection({
  name: 'notifications',
  version: 1,
  tables: [notificationsTable],
  handlers,
});
