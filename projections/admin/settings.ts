/** Settings of the deployment that differ from their defaults. */
import { settingReset, settingsUpdated } from '../../shared/events/admin/settings.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, on, remove } from '../projection.ts';

export const settingsTable = defineTable(
  'settings',
  { name: 'text', value: 'text', updated_by: 'text', updated_at: 'bigint' },
  { key: ['name'] },
);

export const settingsProjection = defineProjection({
  name: 'settings',
  version: 1,
  tables: [settingsTable],
  handlers: [
    on(settingsUpdated, ({ data, meta }) =>
      data.changes.map(({ name, value }) =>
        change(settingsTable, { name }, () => ({
          name,
          value,
          updated_by: meta.actor.name,
          updated_at: seconds(meta.at),
        })),
      ),
    ),
    on(settingReset, ({ data }) => [remove(settingsTable, { name: data.name })]),
  ],
});
