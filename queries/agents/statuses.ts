/** How long an agent had each status in a window: complete sums, and the newest spans. */
import { sql } from 'kysely';
import { diagnosticsProjection } from '../../projections/agents/diagnostics.ts';
import type { StatusSpan } from '../../shared/contract/agents/diagnostics.ts';
import { type Reads, tableOf } from '../reads.ts';
import type { Sql } from './windows.ts';

/** Maximum number of changes that are listed. */
const MAX_CHANGES = 1_000;

/** One change of status; `at` is not before the window. */
export interface StatusChange {
  readonly status: string;
  /** Unix seconds. */
  readonly at: number;
  readonly position: number;
}

export interface StatusSeconds {
  readonly status: string;
  readonly seconds: number;
}

interface StatusWindow {
  readonly workspace: number;
  readonly agent: number;
  readonly since: number;
  readonly until: number;
}

/** Rows `status, at, position, next` of every change in the window, and of the last one before it. */
function changesIn(reads: Reads, { workspace, agent, since, until }: StatusWindow): Sql {
  const own = sql`FROM ${tableOf(reads, diagnosticsProjection, 'statuses')}
    WHERE workspace_id = ${workspace} AND agent_id = ${agent}`;
  const clamped = sql`least(greatest(since, ${since}::bigint), ${until}::bigint)`;
  return sql`
    SELECT status, position, at, lead(at, 1, ${until}::bigint) OVER (ORDER BY position) AS next FROM (
      SELECT status, position, ${clamped} AS at FROM (
        (SELECT status, since, position ${own} AND since <= ${since} ORDER BY since DESC, position DESC LIMIT 1)
        UNION ALL
        (SELECT status, since, position ${own} AND since > ${since})) a) b`;
}

/** Seconds by status. A change that a clock recorded before an earlier one takes no time. */
export const statusSeconds = (reads: Reads, window: StatusWindow): Sql => sql`
  (SELECT coalesce(json_agg(s ORDER BY s.seconds DESC, s.status), '[]') FROM (
    SELECT status, sum(greatest(next - at, 0))::bigint AS seconds
    FROM (${changesIn(reads, window)}) c GROUP BY status) s)`;

/** Since when the sums are known: the beginning of the window, or of the agent; null: not at all. */
export const statusSince = (reads: Reads, window: StatusWindow): Sql =>
  sql`(SELECT min(at) FROM (${changesIn(reads, window)}) c)`;

export const statusChanges = (reads: Reads, window: StatusWindow): Sql => sql`
  (SELECT coalesce(json_agg(s ORDER BY s.position), '[]') FROM (
    SELECT status, at, position FROM (${changesIn(reads, window)}) c
    ORDER BY position DESC LIMIT ${sql.lit(MAX_CHANGES)}) s)`;

/**
 * The spans between changes. A span of no length is left out, unless it is the last: the current status is
 * shown from the moment of its change. @param until Unix seconds
 */
export function spansOf(changes: readonly StatusChange[], until: number): StatusSpan[] {
  const spans: StatusSpan[] = [];
  for (const [n, { status, at, position }] of changes.entries()) {
    const end = changes[n + 1]?.at ?? until;
    const last = spans.at(-1);
    if (end <= at && n + 1 < changes.length) continue;
    if (last?.status === status) spans[spans.length - 1] = { ...last, until: end };
    else spans.push({ status, since: at, until: end, position });
  }
  return spans;
}
