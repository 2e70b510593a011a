/** Settings of the deployment that admins change while it runs. */
import { decideReset, decideSettings, settingsDecider } from '../../../commands/admin/settings.ts';
import { listSettings } from '../../../queries/admin/settings.ts';
import * as contract from '../../../shared/contract/admin/settings.ts';
import { SETTINGS_STREAM } from '../../../shared/events/admin/settings.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/settings',
  summary: 'List the settings of the deployment',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'Stored values and defaults', schema: contract.settingsResponse } },
  cache: { models: ['settings'], scope: 'all', caller: [] },
  respond: ({ services }) => listSettings(services.reads, services.settings),
});

const update = defineRoute({
  method: 'put',
  path: '/api/settings',
  summary: 'Change settings of the deployment',
  description:
    'Settings that the service knows are checked; others may be added for clients, in the category `custom`. A name that looks like a secret is refused.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.settingsBody,
  refuses: [409],
  responses: { 200: { description: 'Stored', schema: contract.settingsPutResponse } },
  async respond({ body, services, command }) {
    await services.commands.execute(settingsDecider, SETTINGS_STREAM, command, (state) =>
      decideSettings(state, body.settings),
    );
    const updated = body.settings.map(({ name }) => name);
    return { updated, count: updated.length };
  },
});

const reset = defineRoute({
  method: 'delete',
  path: '/api/settings',
  summary: 'Reset a setting to its default',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.settingBody,
  refuses: [404],
  responses: { 200: { description: 'Reset', schema: contract.settingResetResponse } },
  async respond({ body: { key }, services, command }) {
    await services.commands.execute(settingsDecider, SETTINGS_STREAM, command, (state) => decideReset(state, key));
    const value = contract.knownSetting(key)?.initial(services.settings);
    return { reset: key, ...(value !== undefined && { default_value: value }) };
  },
});

export const settingsRoutes: readonly Route[] = [list, update, reset];
