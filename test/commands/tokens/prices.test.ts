import { expect } from 'chai';
import { decideRemovePrice, decideSetPrice, MAX_PRICES, tokenPricesDecider } from '../../../commands/tokens/prices.ts';
import { tokenPriceRemoved, tokenPriceSet } from '../../../shared/events/tokens/prices.ts';
import { givenFor } from '../../support/kit.ts';

const given = givenFor(tokenPricesDecider);
const set = (model: string, input = 1, output = 2) =>
  tokenPriceSet.draft({ model, price: { input, output }, before: null });

describe('tokens: prices', () => {
  it('setting a price records the previous one', () => {
    const price = { input: 1, output: 2 };
    given()
      .when(decideSetPrice, { model: 'm', ...price })
      .then(set('m'));
    given(set('m'))
      .when(decideSetPrice, { model: 'm', input: 5, output: 2 })
      .then(tokenPriceSet.draft({ model: 'm', price: { input: 5, output: 2 }, before: price }));
  });
  it('setting the same price again records no change', () => {
    given(set('m')).when(decideSetPrice, { model: 'm', input: 1, output: 2 }).then();
  });
  it('a custom price is removed once', () => {
    const removed = tokenPriceRemoved.draft({ model: 'm', before: { input: 1, output: 2 } });
    given(set('m')).when(decideRemovePrice, 'm').then(removed);
    given(set('m'), removed).when(decideRemovePrice, 'm').thenRefuses(404);
    given().when(decideRemovePrice, 'constructor').thenRefuses(404);
  });
  it('the number of prices is limited to what every report can read', () => {
    const full = given(...Array.from({ length: MAX_PRICES }, (_, n) => set(`m${n}`)));
    full.when(decideSetPrice, { model: 'more', input: 1, output: 1 }).thenRefuses(409);
    expect(decideSetPrice(full.state, { model: 'm1', input: 9, output: 9 })).to.have.length(1);
  });
});
