import { expect } from 'chai';
import { decideRemovePrice, decideSetPrice, MAX_PRICES, tokenPricesDecider } from '../../../commands/tokens/prices.ts';
import { withCachePrices } from '../../../shared/contract/tokens/costs.ts';
import { tokenPriceRemoved, tokenPriceSet } from '../../../shared/events/tokens/prices.ts';
import { givenFor } from '../../support/kit.ts';

const given = givenFor(tokenPricesDecider);
const priced = (input = 1, output = 2) => withCachePrices({ input, output });
const set = (model: string) => tokenPriceSet.draft({ model, price: priced(), before: null });

describe('tokens: prices', () => {
  it('setting a price records the previous one', () => {
    const price = priced();
    given()
      .when(decideSetPrice, { model: 'm', ...price })
      .then(set('m'));
    given(set('m'))
      .when(decideSetPrice, { model: 'm', ...price, cache_read: 5 })
      .then(tokenPriceSet.draft({ model: 'm', price: { ...price, cache_read: 5 }, before: price }));
  });
  it('setting the same price again records no change', () => {
    given(set('m'))
      .when(decideSetPrice, { model: 'm', ...priced() })
      .then();
  });
  it('a custom price is removed once', () => {
    const removed = tokenPriceRemoved.draft({ model: 'm', before: priced() });
    given(set('m')).when(decideRemovePrice, 'm').then(removed);
    given(set('m'), removed).when(decideRemovePrice, 'm').thenRefuses(404);
    given().when(decideRemovePrice, 'constructor').thenRefuses(404);
  });
  it('the number of prices is limited to what every report can read', () => {
    const full = given(...Array.from({ length: MAX_PRICES }, (_, n) => set(`m${n}`)));
    full.when(decideSetPrice, { model: 'more', ...priced() }).thenRefuses(409);
    expect(decideSetPrice(full.state, { model: 'm1', ...priced(9, 9) })).to.have.length(1);
  });
});
