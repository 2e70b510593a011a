/** The queue of tasks: what agents work on, and what waits for them. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { QueuedTask, StaleTask, StaleTaskReads, TaskQueueReads } from '../../shared/ports/queue.ts';
import { askingTogether } from '../../shared/waiting.ts';
import type { Reads } from '../reads.ts';
import { joinProject, TASK_JSON } from './tasks.ts';

const tasksTable = (reads: Reads) => sql.table(`${reads.schema(tasksProjection)}.tasks`);

/** The order of the queue. */
export const URGENT_FIRST = sql.raw('priority_rank, due_date, created_at, id');

/** A value, or a column of a row that is joined before. */
type Given<T> = T | RawBuilder<unknown>;

/**
 * Tasks that wait for an agent or for anybody, in the order in which they are claimed, as a subquery with the columns of
 * the table. Each half is the front of one index range, so only the rows that are returned are read.
 */
export function waitingTasks(
  reads: Reads,
  workspace: Given<number>,
  agent: Given<string>,
  limit: number,
  passedOver: Given<readonly number[]> = [],
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

interface Poll {
  readonly workspace: number;
  readonly agent: string;
  readonly limit: number;
  readonly passed_over?: readonly number[];
  readonly task?: number;
  readonly position?: number;
}

/** Row `q` for each poll, which has its place in the list as `poll`. */
const pollsOf = (polls: readonly Poll[]): RawBuilder<unknown> =>
  sql`json_to_recordset(${JSON.stringify(polls.map((one, poll) => ({ ...one, poll })))}::json) AS q (
    poll int, workspace int, agent text, "limit" int, passed_over bigint[], task bigint, position bigint)`;

// Of the list, because a limit that differs from poll to poll would hide from the planner how little is read.
const highestLimit = (polls: readonly Poll[]): number => Math.max(...polls.map(({ limit }) => limit));

/** For each poll, the ids of what waits for it, in order. */
export const waitingStatement = (reads: Reads, polls: readonly Poll[]): RawBuilder<Answered<number>> => {
  const given = ['q.workspace', 'q.agent', 'q.passed_over'].map((column) => sql.ref(column));
  const [workspace, agent, passedOver] = given as [RawBuilder<unknown>, RawBuilder<unknown>, RawBuilder<unknown>];
  return sql`
    SELECT q.poll, w.id AS found FROM ${pollsOf(polls)}
    CROSS JOIN LATERAL ${waitingTasks(reads, workspace, agent, highestLimit(polls), passedOver)} w
    ORDER BY q.poll, w.priority_rank, w.due_date, w.created_at, w.id`;
};

interface Answered<T> {
  readonly poll: number;
  readonly found: T;
}

/** Asks for all polls of the moment with one statement: a hundred agents that poll would ask three hundred questions. */
function pollsTogether<T>(reads: Reads, statement: (polls: readonly Poll[]) => RawBuilder<Answered<T>>) {
  const ask = askingTogether(async (polls: readonly Poll[]) => {
    const { rows } = await statement(polls).execute(reads.db);
    const found = new Map<Poll, T[]>(polls.map((poll) => [poll, []]));
    for (const row of rows) found.get(polls[row.poll] as Poll)?.push(row.found);
    return found;
  });
  return async (poll: Poll): Promise<readonly T[]> => (await ask([poll])).get(poll)?.slice(0, poll.limit) ?? [];
}

export function taskQueueReads(reads: Reads): TaskQueueReads {
  const inProgress = pollsTogether<QueuedTask>(
    reads,
    (polls) => sql`
      SELECT q.poll, ${TASK_JSON}::jsonb - ARRAY['project_name', 'project_prefix', 'ticket_ref'] AS found
      FROM ${pollsOf(polls)} CROSS JOIN LATERAL (
        SELECT * FROM ${tasksTable(reads)}
        WHERE workspace_id = q.workspace AND assigned_to = q.agent AND status = 'in_progress'
        ORDER BY updated_at DESC, id DESC LIMIT ${sql.lit(highestLimit(polls))}) t ${joinProject(reads)}
      ORDER BY q.poll, t.updated_at DESC, t.id DESC`,
  );
  const waiting = pollsTogether<number>(reads, (polls) => waitingStatement(reads, polls));
  const earlier = pollsTogether<number>(
    reads,
    (polls) => sql`
      SELECT q.poll, e.id AS found FROM ${pollsOf(polls)} CROSS JOIN LATERAL (
        SELECT id FROM ${tasksTable(reads)}
        WHERE workspace_id = q.workspace AND assigned_to = q.agent AND status = 'in_progress' AND id <> q.task
          AND coalesce(claim_position, 0) < q.position LIMIT ${sql.lit(highestLimit(polls))}) e`,
  );
  return {
    inProgress: (workspace, agent, limit) => inProgress({ workspace, agent, limit }),
    waiting: (workspace, agent, passedOver, limit) => waiting({ workspace, agent, limit, passed_over: passedOver }),
    async earlier(workspace, agent, task, position, limit) {
      return (await earlier({ workspace, agent, limit, task, position })).length;
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
