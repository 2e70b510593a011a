/** The queue of tasks: what agents work on, and what waits for them. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { QueuedTask, StaleTask, StaleTaskReads, TaskQueueReads } from '../../shared/ports/queue.ts';
import type { Reads } from '../reads.ts';
import { joinProject, TASK_JSON } from './tasks.ts';

const tasksTable = (reads: Reads) => sql.table(`${reads.schema(tasksProjection)}.tasks`);

/** The order of the queue. */
export const URGENT_FIRST = sql.raw('priority_rank, due_date, created_at, id');

/**
 * Tasks that wait for an agent or for anybody, in the order in which they are claimed, as a subquery with the columns of
 * the table. Each half is the front of one index range, so only the rows that are returned are read.
 */
export function waitingTasks(
  reads: Reads,
  workspace: number,
  agent: string,
  limit: number,
  passedOver: readonly number[] = [],
): RawBuilder<unknown> {
  // PostgreSQL does not infer from IS NULL that all rows have the same assigned_to. With that column first, the order is
  // the order of the index, and nothing is sorted.
  const half = (whose: RawBuilder<unknown>) => sql`(
    SELECT * FROM ${tasksTable(reads)}
    WHERE workspace_id = ${workspace} AND status IN ('assigned', 'inbox') AND assigned_to ${whose}
      AND id <> ALL(${passedOver}::bigint[])
    ORDER BY assigned_to, ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;
  return sql`(
    SELECT * FROM (${half(sql`= ${agent}`)} UNION ALL ${half(sql`IS NULL`)}) both_halves
    ORDER BY ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;
}

export function taskQueueReads(reads: Reads): TaskQueueReads {
  return {
    async inProgress(workspace, agent, limit) {
      const { rows } = await sql<{ task: QueuedTask }>`
        SELECT ${TASK_JSON}::jsonb - ARRAY['project_name', 'project_prefix', 'ticket_ref'] AS task
        FROM ${tasksTable(reads)} t ${joinProject(reads)}
        WHERE t.workspace_id = ${workspace} AND t.assigned_to = ${agent} AND t.status = 'in_progress'
        ORDER BY t.updated_at DESC, t.id DESC LIMIT ${sql.lit(limit)}`.execute(reads.db);
      return rows.map(({ task }) => task);
    },
    async waiting(workspace, agent, passedOver, limit) {
      const found = waitingTasks(reads, workspace, agent, limit, passedOver);
      const { rows } = await sql<{ id: number }>`
        SELECT id FROM ${found} waiting ORDER BY ${URGENT_FIRST}`.execute(reads.db);
      return rows.map(({ id }) => Number(id));
    },
    async earlier(workspace, agent, task, position, limit) {
      const { rows } = await sql<{ count: number }>`
        SELECT count(*) AS count FROM (
          SELECT 1 FROM ${tasksTable(reads)}
          WHERE workspace_id = ${workspace} AND assigned_to = ${agent} AND status = 'in_progress' AND id <> ${task}
            AND coalesce(claim_position, 0) < ${position} LIMIT ${sql.lit(limit)}) earlier`.execute(reads.db);
      return Number(rows[0]?.count ?? 0);
    },
  };
}

export const staleTaskReads = (reads: Reads): StaleTaskReads => ({
  async stale(since, after, limit) {
    const table = (projection: Parameters<Reads['schema']>[0], name: string) =>
      sql.table(`${reads.schema(projection)}.${name}`);
    const behind = after
      ? sql`(t.updated_at, t.workspace_id, t.id) > (${after.updatedAt}, ${after.workspace}, ${after.id})`
      : sql`true`;
    const { rows } = await sql<StaleTask>`
      SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id, t.assigned_to AS agent, a.id IS NOT NULL AS known,
        t.updated_at AS "updatedAt"
      FROM ${tasksTable(reads)} t
      JOIN ${table(projectsProjection, 'projects')} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
      LEFT JOIN ${table(agentsProjection, 'agents')} a ON a.workspace_id = t.workspace_id AND a.name = t.assigned_to
      WHERE t.status = 'in_progress' AND t.updated_at <= ${since} AND ${behind} AND t.assigned_to IS NOT NULL
        AND (a.id IS NULL OR a.status = 'offline')
        AND (a.id IS NOT NULL OR NOT EXISTS (
          SELECT 1 FROM ${table(usersProjection, 'users')} u
          WHERE u.workspace_id = t.workspace_id AND t.assigned_to IN (u.username, u.display_name)))
      ORDER BY t.updated_at, t.workspace_id, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
    return rows;
  },
});
