/** Keys of agents. */
import { sql } from 'kysely';
import { agentKeysProjection } from '../../projections/agents/keys.ts';
import type { AgentKeyRecord } from '../../shared/contract/agents/keys.ts';
import { inWorkspace, type Reads, tables } from '../reads.ts';

const own = (reads: Reads) => tables(reads, agentKeysProjection);

/** Those of these keys that are not revoked and whose agent exists. The caller must check their expiry. */
export const findLiveKeys = (reads: Reads, keyIds: readonly number[]) =>
  own(reads)
    .selectFrom('agent_keys as k')
    .innerJoin('key_agents as a', (join) =>
      join.onRef('a.workspace_id', '=', 'k.workspace_id').onRef('a.id', '=', 'k.agent_id'),
    )
    .select(['k.id', 'k.workspace_id', 'k.tenant_id', 'k.agent_id', 'k.scopes', 'k.expires_at', 'a.name as agent_name'])
    .where(sql<boolean>`k.id = ANY(${keyIds})`)
    .where('k.revoked_at', 'is', null)
    .execute();
export type LiveKeyRow = Awaited<ReturnType<typeof findLiveKeys>>[number];

export const findLiveKey = async (reads: Reads, keyId: number): Promise<LiveKeyRow | undefined> =>
  (await findLiveKeys(reads, [keyId]))[0];

/** When a key was issued that is not revoked: the position of that event, and Unix seconds. */
export const keyIssued = (reads: Reads, keyId: number) =>
  own(reads)
    .selectFrom('agent_keys')
    // Until it is revoked, nothing else changes its row.
    .select(['position', 'created_at as at'])
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();

/**
 * Keys of an agent, newest first.
 *
 * @param lastUsed Unix seconds by key id, from the credential store, because uses are not events; undefined: unknown
 *   for the moment that is read
 */
export async function listAgentKeys(
  reads: Reads,
  workspace: number,
  agentId: number,
  lastUsed: ((ids: readonly number[]) => Promise<ReadonlyMap<number, number>>) | undefined,
): Promise<AgentKeyRecord[]> {
  const rows = await inWorkspace(reads, agentKeysProjection, 'agent_keys', workspace)
    .selectAll()
    .where('agent_id', '=', agentId)
    .orderBy('id', 'desc')
    .execute();
  const uses = await lastUsed?.(rows.map((row) => row.id));
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    key_prefix: row.prefix,
    scopes: row.scopes as string[],
    created_by: row.created_by,
    expires_at: row.expires_at,
    revoked_at: row.revoked_at,
    ...(uses && { last_used_at: uses.get(row.id) ?? null }),
    created_at: row.created_at,
    updated_at: Math.max(row.updated_at, uses?.get(row.id) ?? 0),
  }));
}
