/** The stored gateway configuration, and how the primary gateway applies it. */

import { z } from 'zod';
import {
  changeGatewayConfig,
  decideReplace,
  decideUpdates,
  gatewaySchema,
  handToGateway,
} from '../../../commands/admin/gateway-config.ts';
import { gatewayConfig } from '../../../queries/admin/gateway-config.ts';
import * as contract from '../../../shared/contract/admin/gateway-config.ts';
import type { GatewayDocument } from '../../../shared/contract/admin/gateway-document.ts';
import { errorSchema, jsonObject } from '../../../shared/contract/common.ts';
import { invalid } from '../../../shared/errors.ts';
import { isObject } from '../../../shared/storable.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const NO_GATEWAY = {
  502: { description: 'No gateway is connected, or it refuses or does not respond', schema: errorSchema },
} as const;

const read = defineCachedRoute({
  method: 'get',
  path: '/api/gateway-config',
  noPast: (query) => (query.action === 'schema' ? 'the gateway is asked for the schema' : undefined),
  summary: 'Get the stored gateway configuration, with its secrets hidden, or the schema of the gateway',
  description:
    '`action=schema` asks the primary gateway, which serves callers of the default tenant; for others no gateway is connected.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'partly', prompts: 'none' },
  shared: 'gateway-config',
  query: contract.gatewayConfigQuery,
  responses: {
    200: {
      description: 'The document, or the JSON schema',
      schema: z.union([contract.gatewayConfigResponse, jsonObject]),
    },
    ...NO_GATEWAY,
  },
  cache: { models: ['gateway_config'], unless: (query) => query.action !== undefined },
  respond: ({ identity, services }) => gatewayConfig(services.reads, identity.workspace),
  handle: async ({ services, command }) => ({
    body: await gatewaySchema(services.commands, command, services.gateways),
  }),
});

/** Keys in the response of GET, which a client may edit and send back to replace the document. */
const RESPONSE_KEYS = ['path', 'config', 'raw_size', 'hash'];

/** The whole document in a body, and the hash that the stored document must have. */
function documentOf(body: GatewayDocument): { readonly document: GatewayDocument; readonly hash?: string } {
  const { config, hash } = body;
  if (!isObject(config) || !Object.keys(body).every((key) => RESPONSE_KEYS.includes(key))) return { document: body };
  if (hash !== undefined && typeof hash !== 'string')
    throw invalid('hash: must be a string, as in the response of GET');
  return { document: config, ...(hash !== undefined && { hash }) };
}

const write = defineRoute({
  method: 'put',
  path: '/api/gateway-config',
  summary: 'Replace or change the stored gateway configuration, or send it to the gateway',
  description:
    '`action=apply` sends the stored document to the primary gateway, `action=update` makes it update itself; both add its response to `ok`. The gateway serves callers of the default tenant; for others none is connected.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'gateway-config',
  limit: 'gateway-config',
  query: contract.gatewayConfigPutQuery,
  body: contract.gatewayConfigBody,
  bodyOptional: true,
  refuses: [404, 409],
  responses: {
    200: {
      description: 'Stored, or the response of the gateway',
      schema: z.union([contract.gatewayConfigPutResponse, contract.gatewayActionResponse]),
    },
    ...NO_GATEWAY,
  },
  async respond({ query, body, services, command }) {
    if (query.action !== undefined) {
      const response = await handToGateway(services.commands, command, services.gateways, query.action, body);
      return { ...response, ok: true };
    }
    const isUpdates = 'updates' in body && Object.keys(body).every((key) => key === 'updates' || key === 'hash');
    if (isUpdates) {
      const { updates, hash: expected } = contract.updatesForm.parse(body);
      const { hash } = await changeGatewayConfig(services.commands, command, (state) =>
        decideUpdates(state, updates, expected),
      );
      const updated = Object.keys(updates);
      return { success: true, updated, count: updated.length, hash };
    }
    if (Object.keys(body).length === 0) throw invalid('There is nothing to store: send the document or updates.');
    const { document, hash: expected } = documentOf(body);
    const { hash } = await changeGatewayConfig(services.commands, command, (state) =>
      decideReplace(state, document, expected),
    );
    return { success: true, updated: ['*'], count: 1, hash };
  },
});

export const gatewayConfigRoutes: readonly Route[] = [read, write];
