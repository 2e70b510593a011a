/** Webhooks, as they are now. Of a secret there is no more than what is shown of it. */
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../shared/events/webhooks/webhooks.ts';
import { seconds } from '../../shared/time.ts';
import { defineProjection, defineTable, insert, on, update } from '../projection.ts';

export const webhooksTable = defineTable(
  'webhooks',
  {
    workspace_id: 'int',
    id: 'bigint',
    name: 'text',
    url: 'text',
    /** Its last four characters. */
    secret_end: 'text?',
    events: 'jsonb',
    format: 'text',
    enabled: 'boolean',
    created_by: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, created_at DESC, id DESC'] },
);

const endOf = (secret: string | null): string | null => secret?.slice(-4) ?? null;

export const webhooksProjection = defineProjection({
  name: 'webhooks',
  version: 2,
  tables: [webhooksTable],
  handlers: [
    on(webhookCreated, ({ data, meta }) => [
      insert(webhooksTable, {
        workspace_id: meta.workspace,
        id: data.webhook_id,
        name: data.name,
        url: data.url ?? '',
        secret_end: endOf(data.secret),
        events: data.events,
        format: data.format,
        enabled: true,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(webhookUpdated, ({ data, meta }) => [
      update(webhooksTable, { workspace_id: meta.workspace, id: data.webhook_id }, (row) => ({
        ...row,
        name: data.name ?? row.name,
        url: data.url ?? row.url,
        secret_end: data.secret === undefined ? row.secret_end : endOf(data.secret),
        events: data.events ?? row.events,
        format: data.format ?? row.format,
        enabled: data.enabled ?? row.enabled,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(webhookTripped, ({ data, meta }) => [
      update(webhooksTable, { workspace_id: meta.workspace, id: data.webhook_id }, (row) => ({
        ...row,
        enabled: false,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(webhookDeleted, ({ data, meta }) => [
      update(webhooksTable, { workspace_id: meta.workspace, id: data.webhook_id }, () => undefined),
    ]),
  ],
});
