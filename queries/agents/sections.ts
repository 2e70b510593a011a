/** The sections of diagnostics, computed from the result of the statement. */
import type { CompletedTask, Failure, Period, TypeCount } from '../../shared/contract/agents/diagnostics.ts';
import { NO_SUMS, type Sums } from '../tokens/usage.ts';
import { type StatusChange, type StatusSeconds, spansOf } from './statuses.ts';
import { percentChange, percentOf, perDay, trendAlerts } from './trends.ts';
import { MS } from './windows.ts';

/** The result of the statement; columns that no section needs are missing. */
export interface Found {
  readonly completed: number;
  readonly completed_before: number;
  readonly failed: number;
  readonly failed_before: number;
  readonly failures: TypeCount[];
  readonly recent_failures: Failure[];
  readonly activities: number;
  readonly activities_before: number;
  readonly heartbeats: number;
  readonly activity_types: TypeCount[];
  readonly timeline: { start: number; count: number }[];
  readonly places: { status: string; priority: string; count: number }[];
  readonly recent_completed: CompletedTask[];
  readonly status_seconds: StatusSeconds[];
  readonly status_since: number | null;
  readonly status_changes: StatusChange[];
  readonly models: (Sums & { model: string })[];
  readonly tokens: Sums;
  readonly evidence_start: number;
  readonly completed_events: CountedEvent[];
  readonly completed_to: number;
  readonly failed_events: CountedEvent[];
  readonly failed_to: number;
  readonly activity_events: CountedEvent[];
  readonly activity_to: number;
  readonly task_events: PlacedTask[];
  readonly task_to: number;
  readonly report_events: ModelReports[];
  readonly report_from: number;
  readonly report_to: number;
}

export interface CountedEvent {
  readonly current: boolean;
  readonly position: number;
  readonly type: string;
  /** Unix seconds. */
  readonly at: number;
}

export interface PlacedTask {
  /** Position of the last event that changed the task. */
  readonly position: number;
  readonly status: string;
  readonly priority: string;
}

export interface ModelReports {
  readonly position: number;
  readonly model: string;
}

export const sumOf = (rows: readonly { readonly count: number }[]): number =>
  rows.reduce((sum, { count }) => sum + count, 0);

export function summaryOf({ completed, places, activities, heartbeats, failed }: Found) {
  return {
    tasks_completed: completed,
    tasks_total: sumOf(places),
    activity_count: activities,
    heartbeats,
    error_count: failed,
    // A failure need not be an activity of the agent itself, so there may be more failures than activities.
    error_rate_percent: percentOf(failed, Math.max(activities, failed)),
  };
}

function countsBy<T extends { readonly count: number }>(rows: readonly T[], nameOf: (row: T) => string) {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(nameOf(row), (counts.get(nameOf(row)) ?? 0) + row.count);
  return Object.fromEntries(counts);
}

export function tasksOf({ completed, places, recent_completed }: Found, hours: number) {
  return {
    by_status: countsBy(places, ({ status }) => status),
    by_priority: countsBy(places, ({ priority }) => priority),
    recent_completed,
    throughput_per_day: perDay(completed, hours),
  };
}

export function activityOf({ activity_types, timeline }: Found) {
  return {
    by_type: activity_types,
    timeline: timeline.map(({ start, count }) => ({
      timestamp: start,
      hour: new Date(start * MS).toISOString(),
      count,
    })),
  };
}

export const statusOf = ({ status_seconds, status_since, status_changes }: Found, until: number) => ({
  seconds_by_status: Object.fromEntries(status_seconds.map(({ status, seconds }) => [status, seconds])),
  since: status_since ?? until,
  spans: spansOf(status_changes, until),
});

export function trendsOf(
  found: Found,
  { before, since, until }: { readonly before: number; readonly since: number; readonly until: number },
) {
  const current: Period = {
    since,
    until,
    activities: found.activities,
    errors: found.failed,
    tasks_completed: found.completed,
  };
  const previous: Period = {
    since: before,
    until: since,
    activities: found.activities_before,
    errors: found.failed_before,
    tasks_completed: found.completed_before,
  };
  const change = (field: 'activities' | 'errors' | 'tasks_completed') => percentChange(previous[field], current[field]);
  return {
    current_period: current,
    previous_period: previous,
    change: {
      activities_pct: change('activities'),
      errors_pct: change('errors'),
      tasks_completed_pct: change('tasks_completed'),
    },
    alerts: trendAlerts(previous, current),
  };
}

export function tokensOf({ models, tokens = NO_SUMS }: Found) {
  const shown = ({ input_tokens, output_tokens }: Sums) => ({ input_tokens, output_tokens });
  return {
    by_model: models.map((one) => ({ model: one.model, ...shown(one), request_count: one.requests })),
    total: { ...shown(tokens), requests: tokens.requests },
  };
}
