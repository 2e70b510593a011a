/** Tokens of the last hours. */
import { sql } from 'kysely';
import type { TokenTrendsAnswer } from '../../shared/contract/tokens/usage.ts';
import { DAY_MS, HOUR_MS } from '../../shared/time-buckets.ts';
import type { Reads } from '../reads.ts';
import { reportDerivations } from './evidence.ts';
import { dollars, NEWEST, SUMS, type Sums, sinceOf, tokensOf, usageSince } from './usage.ts';

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
