/** Statistics of the tokens reported in a timeframe: in all, and by model, session and agent. */
import { sql } from 'kysely';
import { MAX_GROUPS, type TokenStats, type TokenStatsAnswer } from '../../shared/contract/tokens/usage.ts';
import type { Reads } from '../reads.ts';
import { IN_WINDOW, labelsOf, type NamedAgent, namedAgents, type Sql, sinceOf, statsFrom, sumsSince } from './usage.ts';

/** Groups by column instead of by row: hundreds of rows take the driver several milliseconds. Null: no groups. */
interface Listed {
  readonly requests: readonly number[] | null;
  readonly tokens: readonly number[] | null;
  /** Billionths of a US dollar. */
  readonly cost: readonly number[] | null;
}
type Named = Listed & { readonly name: readonly string[] | null };
type Owned = Listed & { readonly agent_id: readonly number[] | null; readonly agent_name: readonly string[] | null };

const LISTED = sql`'requests', array_agg(requests), 'tokens', array_agg(tokens), 'cost', array_agg(cost)`;
const NAMED = (groups: Sql): Sql =>
  sql`(SELECT json_build_object('name', array_agg(name), ${LISTED}) FROM (${groups}) g)`;

const listed = (names: readonly string[] | null, { requests, tokens, cost }: Listed): Record<string, TokenStats> =>
  Object.fromEntries(
    (names ?? []).map((name, n) => [name, statsFrom(requests?.[n] ?? 0, tokens?.[n] ?? 0, cost?.[n] ?? 0)]),
  );

/** @param now Unix ms */
export async function tokenStats(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
): Promise<TokenStatsAnswer> {
  const since = sinceOf(timeframe, now);
  const TOTALS = sql`sum(requests)::bigint AS requests, sum(input_tokens + output_tokens) AS tokens, sum(cost) AS cost`;
  const AGAIN = sql`sum(requests)::bigint AS requests, sum(tokens) AS tokens, sum(cost) AS cost`;
  const { rows } = await sql<{
    total: Readonly<Record<'requests' | 'tokens' | 'cost', number>>;
    models: Named;
    sessions: Named;
    agents: Owned;
    names: readonly NamedAgent[] | null;
  }>`
    WITH m AS MATERIALIZED (
        SELECT model AS name, ${TOTALS} FROM (${sumsSince(reads, workspace, 'model', since, now)}) u
        GROUP BY 1 ${IN_WINDOW}),
      s AS MATERIALIZED (
        SELECT subject AS name, agent_id, agent_name, ${TOTALS}
        FROM (${sumsSince(reads, workspace, 'session', since, now)}) u GROUP BY 1, 2, 3 ${IN_WINDOW}),
      -- Sums by session tell agents apart, so those by agent need not be read.
      a AS MATERIALIZED (
        SELECT agent_id, agent_name, ${AGAIN} FROM s GROUP BY 1, 2
        ORDER BY tokens DESC, agent_id, agent_name LIMIT ${MAX_GROUPS})
    SELECT (SELECT json_build_object('requests', coalesce(sum(requests), 0), 'tokens', coalesce(sum(tokens), 0),
        'cost', coalesce(sum(cost), 0)) FROM m) AS total,
      ${NAMED(sql`SELECT * FROM m ORDER BY tokens DESC, name LIMIT ${MAX_GROUPS}`)} AS models,
      ${NAMED(sql`SELECT name, ${AGAIN} FROM s GROUP BY 1 ORDER BY tokens DESC, name LIMIT ${MAX_GROUPS}`)} AS sessions,
      (SELECT json_build_object('agent_id', array_agg(agent_id), 'agent_name', array_agg(agent_name), ${LISTED})
        FROM a) AS agents,
      (SELECT json_agg(row_to_json(n))
        FROM (${namedAgents(reads, workspace, sql`IN (SELECT agent_id FROM a)`)}) n) AS names`.execute(reads.db);
  const [found] = rows;
  if (!found) throw new Error('the statement gives exactly one row');
  const { total, models, sessions, agents } = found;
  const whose = (agents.agent_id ?? []).map((agent_id, n) => ({ agent_id, agent_name: agents.agent_name?.[n] ?? '' }));
  return {
    summary: statsFrom(total.requests, total.tokens, total.cost),
    models: listed(models.name, models),
    sessions: listed(sessions.name, sessions),
    agents: listed(whose.map(labelsOf(found.names ?? [], whose)), agents),
    timeframe,
    recordCount: total.requests,
  };
}
