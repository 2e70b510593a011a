/** The stored gateway configuration. Calls that need a running gateway answer 502, because none is connected. */
import { changeGatewayConfig, decideReplace, decideUpdates } from '../../../commands/admin/gateway-config.ts';
import { gatewayConfig } from '../../../queries/admin/gateway-config.ts';
import {
  gatewayConfigAnswer,
  gatewayConfigBody,
  gatewayConfigPutAnswer,
  gatewayConfigPutQuery,
  gatewayConfigQuery,
  updatesForm,
} from '../../../shared/contract/admin/gateway-config.ts';
import { type GatewayDocument, isObject } from '../../../shared/contract/admin/gateway-document.ts';
import { errorSchema } from '../../../shared/contract/common.ts';
import { AppError, invalid } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const NO_GATEWAY = {
  502: { description: 'No gateway is connected', schema: errorSchema },
} as const;

const noGateway = (action: string) =>
  new AppError(
    502,
    `No gateway is connected, so action=${action} is not available; leave it out to use the stored document.`,
  );

const read = defineRoute({
  method: 'get',
  path: '/api/gateway-config',
  tag: 'Admin',
  summary: 'Get the stored gateway configuration, with its secrets hidden',
  access: 'admin',
  shared: 'gateway-config',
  query: gatewayConfigQuery,
  responses: {
    200: { description: 'The document', schema: gatewayConfigAnswer },
    ...NO_GATEWAY,
  },
  cache: { models: ['gateway_config'], scope: 'workspace', unless: (query) => query.action !== undefined },
  async handle({ query, identity, services }) {
    if (query.action !== undefined) throw noGateway(query.action);
    return { body: await gatewayConfig(services.reads, identity.workspace) };
  },
});

/** Keys in the answer of GET, which a client may edit and send back to replace the document. */
const ANSWER_KEYS = ['path', 'config', 'raw_size', 'hash'];

/** The whole document in a body, and the hash that the stored one must still have. */
function documentOf(body: GatewayDocument): { readonly document: GatewayDocument; readonly hash?: string } {
  const { config, hash } = body;
  if (!isObject(config) || !Object.keys(body).every((key) => ANSWER_KEYS.includes(key))) return { document: body };
  if (hash !== undefined && typeof hash !== 'string') throw invalid('hash: must be a string, as in the answer of GET');
  return { document: config, ...(hash !== undefined && { hash }) };
}

const write = defineRoute({
  method: 'put',
  path: '/api/gateway-config',
  tag: 'Admin',
  summary: 'Replace or change the stored gateway configuration',
  access: 'admin',
  shared: 'gateway-config',
  limit: 'gateway-config',
  query: gatewayConfigPutQuery,
  body: gatewayConfigBody,
  bodyOptional: true,
  refuses: [404, 409],
  responses: {
    200: { description: 'Stored', schema: gatewayConfigPutAnswer },
    ...NO_GATEWAY,
  },
  async handle({ query, body, services, command }) {
    if (query.action !== undefined) throw noGateway(query.action);
    const isUpdates = isObject(body.updates) && Object.keys(body).every((key) => key === 'updates' || key === 'hash');
    if (isUpdates) {
      const { updates, hash: expected } = updatesForm.parse(body);
      const { hash } = await changeGatewayConfig(services.commands, command, (state) =>
        decideUpdates(state, updates, expected),
      );
      const updated = Object.keys(updates);
      return { body: { success: true, updated, count: updated.length, hash } };
    }
    if (Object.keys(body).length === 0) throw invalid('There is nothing to store: send the document or updates.');
    const { document, hash: expected } = documentOf(body);
    const { hash } = await changeGatewayConfig(services.commands, command, (state) =>
      decideReplace(state, document, expected),
    );
    return { body: { success: true, updated: ['*'], count: 1, hash } };
  },
});

export const gatewayConfigRoutes: readonly Route[] = [read, write];
