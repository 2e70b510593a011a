/** Outcomes of completed tasks: counts by assignee and priority, and the most frequent errors. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { type OutcomeGroup, type Outcomes, TIMEFRAMES } from '../../shared/contract/tasks/outcomes.ts';
import type { TaskView } from '../../shared/identity.ts';
import { ASSIGNEE, nameNow } from '../agents/names.ts';
import { type Reads, tableOf } from '../reads.ts';
import { taskSeen } from './visibility.ts';

/** Read models from which the response is built. */
export const OUTCOME_MODELS: readonly string[] = [tasksProjection.name, agentsProjection.name];

const COMMON_ERRORS = 10;

const OUTCOMES = ['success', 'failed', 'partial', 'abandoned'] as const;

/** Tasks of one assignee and one priority, or sums of such. */
interface Counts extends Readonly<Record<(typeof OUTCOMES)[number], number>> {
  readonly total: number;
  readonly judged: number;
  readonly retries: number;
  /** Tasks with a known time from creation to completion, and the sum of these times in seconds. */
  readonly resolved: number;
  readonly resolution: number;
}
interface Counted extends Counts {
  readonly agent: string | null;
  readonly priority: string;
}

const NONE: Counts = {
  success: 0,
  failed: 0,
  partial: 0,
  abandoned: 0,
  total: 0,
  judged: 0,
  retries: 0,
  resolved: 0,
  resolution: 0,
};
const FIELDS = Object.keys(NONE) as (keyof Counts)[];
function sumOf(rows: readonly Counts[]): Counts {
  const sum: Record<keyof Counts, number> = { ...NONE };
  for (const row of rows) for (const field of FIELDS) sum[field] += row[field];
  return sum;
}

const ratio = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);

const outcomesOf = ({ success, failed, partial, abandoned, total, judged }: Counts) => ({
  success,
  failed,
  partial,
  abandoned,
  unknown: total - judged,
});

const groupOf = (rows: readonly Counts[]): OutcomeGroup => {
  const sum = sumOf(rows);
  return { ...outcomesOf(sum), total: sum.total, success_rate: ratio(sum.success, sum.judged) };
};

function groupsOf(rows: readonly Counted[], nameOf: (row: Counted) => string): Record<string, OutcomeGroup> {
  const groups = new Map<string, Counted[]>();
  for (const row of rows) {
    const group = groups.get(nameOf(row));
    if (group) group.push(row);
    else groups.set(nameOf(row), [row]);
  }
  return Object.fromEntries([...groups].map(([name, members]) => [name, groupOf(members)]));
}

/** Outcomes of the tasks that the caller may see. @param now Unix seconds */
export async function taskOutcomes(reads: Reads, view: TaskView, timeframe: string, now: number): Promise<Outcomes> {
  const window = TIMEFRAMES.get(timeframe);
  const tasks = tableOf(reads, tasksProjection, 'tasks');
  const since = now - (window ?? 0);
  const inWindow: RawBuilder<unknown> =
    window === undefined
      ? sql``
      : sql`AND (completed_at >= ${since} OR (completed_at IS NULL AND updated_at >= ${since}))`;
  const done = sql`FROM ${tasks} t
    WHERE workspace_id = ${view.workspace} AND status = 'done' ${inWindow} AND ${taskSeen(view, 't')}`;
  // One statement, so that both parts show the same moment.
  const { rows } = await sql<{ groups: Counted[] | null; errors: { error_message: string; count: number }[] | null }>`
    WITH groups AS (
      SELECT workspace_id, nullif(assigned_to, '') AS assigned_to, assignee_id, priority,
        count(*) AS total, count(outcome) AS judged, sum(retry_count) AS retries,
        count(*) FILTER (WHERE completed_at >= created_at) AS resolved,
        coalesce(sum(completed_at - created_at) FILTER (WHERE completed_at >= created_at), 0) AS resolution,
        ${sql.join(OUTCOMES.map((name) => sql`count(*) FILTER (WHERE outcome = ${sql.lit(name)}) AS ${sql.ref(name)}`))}
      ${done} GROUP BY 1, 2, 3, 4
    ), errors AS (
      SELECT btrim(error_message, E' \\t\\n\\r') AS error_message, count(*) AS count
      ${done} AND btrim(error_message, E' \\t\\n\\r') <> ''
      GROUP BY 1 ORDER BY count DESC, 1 LIMIT ${COMMON_ERRORS}
    )
    SELECT (SELECT json_agg(named ORDER BY agent, priority) FROM (
        SELECT ${nameNow(reads, 'c', ASSIGNEE, { apart: true })} AS agent, c.* FROM groups c) named) AS groups,
      (SELECT json_agg(errors ORDER BY count DESC, error_message) FROM errors) AS errors`.execute(reads.db);
  const groups = rows[0]?.groups ?? [];
  const all = sumOf(groups);
  return {
    timeframe,
    summary: {
      total_done: all.total,
      with_outcome: all.judged,
      by_outcome: outcomesOf(all),
      avg_retry_count: ratio(all.retries, all.total),
      avg_time_to_resolution_seconds: ratio(all.resolution, all.resolved),
      success_rate: ratio(all.success, all.judged),
    },
    by_agent: groupsOf(groups, ({ agent }) => agent ?? 'unassigned'),
    by_priority: groupsOf(groups, ({ priority }) => priority),
    common_errors: rows[0]?.errors ?? [],
    record_count: all.total,
  };
}
