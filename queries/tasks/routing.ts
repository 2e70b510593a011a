/** Unassigned tasks, and agents that could get them. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { type Reads, tableOf } from '../reads.ts';
import { URGENT_FIRST } from './queue.ts';

const AVAILABLE = sql`a.hidden = 0 AND a.status NOT IN ('offline', 'error')`;

/** Maximum number of entries of `capabilities` that are compared. */
const CAPABILITIES = 100;

/** An agent that is neither hidden nor offline, and has no error. */
export interface RoutableAgent {
  readonly name: string;
  readonly role: string;
  readonly status: string;
  /** Its config's `capabilities`. */
  readonly capabilities: readonly string[];
  /** Tasks that it works on. */
  readonly inProgress: number;
  /** Tasks that wait for it. */
  readonly assigned: number;
}

export type RoutingReads = ReturnType<typeof routingReads>;
export function routingReads(reads: Reads) {
  const agents = tableOf(reads, agentsProjection, 'agents');
  const tasks = tableOf(reads, tasksProjection, 'tasks');
  return {
    /** Tasks in the inboxes of workspaces that have such agents: at most `limit` per workspace, most urgent first. */
    async unassigned(limit: number): Promise<readonly RecordPlace[]> {
      const { rows } = await sql<RecordPlace>`
        SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id
        FROM (SELECT DISTINCT a.workspace_id FROM ${agents} a WHERE ${AVAILABLE}) w
        CROSS JOIN LATERAL (
          SELECT * FROM ${tasks} one
          WHERE one.workspace_id = w.workspace_id AND one.assigned_to IS NULL AND one.status = 'inbox'
            AND one.status IN ('assigned', 'inbox')
          ORDER BY assigned_to, ${URGENT_FIRST} LIMIT ${sql.lit(limit)}) t
        JOIN ${tableOf(reads, projectsProjection, 'projects')} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
        ORDER BY t.workspace_id, t.priority_rank, t.due_date, t.created_at, t.id`.execute(reads.db);
      return rows;
    },
    /** Such agents of a workspace, by name; at most `limit`. */
    async agents(workspace: number, limit: number): Promise<readonly RoutableAgent[]> {
      type Found = Omit<RoutableAgent, 'capabilities'> & { readonly capabilities: unknown };
      const { rows } = await sql<Found>`
        SELECT a.name, a.role, a.status, x.config->'capabilities' AS capabilities,
          coalesce(c.in_progress, 0)::int AS "inProgress", coalesce(c.assigned, 0)::int AS assigned
        FROM ${agents} a
        JOIN ${tableOf(reads, agentsProjection, 'agent_texts')} x ON x.workspace_id = a.workspace_id AND x.id = a.id
        LEFT JOIN LATERAL (
          SELECT sum(n.count) FILTER (WHERE n.status = 'in_progress') AS in_progress,
            sum(n.count) FILTER (WHERE n.status = 'assigned') AS assigned
          FROM ${tableOf(reads, tasksProjection, 'task_counts')} n
          WHERE n.workspace_id = a.workspace_id
            AND (n.assignee_id = a.id OR (n.assignee_id = 0 AND n.assigned_to = a.name))) c ON true
        WHERE a.workspace_id = ${workspace} AND ${AVAILABLE}
        ORDER BY a.name LIMIT ${sql.lit(limit)}`.execute(reads.db);
      return rows.map(({ capabilities, ...agent }) => ({
        ...agent,
        capabilities: (Array.isArray(capabilities) ? capabilities : [])
          .filter((one): one is string => typeof one === 'string')
          .slice(0, CAPABILITIES),
      }));
    },
  };
}
