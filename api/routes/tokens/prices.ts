/** Prices of tokens. */
import {
  decideRemovePrice,
  decideSetPrice,
  tokenPricesDecider,
  tokenPricesStream,
} from '../../../commands/tokens/prices.ts';
import { listPrices, priceAfter } from '../../../queries/tokens/prices.ts';
import { successResponse } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/tokens/prices.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const path = '/api/tokens/prices';

const list = defineCachedRoute({
  method: 'get',
  path,
  summary: 'List the prices of tokens',
  description:
    'A price matches the whole name of a model, without its provider (`openai/`, `us.anthropic.`), and with or without its version (`-20250514`, `-latest`). Own prices come before built-in ones. A report that no price matches costs the price of `*`, and says `price: "default"`.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  responses: { 200: { description: 'Own and built-in prices', schema: contract.tokenPricesResponse } },
  cache: { models: ['token_prices'] },
  respond: async ({ identity, services }) => ({
    prices: await listPrices(services.reads, identity.workspace),
    subscribed_providers: [...services.settings.subscribedProviders],
  }),
});

const set = defineRoute({
  method: 'put',
  path,
  summary: 'Set the price of a model',
  description: 'It applies to later reports; earlier ones keep their cost.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  // Prices make the costs of every agent, of the caller's own too.
  body: contract.setPriceBody,
  refuses: [409],
  responses: { 200: { description: 'The price', schema: contract.tokenPriceResponse } },
  async respond({ body, identity, services, command }) {
    const { workspace } = identity;
    const { commands, records } = services;
    const executed = await commands.execute(tokenPricesDecider, tokenPricesStream(workspace), command, (state) =>
      decideSetPrice(state, body),
    );
    const price = await priceAfter(records, workspace, body.model, executed);
    return { success: true, price };
  },
});

const remove = defineRoute({
  method: 'delete',
  path,
  summary: 'Remove an own price of a model',
  description: 'The built-in price, if there is one, applies again.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  // Prices make the costs of every agent, of the caller's own too.
  body: contract.removePriceBody,
  refuses: [404],
  responses: { 200: { description: 'Removed', schema: successResponse } },
  async respond({ body, identity, services, command }) {
    await services.commands.execute(tokenPricesDecider, tokenPricesStream(identity.workspace), command, (state) =>
      decideRemovePrice(state, body.model),
    );
    return { success: true };
  },
});

export const tokenPriceRoutes: readonly Route[] = [list, set, remove];
