/** Tasks, alert rules and assignments to projects by the agent to which they refer. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { alertRulesProjection } from '../../projections/alerts/rules.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { type Reads, tableOf } from '../reads.ts';

/** Where the page before ended. */
interface After {
  readonly workspace: number;
  readonly id: number;
}

interface OneAgent {
  readonly workspace: number;
  readonly agent: number;
}

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
  { workspace, id }: After,
  limit: number,
  only?: OneAgent,
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

/**
 * Alert rules that notify agents, after a place, by workspace and id; at most `limit`.
 *
 * @param only this agent; undefined: agents that have another name or do not exist
 */
export async function notifiedBy(
  reads: Reads,
  { workspace, id }: After,
  limit: number,
  only?: OneAgent,
): Promise<readonly AssignedTask[]> {
  const which = only
    ? sql`r.workspace_id = ${only.workspace} AND r.recipient_agent = ${only.agent}`
    : sql`r.recipient_agent IS NOT NULL AND NOT EXISTS (
        SELECT FROM ${tableOf(reads, agentsProjection, 'agents')} a
        WHERE a.workspace_id = r.workspace_id AND a.id = r.recipient_agent AND a.name = r.action_config->>'recipient')`;
  const { rows } = await sql<AssignedTask>`
    SELECT r.tenant_id AS tenant, r.workspace_id AS workspace, r.id, r.recipient_agent AS agent
    FROM ${tableOf(reads, alertRulesProjection, 'alert_rules')} r
    WHERE ${which} AND (r.workspace_id, r.id) > (${workspace}, ${id})
    ORDER BY r.workspace_id, r.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
  return rows;
}

/** An assignment of an agent to a project. */
export interface Membership extends AssignedTask {
  readonly project: number;
}

/**
 * Assignments of agents to projects, after a place, by workspace and id of the assignment; at most `limit`.
 *
 * @param only of this agent; undefined: of agents that do not exist
 */
export async function memberships(
  reads: Reads,
  { workspace, id }: After,
  limit: number,
  only?: OneAgent,
): Promise<readonly Membership[]> {
  const which = only
    ? sql`m.workspace_id = ${only.workspace} AND m.agent_id = ${only.agent}`
    : sql`m.agent_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM ${tableOf(reads, agentsProjection, 'agents')} a
        WHERE a.workspace_id = m.workspace_id AND a.id = m.agent_id)`;
  const { rows } = await sql<Membership>`
    SELECT p.tenant_id AS tenant, m.workspace_id AS workspace, m.id, m.project_id AS project, m.agent_id AS agent
    FROM ${tableOf(reads, projectsProjection, 'project_agents')} m
    JOIN ${tableOf(reads, projectsProjection, 'projects')} p ON p.workspace_id = m.workspace_id AND p.id = m.project_id
    WHERE ${which} AND (m.workspace_id, m.id) > (${workspace}, ${id})
    ORDER BY m.workspace_id, m.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
  return rows;
}
