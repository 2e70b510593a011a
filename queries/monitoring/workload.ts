/** Workload: counts that projections maintain, and index scans of short windows. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import {
  PENDING_STATUSES,
  type Recommendation,
  type Thresholds,
  WORKLOAD_PRIORITIES,
  type Workload,
} from '../../shared/contract/monitoring/workload.ts';
import { TASK_STATUSES } from '../../shared/contract/tasks/tasks.ts';
import { DAY, HOUR } from '../../shared/time.ts';
import { inWorkspace, type Reads, tableOf, tables } from '../reads.ts';

const MAX_AGENTS = 200;
const WAITING = ['inbox', 'assigned'] as const;

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));
const ratio = (part: number, whole: number, digits: number): number =>
  whole === 0 ? 0 : rounded(part / whole, digits);

/** All keys, each with its count or 0. */
const filled = <const K extends string>(keys: readonly K[], counts: ReadonlyMap<string, number>): Record<K, number> =>
  Object.fromEntries(keys.map((key) => [key, counts.get(key) ?? 0])) as Record<K, number>;

/** Sums by one of the two names. */
function summed<Key extends string>(
  rows: readonly (Readonly<Record<Key, string>> & { readonly count: number })[],
  key: Key,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row[key], (sums.get(row[key]) ?? 0) + row.count);
  return sums;
}

/** @param now Unix seconds */
export async function workloadOf(
  reads: Reads,
  workspace: number,
  thresholds: Thresholds,
  now: number,
): Promise<Workload> {
  const tasks = tables(reads, tasksProjection);
  const all = await tasks
    .selectFrom('task_counts')
    .select(({ fn }) => ['status', 'priority', fn.sum<number>('count').as('count')])
    .where('workspace_id', '=', workspace)
    .groupBy(['status', 'priority'])
    .execute();
  const pending = all.filter(({ status }) => PENDING_STATUSES.some((one) => one === status));
  const recent = await inWorkspace(reads, activitiesProjection, 'activities', workspace)
    .select(({ fn }) => [
      fn.countAll<number>().as('all'),
      sql<number>`count(*) FILTER (WHERE type IN ('task_created', 'task_assigned'))`.as('handed'),
      sql<number>`count(*) FILTER (WHERE type ~* 'error|fail')`.as('errors'),
    ])
    .where('created_at', '>', now - thresholds.recent_window_seconds)
    .executeTakeFirst();
  const done = await tasks
    .selectFrom('task_changes as c')
    .innerJoin('tasks as t', (join) => join.onRef('t.workspace_id', '=', 'c.workspace_id').onRef('t.id', '=', 'c.id'))
    .select(({ fn }) => [
      fn.countAll<number>().as('day'),
      sql<number>`count(*) FILTER (WHERE c.updated_at > ${now - HOUR})`.as('hour'),
    ])
    .where('c.workspace_id', '=', workspace)
    .where('c.updated_at', '>', now - DAY)
    .where('t.status', '=', 'done')
    .executeTakeFirst();
  const oldest = await tasks
    .selectFrom('tasks')
    .select(
      WAITING.map((status) =>
        tasks
          .selectFrom('tasks')
          .select('created_at')
          .where('workspace_id', '=', workspace)
          .where('status', '=', status)
          .orderBy('created_at')
          .orderBy('id')
          .limit(1)
          .as(status),
      ),
    )
    .limit(1)
    .executeTakeFirst();
  const statuses = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  const load = await sql<{ agent: string; assigned: number; in_progress: number }>`
    SELECT a.name AS agent, coalesce(c.assigned, 0) AS assigned, coalesce(c.in_progress, 0) AS in_progress
    FROM ${tableOf(reads, agentsProjection, 'agents')} a
    LEFT JOIN (
      -- A task that was assigned while no agent had the name belongs to the agent that has it.
      SELECT coalesce(nullif(n.assignee_id, 0), named.id) AS agent_id,
        sum(n.count) FILTER (WHERE n.status = 'assigned') AS assigned,
        sum(n.count) FILTER (WHERE n.status = 'in_progress') AS in_progress
      FROM ${tableOf(reads, tasksProjection, 'task_counts')} n
      LEFT JOIN ${tableOf(reads, agentsProjection, 'agents')} named
        ON n.assignee_id = 0 AND named.workspace_id = n.workspace_id AND named.name = n.assigned_to
      WHERE n.workspace_id = ${workspace} AND n.status IN ('assigned', 'in_progress') AND n.assigned_to <> ''
      GROUP BY 1
    ) c ON c.agent_id = a.id
    WHERE a.workspace_id = ${workspace} AND a.status <> 'offline'
    ORDER BY coalesce(c.assigned, 0) + coalesce(c.in_progress, 0) DESC, a.name
    LIMIT ${MAX_AGENTS}`.execute(reads.db);

  const by_status = filled(PENDING_STATUSES, summed(pending, 'status'));
  const total_pending = Object.values(by_status).reduce((sum, count) => sum + count, 0);
  const agentsBy = summed(statuses, 'status');
  const { busy, idle, offline, online } = filled(['busy', 'idle', 'offline', 'online'], agentsBy);
  const available = online + idle + busy;
  const errors = recent?.errors ?? 0;
  const waiting = WAITING.map((status) => oldest?.[status]).filter((at) => typeof at === 'number');
  const perHour = done?.hour ?? 0;
  const signals = {
    error_rate: ratio(errors, recent?.all ?? 0, 4),
    queue_depth: total_pending,
    busy_ratio: ratio(busy, available, 2),
  };
  return {
    timestamp: now,
    workspace_id: workspace,
    capacity: {
      active_tasks: total_pending - by_status.inbox,
      tasks_last_5m: recent?.handed ?? 0,
      errors_last_5m: errors,
      error_rate_5m: signals.error_rate,
      completions_last_hour: perHour,
      avg_completion_rate_per_hour: rounded((done?.day ?? 0) / 24, 2),
    },
    queue: {
      total_pending,
      by_status,
      by_priority: filled(WORKLOAD_PRIORITIES, summed(pending, 'priority')),
      oldest_pending_age_seconds: waiting.length === 0 ? null : Math.max(0, now - Math.min(...waiting)),
      estimated_wait_seconds: perHour === 0 ? null : Math.round((total_pending / perHour) * HOUR),
      estimated_wait_confidence: perHour === 0 ? 'unknown' : 'calculated',
    },
    tasks: { by_status: filled(TASK_STATUSES, summed(all, 'status')) },
    agents: {
      total: [...agentsBy.values()].reduce((sum, count) => sum + count, 0),
      online: available,
      busy,
      idle,
      offline,
      busy_ratio: signals.busy_ratio,
      load_distribution: load.rows,
    },
    recommendation: recommend({ ...signals, available }, thresholds),
    thresholds,
  };
}

export interface Signals {
  readonly error_rate: number;
  readonly queue_depth: number;
  readonly busy_ratio: number;
  /** Agents that are online, idle or busy. */
  readonly available: number;
}

const REASONS: Readonly<Record<Recommendation['action'], string>> = {
  normal: 'The system has room for more work.',
  throttle: 'The system is under load: submit more slowly.',
  shed: 'The system is overloaded: submit critical work only.',
  pause: 'No agent is available: hold back all work.',
};
const DELAYS = { normal: 0, throttle: 2_000, shed: 10_000, pause: 30_000 } as const;

/** The most severe recommendation of all signals; without an available agent, it advises against submitting. */
export function recommend(signals: Signals, thresholds: Thresholds): Recommendation {
  const { error_rate, queue_depth, busy_ratio, available } = signals;
  const checks = [
    ['error rate', error_rate, thresholds.error_rate_throttle, thresholds.error_rate_shed],
    ['pending tasks', queue_depth, thresholds.queue_depth_throttle, thresholds.queue_depth_shed],
    ['share of busy agents', busy_ratio, thresholds.busy_agent_ratio_throttle, thresholds.busy_agent_ratio_shed],
  ] as const;
  const details: string[] = [];
  let action: Recommendation['action'] = 'normal';
  for (const [name, value, throttle, shed] of checks) {
    if (value < throttle && value < shed) continue;
    const grave = value >= shed;
    details.push(`${name}: ${value} (${grave ? 'shed' : 'throttle'} from ${grave ? shed : throttle})`);
    if (grave) action = 'shed';
    else if (action === 'normal') action = 'throttle';
  }
  if (available === 0) {
    action = 'pause';
    details.push('agents that are online: 0');
  }
  return {
    action,
    reason: REASONS[action],
    details: details.length > 0 ? details : ['all signals are normal'],
    submit_ok: action === 'normal' || action === 'throttle',
    suggested_delay_ms: DELAYS[action],
  };
}
