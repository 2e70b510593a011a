/** How tasks that are done came out: counts by assignee and priority, and what went wrong most often. */
import { type RawBuilder, sql } from 'kysely';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { type OutcomeGroup, type Outcomes, TIMEFRAMES } from '../../shared/contract/tasks/outcomes.ts';
import type { Reads } from '../reads.ts';

/** Read models that the answer is made from. */
export const OUTCOME_MODELS: readonly string[] = [tasksProjection.name];

const COMMON_ERRORS = 10;

const counted = (outcome: string) => sql`count(*) FILTER (WHERE outcome = ${sql.lit(outcome)})`;
const NAMED = ['success', 'failed', 'partial', 'abandoned'] as const;
const rate = (success: number, judged: number): number => (judged === 0 ? 0 : success / judged);

/** One row of the statement: of everything, of an assignee, or of a priority. */
interface Counted extends Readonly<Record<(typeof NAMED)[number], number>> {
  readonly part: 'all' | 'agent' | 'priority';
  readonly name: string | null;
  readonly total: number;
  readonly judged: number;
  readonly retries: number | null;
  readonly resolution: number | null;
}

function groupsOf(rows: readonly Counted[], part: Counted['part'], nameless: string): Record<string, OutcomeGroup> {
  const groups: Record<string, OutcomeGroup> = {};
  for (const { name, success, failed, partial, abandoned, total, judged } of rows.filter((row) => row.part === part)) {
    const success_rate = rate(success, judged);
    groups[name ?? nameless] = { success, failed, partial, abandoned, unknown: total - judged, total, success_rate };
  }
  return groups;
}

/** @param now Unix seconds */
export async function taskOutcomes(reads: Reads, workspace: number, timeframe: string, now: number): Promise<Outcomes> {
  const window = TIMEFRAMES.get(timeframe);
  const tasks = sql.table(`${reads.schema(tasksProjection)}.tasks`);
  const since = now - (window ?? 0);
  const inWindow: RawBuilder<unknown> =
    window === undefined
      ? sql``
      : sql`AND (completed_at >= ${since} OR (completed_at IS NULL AND updated_at >= ${since}))`;
  // One statement, so that all parts tell of the same moment.
  const { rows } = await sql<{ groups: Counted[]; errors: { error_message: string; count: number }[] | null }>`
    WITH done AS (
      SELECT nullif(assigned_to, '') AS agent, priority, outcome, retry_count, btrim(error_message, E' \\t\\n\\r') AS error,
        CASE WHEN completed_at >= created_at THEN completed_at - created_at END AS resolution
      FROM ${tasks} WHERE workspace_id = ${workspace} AND status = 'done' ${inWindow}
    ), groups AS (
      SELECT CASE WHEN grouping(agent) = 0 THEN 'agent' WHEN grouping(priority) = 0 THEN 'priority' ELSE 'all' END AS part,
        CASE WHEN grouping(agent) = 0 THEN agent ELSE priority END AS name,
        count(*) AS total, count(outcome) AS judged, avg(retry_count) AS retries, avg(resolution) AS resolution,
        ${sql.join(NAMED.map((name) => sql`${counted(name)} AS ${sql.ref(name)}`))}
      FROM done GROUP BY GROUPING SETS ((), (agent), (priority))
    ), errors AS (
      SELECT error AS error_message, count(*) AS count FROM done WHERE error <> ''
      GROUP BY error ORDER BY count DESC, error LIMIT ${COMMON_ERRORS}
    )
    SELECT (SELECT json_agg(groups) FROM groups) AS groups,
      (SELECT json_agg(errors ORDER BY count DESC, error_message) FROM errors) AS errors`.execute(reads.db);
  const { groups = [], errors = null } = rows[0] ?? {};
  const all = groups.find(({ part }) => part === 'all');
  const { success = 0, failed = 0, partial = 0, abandoned = 0, total = 0, judged = 0 } = all ?? {};
  return {
    timeframe,
    summary: {
      total_done: total,
      with_outcome: judged,
      by_outcome: { success, failed, partial, abandoned, unknown: total - judged },
      avg_retry_count: all?.retries ?? 0,
      avg_time_to_resolution_seconds: all?.resolution ?? 0,
      success_rate: rate(success, judged),
    },
    by_agent: groupsOf(groups, 'agent', 'unassigned'),
    by_priority: groupsOf(groups, 'priority', ''),
    common_errors: errors ?? [],
    record_count: total,
  };
}
