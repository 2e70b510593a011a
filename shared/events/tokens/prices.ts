/** Prices of tokens that differ from the built-in ones. Stream: `token_prices-<workspace>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** US dollars per million tokens. */
const price = z.object({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cache_read: z.number().nonnegative(),
  cache_write: z.number().nonnegative(),
});

export const tokenPriceSet = defineEvent({
  type: 'TokenPriceSet',
  doc: 'The token price of a model was set. Earlier reports keep their cost.',
  schema: z.object({ model: z.string(), price, before: price.nullable() }),
  audit: ({ data }) => ({
    action: 'token_price_set',
    target: ['token_price'],
    detail: { model: data.model, price: data.price, before: data.before },
  }),
});

export const tokenPriceRemoved = defineEvent({
  type: 'TokenPriceRemoved',
  doc: 'The workspace’s own price for a model was removed. The built-in price applies again.',
  schema: z.object({ model: z.string(), before: price }),
  audit: ({ data }) => ({
    action: 'token_price_removed',
    target: ['token_price'],
    detail: { model: data.model, before: data.before },
  }),
});
