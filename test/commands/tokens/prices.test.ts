import { expect } from 'chai';
import { decideRemovePrice, decideSetPrice, MAX_PRICES, tokenPricesDecider } from '../../../commands/tokens/prices.ts';
import { tokenPriceRemoved, tokenPriceSet } from '../../../shared/events/tokens/prices.ts';
import { type Draft, refusalOf, stateAfter } from '../../support/kit.ts';

const given = (...drafts: readonly Draft[]) => stateAfter(tokenPricesDecider, ...drafts);
const set = (model: string, input = 1, output = 2) =>
  tokenPriceSet.draft({ model, price: { input, output }, before: null });

describe('tokens: prices', () => {
  it('a price is set, and changed with what it was before', () => {
    const price = { input: 1, output: 2 };
    expect(decideSetPrice(given(), { model: 'm', ...price })).to.deep.equal([set('m')]);
    expect(decideSetPrice(given(set('m')), { model: 'm', input: 5, output: 2 })).to.deep.equal([
      tokenPriceSet.draft({ model: 'm', price: { input: 5, output: 2 }, before: price }),
    ]);
  });
  it('the same price again is no change', () => {
    expect(decideSetPrice(given(set('m')), { model: 'm', input: 1, output: 2 })).to.deep.equal([]);
  });
  it('an own price is removed once', () => {
    const removed = tokenPriceRemoved.draft({ model: 'm', before: { input: 1, output: 2 } });
    expect(decideRemovePrice(given(set('m')), 'm')).to.deep.equal([removed]);
    expect(refusalOf(() => decideRemovePrice(given(set('m'), removed), 'm')).status).to.equal(404);
    expect(refusalOf(() => decideRemovePrice(given(), 'constructor')).status).to.equal(404);
  });
  it('there are not more of them than every report can read', () => {
    const full = given(...Array.from({ length: MAX_PRICES }, (_, n) => set(`m${n}`)));
    expect(refusalOf(() => decideSetPrice(full, { model: 'more', input: 1, output: 1 })).status).to.equal(409);
    expect(decideSetPrice(full, { model: 'm1', input: 9, output: 9 })).to.have.length(1);
  });
});
