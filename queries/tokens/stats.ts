/** Statistics of the tokens reported in a timeframe: in all, by model, session and agent, and by hour. */
import { sql } from 'kysely';
import {
  MAX_GROUPS,
  type TokenStats,
  type TokenStatsResponse,
  type TokenTrendsResponse,
} from '../../shared/contract/tokens/usage.ts';
import { DAY_MS, HOUR_MS } from '../../shared/time-buckets.ts';
import type { Reads } from '../reads.ts';
import { ownedBy, type ReportFilter, reportDerivations } from './evidence.ts';
import { labelsOf, type Whose } from './owners.ts';
import {
  agentsTable,
  dollars,
  NEWEST,
  type Sql,
  SUMS,
  type Sums,
  sinceOf,
  statsFrom,
  sumsSince,
  tokensOf,
  tokensTable,
  type Usage,
  usageSince,
  withUsage,
} from './usage.ts';

interface Totals {
  readonly requests: number;
  readonly tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
  /** The part of the cost that was priced by default. */
  readonly estimated: number;
}

/** Groups by column: 300 as rows cost the driver 0.5 ms more. Null: no groups. */
type Columns<T> = { readonly [K in keyof T]: readonly T[K][] | null };
type Named = Columns<Totals & { readonly name: string }>;
/** `name` is null if only the id is known. */
type Owned = Columns<Totals & { agent_id: number; agent_name: string; name: string | null; gone: boolean }>;

const COLUMNS = sql`'requests', array_agg(requests), 'tokens', array_agg(tokens), 'cost', array_agg(cost),
  'estimated', array_agg(estimated)`;
const NAMED = (groups: Sql): Sql =>
  sql`(SELECT json_build_object('name', array_agg(name), ${COLUMNS}) FROM (${groups}) g)`;

function statsByName(names: readonly string[] | null, { requests, tokens, cost, estimated }: Columns<Totals>) {
  // Without a prototype, `__proto__` is an ordinary key.
  const stats: Record<string, TokenStats> = Object.create(null);
  for (const [n, name] of (names ?? []).entries())
    stats[name] = statsFrom(requests?.[n] ?? 0, tokens?.[n] ?? 0, cost?.[n] ?? 0, estimated?.[n] ?? 0);
  return stats;
}

function labelled(agents: Owned) {
  const all = (agents.agent_id ?? []).map((agent_id, n) => ({
    agent_id,
    agent_name: agents.agent_name?.[n] ?? '',
    name: agents.name?.[n] ?? null,
    gone: agents.gone?.[n] ?? true,
  }));
  const known = all.flatMap(({ agent_id: id, name, gone }) => (name === null ? [] : [{ id, name, gone }]));
  return { all, labels: all.map(labelsOf(known, all)) };
}

/** @param now Unix ms */
export const tokenStats = (
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most?: number,
): Promise<TokenStatsResponse> => withUsage(reads, workspace, (usage) => statsIn(usage, timeframe, now, most));

async function statsIn(usage: Usage, timeframe: string, now: number, most?: number): Promise<TokenStatsResponse> {
  const { reads, workspace } = usage;
  const since = sinceOf(timeframe, now);
  // PostgreSQL sums bigint as numeric, which must then be converted and compared. Counts are exact in this type, too.
  const COUNT = sql`sum(requests::double precision)`;
  const TOTALS = sql`${COUNT} AS requests, sum(input_tokens + output_tokens) AS tokens, sum(cost) AS cost,
    sum(estimated) AS estimated, max(position) AS position`;
  const AGAIN = sql`sum(requests) AS requests, sum(tokens) AS tokens, sum(cost) AS cost,
    sum(estimated) AS estimated`;
  const { rows } = await sql<{ total: Totals & { position: number }; models: Named; sessions: Named; agents: Owned }>`
    WITH m AS MATERIALIZED (
        SELECT model AS name, ${TOTALS} FROM (${sumsSince(usage, 'model', since, now)}) u
        GROUP BY 1 HAVING ${COUNT} > 0),
      -- Sums by session tell agents apart, so those by agent need not be read.
      s AS MATERIALIZED (
        SELECT subject AS name, agent_id, agent_name, ${TOTALS}
        FROM (${sumsSince(usage, 'session', since, now)}) u GROUP BY 1, 2, 3 HAVING ${COUNT} > 0)
    SELECT (SELECT json_build_object('requests', coalesce(sum(requests), 0), 'tokens', coalesce(sum(tokens), 0),
        'cost', coalesce(sum(cost), 0), 'estimated', coalesce(sum(estimated), 0), 'position', coalesce(max(position), 0)) FROM m) AS total,
      ${NAMED(sql`SELECT * FROM m ORDER BY tokens DESC, name LIMIT ${MAX_GROUPS}`)} AS models,
      ${NAMED(sql`SELECT name, ${AGAIN} FROM s GROUP BY 1 ORDER BY tokens DESC, name LIMIT ${MAX_GROUPS}`)} AS sessions,
      (SELECT json_build_object('agent_id', array_agg(agent_id), 'agent_name', array_agg(agent_name), 'name', array_agg(name),
          'gone', array_agg(gone), ${COLUMNS})
        FROM (
          SELECT a.*, coalesce(n.name, u.name) AS name, n.id IS NULL AS gone
          FROM (
            SELECT agent_id, agent_name, ${AGAIN} FROM s GROUP BY 1, 2
            ORDER BY tokens DESC, agent_id, agent_name LIMIT ${MAX_GROUPS}) a
          LEFT JOIN ${tokensTable(reads, 'agents')} u ON u.workspace_id = ${workspace} AND u.agent_id = a.agent_id
          LEFT JOIN ${agentsTable(reads)} n ON n.workspace_id = u.workspace_id AND n.id = u.agent_id
          ORDER BY a.tokens DESC, a.agent_id, a.agent_name) g) AS agents`.execute(reads.db);
  const [found] = rows;
  if (!found) throw new Error('the statement gives exactly one row');
  const { total, models, sessions, agents } = found;
  const { all, labels } = labelled(agents);
  const response = {
    summary: statsFrom(total.requests, total.tokens, total.cost, total.estimated),
    models: statsByName(models.name, models),
    sessions: statsByName(sessions.name, sessions),
    agents: statsByName(labels, agents),
    timeframe,
    recordCount: total.requests,
  };
  if (most === undefined) return response;
  const numbers = (
    path: string,
    names: readonly string[] | null,
    { requests }: Columns<Totals>,
    of: (n: number) => ReportFilter,
  ) => (names ?? []).map((name, n) => [`${path}.${name}`, requests?.[n] ?? 0, of(n)] as const);
  const evidence = await reportDerivations(reads, workspace, { since, now, to: total.position, most }, [
    ['summary', total.requests, {}],
    ...numbers('models', models.name, models, (n) => ({ model: models.name?.[n] as string })),
    ...numbers('sessions', sessions.name, sessions, (n) => ({ session_id: sessions.name?.[n] as string })),
    ...numbers('agents', labels, agents, (n) => ownedBy(all[n] as Whose)),
  ]);
  return { ...response, evidence };
}

/** By hour, at most the last 24 hours. @param now Unix ms */
export const tokenTrends = (
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most?: number,
): Promise<TokenTrendsResponse> => withUsage(reads, workspace, (usage) => trendsIn(usage, timeframe, now, most));

async function trendsIn(usage: Usage, timeframe: string, now: number, most?: number): Promise<TokenTrendsResponse> {
  const { reads, workspace } = usage;
  const since = Math.max(sinceOf(timeframe, now), now - DAY_MS);
  const { rows } = await sql<Sums & { hour: number; position: number }>`
    SELECT start AS hour, ${SUMS}, ${NEWEST} AS position FROM (${usageSince(usage, 'model', since, { coarsest: 'hour' })}) a
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
    rows.map(({ hour, requests }, n) => [
      `trends.${trends[n]?.timestamp}`,
      requests,
      { since: Math.max(since, hour), until: hour + HOUR_MS },
    ]),
  );
  return { trends, timeframe, evidence };
}
