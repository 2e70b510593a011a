/** The queue of tasks: what agents work on, and the waiting tasks. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { askingTogether } from '../../shared/waiting.ts';
import { type Reads, tableOf } from '../reads.ts';
import { joinProject, TASK_JSON } from './tasks.ts';

const tasksTable = (reads: Reads) => tableOf(reads, tasksProjection, 'tasks');

/** The order of the queue. */
export const URGENT_FIRST = sql.raw('priority_rank, due_date, created_at, id');
const URGENT_FIRST_OF_W = sql.raw('w.priority_rank, w.due_date, w.created_at, w.id');

/** A value, or a column of a previously joined row. */
type Given<T> = T | RawBuilder<unknown>;

/** Condition: a task with this assignee is not assigned to an earlier agent of the name. */
const notOfAnother = (
  reads: Reads,
  workspace: Given<number>,
  agent: Given<string>,
) => sql`(assignee_id IS NULL OR assignee_id = (
  SELECT max(named.id) FROM ${tableOf(reads, agentsProjection, 'agents')} named
  WHERE named.workspace_id = ${workspace} AND named.name = ${agent}))`;

/**
 * Tasks that wait for an agent or are unassigned, in the order of claims, as a subquery with the columns of the table.
 * Each half reads only the front of one index range, so only the returned rows are read.
 */
export function waitingTasks(
  reads: Reads,
  workspace: Given<number>,
  agent: Given<string>,
  limit: number,
  passedOver: Given<readonly number[]> = [],
): RawBuilder<unknown> {
  // PostgreSQL does not infer from IS NULL that all rows have the same assigned_to. With that column first, the order
  // is that of the index, and nothing is sorted.
  const half = (whose: RawBuilder<unknown>) => sql`(
    SELECT * FROM ${tasksTable(reads)}
    WHERE workspace_id = ${workspace} AND status IN ('assigned', 'inbox') AND assigned_to ${whose}
      AND id <> ALL(${passedOver}::bigint[])
    ORDER BY assigned_to, ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;
  return sql`(
    SELECT * FROM (${half(sql`= ${agent} AND ${notOfAnother(reads, workspace, agent)}`)} UNION ALL ${half(sql`IS NULL`)}) both_halves
    ORDER BY ${URGENT_FIRST} LIMIT ${sql.lit(limit)})`;
}

/** A task in the response to a poll: the record without the fields from its project. */
export type QueuedTask = Omit<TaskRecord, 'project_name' | 'project_prefix' | 'ticket_ref'>;

/** Limits of tasks of each kind that a poll reads. */
export interface QueueLook {
  readonly inProgress: number;
  readonly waiting: number;
  /** Ids of tasks to leave out of the waiting ones. */
  readonly passedOver: readonly number[];
}

/** What a poll finds. */
export interface QueueView {
  /** Tasks that the agent works on, last changed first. */
  readonly inProgress: readonly QueuedTask[];
  /**
   * Ids of tasks that wait for this agent or for any agent: most urgent first, then by due date (those without one last),
   * then by age.
   */
  readonly waiting: readonly number[];
}

interface Poll extends QueueLook {
  readonly workspace: number;
  readonly agent: string;
}

/** The result of a poll; `poll` is its index in the list. */
interface Answered extends QueueView {
  readonly poll: number;
}

// One limit for all: a limit that differs from poll to poll would hide from the planner how few rows are read.
const highest = (polls: readonly Poll[], what: 'inProgress' | 'waiting'): number =>
  Math.max(...polls.map((poll) => poll[what]));

/** For each poll, the tasks that its agent works on, and the ids of the waiting tasks, in order. */
export function pollsStatement(reads: Reads, polls: readonly Poll[]): RawBuilder<Answered> {
  const asked = polls.map(({ workspace, agent, passedOver }, poll) => ({ poll, workspace, agent, passed: passedOver }));
  const column = (name: string) => sql.ref(`q.${name}`);
  const limit = highest(polls, 'waiting');
  const waiting = waitingTasks(reads, column('workspace'), column('agent'), limit, column('passed'));
  return sql`
    SELECT q.poll,
      (SELECT coalesce(json_agg(${TASK_JSON}::jsonb - ARRAY['project_name', 'project_prefix', 'ticket_ref']
          ORDER BY t.updated_at DESC, t.id DESC), '[]')
        FROM (
          SELECT * FROM ${tasksTable(reads)}
          WHERE workspace_id = q.workspace AND assigned_to = q.agent AND status = 'in_progress'
            AND ${notOfAnother(reads, column('workspace'), column('agent'))}
          ORDER BY updated_at DESC, id DESC LIMIT ${sql.lit(highest(polls, 'inProgress'))}) t ${joinProject(reads)}) AS "inProgress",
      (SELECT coalesce(json_agg(w.id ORDER BY ${URGENT_FIRST_OF_W}), '[]')
        FROM ${waiting} w) AS waiting
    FROM json_to_recordset(${JSON.stringify(asked)}::json) AS q (poll int, workspace int, agent text, passed bigint[])`;
}

export type TaskQueueReads = ReturnType<typeof taskQueueReads>;
/** Reads for all concurrent polls with one statement: a hundred polling agents would otherwise need a hundred queries. */
export function taskQueueReads(reads: Reads) {
  const ask = askingTogether(async (polls: readonly Poll[]) => {
    const { rows } = await pollsStatement(reads, polls).execute(reads.db);
    return new Map(rows.map((row) => [polls[row.poll] as Poll, row]));
  });
  return {
    /** Both as of one moment. */
    async look(workspace: number, agent: string, look: QueueLook): Promise<QueueView> {
      const poll = { workspace, agent, ...look };
      const { inProgress, waiting } = (await ask([poll])).get(poll) as Answered;
      return { inProgress: inProgress.slice(0, look.inProgress), waiting: waiting.slice(0, look.waiting) };
    },
  };
}

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
