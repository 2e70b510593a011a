/** Settings of the deployment that admins change while it runs. */
import { decideReset, decideSettings, settingsDecider } from '../../../commands/admin/settings.ts';
import { listSettings } from '../../../queries/admin/settings.ts';
import {
  knownSetting,
  settingBody,
  settingResetAnswer,
  settingsAnswer,
  settingsBody,
  settingsPutAnswer,
} from '../../../shared/contract/admin/settings.ts';
import { SETTINGS_STREAM } from '../../../shared/events/admin/settings.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/settings',
  tag: 'Admin',
  summary: 'List the settings of the deployment',
  access: 'admin',
  shared: 'settings',
  scope: 'deployment',
  responses: { 200: { description: 'Stored values and defaults', schema: settingsAnswer } },
  cache: { models: ['settings'], scope: 'all', caller: [] },
  respond: async ({ services }) => ({ body: await listSettings(services.reads, services.settings) }),
});

const update = defineRoute({
  method: 'put',
  path: '/api/settings',
  tag: 'Admin',
  summary: 'Change settings of the deployment',
  description:
    'Settings that the service knows are checked; others may be added for clients, in the category `custom`. A name that looks like a secret is refused.',
  access: 'admin',
  shared: 'settings',
  scope: 'deployment',
  limit: 'mutation',
  body: settingsBody,
  refuses: [409],
  responses: { 200: { description: 'Stored', schema: settingsPutAnswer } },
  async handle({ body, services, command }) {
    await services.commands.execute(settingsDecider, SETTINGS_STREAM, command, (state) =>
      decideSettings(state, body.settings),
    );
    const updated = body.settings.map(({ name }) => name);
    return { body: { updated, count: updated.length } };
  },
});

const reset = defineRoute({
  method: 'delete',
  path: '/api/settings',
  tag: 'Admin',
  summary: 'Reset a setting to its default',
  access: 'admin',
  shared: 'settings',
  scope: 'deployment',
  limit: 'mutation',
  body: settingBody,
  refuses: [404],
  responses: { 200: { description: 'Reset', schema: settingResetAnswer } },
  async handle({ body: { key }, services, command }) {
    await services.commands.execute(settingsDecider, SETTINGS_STREAM, command, (state) => decideReset(state, key));
    const value = knownSetting(key)?.initial(services.settings);
    return { body: { reset: key, ...(value !== undefined && { default_value: value }) } };
  },
});

export const settingsRoutes: readonly Route[] = [list, update, reset];
