/**
 * Sums of reported tokens within a window that ends now. Whole years, months, days and hours are read from buckets; the
 * part between the beginning of the window and the nearest edge of a bucket is read from the reports themselves. So
 * sums are exact, and as quick for a year as for a day.
 *
 * Sums as of an earlier position have no versions of the buckets that were open then, so their reports are read instead:
 * at most those of one bucket of the finest unit.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import { ALL_TIME, FACET_UNITS, type Facet } from '../../projections/tokens/usage.ts';
import { NANO } from '../../shared/contract/tokens/costs.ts';
import { MAX_TIMELINE_DAYS, TIMEFRAMES, type TokenStats } from '../../shared/contract/tokens/usage.ts';
import {
  DAY_MS,
  HOUR_MS,
  spansOf,
  startOf,
  type Term,
  termsSince,
  UNITS,
  type Unit,
} from '../../shared/time-buckets.ts';
import { inPastToo, type Reads, tableOf } from '../reads.ts';

export type Sql = RawBuilder<unknown>;

export const tokensTable = (reads: Reads, name: (typeof tokensProjection.tables)[number]['name']): Sql =>
  tableOf(reads, tokensProjection, name);
export const agentsTable = (reads: Reads): Sql => tableOf(reads, agentsProjection, 'agents');

/** A day of UTC, or a time. */
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?$/;

/** The beginning of a timeframe, Unix ms; 0: no limit. */
export function sinceOf(timeframe: string, now: number): number {
  const moment = MOMENT.test(timeframe) ? Date.parse(timeframe) : Number.NaN;
  if (!Number.isNaN(moment)) return Math.max(0, moment);
  const span = Object.hasOwn(TIMEFRAMES, timeframe) ? TIMEFRAMES[timeframe] : undefined;
  return span === undefined ? 0 : now - span;
}

const FACET_ROWS: Readonly<Record<Facet, { readonly subject: Sql; readonly model: Sql; readonly where: Sql }>> = {
  agent: { subject: sql`''`, model: sql`model`, where: sql`true` },
  session: { subject: sql`session_id`, model: sql`''`, where: sql`true` },
  task: { subject: sql`task_id::text`, model: sql`model`, where: sql`task_id IS NOT NULL` },
  model: { subject: sql`''`, model: sql`model`, where: sql`true` },
};

/** Amounts of single reports, as in the sums. */
export const ALL_INPUT = sql`(input_tokens + cache_read_tokens + cache_write_tokens)`;
const ESTIMATED = sql`CASE WHEN price = 'default' THEN round(cost * ${NANO}) ELSE 0 END`;

/** The usage of a workspace. */
export interface Usage {
  readonly reads: Reads;
  readonly workspace: number;
  /**
   * In the past, the start of the hour of the newest report, Unix ms; 0 if there was none. Buckets that end later are
   * not used. Undefined: all buckets are current.
   */
  readonly openHour: number | undefined;
}

/**
 * Runs a query of usage, with the functions below.
 *
 * @param query reads with `usage.reads` only; it may be repeated for an earlier position
 */
export const withUsage = <T>(reads: Reads, workspace: number, query: (usage: Usage) => Promise<T>): Promise<T> =>
  inPastToo(reads, async (there) => {
    if (there.past === undefined) return query({ reads: there, workspace, openHour: undefined });
    const { rows } = await sql<{ hour: number }>`
      SELECT hour FROM ${tokensTable(there, 'open_hours')} WHERE workspace_id = ${workspace}`.execute(there.db);
    return query({ reads: there, workspace, openHour: rows[0]?.hour ?? 0 });
  });

/** A part of a facet to read: buckets of one unit, or single reports. */
interface Part extends Term {
  /** Only data of the agent with this id. */
  readonly agent?: number;
}

function partOf({ reads, workspace }: Usage, facet: Facet, { unit, from, until, sign, agent }: Part): Sql {
  const whose = agent === undefined ? sql`` : sql`AND agent_id = ${agent}`;
  const upTo = (column: Sql) => (until === Number.POSITIVE_INFINITY ? sql`` : sql`AND ${column} < ${until}`);
  const times = sign === 1 ? sql`` : sql`-`;
  if (unit !== null)
    return sql`
      SELECT subject, agent_id, agent_name, model, start, ${times}requests AS requests, ${times}input_tokens AS input_tokens,
        ${times}output_tokens AS output_tokens, ${times}cost AS cost, ${times}estimated AS estimated, last_at, position
      FROM ${tokensTable(reads, 'usage')}
      WHERE workspace_id = ${workspace} ${whose} AND facet = ${facet} AND unit = ${unit} AND start >= ${from}
        ${upTo(sql`start`)}`;
  const { subject, model, where } = FACET_ROWS[facet];
  return sql`
      SELECT ${subject} AS subject, coalesce(agent_id, 0) AS agent_id,
        CASE WHEN agent_id IS NULL THEN agent_name ELSE '' END AS agent_name, ${model} AS model, at - at % ${HOUR_MS} AS start,
        ${times}1::bigint AS requests, ${times}${ALL_INPUT} AS input_tokens, ${times}output_tokens AS output_tokens,
        ${times}round(cost * ${NANO}) AS cost, ${times}${ESTIMATED} AS estimated, at AS last_at, position
      FROM ${tokensTable(reads, 'reports')}
      WHERE workspace_id = ${workspace} ${whose} AND at >= ${from} ${upTo(sql`at`)} AND ${where}`;
}

const partsOf = (usage: Usage, facet: Facet, parts: readonly Part[]): Sql =>
  sql.join(
    parts.map((part) => partOf(usage, facet, part)),
    sql` UNION ALL `,
  );

/**
 * Rows that add up to everything since a moment, each within the window: `subject, agent_id, agent_name, model, start,
 * requests, input_tokens` (with cached ones)`, output_tokens, cost` and the `estimated` part of it (billionths of a
 * dollar), `last_at`, and the `position` of the newest
 * event in them.
 *
 * @param since Unix ms
 * @param only.coarsest the longest buckets to use: `start` is then no coarser
 * @param only.agent id of an agent: only its rows
 * @param only.until Unix ms: only earlier data
 */
export function usageSince(
  usage: Usage,
  facet: Facet,
  since: number,
  {
    coarsest = 'year',
    agent,
    until = Number.POSITIVE_INFINITY,
  }: { readonly coarsest?: Unit; readonly agent?: number; readonly until?: number } = {},
): Sql {
  const { openHour = Number.POSITIVE_INFINITY } = usage;
  const units = FACET_UNITS[facet].filter((unit) => UNITS.indexOf(unit) <= UNITS.indexOf(coarsest));
  const { buckets, rests } = spansOf(units, since, Math.min(until, openHour));
  // No report is newer than the open hour.
  const open = { from: Math.max(since, openHour), until: Math.min(until, openHour + HOUR_MS) };
  const single = openHour === Number.POSITIVE_INFINITY ? rests : [...rests, open];
  const parts = [...single.map((span) => ({ unit: null, ...span })), ...buckets];
  return partsOf(
    usage,
    facet,
    parts.map((part) => ({ ...part, sign: 1, ...(agent !== undefined && { agent }) })),
  );
}

/**
 * Rows that add up to everything since a moment. They are fewer than those of `usageSince`, because some are negative:
 * they subtract the part before the window. Groups without requests may remain: `IN_WINDOW` leaves them out.
 *
 * @param since Unix ms
 * @param now Unix ms
 */
export function sumsSince(usage: Usage, facet: Facet, since: number, now: number): Sql {
  const { reads, workspace, openHour } = usage;
  if (openHour !== undefined) return usageSince(usage, facet, Math.max(0, since));
  if (since > 0 || facet === 'agent')
    return partsOf(usage, facet, termsSince(FACET_UNITS[facet], Math.max(0, since), now));
  return sql`
    SELECT subject, agent_id, agent_name, model, start, requests, input_tokens, output_tokens, cost, estimated, last_at,
      position
    FROM ${tokensTable(reads, 'usage')}
    WHERE workspace_id = ${workspace} AND facet = ${facet} AND unit = ${ALL_TIME} AND start = 0`;
}

export const IN_WINDOW = sql`HAVING sum(requests) > 0`;

/** Sums over a group of rows. */
export interface Sums {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
  /** The part of the cost that was priced by default. */
  readonly estimated: number;
}

export const SUMS = sql`coalesce(sum(requests), 0)::bigint AS requests, coalesce(sum(input_tokens), 0) AS input_tokens,
  coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cost), 0) AS cost,
  coalesce(sum(estimated), 0) AS estimated`;

export const NO_SUMS: Sums = { requests: 0, input_tokens: 0, output_tokens: 0, cost: 0, estimated: 0 };

export const dollars = (cost: number): number => cost / NANO;
export const tokensOf = ({ input_tokens, output_tokens }: Sums): number => input_tokens + output_tokens;

export const added = (one: Sums, other: Sums, sign: 1 | -1 = 1): Sums => ({
  requests: one.requests + sign * other.requests,
  input_tokens: one.input_tokens + sign * other.input_tokens,
  output_tokens: one.output_tokens + sign * other.output_tokens,
  cost: one.cost + sign * other.cost,
  estimated: one.estimated + sign * other.estimated,
});

/** @param cost billionths of a US dollar, of which `estimated` were priced by default */
export function statsFrom(requests: number, tokens: number, cost: number, estimated: number): TokenStats {
  const inDollars = dollars(cost);
  return {
    totalTokens: tokens,
    totalCost: inDollars,
    estimatedCost: dollars(estimated),
    requestCount: requests,
    avgTokensPerRequest: requests === 0 ? 0 : Math.round(tokens / requests),
    avgCostPerRequest: requests === 0 ? 0 : inDollars / requests,
  };
}

export const statsOf = (sums: Sums): TokenStats => statsFrom(sums.requests, tokensOf(sums), sums.cost, sums.estimated);

export const statsBy = <T extends Sums>(rows: readonly T[], nameOf: (row: T) => string): Record<string, TokenStats> =>
  Object.fromEntries(rows.map((row) => [nameOf(row), statsOf(row)]));

/**
 * The sums of everything since a moment, and the position of the newest event in them.
 *
 * @param since Unix ms @param now Unix ms
 */
export const totalSince = (
  reads: Reads,
  workspace: number,
  since: number,
  now: number,
): Promise<Sums & { readonly position: number }> =>
  withUsage(reads, workspace, async (usage) => {
    const { rows } = await sql<Sums & { position: number }>`
      SELECT ${SUMS}, ${NEWEST} AS position FROM (${sumsSince(usage, 'model', since, now)}) a`.execute(usage.reads.db);
    return rows[0] ?? { ...NO_SUMS, position: 0 };
  });

/** The position of the newest event in sums. */
export const NEWEST = sql`coalesce(max(position), 0)::bigint`;
const ISO_DAY = 10;
/** @param start Unix ms */
export const dateOf = (start: number): string => new Date(start).toISOString().slice(0, ISO_DAY);

/** The start of a window's time lines, Unix ms. */
export const timelineSince = (since: number, now: number): number =>
  Math.max(since, startOf('day', now) - (MAX_TIMELINE_DAYS - 1) * DAY_MS);

export interface DaySums extends Sums {
  /** Unix ms. */
  readonly day: number;
}

export const timelineOf = (days: readonly DaySums[]) =>
  days.map((one) => ({ date: dateOf(one.day), cost: dollars(one.cost), tokens: tokensOf(one) }));

/** Rows of several groups, each group in the order of its rows. */
export function grouped<T>(rows: readonly T[], keyOf: (row: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}
