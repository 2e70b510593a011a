/** Isolation of workspaces, cached as long as the read model does not change. */
import { workspacesProjection } from '../../projections/workspaces/workspaces.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';
import { createLookUps } from '../kept.ts';
import type { Reads } from '../reads.ts';
import { isolationOf } from './workspaces.ts';

/** Maximum number of cached workspaces per process. */
const KEPT = 10_000;

/** Which workspaces are strictly isolated: checked before every access to shared resources. */
export type Isolations = ReturnType<typeof createIsolations>;
export function createIsolations({
  reads,
  freshness,
}: {
  readonly reads: Reads;
  readonly freshness: Pick<Freshness, 'stamp'>;
}) {
  const models = [workspacesProjection.name];
  const lookUps = createLookUps<boolean>({ reads, freshness, models, scope: 'all', values: KEPT });
  return {
    /** @param since `performance.now()`: a state from any time after this is acceptable; default: now */
    async isStrict(workspace: number, since = performance.now()): Promise<boolean> {
      const lookUp = await lookUps(workspace, { since });
      return lookUp('isolation', async (then) => (await isolationOf(then, workspace)) === 'strict');
    },
  };
}
