/** Rows of read models that exceed their retention. */
import { sql } from 'kysely';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { searchProjection } from '../../projections/monitoring/search.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import { usedBy } from '../../projections/tokens/usage.ts';
import type { auditEntriesPurged, Retained, recordsPurged } from '../../shared/events/admin/cleanup.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { tokenReportsPurged } from '../../shared/events/tokens/reports.ts';
import { startOf } from '../../shared/time-buckets.ts';
import { countOf, inWorkspace, type Reads } from '../reads.ts';

/** The data of an event about the rows that it removes. */
type Expired = Omit<EventOf<typeof recordsPurged>['data'], 'table'>;
type ExpiredReports = EventOf<typeof tokenReportsPurged>['data'];
type ExpiredEntries = EventOf<typeof auditEntriesPurged>['data'];

/** Tables whose rows are removed by one type of event; the others have a type of their own. */
export type Removable = Exclude<Retained, 'token_usage' | 'audit_log'>;

/** Ids of the rows of a table that are too old. */
const expiredIds = {
  activities: (reads: Reads, workspace: number, cutoff: number) =>
    inWorkspace(reads, activitiesProjection, 'activities', workspace).where('created_at', '<', cutoff),
  notifications: (reads: Reads, workspace: number, cutoff: number) =>
    inWorkspace(reads, notificationsProjection, 'notifications', workspace).where('created_at', '<', cutoff),
  pipeline_runs: (reads: Reads, workspace: number, cutoff: number) =>
    inWorkspace(reads, pipelinesProjection, 'pipeline_runs', workspace)
      .where('created_at', '<', cutoff)
      .where('status', '<>', 'running'),
  token_usage: (reads: Reads, workspace: number, cutoff: number) =>
    inWorkspace(reads, tokensProjection, 'reports', workspace).where('at', '<', cutoff * 1_000),
  audit_log: (reads: Reads, workspace: number, cutoff: number) =>
    inWorkspace(reads, auditProjection, 'audit', workspace).where('created_at', '<', cutoff),
} as const;

/**
 * Token reports from before `cutoff` (Unix seconds), oldest first. They are summed by hour and by every key of the
 * sums, so that the event is as short as possible.
 */
export async function expiredReports(
  reads: Reads,
  workspace: number,
  cutoff: number,
  limit: number,
): Promise<ExpiredReports> {
  const rows = await expiredIds
    .token_usage(reads, workspace, cutoff)
    .selectAll()
    .orderBy('at')
    .orderBy('id')
    .limit(limit)
    .execute();
  const sums = new Map<string, ExpiredReports['used'][number]>();
  for (const row of rows) {
    const used = usedBy(row.at, row);
    const { model, session_id, agent_id, agent_name, task_id } = row;
    const whose = { at: startOf('hour', row.at), model, session_id, agent_id, agent_name, task_id };
    const key = JSON.stringify(whose);
    const sum = sums.get(key);
    sums.set(key, {
      ...whose,
      requests: (sum?.requests ?? 0) + 1,
      input_tokens: (sum?.input_tokens ?? 0) + used.input_tokens,
      output_tokens: (sum?.output_tokens ?? 0) + used.output_tokens,
      cost: (sum?.cost ?? 0) + used.cost,
      estimated: (sum?.estimated ?? 0) + used.estimated,
    });
  }
  return { ids: rows.map(({ id }) => id), used: [...sums.values()] };
}

async function idsOf(reads: Reads, workspace: number, table: Removable, cutoff: number, limit: number) {
  // The builders have different tables, but the columns used here are the same.
  const rows = expiredIds[table as 'notifications'](reads, workspace, cutoff)
    .select('id')
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit);
  return (await rows.execute()).map(({ id }) => id);
}

/** Audit entries from before `cutoff` (Unix seconds), oldest first. */
export async function expiredEntries(
  reads: Reads,
  workspace: number,
  cutoff: number,
  limit: number,
): Promise<ExpiredEntries> {
  const rows = await expiredIds
    .audit_log(reads, workspace, cutoff)
    .select(['id', 'action'])
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  const counts = new Map<string, number>();
  for (const { action } of rows) counts.set(action, (counts.get(action) ?? 0) + 1);
  return { ids: rows.map(({ id }) => id), counts: [...counts].map(([action, count]) => ({ action, count })) };
}

async function expiredActivities(reads: Reads, workspace: number, cutoff: number, limit: number): Promise<Expired> {
  const rows = await expiredIds
    .activities(reads, workspace, cutoff)
    .select(['id', 'type', 'actor', 'entity_type', 'created_at'])
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  const counts = new Map<string, Expired['counts'][number]>();
  for (const { type, actor, entity_type } of rows) {
    const key = JSON.stringify([type, actor, entity_type]);
    counts.set(key, { type, actor, entity_type, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  const ids = rows.map(({ id }) => id);
  const times = rows.map(({ created_at }) => created_at);
  const uses = await inWorkspace(reads, searchProjection, 'phrase_uses', workspace)
    .select(['phrase', 'created_at', 'id'])
    .where(sql<boolean>`(created_at, id) IN (SELECT * FROM unnest(${times}::bigint[], ${ids}::bigint[]))`)
    .orderBy('id')
    .execute();
  return {
    ids,
    counts: [...counts.values()],
    phrases: uses.map(({ phrase, created_at, id }) => ({ phrase, created_at, id })),
  };
}

/** Rows from before `cutoff` (Unix seconds), oldest first, without runs that have not ended. */
export async function expiredRows(
  reads: Reads,
  workspace: number,
  table: Removable,
  cutoff: number,
  limit: number,
): Promise<Expired> {
  if (table === 'activities') return expiredActivities(reads, workspace, cutoff, limit);
  return { ids: await idsOf(reads, workspace, table, cutoff, limit), counts: [], phrases: [] };
}

export const countExpired = (reads: Reads, workspace: number, table: Retained, cutoff: number): Promise<number> =>
  countOf(expiredIds[table as 'notifications'](reads, workspace, cutoff));
