/** Prices of tokens. */
import { z } from 'zod';
import { lineOfText, unixSeconds } from '../common.ts';
import { withCachePrices } from './costs.ts';

/** US dollars per million tokens. */
const dollars = z.number().min(0).max(1_000_000).describe('US dollars per million tokens');

const model = lineOfText(1, 200)
  .transform((name) => name.trim().toLowerCase())
  .refine((name) => name !== '' && !name.endsWith('/'), 'must name a model, such as anthropic/claude-opus-4-7, or be *')
  .meta({ override: { type: 'string', minLength: 1, maxLength: 200 } })
  .describe(
    'name of a model, with or without its provider and version; * is the price of models that no other price matches',
  );

export const tokenPriceSchema = z
  .object({
    model: z.string(),
    input: dollars,
    output: dollars,
    cache_read: dollars.describe('for input read from the provider’s prompt cache'),
    cache_write: dollars.describe('for input written to the provider’s prompt cache'),
    source: z.enum(['built-in', 'own']),
    updated_at: unixSeconds.nullable(),
    updated_by: z.string().nullable(),
  })
  .meta({ id: 'TokenPrice' });
export type TokenPrice = z.infer<typeof tokenPriceSchema>;

export const setPriceBody = z
  .object({
    model,
    input: dollars,
    output: dollars,
    cache_read: dollars.nullish().describe('for input read from the prompt cache; default: a tenth of the input price'),
    cache_write: dollars.nullish().describe('for input written to it; default: 1.25 times the input price'),
  })
  .transform(({ model: name, ...price }) => ({ model: name, ...withCachePrices(price) }));
export const removePriceBody = z.object({ model });

export const tokenPricesResponse = z.object({
  prices: z.array(tokenPriceSchema).describe('own prices first'),
  subscribed_providers: z.array(z.string()).describe('their tokens cost nothing'),
});
export const tokenPriceResponse = z.object({ success: z.literal(true), price: tokenPriceSchema });
