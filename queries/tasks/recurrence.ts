/** Recurring tasks, for their schedule. */
import { sql } from 'kysely';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { countOf, inWorkspace, type Reads, tableOf } from '../reads.ts';

/** How many recurring tasks a workspace has. */
export const countRecurring = (reads: Reads, workspace: number): Promise<number> =>
  countOf(inWorkspace(reads, tasksProjection, 'tasks', workspace).where('cron', 'is not', null));

/** A recurring task. Times in Unix seconds. */
export interface RecurringTask extends RecordPlace {
  readonly cron: string;
  /** Since when it has this schedule. */
  readonly cronSince: number;
  /** The last minute for which a task was created. */
  readonly recurredAt: number | null;
  /** The last task if it is still to be created; null if it exists. */
  readonly missingChild: number | null;
}

export type RecurrenceReads = ReturnType<typeof recurrenceReads>;
export const recurrenceReads = (reads: Reads) => ({
  /** Recurring tasks of all workspaces after a place, by workspace and id; at most `limit`. */
  async recurring(
    { workspace, id }: { readonly workspace: number; readonly id: number },
    limit: number,
  ): Promise<readonly RecurringTask[]> {
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
  /** Whether a task of the project that was created after a time, Unix seconds, has exactly this title. */
  async titleTaken(workspace: number, project: number, title: string, since: number): Promise<boolean> {
    const tasks = tableOf(reads, tasksProjection, 'tasks');
    const row = await inWorkspace(reads, tasksProjection, 'task_changes', workspace)
      .select('id')
      .where('project_id', '=', project)
      .where(sql<boolean>`md5(title) = md5(${title})`)
      .where('title', '=', title)
      .where(
        sql<boolean>`EXISTS (SELECT FROM ${tasks} t
          WHERE t.workspace_id = ${workspace} AND t.id = task_changes.id AND t.created_at > ${since})`,
      )
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },
});
