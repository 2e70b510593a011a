/** Prices of tokens that a workspace sets for itself. Stream: `token_prices-<workspace>`. */
import { isDeepStrictEqual } from 'node:util';
import type { ModelPrice, Price } from '../../shared/contract/tokens/costs.ts';
import { conflict, notFound } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { tokenPriceRemoved, tokenPriceSet } from '../../shared/events/tokens/prices.ts';
import { defineDecider, on } from '../decider.ts';

/** By model. */
type PricesState = ReadonlyMap<string, Price>;

/** Maximum number of prices, because every report reads all of them. */
export const MAX_PRICES = 500;

export const tokenPricesStream = (workspace: number): string => `token_prices-${workspace}`;

export const tokenPricesDecider = defineDecider<PricesState>({
  kind: 'token price list',
  initial: new Map(),
  folds: [
    on(tokenPriceSet, (state, { data }) => new Map([...state, [data.model, data.price]])),
    on(tokenPriceRemoved, (state, { data }) => new Map([...state].filter(([model]) => model !== data.model))),
  ],
});

/** @throws AppError 409 when there are too many */
export function decideSetPrice(state: PricesState, { model, ...price }: ModelPrice): EventDraft[] {
  const before = state.get(model) ?? null;
  if (isDeepStrictEqual(before, price)) return [];
  if (!before && state.size >= MAX_PRICES) {
    throw conflict(`A workspace can have ${MAX_PRICES} prices of its own; remove one that is no longer needed.`);
  }
  return [tokenPriceSet.draft({ model, price, before })];
}

/** @throws AppError 404 */
export function decideRemovePrice(state: PricesState, model: string): EventDraft[] {
  const before = state.get(model);
  if (!before) throw notFound('Price');
  return [tokenPriceRemoved.draft({ model, before })];
}
