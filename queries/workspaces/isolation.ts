/** Isolation of workspaces, cached as long as the read model does not change. */
import { workspacesProjection } from '../../projections/workspaces/workspaces.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';
import type { Isolations } from '../../shared/ports/workspaces/isolation.ts';
import { createLookUps } from '../kept.ts';
import type { Reads } from '../reads.ts';
import { isolationOf } from './workspaces.ts';

/** Maximum number of cached workspaces per process. */
const KEPT = 10_000;

export function createIsolations({
  reads,
  freshness,
}: {
  readonly reads: Reads;
  readonly freshness: Pick<Freshness, 'stamp'>;
}): Isolations {
  const models = [workspacesProjection.name];
  const lookUps = createLookUps<boolean>({ reads, freshness, models, scope: 'all', values: KEPT });
  return {
    async isStrict(workspace, since = performance.now()) {
      const lookUp = await lookUps(workspace, { since });
      return lookUp('isolation', async (then) => (await isolationOf(then, workspace)) === 'strict');
    },
  };
}
