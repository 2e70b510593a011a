/** A rebuild of one read model. */
import type { RebuildOptions, RebuildReport, RebuildStores } from '../../infra/read-models/rebuild/plan.ts';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import type { Projection } from '../../projections/projection.ts';

/** @throws as `rebuildProjections` */
export async function rebuildProjection(
  stores: RebuildStores,
  projection: Projection,
  options: RebuildOptions = {},
): Promise<RebuildReport> {
  const [report] = await rebuildProjections(stores, [projection], options);
  return report as RebuildReport;
}
