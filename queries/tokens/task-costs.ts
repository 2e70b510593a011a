/** What tasks cost, and with them agents and projects. */
import { sql } from 'kysely';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { ticketRef } from '../../shared/contract/tasks/tasks.ts';
import { MAX_GROUPS, type TaskCostsAnswer } from '../../shared/contract/tokens/usage.ts';
import { DAY_MS } from '../../shared/time-buckets.ts';
import type { Reads } from '../reads.ts';
import {
  added,
  type DaySums,
  grouped,
  NO_SUMS,
  namesOf,
  SUMS,
  type Sums,
  sinceOf,
  statsBy,
  statsOf,
  timelineOf,
  timelineSince,
  totalSince,
  usageSince,
  type Whose,
} from './usage.ts';

interface TaskRow extends Sums {
  readonly task: number;
  readonly title: string;
  readonly status: string;
  readonly priority: string;
  readonly assigned_to: string | null;
  readonly ticket_no: number;
  readonly project_id: number | null;
  readonly name: string | null;
  readonly slug: string | null;
  readonly prefix: string | null;
}

interface Shared extends Sums {
  readonly tasks: number;
  readonly ids: readonly number[];
}

const sharedOf = (row: Shared) => ({ stats: statsOf(row), taskCount: row.tasks, taskIds: [...row.ids] });

/** @param now Unix ms */
export async function taskCosts(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
): Promise<TaskCostsAnswer> {
  const since = sinceOf(timeframe, now);
  const tasks = sql.table(`${reads.schema(tasksProjection)}.tasks`);
  const projects = sql.table(`${reads.schema(projectsProjection)}.projects`);
  const used = usageSince(reads, workspace, 'task', since);
  /** Of tasks that exist. */
  const joined = sql`(${used}) u JOIN ${tasks} t ON t.workspace_id = ${workspace} AND t.id = u.subject::bigint
    LEFT JOIN ${projects} p ON p.workspace_id = t.workspace_id AND p.id = t.project_id`;
  const TASKS = sql`count(DISTINCT t.id)::int AS tasks,
    to_json((array_agg(DISTINCT t.id ORDER BY t.id))[1:${sql.lit(MAX_GROUPS)}]) AS ids`;

  const total = await totalSince(reads, workspace, since);
  const { rows: sums } = await sql<Sums>`SELECT ${SUMS} FROM (${used}) u`.execute(reads.db);
  const [attributed = NO_SUMS] = sums;
  const { rows: existing } = await sql<Sums>`SELECT ${SUMS} FROM ${joined}`.execute(reads.db);
  const { rows: dearest } = await sql<TaskRow>`
    SELECT t.id AS task, t.title, t.status, t.priority, t.assigned_to, t.project_ticket_no AS ticket_no,
      p.id AS project_id, p.name, p.slug, p.ticket_prefix AS prefix, ${SUMS}
    FROM ${joined}
    GROUP BY t.id, t.title, t.status, t.priority, t.assigned_to, t.project_ticket_no, p.id, p.name, p.slug, p.ticket_prefix
    ORDER BY sum(cost) DESC, t.id LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const subjects = dearest.map(({ task }) => String(task));
  const { rows: models } = await sql<Sums & { subject: string; model: string }>`
    SELECT subject, model, ${SUMS} FROM (${used}) u WHERE subject = ANY(${subjects}) GROUP BY subject, model
    ORDER BY sum(cost) DESC, model`.execute(reads.db);
  const { rows: days } = await sql<DaySums & { subject: string }>`
    SELECT subject, start - start % ${DAY_MS} AS day, ${SUMS}
    FROM (${usageSince(reads, workspace, 'task', timelineSince(since, now), { coarsest: 'day' })}) u
    WHERE subject = ANY(${subjects}) GROUP BY 1, 2 ORDER BY 2`.execute(reads.db);
  const { rows: agents } = await sql<Whose & Shared>`
    SELECT u.agent_id, u.agent_name, ${SUMS}, ${TASKS} FROM ${joined} GROUP BY 1, 2
    ORDER BY sum(cost) DESC, 1, 2 LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const { rows: inProjects } = await sql<Shared & { project: number | null }>`
    SELECT p.id AS project, ${SUMS}, ${TASKS} FROM ${joined} GROUP BY 1
    ORDER BY sum(cost) DESC, 1 LIMIT ${MAX_GROUPS}`.execute(reads.db);

  const modelsBy = grouped(models, ({ subject }) => subject);
  const daysBy = grouped(days, ({ subject }) => subject);
  const nameOf = await namesOf(reads, workspace, agents);
  return {
    summary: statsOf(existing[0] ?? NO_SUMS),
    tasks: dearest.map((row) => ({
      taskId: row.task,
      title: row.title,
      status: row.status,
      priority: row.priority,
      assignedTo: row.assigned_to,
      project: {
        id: row.project_id,
        name: row.name,
        slug: row.slug,
        ticketRef: row.prefix && row.ticket_no > 0 ? ticketRef(row.prefix, row.ticket_no) : null,
      },
      stats: statsOf(row),
      models: statsBy((modelsBy.get(String(row.task)) ?? []).slice(0, MAX_GROUPS), ({ model }) => model),
      timeline: timelineOf(daysBy.get(String(row.task)) ?? []),
    })),
    agents: Object.fromEntries(agents.map((row) => [nameOf(row), sharedOf(row)])),
    projects: Object.fromEntries(inProjects.map((row) => [String(row.project ?? 'unscoped'), sharedOf(row)])),
    unattributed: statsOf(added(total, attributed, -1)),
    timeframe,
    recordCount: total.requests,
    attributedRecordCount: attributed.requests,
  };
}
