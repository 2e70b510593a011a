/** The queue of tasks: what agents work on, and the waiting tasks. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { prepared, type Reads, tableOf } from '../reads.ts';
import { QUEUED_TASK_JSON } from './tasks.ts';

const tasksTable = (reads: Reads) => tableOf(reads, tasksProjection, 'tasks');

/** The order of the queue. */
export const URGENT_FIRST = sql.raw('priority_rank, due_date, created_at, id');
const URGENT_FIRST_OF_W = sql.raw('w.priority_rank, w.due_date, w.created_at, w.id');

/** A value, or a column of a previously joined row. */
type Given<T> = T | RawBuilder<unknown>;

/** Id of the agent that has this name, as a subquery. */
const idOf = (reads: Reads, workspace: Given<number>, agent: Given<string>) => sql`(
  SELECT max(named.id) FROM ${tableOf(reads, agentsProjection, 'agents')} named
  WHERE named.workspace_id = ${workspace} AND named.name = ${agent})`;

/** Condition: a task is not assigned to an earlier agent of the name. */
const notOfAnother = (id: RawBuilder<unknown>) => sql`(assignee_id IS NULL OR assignee_id = ${id})`;

/** The front of the queue among tasks with this assignee, as a subquery with the columns of the table. */
// PostgreSQL does not infer from IS NULL that all rows have the same assigned_to. With that column first, the order is
// that of the index, and only the returned rows are read.
const front = (reads: Reads, workspace: Given<number>, whose: RawBuilder<unknown>, limit: number) => sql`(
  SELECT * FROM ${tasksTable(reads)}
  WHERE workspace_id = ${workspace} AND status IN ('assigned', 'inbox') AND assigned_to ${whose}
  ORDER BY assigned_to, ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;

const sharedFront = (reads: Reads, workspace: Given<number>, limit: number) =>
  front(reads, workspace, sql`IS NULL`, limit);

const ownFront = (
  reads: Reads,
  { workspace, agent, id }: { workspace: Given<number>; agent: Given<string>; id: RawBuilder<unknown> },
  limit: number,
) => front(reads, workspace, sql`= ${agent} AND ${notOfAnother(id)}`, limit);

/**
 * Tasks that wait for an agent or are unassigned, in the order of claims, as a subquery with the columns of the table.
 */
export const waitingTasks = (
  reads: Reads,
  workspace: number,
  agent: string,
  limit: number,
): RawBuilder<unknown> => sql`(
  SELECT * FROM (${ownFront(reads, { workspace, agent, id: idOf(reads, workspace, agent) }, limit)} UNION ALL ${sharedFront(reads, workspace, limit)}) fronts
  ORDER BY ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;

/** A task in the response to a poll: the record without the fields from its project. */
export type QueuedTask = Omit<TaskRecord, 'project_name' | 'project_prefix' | 'ticket_ref'>;

/** Whose tasks a poll is for. */
export interface Poller {
  readonly workspace: number;
  readonly agent: string;
}

/** The agent of a poll. */
export interface PollingAgent {
  /** Null: no agent has the name. */
  readonly id: number | null;
  /** Number of its tasks in progress. */
  readonly count: number;
  /** The task that was changed last; null: none is in progress. */
  readonly newest: QueuedTask | null;
}

export interface WaitingTask {
  readonly workspace: number;
  readonly id: number;
  /** The only agent that may take it; null: any. */
  readonly agent: string | null;
}

/** What polls find. */
export interface QueueView {
  /** Of each poll. */
  readonly agents: readonly PollingAgent[];
  /**
   * The tasks that wait for one of these agents or for any agent: most urgent first, then by due date (those without
   * one last), then by age.
   */
  readonly waiting: readonly WaitingTask[];
}

/**
 * One statement for all polls: a hundred polling agents would otherwise need a hundred queries.
 *
 * @param limit of waiting tasks for each agent, and of those for any agent in each workspace
 */
export function pollsStatement(reads: Reads, polls: readonly Poller[], limit: number): RawBuilder<QueueView> {
  const asked = polls.map(({ workspace, agent }, poll) => ({ poll, workspace, agent }));
  const [workspace, agent, id] = [sql.ref<number>('q.workspace'), sql.ref<string>('q.agent'), sql.ref('q.id')];
  return sql`${prepared}
    WITH polls AS MATERIALIZED (
      SELECT q.*, ${idOf(reads, workspace, agent)} AS id
      FROM json_to_recordset(${JSON.stringify(asked)}::json) AS q (poll int, workspace int, agent text))
    SELECT
      (SELECT json_agg(json_build_object(
          'id', q.id, 'count', coalesce(t.count, 0), 'newest', CASE WHEN t.count > 0 THEN ${QUEUED_TASK_JSON} END) ORDER BY q.poll)
        FROM polls q LEFT JOIN LATERAL (
          SELECT *, count(*) OVER () AS count FROM ${tasksTable(reads)}
          WHERE workspace_id = q.workspace AND assigned_to = q.agent AND status = 'in_progress'
            AND ${notOfAnother(id)}
          ORDER BY updated_at DESC, id DESC LIMIT 1) t ON true) AS agents,
      (SELECT coalesce(json_agg(
          json_build_object('workspace', w.workspace_id, 'id', w.id, 'agent', w.assigned_to)
          ORDER BY ${URGENT_FIRST_OF_W}), '[]')
        FROM (
          SELECT w.* FROM (SELECT DISTINCT workspace FROM polls) q, LATERAL ${sharedFront(reads, workspace, limit)} w
          UNION ALL
          SELECT w.* FROM (SELECT DISTINCT workspace, agent, id FROM polls) q,
            LATERAL ${ownFront(reads, { workspace, agent, id }, limit)} w) w) AS waiting`;
}

export type TaskQueueReads = ReturnType<typeof taskQueueReads>;
export const taskQueueReads = (reads: Reads) => ({
  /** All as of one moment. @param limit as in `pollsStatement` */
  async look(polls: readonly Poller[], limit: number): Promise<QueueView> {
    const { rows } = await pollsStatement(reads, polls, limit).execute(reads.db);
    return rows[0] as QueueView;
  },
});

/** A task in progress whose agent is offline or unknown. */
export interface StaleTask extends RecordPlace {
  readonly agent: string;
  /** False: the agent does not exist. */
  readonly known: boolean;
  /** Unix seconds. */
  readonly updatedAt: number;
}

export type StaleTaskReads = ReturnType<typeof staleTaskReads>;
export const staleTaskReads = (reads: Reads) => ({
  /**
   * Tasks of all workspaces that have not changed after `since` (Unix seconds), after `after`, by last change; at most
   * `limit`. Tasks of users are left out.
   */
  async stale(since: number, after: StaleTask | undefined, limit: number): Promise<readonly StaleTask[]> {
    const behind = after
      ? sql`(t.updated_at, t.workspace_id, t.id) > (${after.updatedAt}, ${after.workspace}, ${after.id})`
      : sql`true`;
    const { rows } = await sql<StaleTask>`
      SELECT p.tenant_id AS tenant, t.workspace_id AS workspace, t.id, t.assigned_to AS agent, a.id IS NOT NULL AS known,
        t.updated_at AS "updatedAt"
      FROM ${tasksTable(reads)} t
      JOIN ${tableOf(reads, projectsProjection, 'projects')} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id
      LEFT JOIN ${tableOf(reads, agentsProjection, 'agents')} a ON a.workspace_id = t.workspace_id
        AND CASE WHEN t.assignee_id IS NULL THEN a.name = t.assigned_to ELSE a.id = t.assignee_id END
      WHERE t.status = 'in_progress' AND t.updated_at <= ${since} AND ${behind} AND t.assigned_to IS NOT NULL
        AND (a.id IS NULL OR a.status = 'offline')
        AND (a.id IS NOT NULL OR NOT EXISTS (
          SELECT 1 FROM ${tableOf(reads, usersProjection, 'users')} u
          WHERE u.workspace_id = t.workspace_id AND t.assigned_to IN (u.username, u.display_name)))
      ORDER BY t.updated_at, t.workspace_id, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
    return rows;
  },
});
