/** Connections of command-line tools. */
import { sql } from 'kysely';
import { agentsProjection } from '../projections/agents/agents.ts';
import { connectionsProjection } from '../projections/connections.ts';
import { type ConnectionRecord, type ConnectionsQuery, connectionSchema } from '../shared/contract/connections.ts';
import { fieldNames } from '../shared/fields.ts';
import { lastHeartbeat } from './agents/leases.ts';
import { jsonFields, type Reads, tableOf } from './reads.ts';

/** Rows `c` of connections with row `a` of their agents: those of deleted agents are left out. */
const connectionsWithAgents = (reads: Reads) => sql`
  ${tableOf(reads, connectionsProjection, 'connections')} c
  JOIN ${tableOf(reads, agentsProjection, 'agents')} a ON a.workspace_id = c.workspace_id AND a.id = c.agent_id`;

/**
 * Whether the agent of a connection still exists. `IS TRUE` keeps the planner from joining: the ids of agents are then
 * hashed once, instead of looked up for every connection before the page.
 */
const hasAgent = (reads: Reads, workspace: number) => sql`
  (agent_id IN (SELECT id FROM ${tableOf(reads, agentsProjection, 'agents')} WHERE workspace_id = ${workspace})) IS TRUE`;

const withAgents = (reads: Reads, workspace: number) => sql`
  ${connectionsWithAgents(reads)} WHERE c.workspace_id = ${workspace}`;

const OWN = sql.raw(
  jsonFields(
    'c',
    fieldNames(connectionSchema.omit({ agent_name: true, agent_status: true, agent_role: true, last_heartbeat: true })),
  ),
);

/** A page of connections, newest first. */
export async function listConnections(
  reads: Reads,
  workspace: number,
  { limit, offset }: ConnectionsQuery,
): Promise<ConnectionRecord[]> {
  const { rows } = await sql<{ connection: ConnectionRecord }>`
    SELECT json_build_object(${OWN}, 'last_heartbeat', ${lastHeartbeat(reads, 'c')}, 'agent_name', a.name, 'agent_status', a.status, 'agent_role', a.role) AS connection
    FROM (
      SELECT * FROM ${tableOf(reads, connectionsProjection, 'connections')} WHERE workspace_id = ${workspace}
        AND ${hasAgent(reads, workspace)}
      ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}
    ) c JOIN ${tableOf(reads, agentsProjection, 'agents')} a ON a.workspace_id = c.workspace_id AND a.id = c.agent_id
    ORDER BY c.created_at DESC, c.id DESC`.execute(reads.db);
  return rows.map(({ connection }) => connection);
}

/** The agent of a connection; undefined when the workspace has no such connection. */
export async function agentOfConnection(reads: Reads, workspace: number, connection: string) {
  const { rows } = await sql<{ id: number; name: string }>`
    SELECT a.id, a.name FROM ${withAgents(reads, workspace)} AND c.connection_id = ${connection}`.execute(reads.db);
  return rows[0];
}

/** How many tools are connected to a workspace, not counting the one of this agent. */
export async function countConnected(reads: Reads, workspace: number, besides: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*) AS count FROM ${withAgents(reads, workspace)}
      AND c.status = 'connected' AND c.agent_id <> ${besides}`.execute(reads.db);
  return Number(rows[0]?.count ?? 0);
}

/** A connection without recent heartbeats. */
interface StaleConnection {
  readonly workspace: number;
  readonly tenant: number;
  readonly agent_id: number;
  readonly connection_id: string;
}

/** Connections in one turn. */
const AT_ONCE = 1_000;

/** Connections of all workspaces without a heartbeat after `since`, Unix seconds; the oldest first. */
export async function staleConnections(reads: Reads, since: number): Promise<StaleConnection[]> {
  const { rows } = await sql<StaleConnection>`
    SELECT c.workspace_id AS workspace, c.tenant_id AS tenant, c.agent_id, c.connection_id
    FROM ${connectionsWithAgents(reads)}
    WHERE c.status = 'connected' AND c.last_heartbeat <= ${since} AND ${lastHeartbeat(reads, 'c')} <= ${since}
    ORDER BY c.last_heartbeat, c.workspace_id, c.connection_id LIMIT ${AT_ONCE}`.execute(reads.db);
  return rows;
}
