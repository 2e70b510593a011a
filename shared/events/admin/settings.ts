/** Settings of the deployment that admins change while it runs. All events are in one stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const SETTINGS_STREAM = 'settings';

export const settingsUpdated = defineEvent({
  type: 'SettingsUpdated',
  doc: 'Settings were changed. Values are texts; none of them is a secret.',
  schema: z.object({
    /** `old`: null if it had its default. */
    changes: z.array(z.object({ name: z.string(), old: z.string().nullable(), value: z.string() })),
  }),
  audit: ({ data: { changes } }) => ({
    action: 'settings_update',
    target: ['settings'],
    detail: {
      updated_keys: changes.map(({ name }) => name),
      changes: Object.fromEntries(
        changes.map(({ name, old, value }) => [name, { ...(old !== null && { old }), new: value }]),
      ),
    },
  }),
});

export const settingReset = defineEvent({
  type: 'SettingReset',
  doc: 'A setting was reset to its default; one without a default was deleted.',
  schema: z.object({ name: z.string(), old: z.string() }),
  audit: ({ data }) => ({
    action: 'settings_reset',
    target: ['settings'],
    detail: { key: data.name, old_value: data.old },
  }),
});
