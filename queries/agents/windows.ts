/**
 * Counts in a time window under the names that an agent had. Whole hours are read from buckets, the parts of hours at
 * the edges from single rows: the numbers are exact, and the cost depends on the number of hours in the window.
 */
import { type RawBuilder, sql } from 'kysely';
import { diagnosticsProjection } from '../../projections/agents/diagnostics.ts';
import { MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import { HOUR } from '../../shared/time.ts';
import { HOUR_MS, spansOf } from '../../shared/time-buckets.ts';
import { type Reads, tableOf } from '../reads.ts';

export type Sql = RawBuilder<unknown>;

/** A name of the agent while the agent had it, Unix seconds. */
export interface Held {
  readonly name: string;
  readonly since: number;
  readonly until: number;
  /** Position of the event that gave it the name: events before it are of another agent of the name. */
  readonly from: number;
}

/**
 * The names that an agent has had since a moment. An event in the second of a change may have either name, but none
 * before the agent got it.
 *
 * @param since Unix seconds
 */
export async function namesHeld(reads: Reads, workspace: number, agent: number, since: number): Promise<Held[]> {
  const { rows } = await sql<{ name: string; since: number; next: number | null; position: number }>`
    SELECT name, since, lead(since) OVER (ORDER BY id) AS next, position
    FROM ${tableOf(reads, diagnosticsProjection, 'names')}
    WHERE workspace_id = ${workspace} AND agent_id = ${agent} ORDER BY id`.execute(reads.db);
  const last = new Map<string, number>();
  return rows.flatMap(({ name, since: from, next, position }) => {
    const until = next === null ? Number.POSITIVE_INFINITY : next + 1;
    // A name that the agent got back within the same second must not be counted twice in it.
    const held = { name, since: Math.max(from, last.get(name) ?? 0), until, from: position };
    last.set(name, until);
    return until > since && held.since < until ? [held] : [];
  });
}

/** One of the two windows; the current one has no end. */
export interface Window {
  readonly current: boolean;
  readonly since: number;
  readonly until: number;
}

/** Tables of one kind of events: counted by hour, and one by one. */
export interface Counted {
  readonly hours: Sql;
  readonly rows: Sql;
  /** The agent's name: a column of both tables. */
  readonly whose: Sql;
  readonly where?: Sql;
}

export const MS = 1_000;
const NOTHING = sql`
  SELECT true AS current, ''::text AS type, 0::bigint AS start, 0::bigint AS count, 0::bigint AS position WHERE false`;

/** @param column Unix seconds @param span Unix ms */
const within = (column: Sql, { from, until }: { readonly from: number; readonly until: number }): Sql =>
  until === Number.POSITIVE_INFINITY
    ? sql`${column} >= ${from / MS}`
    : sql`${column} >= ${from / MS} AND ${column} < ${until / MS}`;

/**
 * A window in whole hours and the rest. An hour that begins with the second in which the agent got its name is not read
 * as a whole: that second may have events of another agent of the name.
 *
 * @param from Unix ms, as is `until`
 */
function hoursIn({ since }: Held, from: number, until: number): ReturnType<typeof spansOf> {
  const first = since * MS;
  if (first < from || first % HOUR_MS !== 0 || from >= until) return spansOf(['hour'], from, until);
  const { buckets, rests } = spansOf(['hour'], first + MS, until);
  return { buckets, rests: [{ from: first, until: first + MS }, ...rests] };
}

/**
 * Rows `current, type, start, count` that add up to everything in the windows; `start` is the beginning of an hour,
 * `position` that of the newest event.
 */
export function countsIn(workspace: number, names: readonly Held[], windows: readonly Window[], of: Counted): Sql {
  const { hours, rows, whose, where = sql`true` } = of;
  const parts = windows.flatMap(({ current, since, until }) =>
    names.flatMap((held) => {
      const own = sql`workspace_id = ${workspace} AND ${whose} = ${held.name} AND ${where}`;
      const from = Math.max(since, held.since) * MS;
      const { buckets, rests } = hoursIn(held, from, Math.min(until, held.until) * MS);
      return [
        ...buckets.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, start, count, position
            FROM ${hours} WHERE ${own} AND ${within(sql`start`, span)}`,
        ),
        ...rests.map(
          (span) => sql`
            SELECT ${sql.lit(current)} AS current, type, created_at - created_at % ${sql.lit(HOUR)} AS start,
              1::bigint AS count, position
            FROM ${rows} WHERE ${own} AND position >= ${held.from} AND ${within(sql`created_at`, span)}`,
        ),
      ];
    }),
  );
  return parts.length === 0 ? NOTHING : sql.join(parts, sql` UNION ALL `);
}

/** The single events in the windows, up to one more than `most`. */
export function eventsIn(
  workspace: number,
  names: readonly Held[],
  windows: readonly Window[],
  of: Counted,
  most: number,
): Sql {
  const { rows, whose, where = sql`true` } = of;
  const parts = windows.flatMap(({ current, since, until }) =>
    names.flatMap((held) => {
      const span = { from: Math.max(since, held.since) * MS, until: Math.min(until, held.until) * MS };
      if (span.from >= span.until) return [];
      return [
        sql`
          (SELECT ${sql.lit(current)} AS current, position, type, created_at AS at FROM ${rows}
           WHERE workspace_id = ${workspace} AND ${whose} = ${held.name} AND ${where}
             AND position >= ${held.from} AND ${within(sql`created_at`, span)}
           ORDER BY created_at, position LIMIT ${sql.lit(most + 1)})`,
      ];
    }),
  );
  return parts.length === 0 ? sql`'[]'::json` : listed(sql.join(parts, sql` UNION ALL `), most);
}

/** Events as JSON, up to one more than `most`. */
export const listed = (events: Sql, most: number): Sql =>
  sql`(SELECT coalesce(json_agg(e), '[]') FROM (SELECT * FROM (${events}) a LIMIT ${sql.lit(most + 1)}) e)`;

export const newestOf = (rows: Sql): Sql => sql`(SELECT coalesce(max(position), 0)::bigint FROM ${rows})`;

export const totalOf = (counts: string, current: boolean): Sql =>
  sql`(SELECT coalesce(sum(count), 0)::bigint FROM ${sql.table(counts)} WHERE current = ${sql.lit(current)})`;

export const typesOf = (counts: string): Sql => sql`
  (SELECT coalesce(json_agg(t ORDER BY t.count DESC, t.type), '[]') FROM (
    SELECT type, sum(count)::bigint AS count FROM ${sql.table(counts)} WHERE current
    GROUP BY type ORDER BY 2 DESC, 1 LIMIT ${sql.lit(MAX_GROUPS)}) t)`;
