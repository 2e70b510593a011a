/** The deployment's own API key. */
import { rotateGlobalKey } from '../../../commands/auth/global-key.ts';
import { findGlobalKey } from '../../../queries/auth/global-key.ts';
import { globalKeyAnswer, globalKeyState } from '../../../shared/contract/auth/global-key.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const path = '/api/tokens/rotate';

const state = defineRoute({
  method: 'get',
  path,
  tag: 'Tokens',
  summary: 'Get the origin of the API key, and when it was replaced',
  access: 'admin',
  scope: 'deployment',
  responses: { 200: { description: 'The current key, masked', schema: globalKeyState } },
  cache: { models: ['agent_keys'], scope: 'all' },
  async handle({ services }) {
    const row = await findGlobalKey(services.reads);
    return {
      body: {
        masked_key: row?.source === 'environment' ? row.masked : null,
        source: row?.source ?? 'none',
        last_rotated_at: row?.rotated_at ?? null,
        last_rotated_by: row?.rotated_by ?? null,
        configured: row !== undefined,
      },
    };
  },
});

const rotate = defineRoute({
  method: 'post',
  path,
  tag: 'Tokens',
  summary: 'Replace the API key',
  description: 'The old key stops working at once. The new one is shown only in this answer.',
  access: 'admin',
  scope: 'deployment',
  limit: 'api-key',
  responses: { 200: { description: 'The new key', schema: globalKeyAnswer } },
  async handle({ services, command }) {
    const { key, masked, at, by } = await rotateGlobalKey(services.commands, command, services.credentials);
    return {
      body: {
        key,
        masked_key: masked,
        rotated_at: at,
        rotated_by: by,
        message: 'Store this key now; it will not be shown again. The previous key has stopped working.',
      },
    };
  },
});

export const globalKeyRoutes: readonly Route[] = [state, rotate];
