/** Agents of projects. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { Assignment } from '../../shared/contract/projects/assignments.ts';
import { type Reads, tableOf } from '../reads.ts';

/**
 * The agents of a project under their present names, without deleted ones. A name that was assigned while no agent had
 * it may now be that of another agent of the project: it is listed once.
 *
 * @param project expressions for its workspace and its id
 */
export const membersOf = (
  reads: Reads,
  { workspace, id }: { readonly workspace: unknown; readonly id: unknown },
): RawBuilder<unknown> => sql`(
  SELECT DISTINCT ON (coalesce(g.name, m.agent_name))
    m.id, m.project_id, coalesce(g.name, m.agent_name) AS agent_name, m.role, m.assigned_at
  FROM ${tableOf(reads, projectsProjection, 'project_agents')} m
  LEFT JOIN ${tableOf(reads, agentsProjection, 'agents')} g ON g.workspace_id = m.workspace_id AND g.id = m.agent_id
  WHERE m.workspace_id = ${workspace} AND m.project_id = ${id} AND (m.agent_id IS NULL OR g.id IS NOT NULL)
  ORDER BY coalesce(g.name, m.agent_name), m.assigned_at, m.id)`;

/** In the order in which they were assigned. */
export async function listAssignments(reads: Reads, workspace: number, project: number): Promise<Assignment[]> {
  const { rows } = await sql<Assignment>`
    SELECT * FROM ${membersOf(reads, { workspace, id: project })} m ORDER BY assigned_at, id`.execute(reads.db);
  return rows;
}
