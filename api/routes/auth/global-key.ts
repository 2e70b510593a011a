/** The deployment's own API key. */
import { rotateGlobalKey } from '../../../commands/auth/global-key.ts';
import { findGlobalKey } from '../../../queries/auth/global-key.ts';
import { globalKeyResponse, globalKeyState } from '../../../shared/contract/auth/global-key.ts';
import type { RequestContext } from '../../http/context.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const path = '/api/tokens/rotate';

const state = defineCachedRoute({
  method: 'get',
  path,
  summary: 'Get the origin of the API key, and when it was replaced',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'The current key, masked', schema: globalKeyState } },
  cache: { models: ['agent_keys'], scope: 'all', caller: [] },
  async respond({ services }) {
    const row = await findGlobalKey(services.reads);
    return {
      masked_key: row?.source === 'environment' ? row.masked : null,
      source: row?.source ?? 'none',
      last_rotated_at: row?.rotated_at ?? null,
      last_rotated_by: row?.rotated_by ?? null,
      configured: row !== undefined,
    };
  },
});

/** Id of the key with which a request was made; 0 once it has been replaced. */
async function heldKey(credentials: Services['credentials'], { credential }: RequestContext): Promise<number> {
  const hash = credential?.kind === 'key' ? credential.hash : '';
  return (await credentials.findKeys([hash])).get(hash)?.keyId ?? 0;
}

const rotate = defineRoute({
  method: 'post',
  path,
  summary: 'Replace the API key',
  description:
    'The old key stops working at once. The new one is shown only in this response. Of several concurrent requests, one replaces the key; the others get 409.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'api-key',
  responses: { 200: { description: 'The new key', schema: globalKeyResponse } },
  async respond({ services, command, context, identity }) {
    const { commands, credentials } = services;
    const held = identity.kind === 'global-key' ? await heldKey(credentials, context) : undefined;
    const { key, masked, at, by } = await rotateGlobalKey(commands, command, credentials, held);
    return {
      key,
      masked_key: masked,
      rotated_at: at,
      rotated_by: by,
      message: 'Store this key now; it will not be shown again. The previous key has stopped working.',
    };
  },
});

export const globalKeyRoutes: readonly Route[] = [state, rotate];
