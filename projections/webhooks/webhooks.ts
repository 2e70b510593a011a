/** The current webhooks. Of a secret, only the displayed part is stored. */
import {
  webhookCreated,
  webhookDeleted,
  webhookFields,
  webhookTripped,
  webhookUpdated,
} from '../../shared/events/webhooks/webhooks.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { defineProjection, defineTable, insert, on, remove, set } from '../projection.ts';

export const webhooksTable = defineTable(
  'webhooks',
  {
    workspace_id: 'int',
    id: 'bigint',
    name: 'text',
    url: 'text',
    /** Its last four characters. */
    secret_end: 'text?',
    ...columnsFor(webhookFields.pick({ events: true, format: true })),
    enabled: 'boolean',
    created_by: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, created_at, id'] },
);

const endOf = (secret: string | null): string | null => secret?.slice(-4) ?? null;

export const webhooksProjection = defineProjection({
  name: 'webhooks',
  version: 1,
  tables: [webhooksTable],
  handlers: [
    on(webhookCreated, ({ data: { webhook_id: id, secret, ...fields }, meta }) => [
      insert(webhooksTable, {
        workspace_id: meta.workspace,
        id,
        ...fields,
        url: fields.url ?? '',
        secret_end: endOf(secret),
        enabled: true,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(webhookUpdated, ({ data: { webhook_id: id, secret, ...changes }, meta }) => [
      set(webhooksTable, { workspace_id: meta.workspace, id }, meta, (row) => ({
        ...changes,
        url: changes.url ?? row.url,
        secret_end: secret === undefined ? row.secret_end : endOf(secret),
      })),
    ]),
    on(webhookTripped, ({ data, meta }) => [
      set(webhooksTable, { workspace_id: meta.workspace, id: data.webhook_id }, meta, { enabled: false }),
    ]),
    on(webhookDeleted, ({ data, meta }) => [
      remove(webhooksTable, { workspace_id: meta.workspace, id: data.webhook_id }),
    ]),
  ],
});
