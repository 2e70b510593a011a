/** The events from which the numbers of diagnostics were derived. */
import type { DiagnosticsSection, TypeCount } from '../../shared/contract/agents/diagnostics.ts';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { HOUR } from '../../shared/time.ts';
import { derivation, type EvidenceSource, REPORT_TYPES } from '../evidence.ts';
import { NO_SUMS } from '../tokens/usage.ts';
import { type CountedEvent, type Found, summaryOf, sumOf, tasksOf, trendsOf } from './sections.ts';
import { MS } from './windows.ts';

interface Asked {
  readonly agent: number;
  readonly name: string;
  /** Beginnings of both windows and the end, Unix seconds. */
  readonly before: number;
  readonly since: number;
  readonly until: number;
  readonly most: number;
}

/** Events that can be signals. */
const SIGNALS = [...catalogue.values()].flatMap(({ type, signals }) => (signals ? [type] : []));

/** For each number of the sections, the events from which it was derived. */
export function derivationsOf(found: Found, sections: ReadonlySet<DiagnosticsSection>, asked: Asked): Derivations {
  const { agent, name, before, since, until, most } = asked;
  const from = found.evidence_start;
  /** Undefined if there are more events, or if cleanup has removed some of the rows, whose events are still counted. */
  const whole = <T>(events: readonly T[] | undefined, total = 0) =>
    events && events.length <= most && events.length >= total ? events : undefined;
  const bothOf = (now = 0, earlier = 0) => now + earlier;

  interface Part {
    readonly type?: string;
    readonly hour?: number;
    readonly earlier?: true;
  }
  const windowed =
    (source: EvidenceSource<CountedEvent>, more: { readonly kind?: string }) =>
    (total: number, { type, hour, earlier }: Part = {}): Derivation => {
      const first = earlier ? before : Math.max(since, hour ?? since);
      const end = earlier ? since : hour === undefined ? Number.POSITIVE_INFINITY : hour + HOUR;
      const filter = {
        agent_id: agent,
        ...more,
        ...(type !== undefined && { type }),
        since: first,
        ...(end !== Number.POSITIVE_INFINITY && { until: end }),
      };
      return derivation(
        source,
        total,
        filter,
        (event) => (type ?? event.type) === event.type && event.at >= first && event.at < end,
      );
    };
  const signals = (kind: 'completed' | 'failed', events: readonly CountedEvent[] | undefined, to: number) =>
    windowed({ rule: 'signals', types: SIGNALS, events, from, to }, { kind });
  const completed = signals(
    'completed',
    whole(found.completed_events, bothOf(found.completed, found.completed_before)),
    found.completed_to,
  );
  const failed = signals(
    'failed',
    whole(found.failed_events, bothOf(found.failed, found.failed_before)),
    found.failed_to,
  );
  const active = windowed(
    {
      rule: 'activities',
      events: whole(found.activity_events, bothOf(found.activities, found.activities_before)),
      from,
      to: found.activity_to,
    },
    {},
  );
  const tasks = (total: number, place: { readonly status?: string; readonly priority?: string } = {}) =>
    derivation(
      // From 0, because a task can be older than the agent.
      { rule: 'tasks', events: whole(found.task_events, sumOf(found.places)), from: 0, to: found.task_to },
      total,
      { assignee_id: agent, assigned_to: name, ...place },
      ({ status, priority }) => (place.status ?? status) === status && (place.priority ?? priority) === priority,
    );
  const reports = (total: number, only: { readonly model?: string } = {}) =>
    derivation(
      {
        rule: 'reports',
        types: REPORT_TYPES,
        events: whole(found.report_events),
        from: found.report_from,
        to: found.report_to,
      },
      total,
      { agent_id: agent, ...only, since: since * MS, purged_until: until * MS + MS - 1 },
      ({ model }) => (only.model ?? model) === model,
    );
  const derived = (total: number, ...numbers: string[]): Derivation => ({ total, rule: 'derived', numbers });

  const all: Readonly<Record<DiagnosticsSection, () => Derivations>> = {
    summary: () => {
      const { tasks_completed, tasks_total, activity_count, error_count, error_rate_percent } = summaryOf(found);
      return {
        'summary.tasks_completed': completed(tasks_completed),
        'summary.tasks_total': tasks(tasks_total),
        'summary.activity_count': active(activity_count),
        'summary.error_count': failed(error_count),
        'summary.error_rate_percent': derived(error_rate_percent, 'summary.error_count', 'summary.activity_count'),
      };
    },
    tasks: () => {
      const { by_status, by_priority } = tasksOf(found, 1);
      return {
        ...entries('tasks.by_status', Object.entries(by_status), (total, status) => tasks(total, { status })),
        ...entries('tasks.by_priority', Object.entries(by_priority), (total, priority) => tasks(total, { priority })),
        'tasks.throughput_per_day': completed(found.completed),
      };
    },
    errors: () => ({
      'errors.total': failed(found.failed),
      ...entries('errors.by_type', byName(found.failures), (total, type) => failed(total, { type })),
    }),
    activity: () => ({
      ...entries('activity.by_type', byName(found.activity_types), (total, type) => active(total, { type })),
      ...entries(
        'activity.timeline',
        found.timeline.map(({ start, count }) => [String(start), count]),
        (total, hour) => active(total, { hour: Number(hour) }),
      ),
    }),
    // Each span has the position of its event.
    status: () => ({}),
    trends: () => {
      const { current_period: now, previous_period: earlier, change } = trendsOf(found, { before, since, until });
      const of = (field: 'activities' | 'errors' | 'tasks_completed') => [
        `trends.current_period.${field}`,
        `trends.previous_period.${field}`,
      ];
      return {
        'trends.current_period.activities': active(now.activities),
        'trends.current_period.errors': failed(now.errors),
        'trends.current_period.tasks_completed': completed(now.tasks_completed),
        'trends.previous_period.activities': active(earlier.activities, { earlier: true }),
        'trends.previous_period.errors': failed(earlier.errors, { earlier: true }),
        'trends.previous_period.tasks_completed': completed(earlier.tasks_completed, { earlier: true }),
        'trends.change.activities_pct': derived(change.activities_pct, ...of('activities')),
        'trends.change.errors_pct': derived(change.errors_pct, ...of('errors')),
        'trends.change.tasks_completed_pct': derived(change.tasks_completed_pct, ...of('tasks_completed')),
      };
    },
    tokens: () => ({
      'tokens.total': reports((found.tokens ?? NO_SUMS).requests),
      ...entries(
        'tokens.by_model',
        found.models.map(({ model, requests }) => [model, requests]),
        (total, model) => reports(total, { model }),
      ),
    }),
  };
  return Object.assign({}, ...[...sections].map((section) => all[section]()));
}

const byName = (counts: readonly TypeCount[]) => counts.map(({ type, count }) => [type, count] as const);

const entries = (
  path: string,
  numbers: readonly (readonly [string, number])[],
  of: (total: number, name: string) => Derivation,
): Derivations => Object.fromEntries(numbers.map(([name, total]) => [`${path}.${name}`, of(total, name)]));
