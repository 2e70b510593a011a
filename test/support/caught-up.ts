/** Waits for read models where a test looks into their tables by itself. */
import type { Core } from '../../infra/core.ts';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import { atHead } from '../../shared/ports/read-models.ts';

/** Resolves when all read models show everything that is in the log now. */
export async function allCaughtUp({ positions }: Pick<Core, 'positions'>): Promise<void> {
  await positions.reachSchemas(projections.map(schemaOf), atHead());
}
