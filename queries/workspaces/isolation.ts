/** Isolation of workspaces, kept in memory while the read model stands still. */
import { workspacesProjection } from '../../projections/workspaces/workspaces.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { Isolations } from '../../shared/ports/isolation.ts';
import { createKept } from '../kept.ts';
import type { Reads } from '../reads.ts';
import { isolationOf } from './workspaces.ts';

/** Workspaces that one process keeps. */
const KEPT = 10_000;

export function createIsolations(parts: {
  readonly reads: Reads;
  readonly freshness: Pick<Freshness, 'stamp'>;
}): Isolations {
  const kept = createKept<{ readonly stamp: string; readonly strict: boolean }>({ values: KEPT });
  return {
    async isStrict(workspace, since = performance.now()) {
      // Taken before the read: what changes in between is looked up again.
      const { value: stamp } = await parts.freshness.stamp([workspacesProjection.name], 'all', { since });
      const known = kept.of(workspace).get('isolation');
      if (known?.stamp === stamp) return known.strict;
      const strict = (await isolationOf(parts.reads, workspace)) === 'strict';
      kept.of(workspace).set('isolation', { stamp, strict });
      return strict;
    },
  };
}
