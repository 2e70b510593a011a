/** Tasks by the agent to which they are assigned. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';

import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { type Reads, tableOf } from '../reads.ts';

/** A task and the id of its agent. */
export interface AssignedTask extends RecordPlace {
  readonly agent: number;
}

/**
 * Tasks of agents after a place, by workspace and id; at most `limit`.
 *
 * @param only of this agent, unless they are done; undefined: those that wait or are in progress and whose agent has
 *   another name or does not exist
 */
export async function assignedTasks(
  reads: Reads,
  { workspace, id }: { readonly workspace: number; readonly id: number },
  limit: number,
  only?: { readonly workspace: number; readonly agent: number },
): Promise<readonly AssignedTask[]> {
  const which = only
    ? sql`t.workspace_id = ${only.workspace} AND t.assignee_id = ${only.agent} AND t.status <> 'done'`
    : sql`t.status IN ('assigned', 'inbox', 'in_progress') AND t.assignee_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM ${tableOf(reads, agentsProjection, 'agents')} a
        WHERE a.workspace_id = t.workspace_id AND a.id = t.assignee_id AND a.name = t.assigned_to)`;
  const { rows } = await sql<AssignedTask>`
    SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id, t.assignee_id AS agent
    FROM ${tableOf(reads, tasksProjection, 'tasks')} t
    JOIN ${tableOf(reads, projectsProjection, 'projects')} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
    WHERE ${which} AND (t.workspace_id, t.id) > (${workspace}, ${id})
    ORDER BY t.workspace_id, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
  return rows;
}
