/** The deployment's own API key. */
import { agentKeysProjection } from '../../projections/agents/keys.ts';
import type { globalKeyTable } from '../../projections/auth/global-key.ts';
import type { Row } from '../../projections/projection.ts';
import { type Reads, tables } from '../reads.ts';

export type GlobalKeyRow = Row<typeof globalKeyTable>;

/** The deployment's current key. */
export const findGlobalKey = (reads: Reads): Promise<GlobalKeyRow | undefined> =>
  tables(reads, agentKeysProjection).selectFrom('global_key').selectAll().executeTakeFirst();
