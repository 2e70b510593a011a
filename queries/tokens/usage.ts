/**
 * Sums of reported tokens within a window that ends now. Whole years, months, days and hours are read from buckets; what
 * lies between the beginning of the window and the nearest edge of a bucket is read from the reports themselves, so that
 * sums are exact, and as quick over a year as over a day.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import { ALL_TIME, FACET_UNITS, type Facet, type DaySums as KeptDay } from '../../projections/tokens/usage.ts';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import {
  type AgentCostsAnswer,
  type ByAgentAnswer,
  MAX_GROUPS,
  MAX_TIMELINE_DAYS,
  TIMEFRAMES,
  type TokenStats,
  type TokenTrendsAnswer,
} from '../../shared/contract/tokens/usage.ts';
import {
  DAY_MS,
  firstFrom,
  HOUR_MS,
  spansOf,
  startOf,
  type Term,
  termsSince,
  UNITS,
  type Unit,
} from '../../shared/time-buckets.ts';
import { NANO } from '../../shared/token-prices.ts';
import { derivation, REPORT_TYPES } from '../evidence.ts';
import { type Reads, tableOf } from '../reads.ts';

export type Sql = RawBuilder<unknown>;

export const tokensTable = (reads: Reads, name: (typeof tokensProjection.tables)[number]['name']): Sql =>
  tableOf(reads, tokensProjection, name);
export const agentsTable = (reads: Reads): Sql => tableOf(reads, agentsProjection, 'agents');

/** The beginning of a timeframe, Unix ms; 0 for all. */
export function sinceOf(timeframe: string, now: number): number {
  const span = Object.hasOwn(TIMEFRAMES, timeframe) ? TIMEFRAMES[timeframe] : undefined;
  return span === undefined ? 0 : now - span;
}

const FACET_ROWS: Readonly<Record<Facet, { readonly subject: Sql; readonly model: Sql; readonly where: Sql }>> = {
  agent: { subject: sql`''`, model: sql`model`, where: sql`true` },
  session: { subject: sql`session_id`, model: sql`''`, where: sql`true` },
  task: { subject: sql`task_id::text`, model: sql`model`, where: sql`task_id IS NOT NULL` },
  model: { subject: sql`''`, model: sql`model`, where: sql`true` },
};

/** What is read of a facet: of one unit, or single reports. */
interface Part extends Term {
  /** The id of the agent whose they are. */
  readonly agent?: number;
}

function partOf(reads: Reads, workspace: number, facet: Facet, { unit, from, until, sign, agent }: Part): Sql {
  const whose = agent === undefined ? sql`` : sql`AND agent_id = ${agent}`;
  const upTo = (column: Sql) => (until === Number.POSITIVE_INFINITY ? sql`` : sql`AND ${column} < ${until}`);
  const times = sign === 1 ? sql`` : sql`-`;
  if (unit !== null)
    return sql`
      SELECT subject, agent_id, agent_name, model, start, ${times}requests AS requests, ${times}input_tokens AS input_tokens,
        ${times}output_tokens AS output_tokens, ${times}cost AS cost, last_at, position
      FROM ${tokensTable(reads, 'usage')}
      WHERE workspace_id = ${workspace} ${whose} AND facet = ${facet} AND unit = ${unit} AND start >= ${from}
        ${upTo(sql`start`)}`;
  const { subject, model, where } = FACET_ROWS[facet];
  return sql`
      SELECT ${subject} AS subject, coalesce(agent_id, 0) AS agent_id,
        CASE WHEN agent_id IS NULL THEN agent_name ELSE '' END AS agent_name, ${model} AS model, at - at % ${HOUR_MS} AS start,
        ${times}1::bigint AS requests, ${times}input_tokens AS input_tokens, ${times}output_tokens AS output_tokens,
        ${times}round(cost * ${NANO}) AS cost, at AS last_at, position
      FROM ${tokensTable(reads, 'reports')}
      WHERE workspace_id = ${workspace} ${whose} AND at >= ${from} ${upTo(sql`at`)} AND ${where}`;
}

const partsOf = (reads: Reads, workspace: number, facet: Facet, parts: readonly Part[]): Sql =>
  sql.join(
    parts.map((part) => partOf(reads, workspace, facet, part)),
    sql` UNION ALL `,
  );

/**
 * Rows that add up to everything since a moment, each of which lies in the window: `subject, agent_id, agent_name, model,
 * start, requests, input_tokens, output_tokens, cost` (billionths of a dollar), `last_at`, and the `position` of the newest
 * event in them.
 *
 * @param since Unix ms
 * @param only.coarsest the longest buckets to use: `start` is then no coarser
 * @param only.agent id of the agent whose they are
 * @param only.until Unix ms: only what is before it
 */
export function usageSince(
  reads: Reads,
  workspace: number,
  facet: Facet,
  since: number,
  {
    coarsest = 'year',
    agent,
    until = Number.POSITIVE_INFINITY,
  }: { readonly coarsest?: Unit; readonly agent?: number; readonly until?: number } = {},
): Sql {
  const units = FACET_UNITS[facet].filter((unit) => UNITS.indexOf(unit) <= UNITS.indexOf(coarsest));
  const { buckets, rests } = spansOf(units, since, until);
  const parts = [...rests.map((span) => ({ unit: null, ...span })), ...buckets];
  return partsOf(
    reads,
    workspace,
    facet,
    parts.map((part) => ({ ...part, sign: 1, ...(agent !== undefined && { agent }) })),
  );
}

/**
 * Rows that add up to everything since a moment, with fewer rows than `usageSince`, because some are negative: they take
 * away what lies before the window. Groups with no requests are not in it: `IN_WINDOW` leaves them out.
 *
 * @param since Unix ms
 * @param now Unix ms
 */
export function sumsSince(reads: Reads, workspace: number, facet: Facet, since: number, now: number): Sql {
  if (since > 0 || facet === 'agent')
    return partsOf(reads, workspace, facet, termsSince(FACET_UNITS[facet], Math.max(0, since), now));
  return sql`
    SELECT subject, agent_id, agent_name, model, start, requests, input_tokens, output_tokens, cost, last_at, position
    FROM ${tokensTable(reads, 'usage')}
    WHERE workspace_id = ${workspace} AND facet = ${facet} AND unit = ${ALL_TIME} AND start = 0`;
}

export const IN_WINDOW = sql`HAVING sum(requests) > 0`;

/**
 * Sessions with a report since a moment, and whose they are: `subject, agent_id, agent_name`. The window ends now, so the
 * newest report of a session tells.
 */
const sessionsSince = (reads: Reads, workspace: number, since: number): Sql => sql`
  SELECT subject, agent_id, agent_name FROM ${tokensTable(reads, 'usage')}
  WHERE workspace_id = ${workspace} AND facet = 'session' AND unit = ${ALL_TIME} AND start = 0 AND last_at >= ${since}`;

/** Sums over a group of rows. */
export interface Sums {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
}

export const SUMS = sql`coalesce(sum(requests), 0)::bigint AS requests, coalesce(sum(input_tokens), 0) AS input_tokens,
  coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cost), 0) AS cost`;

export const NO_SUMS: Sums = { requests: 0, input_tokens: 0, output_tokens: 0, cost: 0 };

export const dollars = (cost: number): number => cost / NANO;
export const tokensOf = ({ input_tokens, output_tokens }: Sums): number => input_tokens + output_tokens;

export const added = (one: Sums, other: Sums, sign: 1 | -1 = 1): Sums => ({
  requests: one.requests + sign * other.requests,
  input_tokens: one.input_tokens + sign * other.input_tokens,
  output_tokens: one.output_tokens + sign * other.output_tokens,
  cost: one.cost + sign * other.cost,
});

/** @param cost billionths of a US dollar */
export function statsFrom(requests: number, tokens: number, cost: number): TokenStats {
  const inDollars = dollars(cost);
  return {
    totalTokens: tokens,
    totalCost: inDollars,
    requestCount: requests,
    avgTokensPerRequest: requests === 0 ? 0 : Math.round(tokens / requests),
    avgCostPerRequest: requests === 0 ? 0 : inDollars / requests,
  };
}

export const statsOf = (sums: Sums): TokenStats => statsFrom(sums.requests, tokensOf(sums), sums.cost);

export const statsBy = <T extends Sums>(rows: readonly T[], nameOf: (row: T) => string): Record<string, TokenStats> =>
  Object.fromEntries(rows.map((row) => [nameOf(row), statsOf(row)]));

/** Whose tokens these are: an agent, or a name that no agent had. */
export interface Whose {
  readonly agent_id: number;
  readonly agent_name: string;
}

export const whoseKey = ({ agent_id, agent_name }: Whose): string => `${agent_id} ${agent_name}`;

/** An agent as it is called now, or as it was last called. */
export interface NamedAgent {
  readonly id: number;
  readonly name: string;
  readonly gone: boolean;
}

/** The name to show for each. Where two have the same name, those that are no agents (any more) say so. */
export function labelsOf(agents: readonly NamedAgent[], all: readonly Whose[]): (whose: Whose) => string {
  const labels = new Map<string, string>();
  const taken = new Set<string>();
  const give = (whose: Whose, name: string, suffix: string) => {
    let label = name;
    while (taken.has(label)) label += suffix;
    taken.add(label);
    labels.set(whoseKey(whose), label);
  };
  const existingFirst = [...agents].sort((a, b) => Number(a.gone) - Number(b.gone) || a.id - b.id);
  for (const { id, name } of existingFirst) give({ agent_id: id, agent_name: '' }, name, ` (#${id})`);
  for (const whose of all) {
    if (whose.agent_id === 0 && !labels.has(whoseKey(whose))) give(whose, whose.agent_name, ' (no agent)');
  }
  return (whose) => labels.get(whoseKey(whose)) ?? `#${whose.agent_id}`;
}

/** The name to show for each: that of the agent, as it is now or as it was last (see `labelsOf`). */
export async function namesOf(
  reads: Reads,
  workspace: number,
  all: readonly Whose[],
): Promise<(whose: Whose) => string> {
  const ids = [...new Set(all.map(({ agent_id }) => agent_id))].filter((id) => id > 0);
  const { rows } = await sql<NamedAgent>`
    SELECT u.agent_id AS id, coalesce(a.name, u.name) AS name, a.id IS NULL AS gone
    FROM ${tokensTable(reads, 'agents')} u
    LEFT JOIN ${agentsTable(reads)} a ON a.workspace_id = u.workspace_id AND a.id = u.agent_id
    WHERE u.workspace_id = ${workspace} AND u.agent_id = ANY(${ids})`.execute(reads.db);
  return labelsOf(rows, all);
}

const MOST_TOKENS = sql`sum(input_tokens + output_tokens) DESC`;

/**
 * The sums of everything since a moment, and the position of the newest event in them.
 *
 * @param since Unix ms @param now Unix ms
 */
export async function totalSince(
  reads: Reads,
  workspace: number,
  since: number,
  now: number,
): Promise<Sums & { readonly position: number }> {
  const { rows } = await sql<Sums & { position: number }>`
    SELECT ${SUMS}, ${NEWEST} AS position FROM (${sumsSince(reads, workspace, 'model', since, now)}) a`.execute(
    reads.db,
  );
  return rows[0] ?? { ...NO_SUMS, position: 0 };
}

/** The position of the newest event in sums. */
export const NEWEST = sql`coalesce(max(position), 0)::bigint`;

/** What an evidence of reports is about. */
export interface ReportsAsked {
  /** Unix ms. */
  readonly since: number;
  /** When the response was made, Unix ms. */
  readonly now: number;
  /** Position of the newest event that the numbers count. */
  readonly to: number;
  /** How many positions are listed. */
  readonly most: number;
}

/** Which reports a number counts: all of those that have this. */
export interface ReportFilter {
  readonly model?: string;
  readonly session_id?: string;
  readonly agent_id?: number | null;
  /** Where there is no agent. */
  readonly agent_name?: string;
  /** Unix ms; not included. */
  readonly until?: number;
  /** Unix ms. */
  readonly since?: number;
}

/** Reports of one owner. */
export const ownedBy = ({ agent_id, agent_name }: Whose): ReportFilter =>
  agent_id === 0 ? { agent_id: null, agent_name } : { agent_id };

interface ReportRow {
  readonly position: number;
  readonly at: number;
  readonly model: string;
  readonly session_id: string;
  readonly agent_id: number | null;
  readonly agent_name: string;
}

const countsFor =
  ({ since = 0, until = Number.POSITIVE_INFINITY, ...same }: ReportFilter) =>
  (row: ReportRow): boolean =>
    row.at >= since &&
    row.at < until &&
    Object.entries(same).every(([name, value]) => row[name as keyof ReportRow] === value);

/**
 * The events behind numbers of reports.
 *
 * @param requests how many reports there are in all
 * @param numbers by name: how many reports each counts, and which
 */
export async function reportDerivations(
  reads: Reads,
  workspace: number,
  { since, now, to, most }: ReportsAsked,
  requests: number,
  numbers: readonly (readonly [name: string, total: number, only: ReportFilter])[],
): Promise<Derivations> {
  const own = sql`FROM ${tokensTable(reads, 'reports')} WHERE workspace_id = ${workspace} AND at >= ${since}`;
  const few = requests <= most;
  const { rows } = few
    ? await sql<ReportRow>`
        SELECT position, at, model, session_id, agent_id, agent_name ${own} AND position <= ${to}
        LIMIT ${most + 1}`.execute(reads.db)
    : { rows: [] };
  // Cleanup may have removed some since.
  const events = few && rows.length === requests ? rows : undefined;
  const from = events ? 0 : await firstPosition(reads, own);
  const source = { rule: 'reports', types: REPORT_TYPES, events, from, to } as const;
  return Object.fromEntries(
    numbers.map(([name, total, only]): [string, Derivation] => {
      const filter = { ...only, since: Math.max(since, only.since ?? 0), purged_until: now };
      return [name, derivation(source, total, filter, countsFor(only))];
    }),
  );
}

/** Clocks of processes may differ by so much, milliseconds. */
const SKEW_MS = 60_000;

/** No report is before this position. */
async function firstPosition(reads: Reads, own: Sql): Promise<number> {
  const { rows } = await sql<{ first: number | null }>`
    SELECT min(position) AS first ${own} AND at <= (SELECT min(at) ${own}) + ${SKEW_MS}::bigint`.execute(reads.db);
  return rows[0]?.first ?? 0;
}

const ISO_DAY = 10;
/** With the dash that follows. */
const ISO_MONTH = 8;
/** @param start Unix ms */
export const dateOf = (start: number): string => new Date(start).toISOString().slice(0, ISO_DAY);

/** Where time lines of a window begin, Unix ms. */
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

type Timeline = ReturnType<typeof timelineOf>;

/** Sums of agents in a part of a day. */
async function sumsBetween(reads: Reads, workspace: number, from: number, until: number) {
  const { rows } = await sql<Whose & Sums>`
    SELECT agent_id, agent_name, ${SUMS}
    FROM (${usageSince(reads, workspace, 'agent', from, { coarsest: 'hour', until })}) a
    GROUP BY agent_id, agent_name`.execute(reads.db);
  return rows;
}

/** The days of agents since a moment, oldest first, by `whoseKey`. @param since Unix ms */
async function timelinesSince(reads: Reads, workspace: number, since: number): Promise<ReadonlyMap<string, Timeline>> {
  const whole = firstFrom('day', since);
  const first = whole === since ? [] : await sumsBetween(reads, workspace, since, whole);
  const { rows: months } = await sql<Whose & { month: number; days: Readonly<Record<string, KeptDay>> }>`
    SELECT agent_id, agent_name, month, days FROM ${tokensTable(reads, 'days')}
    WHERE workspace_id = ${workspace} AND month >= ${startOf('month', whole)} ORDER BY month`.execute(reads.db);
  const timelines = new Map<string, Timeline>(
    first.map((row) => [whoseKey(row), timelineOf([{ ...row, day: startOf('day', since) }])]),
  );
  for (const row of months) {
    const timeline = timelines.get(whoseKey(row)) ?? [];
    timelines.set(whoseKey(row), timeline);
    const month = dateOf(row.month).slice(0, ISO_MONTH);
    // Keys that are whole numbers come in their order.
    for (const [day, [, tokens, cost]] of Object.entries(row.days)) {
      if (row.month + (Number(day) - 1) * DAY_MS >= whole)
        timeline.push({ date: month + day.padStart(2, '0'), cost: dollars(cost), tokens });
    }
  }
  return timelines;
}

/** @param now Unix ms */
export async function agentCosts(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
): Promise<AgentCostsAnswer> {
  const since = sinceOf(timeframe, now);
  const { rows } = await sql<Whose & Sums & { models: readonly (Sums & { model: string })[]; records: number }>`
    WITH m AS (
      SELECT agent_id, agent_name, model, ${SUMS} FROM (${sumsSince(reads, workspace, 'agent', since, now)}) a
      GROUP BY agent_id, agent_name, model ${IN_WINDOW})
    SELECT agent_id, agent_name, ${SUMS},
      json_agg(row_to_json(m) ORDER BY m.input_tokens + m.output_tokens DESC, model) AS models,
      (sum(sum(requests)) OVER ())::bigint AS records
    FROM m GROUP BY agent_id, agent_name
    ORDER BY ${MOST_TOKENS}, agent_id, agent_name LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const { rows: sessions } = await sql<Whose & { sessions: readonly string[] }>`
    SELECT agent_id, agent_name, (array_agg(subject ORDER BY subject))[1:${sql.lit(MAX_GROUPS)}] AS sessions
    FROM (${sessionsSince(reads, workspace, since)}) s
    GROUP BY agent_id, agent_name`.execute(reads.db);
  const timelines = await timelinesSince(reads, workspace, timelineSince(since, now));
  const nameOf = await namesOf(reads, workspace, rows);
  const sessionsBy = new Map(sessions.map((row) => [whoseKey(row), row.sessions]));
  return {
    agents: Object.fromEntries(
      rows.map((row) => [
        nameOf(row),
        {
          stats: statsOf(row),
          models: statsBy(row.models.slice(0, MAX_GROUPS), ({ model }) => model),
          sessions: [...(sessionsBy.get(whoseKey(row)) ?? [])],
          timeline: timelines.get(whoseKey(row)) ?? [],
        },
      ]),
    ),
    timeframe,
    recordCount: rows[0]?.records ?? 0,
  };
}

/** By hour, at most of the last 24. @param now Unix ms */
export async function tokenTrends(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most?: number,
): Promise<TokenTrendsAnswer> {
  const since = Math.max(sinceOf(timeframe, now), now - DAY_MS);
  const { rows } = await sql<Sums & { hour: number; position: number }>`
    SELECT start AS hour, ${SUMS}, ${NEWEST} AS position FROM (${usageSince(reads, workspace, 'model', since, { coarsest: 'hour' })}) a
    GROUP BY start ORDER BY start`.execute(reads.db);
  const trends = rows.map((row) => ({
    timestamp: new Date(row.hour).toISOString(),
    tokens: tokensOf(row),
    cost: dollars(row.cost),
    requests: row.requests,
  }));
  if (most === undefined) return { trends, timeframe };
  const to = Math.max(0, ...rows.map(({ position }) => position));
  const evidence = await reportDerivations(
    reads,
    workspace,
    { since, now, to, most },
    rows.reduce((sum, { requests }) => sum + requests, 0),
    rows.map(({ hour, requests }, n) => [
      `trends.${trends[n]?.timestamp}`,
      requests,
      { since: Math.max(since, hour), until: hour + HOUR_MS },
    ]),
  );
  return { trends, timeframe, evidence };
}

/** @param now Unix ms */
export async function tokensByAgent(
  reads: Reads,
  workspace: number,
  days: number,
  now: number,
  most?: number,
): Promise<ByAgentAnswer> {
  const since = Math.floor(now - days * DAY_MS);
  type Model = Sums & { readonly model: string };
  const { rows } = await sql<
    Whose &
      Sums & {
        last_at: number;
        models: readonly Model[];
        sessions: number;
        groups: number;
        all_requests: number;
        all_tokens: number;
        all_cost: number;
        newest: number;
      }
  >`
    WITH m AS (
      SELECT agent_id, agent_name, model, max(last_at) AS last_at, max(position) AS position, ${SUMS}
      FROM (${sumsSince(reads, workspace, 'agent', since, now)}) a
      GROUP BY agent_id, agent_name, model ${IN_WINDOW}),
    t AS (
      SELECT agent_id, agent_name, max(last_at) AS last_at, max(position) AS position, ${SUMS},
        json_agg(row_to_json(m) ORDER BY m.input_tokens + m.output_tokens DESC, model) AS models
      FROM m GROUP BY agent_id, agent_name),
    s AS (
      SELECT agent_id, agent_name, count(*) AS sessions
      FROM (${sessionsSince(reads, workspace, since)}) a GROUP BY agent_id, agent_name)
    SELECT t.*, coalesce(s.sessions, 0) AS sessions, count(*) OVER () AS groups,
      (sum(requests) OVER ())::bigint AS all_requests, sum(input_tokens + output_tokens) OVER () AS all_tokens,
      sum(cost) OVER () AS all_cost, max(position) OVER () AS newest
    FROM t LEFT JOIN s USING (agent_id, agent_name)
    ORDER BY input_tokens + output_tokens DESC, agent_id, agent_name LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const nameOf = await namesOf(reads, workspace, rows);
  const [first] = rows;
  const answer = {
    agents: rows.map((row) => ({
      agent: nameOf(row),
      agent_id: row.agent_id || null,
      total_input_tokens: row.input_tokens,
      total_output_tokens: row.output_tokens,
      total_tokens: tokensOf(row),
      total_cost: dollars(row.cost),
      session_count: Number(row.sessions),
      request_count: row.requests,
      last_active: new Date(row.last_at).toISOString(),
      models: row.models.slice(0, MAX_GROUPS).map((one) => ({
        model: one.model,
        input_tokens: one.input_tokens,
        output_tokens: one.output_tokens,
        request_count: one.requests,
        cost: dollars(one.cost),
      })),
    })),
    summary: {
      total_cost: dollars(first?.all_cost ?? 0),
      total_tokens: first?.all_tokens ?? 0,
      agent_count: first?.groups ?? 0,
      days,
    },
  };
  if (most === undefined) return answer;
  const evidence = await reportDerivations(
    reads,
    workspace,
    { since, now, to: first?.newest ?? 0, most },
    first?.all_requests ?? 0,
    [
      ['summary', first?.all_requests ?? 0, {}],
      ...rows.flatMap((row) => {
        const name = nameOf(row);
        const models = row.models
          .slice(0, MAX_GROUPS)
          .map(
            ({ model, requests }) => [`agents.${name}.models.${model}`, requests, { ...ownedBy(row), model }] as const,
          );
        return [[`agents.${name}`, row.requests, ownedBy(row)] as const, ...models];
      }),
    ],
  );
  return { ...answer, evidence };
}
