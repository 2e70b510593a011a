/** Tasks for the agent runner. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { qualityReviewsProjection } from '../../projections/quality/reviews.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { inWorkspace, type Reads, tableOf } from '../reads.ts';

/** Statuses of tasks that the runner works on, by the kind of request. */
const UNDER_WAY = { dispatch: 'in_progress', review: 'quality_review' } as const;
type What = keyof typeof UNDER_WAY;

/** @property unanswered number of tasks of its workspace that the runner was asked for and has not responded to */
export interface NextTask extends RecordPlace {
  readonly unanswered: number;
}
/** A task for its agent. */
type AssignedTask = NextTask & { readonly agent_id: number; readonly agent: string };

export type DispatchReads = ReturnType<typeof dispatchReads>;
export function dispatchReads(reads: Reads) {
  const tasks = tableOf(reads, tasksProjection, 'tasks');
  const projects = tableOf(reads, projectsProjection, 'projects');
  const agents = tableOf(reads, agentsProjection, 'agents');

  /** Number of a workspace's tasks that the runner was asked for and has not responded to. */
  const unanswered = (what: What, workspace: RawBuilder<unknown>) => sql`(
    SELECT count(*)::int FROM ${tasks} b
    WHERE b.workspace_id = ${workspace} AND b.asked = ${sql.lit(what)} AND b.status = ${sql.lit(UNDER_WAY[what])})`;

  return {
    /**
     * Tasks that are assigned to agents, most urgent first, then the oldest; without templates of recurring tasks. At
     * most `limit` per workspace.
     */
    async assigned(limit: number): Promise<readonly AssignedTask[]> {
      const { rows } = await sql<AssignedTask>`
        SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id, t.agent_id, t.assigned_to AS agent,
          ${unanswered('dispatch', sql.ref('t.workspace_id'))} AS unanswered
        FROM (
          SELECT one.*, a.id AS agent_id, row_number() OVER (PARTITION BY one.workspace_id ORDER BY one.priority_rank, one.created_at, one.id)
            AS place
          FROM ${agents} a
          CROSS JOIN LATERAL (
            SELECT t.workspace_id, t.id, t.assigned_to, t.priority_rank, t.created_at, t.project_id FROM ${tasks} t
            WHERE t.workspace_id = a.workspace_id AND t.assigned_to = a.name AND t.status = 'assigned'
              AND (t.assignee_id IS NULL OR t.assignee_id = a.id)
              AND t.status IN ('assigned', 'in_progress') AND t.cron IS NULL
            ORDER BY t.assigned_to, t.priority_rank, t.created_at, t.id LIMIT ${sql.lit(limit)}) one) t
        JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
        WHERE t.place <= ${sql.lit(limit)}
        ORDER BY t.workspace_id, t.priority_rank, t.created_at, t.id`.execute(reads.db);
      return rows;
    },
    /** The same for tasks that wait for a review; those that have been unchanged for the longest time come first. */
    async reviewable(limit: number): Promise<readonly NextTask[]> {
      const { rows } = await sql<NextTask>`
        SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id,
          ${unanswered('review', sql.ref('t.workspace_id'))} AS unanswered
        FROM (SELECT DISTINCT workspace_id FROM ${tableOf(reads, tasksProjection, 'task_counts')}
          WHERE status = 'review' AND count > 0) w
        CROSS JOIN LATERAL (
          SELECT one.workspace_id, one.id, one.project_id, one.updated_at FROM ${tasks} one
          WHERE one.workspace_id = w.workspace_id AND one.status = 'review'
          ORDER BY one.updated_at, one.id LIMIT ${sql.lit(limit)}) t
        JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
        ORDER BY t.workspace_id, t.updated_at, t.id`.execute(reads.db);
      return rows;
    },
    /**
     * Tasks that the runner was asked for and that have not changed after `since` (Unix seconds): dispatches without a
     * response, reviews without a verdict. At most `limit`.
     */
    async forgotten(what: What, since: number, limit: number): Promise<readonly RecordPlace[]> {
      const { rows } = await sql<RecordPlace>`
        SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id
        FROM ${tasks} t JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
        WHERE t.asked IS NOT NULL AND (t.asked = ${sql.lit(what)} OR (${sql.lit(what)} = 'review' AND t.asked = 'accepted'))
          AND t.status = ${sql.lit(UNDER_WAY[what])} AND t.updated_at <= ${since}
        ORDER BY t.updated_at, t.workspace_id, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
      return rows;
    },
    /** Undefined if there is no agent with this name. */
    async agent(workspace: number, name: string) {
      const { rows } = await sql<{ readonly id: number; readonly name: string; readonly role: string }>`
        SELECT id, name, role FROM ${agents} WHERE workspace_id = ${workspace} AND name = ${name}`.execute(reads.db);
      return rows.at(0);
    },
    /** Ticket prefix of a project. */
    async prefix(workspace: number, project: number): Promise<string> {
      const { rows } = await sql<{ readonly prefix: string }>`
        SELECT ticket_prefix AS prefix FROM ${projects} WHERE workspace_id = ${workspace} AND id = ${project}`.execute(
        reads.db,
      );
      return rows[0]?.prefix ?? '';
    },
    /** The gatekeeper's last reason for sending the task back; null: it has not, or has approved the task since. */
    async rejection(workspace: number, task: number): Promise<string | null> {
      const row = await inWorkspace(reads, qualityReviewsProjection, 'quality_reviews', workspace)
        .where('task_id', '=', task)
        .select('rejection')
        .executeTakeFirst();
      return row?.rejection ?? null;
    },
  };
}
