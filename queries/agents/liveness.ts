/** Agents that have stopped reporting. */
import type { Reads } from '../reads.ts';
import { agentTables } from './agents.ts';
import { aliveAt } from './leases.ts';

/** Agents of all workspaces that are not offline and whose last sign of life is older than `since`, Unix seconds. */
export async function silentAgents(reads: Reads, since: number) {
  return agentTables(reads)
    .selectFrom('agents')
    .where('status', '!=', 'offline')
    .where('alive_at', '<=', since)
    .where(aliveAt(reads, 'agents'), '<=', since)
    .select(['workspace_id as workspace', 'tenant_id as tenant', 'id', 'name'])
    .orderBy('workspace_id')
    .orderBy('id')
    .execute();
}
