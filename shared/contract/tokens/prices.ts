/** Prices of tokens. */
import { z } from 'zod';
import { lineOfText, unixSeconds } from '../common.ts';

/** US dollars per million tokens. */
const dollars = z.number().min(0).max(1_000_000).describe('US dollars per million tokens');

const model = lineOfText(1, 200)
  .transform((name) => name.trim().toLowerCase())
  .refine((name) => name !== '' && !name.endsWith('/'), 'must name a model, such as anthropic/claude-opus-4-7, or be *')
  .meta({ override: { type: 'string', minLength: 1, maxLength: 200 } })
  .describe('full name of a model, or a part of names; * is the price of models that no other price matches');

export const tokenPriceSchema = z
  .object({
    model: z.string(),
    input: dollars,
    output: dollars,
    source: z.enum(['built-in', 'own']),
    updated_at: unixSeconds.nullable(),
    updated_by: z.string().nullable(),
  })
  .meta({ id: 'TokenPrice' });
export type TokenPrice = z.infer<typeof tokenPriceSchema>;

export const setPriceBody = z.object({ model, input: dollars, output: dollars });
export const removePriceBody = z.object({ model });

export const tokenPricesResponse = z.object({
  prices: z.array(tokenPriceSchema).describe('own prices first'),
  subscribed_providers: z.array(z.string()).describe('their tokens cost nothing'),
});
export const tokenPriceResponse = z.object({ success: z.literal(true), price: tokenPriceSchema });
