/** Prices of tokens that workspaces have set for themselves. */
import { tokenPriceRemoved, tokenPriceSet } from '../../shared/events/tokens/prices.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, on, remove } from '../projection.ts';

export const tokenPricesTable = defineTable(
  'prices',
  {
    workspace_id: 'int',
    model: 'text',
    input: 'double',
    output: 'double',
    cache_read: 'double',
    cache_write: 'double',
    updated_at: 'bigint',
    updated_by: 'text',
  },
  { key: ['workspace_id', 'model'] },
);

export const tokenPricesProjection = defineProjection({
  name: 'token_prices',
  version: 1,
  tables: [tokenPricesTable],
  handlers: [
    on(tokenPriceSet, ({ data, meta }) => {
      const key = { workspace_id: meta.workspace, model: data.model };
      const set = { ...data.price, updated_at: seconds(meta.at), updated_by: meta.actor.name };
      return [change(tokenPricesTable, key, () => ({ ...key, ...set }))];
    }),
    on(tokenPriceRemoved, ({ data, meta }) => [
      remove(tokenPricesTable, { workspace_id: meta.workspace, model: data.model }),
    ]),
  ],
});
