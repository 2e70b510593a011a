import { expect } from 'chai';
import { tokenPricesProjection } from '../../../projections/tokens/prices.ts';
import { tokenPriceRemoved, tokenPriceSet } from '../../../shared/events/tokens/prices.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

describe('projection: token prices', () => {
  it('has the latest price, and no removed prices', () => {
    const price = { input: 1, output: 2, cache_read: 3, cache_write: 4 };
    const events = eventsOf([
      tokenPriceSet.draft({ model: 'a', price, before: null }),
      tokenPriceSet.draft({ model: 'b', price, before: null }),
      tokenPriceSet.draft({ model: 'a', price: { input: 3, output: 4, cache_read: 5, cache_write: 6 }, before: price }),
      tokenPriceRemoved.draft({ model: 'b', before: price }),
    ]);
    expect(rowsAfter(tokenPricesProjection, events).prices).to.deep.equal([
      {
        workspace_id: 1,
        model: 'a',
        input: 3,
        output: 4,
        cache_read: 5,
        cache_write: 6,
        updated_at: timeOf(3) / 1_000,
        updated_by: 'admin',
        position: 3,
      },
    ]);
  });
});
