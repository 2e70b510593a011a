/** The plain evaluation of a condition, which the database and backtests are compared with. */
import { agentsProjection, agentsTable } from '../../projections/agents/agents.ts';
import { MemoryTables } from '../../projections/apply.ts';
import { activitiesProjection, activitiesTable } from '../../projections/monitoring/activities.ts';
import { cliSessionsTable, sessionsProjection } from '../../projections/sessions.ts';
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import { columnNameOf } from '../../queries/alerts/conditions.ts';
import {
  ACTIVITY_WINDOW,
  type Condition,
  type Cooldown,
  coolsRecords,
  inCooldown,
  isMet,
  reportsOnce,
  ruleCooldown,
  type Seen,
  spanOf,
} from '../../shared/contract/alerts/conditions.ts';
import { heartbeatsReceived } from '../../shared/events/agents/heartbeat.ts';
import type { DomainEvent, EventOf } from '../../shared/events/define.ts';

/** Evaluates a condition on all records of a workspace. @param now Unix seconds */
export function evaluate(condition: Condition, records: Iterable<Seen>, now: number): boolean {
  let found = 0;
  for (const seen of records) {
    if (condition.entity_type === 'activity' && seen.at <= now - ACTIVITY_WINDOW) continue;
    const span = spanOf(condition, seen);
    if (span && span.after < now && now < span.before) found++;
  }
  return isMet(condition, found);
}

const RECORDS = {
  agent: [agentsProjection, agentsTable],
  task: [tasksProjection, tasksTable],
  session: [sessionsProjection, cliSessionsTable],
  activity: [activitiesProjection, activitiesTable],
} as const;

/**
 * The times at which a rule would have triggered, from the records that there were at each of them. Unix seconds.
 *
 * @param events of one workspace, in log order
 */
export function triggersOf(
  events: readonly Pick<DomainEvent, 'type' | 'meta'>[],
  condition: Condition & Cooldown,
  { first, last, every }: { readonly first: number; readonly last: number; readonly every: number },
): readonly number[] {
  const tables = new MemoryTables();
  const isLeased = condition.entity_type === 'agent' && columnNameOf(condition) === 'last_seen';
  const summaries = events.flatMap((event) =>
    event.type === heartbeatsReceived.type ? [(event as EventOf<typeof heartbeatsReceived>).data] : [],
  );
  /** Heartbeats of an agent that were only summed up, but had come by then. */
  const beatsBy = (id: unknown, now: number) =>
    summaries.flatMap(({ from, agents }) =>
      agents.flatMap(([agent, , first, last]) => (agent === id && from + first <= now ? [from + last] : [])),
    );
  const [projection, table] = RECORDS[condition.entity_type];
  const shownOf = (row: Readonly<Record<string, unknown>>, now: number): Seen['value'] => {
    const value = (row[columnNameOf(condition)] ?? null) as Seen['value'];
    const beats = isLeased ? beatsBy(row.id, now) : [];
    return beats.length === 0 ? value : Math.max(Number(value ?? 0), ...beats);
  };
  const triggers: number[] = [];
  let next = 0;
  let lastTriggeredAt: number | null = null;
  /** Position of the newest activity that was reported. */
  let reportedTo = 0;
  const cooling = new Map<string, number>();
  for (let now = first; now <= last; now += every) {
    for (let event = events[next]; event && Math.floor(event.meta.at / 1_000) <= now; event = events[++next])
      tables.apply(projection as never, [event as DomainEvent]);
    if (inCooldown(ruleCooldown(condition), lastTriggeredAt, now)) continue;
    const rows = tables.rows(table as never) as readonly Readonly<Record<string, unknown>>[];
    const seen = rows.map(
      (row): Seen => ({
        value: shownOf(row, now),
        live: row.status === 'offline' && condition.entity_type === 'agent' ? false : row.terminated !== true,
        at: condition.entity_type === 'activity' ? Number(row.created_at) : 0,
      }),
    );
    if (coolsRecords(condition)) {
      const due = rows.filter((row, at) => {
        const isQuiet = inCooldown(condition.cooldown_minutes, cooling.get(String(row.id)) ?? null, now);
        return !isQuiet && evaluate(condition, [seen[at] as Seen], now);
      });
      if (due.length === 0) continue;
      for (const row of due) cooling.set(String(row.id), now);
    } else if (reportsOnce(condition)) {
      const due = rows.filter(
        (row, at) => Number(row.position) > reportedTo && evaluate(condition, [seen[at] as Seen], now),
      );
      if (due.length === 0) continue;
      reportedTo = Math.max(...due.map(({ position }) => Number(position)));
    } else if (!evaluate(condition, seen, now)) continue;
    triggers.push(now);
    lastTriggeredAt = now;
  }
  return triggers;
}
