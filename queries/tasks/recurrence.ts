/** Recurring tasks, for their schedule. */
import { sql } from 'kysely';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { RecurrenceReads, RecurringTask } from '../../shared/ports/tasks/recurrence.ts';
import { countOf, inWorkspace, type Reads, tableOf } from '../reads.ts';

/** How many recurring tasks a workspace has. */
export const countRecurring = (reads: Reads, workspace: number): Promise<number> =>
  countOf(inWorkspace(reads, tasksProjection, 'tasks', workspace).where('cron', 'is not', null));

export const recurrenceReads = (reads: Reads): RecurrenceReads => ({
  async recurring({ workspace, id }, limit) {
    const tasks = tableOf(reads, tasksProjection, 'tasks');
    const { rows } = await sql<RecurringTask>`
      SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id, t.cron, t.cron_since AS "cronSince",
        t.recurred_at AS "recurredAt", CASE WHEN child.id IS NULL THEN t.recurred_child END AS "missingChild"
      FROM ${tasks} t
      JOIN ${tableOf(reads, projectsProjection, 'projects')} p
        ON p.workspace_id = t.workspace_id AND p.id = t.project_id
      LEFT JOIN ${tasks} child ON child.workspace_id = t.workspace_id AND child.id = t.recurred_child
      WHERE t.cron IS NOT NULL AND (t.workspace_id, t.id) > (${workspace}, ${id})
      ORDER BY t.workspace_id, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
    return rows;
  },
  async titleTaken(workspace, project, title) {
    const row = await inWorkspace(reads, tasksProjection, 'task_changes', workspace)
      .select('id')
      .where('project_id', '=', project)
      .where(sql<boolean>`md5(title) = md5(${title})`)
      .where('title', '=', title)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },
});
