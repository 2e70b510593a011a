/**
 * Tasks before and since a change: how long they took, and how many needed help. Percentiles are exact, so the tasks that
 * were completed in the two windows are read, along the index of completed tasks; older ones are not.
 */
import { sql } from 'kysely';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { Regression, RegressionWindow } from '../../shared/contract/tasks/regression.ts';
import type { TaskView } from '../../shared/identity.ts';
import { MINUTE } from '../../shared/time.ts';
import { type Reads, tableOf } from '../reads.ts';
import { taskSeen } from './visibility.ts';

const DEFINITIONS = {
  p95_task_latency_seconds:
    '95th percentile (nearest rank) of the seconds from creation to completion, of tasks completed in the window',
  intervention_rate:
    'tasks completed in the window that were retried, have an error message, or did not come out as a success, divided by the sample size',
};

interface Measured {
  readonly label: RegressionWindow['label'];
  readonly samples: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly avg: number | null;
  readonly interventions: number;
}

/** Covers the tasks that the caller may see. @param start,now Unix seconds, `start` not after `now` */
export async function taskRegression(
  reads: Reads,
  view: TaskView,
  { start, lookback }: { readonly start: number; readonly lookback: number },
  now: number,
): Promise<Regression> {
  const end = now + 1;
  const from = Math.max(0, start - Math.min(lookback, Math.max(MINUTE, end - start)));
  const tasks = tableOf(reads, tasksProjection, 'tasks');
  const { rows } = await sql<Measured>`
    WITH completed AS (
      SELECT CASE WHEN completed_at < ${start} THEN 'baseline' ELSE 'post' END AS label,
        CASE WHEN completed_at >= created_at THEN completed_at - created_at END AS latency,
        retry_count > 0 OR coalesce(error_message, '') ~ '\\S' OR outcome IN ('failed', 'partial', 'abandoned') AS intervened
      FROM ${tasks} t
      WHERE workspace_id = ${view.workspace} AND status = 'done' AND completed_at >= ${from} AND completed_at < ${end}
        AND ${taskSeen(view, 't')}
    )
    SELECT label, count(latency) AS samples, avg(latency) AS avg, count(*) FILTER (WHERE intervened) AS interventions,
      percentile_disc(0.5) WITHIN GROUP (ORDER BY latency) AS p50,
      percentile_disc(0.95) WITHIN GROUP (ORDER BY latency) AS p95
    FROM completed GROUP BY label`.execute(reads.db);
  const window = (label: RegressionWindow['label'], begin: number, until: number): RegressionWindow => {
    const measured = rows.find((row) => row.label === label);
    const { samples = 0, p50 = null, p95 = null, avg = null, interventions = 0 } = measured ?? {};
    return {
      label,
      start: begin,
      end: until,
      sample_size: samples,
      latency_seconds: { p50, p95, avg },
      interventions: { count: interventions, rate: samples === 0 ? 0 : interventions / samples },
    };
  };
  const baseline = window('baseline', from, start);
  const post = window('post', start, end);
  const [before, since] = [baseline.latency_seconds.p95, post.latency_seconds.p95];
  return {
    metric_definitions: DEFINITIONS,
    params: { beta_start: start, lookback_seconds: lookback },
    windows: { baseline, post },
    deltas: {
      p95_latency_seconds: before === null || since === null ? null : since - before,
      intervention_rate: post.interventions.rate - baseline.interventions.rate,
    },
  };
}
