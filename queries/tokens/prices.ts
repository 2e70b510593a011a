/** Prices of tokens: the workspace's own prices take precedence over the built-in ones. */
import { tokenPricesProjection, tokenPricesTable } from '../../projections/tokens/prices.ts';
import { BUILT_IN_PRICES } from '../../shared/contract/tokens/costs.ts';
import type { TokenPrice } from '../../shared/contract/tokens/prices.ts';
import { inWorkspace, type Reads } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';

const COLUMNS = ['model', 'input', 'output', 'cache_read', 'cache_write', 'updated_at', 'updated_by'] as const;

/** A workspace's own price after a command. */
export async function priceAfter(
  records: Records,
  workspace: number,
  model: string,
  executed: Executed,
): Promise<TokenPrice> {
  const key = { workspace_id: workspace, model };
  const row = await rowAfter(records, 'Price', [tokenPricesProjection, tokenPricesTable], key, executed);
  return { ...columnsOf(row, COLUMNS), source: 'own' };
}

/** Effective prices: a built-in price that an own one replaces is left out. */
export async function listPrices(reads: Reads, workspace: number): Promise<TokenPrice[]> {
  const rows = await inWorkspace(reads, tokenPricesProjection, 'prices', workspace)
    .select(COLUMNS)
    .orderBy('model')
    .execute();
  const own = new Set(rows.map(({ model }) => model));
  return [
    ...rows.map((row) => ({ ...row, source: 'own' as const })),
    ...BUILT_IN_PRICES.filter(({ model }) => !own.has(model)).map((price) => ({
      ...price,
      source: 'built-in' as const,
      updated_at: null,
      updated_by: null,
    })),
  ];
}
