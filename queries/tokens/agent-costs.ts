/** What agents used and what that cost: by model and by day. */
import { sql } from 'kysely';
import { ALL_TIME, type DaySums as KeptDay } from '../../projections/tokens/usage.ts';
import { type AgentCostsAnswer, type ByAgentAnswer, MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import { DAY_MS, firstFrom, startOf } from '../../shared/time-buckets.ts';
import type { Reads } from '../reads.ts';
import { ownedBy, reportDerivations } from './evidence.ts';
import { namesOf, type Whose, whoseKey } from './owners.ts';
import {
  dateOf,
  dollars,
  IN_WINDOW,
  type Sql,
  SUMS,
  type Sums,
  sinceOf,
  statsBy,
  statsOf,
  sumsSince,
  timelineOf,
  timelineSince,
  tokensOf,
  tokensTable,
  usageSince,
} from './usage.ts';

/**
 * Sessions with a report since a moment, and whose they are: `subject, agent_id, agent_name`. The window ends now, so the
 * newest report of a session tells.
 */
const sessionsSince = (reads: Reads, workspace: number, since: number): Sql => sql`
  SELECT subject, agent_id, agent_name FROM ${tokensTable(reads, 'usage')}
  WHERE workspace_id = ${workspace} AND facet = 'session' AND unit = ${ALL_TIME} AND start = 0 AND last_at >= ${since}`;

const MOST_TOKENS = sql`sum(input_tokens + output_tokens) DESC`;

/** With the dash that follows. */
const ISO_MONTH = 8;

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
