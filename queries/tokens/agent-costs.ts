/** Usage of agents and its cost: by model and by day. */
import { sql } from 'kysely';
import { ALL_TIME, type DaySums as KeptDay } from '../../projections/tokens/usage.ts';
import { type AgentCostsResponse, type ByAgentResponse, MAX_GROUPS } from '../../shared/contract/tokens/usage.ts';
import { DAY_MS, firstFrom, startOf } from '../../shared/time-buckets.ts';
import type { Reads } from '../reads.ts';
import { ownedBy, type ReportNumber, reportDerivations } from './evidence.ts';
import { namesOf, type Whose, whoseKey } from './owners.ts';
import {
  dateOf,
  dollars,
  grouped,
  IN_WINDOW,
  NEWEST,
  type Sql,
  SUMS,
  type Sums,
  sinceOf,
  statsBy,
  statsOf,
  sumsSince,
  timelineSince,
  tokensOf,
  tokensTable,
  type Usage,
  usageSince,
  withUsage,
} from './usage.ts';

/**
 * Sessions with a report since a moment, with their agents: `subject, agent_id, agent_name`. The window ends now, so
 * the time of a session's newest report is enough.
 */
function sessionsSince(usage: Usage, since: number): Sql {
  const { reads, workspace, openHour } = usage;
  if (openHour !== undefined)
    return sql`SELECT DISTINCT subject, agent_id, agent_name FROM (${usageSince(usage, 'session', since)}) u`;
  return sql`
    SELECT subject, agent_id, agent_name FROM ${tokensTable(reads, 'usage')}
    WHERE workspace_id = ${workspace} AND facet = 'session' AND unit = ${ALL_TIME} AND start = 0 AND last_at >= ${since}`;
}

const MOST_TOKENS = sql`sum(input_tokens + output_tokens) DESC`;

interface AgentDay {
  /** Unix ms. */
  readonly start: number;
  readonly requests: number;
  readonly tokens: number;
  readonly cost: number;
}

/** The days of agents since a moment, oldest first, by `whoseKey`. */
interface AgentDays {
  readonly by: ReadonlyMap<string, readonly AgentDay[]>;
  /** Position of the newest counted event. */
  readonly to: number;
}

const newestIn = (rows: readonly { readonly position: number }[]): number =>
  Math.max(0, ...rows.map(({ position }) => position));

/** Days, read from buckets and single reports. */
async function daysFromUsage(usage: Usage, since: number, until: number): Promise<AgentDays> {
  if (since === until) return { by: new Map(), to: 0 };
  const { rows } = await sql<Whose & Sums & { start: number; position: number }>`
    SELECT agent_id, agent_name, start - start % ${DAY_MS} AS start, ${SUMS}, ${NEWEST} AS position
    FROM (${usageSince(usage, 'agent', since, { coarsest: 'day', until })}) a
    GROUP BY 1, 2, 3 ORDER BY 3`.execute(usage.reads.db);
  const days = grouped(rows, whoseKey);
  return {
    by: new Map(
      [...days].map(([whose, of]) => [
        whose,
        of.map((row) => ({
          start: row.start,
          requests: row.requests,
          tokens: tokensOf(row),
          cost: dollars(row.cost),
        })),
      ]),
    ),
    to: newestIn(rows),
  };
}

/** @param since start of a day, Unix ms */
async function wholeDays(usage: Usage, since: number): Promise<AgentDays> {
  const { reads, workspace, openHour } = usage;
  if (openHour !== undefined) return daysFromUsage(usage, since, Number.POSITIVE_INFINITY);
  const { rows } = await sql<
    Whose & { month: number; days: Readonly<Record<string, KeptDay>>; position: number }
  >`SELECT agent_id, agent_name, month, days, position FROM ${tokensTable(reads, 'days')}
    WHERE workspace_id = ${workspace} AND month >= ${startOf('month', since)} ORDER BY month`.execute(reads.db);
  const by = new Map<string, AgentDay[]>();
  for (const row of rows) {
    const days = by.get(whoseKey(row)) ?? [];
    by.set(whoseKey(row), days);
    // Whole-number keys are iterated in ascending order.
    for (const [day, [requests, tokens, cost]] of Object.entries(row.days)) {
      const start = row.month + (Number(day) - 1) * DAY_MS;
      if (start >= since) days.push({ start, requests, tokens, cost: dollars(cost) });
    }
  }
  return { by, to: newestIn(rows) };
}

type AgentRow = Whose &
  Sums & { readonly models: readonly (Sums & { readonly model: string })[]; readonly records: number };

/** @param now Unix ms */
export const agentCosts = (
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most?: number,
): Promise<AgentCostsResponse> => withUsage(reads, workspace, (usage) => costsIn(usage, timeframe, now, most));

async function costsIn(usage: Usage, timeframe: string, now: number, most?: number): Promise<AgentCostsResponse> {
  const { reads, workspace } = usage;
  const since = sinceOf(timeframe, now);
  const { rows } = await sql<AgentRow & { newest: number }>`
    WITH m AS (
      SELECT agent_id, agent_name, model, max(position) AS position, ${SUMS}
      FROM (${sumsSince(usage, 'agent', since, now)}) a
      GROUP BY agent_id, agent_name, model ${IN_WINDOW})
    SELECT agent_id, agent_name, ${SUMS},
      json_agg(row_to_json(m) ORDER BY m.input_tokens + m.output_tokens DESC, model) AS models,
      (sum(sum(requests)) OVER ())::bigint AS records, max(max(position)) OVER () AS newest
    FROM m GROUP BY agent_id, agent_name
    ORDER BY ${MOST_TOKENS}, agent_id, agent_name LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const { rows: sessions } = await sql<Whose & { sessions: readonly string[] }>`
    SELECT agent_id, agent_name, (array_agg(subject ORDER BY subject))[1:${sql.lit(MAX_GROUPS)}] AS sessions
    FROM (${sessionsSince(usage, since)}) s
    GROUP BY agent_id, agent_name`.execute(reads.db);
  const begin = timelineSince(since, now);
  const whole = firstFrom('day', begin);
  const first = await daysFromUsage(usage, begin, whole);
  const later = await wholeDays(usage, whole);
  const nameOf = await namesOf(reads, workspace, rows);
  const sessionsBy = new Map(sessions.map((row) => [whoseKey(row), row.sessions]));
  const daysOf = (row: Whose) => [first, later].flatMap(({ by }) => by.get(whoseKey(row)) ?? []);
  const response = {
    agents: Object.fromEntries(
      rows.map((row) => [
        nameOf(row),
        {
          stats: statsOf(row),
          models: statsBy(row.models.slice(0, MAX_GROUPS), ({ model }) => model),
          sessions: [...(sessionsBy.get(whoseKey(row)) ?? [])],
          timeline: daysOf(row).map(({ start, cost, tokens }) => ({ date: dateOf(start), cost, tokens })),
        },
      ]),
    ),
    timeframe,
    recordCount: rows[0]?.records ?? 0,
  };
  if (most === undefined) return response;
  // Counts from separate statements can be newer.
  const days = ({ by, to }: AgentDays) =>
    reportDerivations(
      reads,
      workspace,
      { since: begin, now, to, most },
      rows.flatMap((row) =>
        (by.get(whoseKey(row)) ?? []).map(
          ({ start, requests }): ReportNumber => [
            `agents.${nameOf(row)}.timeline.${dateOf(start)}`,
            requests,
            { ...ownedBy(row), since: Math.max(begin, start), until: start + DAY_MS },
          ],
        ),
      ),
    );
  const asked = { since, now, to: rows[0]?.newest ?? 0, most };
  const sums: readonly ReportNumber[] = [
    ['recordCount', response.recordCount, {}],
    ...rows.flatMap((row) => agentNumbers(nameOf(row), row)),
  ];
  const evidence = {
    ...(await reportDerivations(reads, workspace, asked, sums)),
    ...(await days(first)),
    ...(await days(later)),
  };
  return { ...response, evidence };
}

/** The numbers of an agent, and of its models. */
const agentNumbers = (name: string, row: Omit<AgentRow, 'records'>): readonly ReportNumber[] => [
  [`agents.${name}`, row.requests, ownedBy(row)],
  ...row.models
    .slice(0, MAX_GROUPS)
    .map(
      ({ model, requests }): ReportNumber => [`agents.${name}.models.${model}`, requests, { ...ownedBy(row), model }],
    ),
];

/** @param now Unix ms */
export const tokensByAgent = (
  reads: Reads,
  workspace: number,
  days: number,
  now: number,
  most?: number,
): Promise<ByAgentResponse> => withUsage(reads, workspace, (usage) => byAgentIn(usage, days, now, most));

async function byAgentIn(usage: Usage, days: number, now: number, most?: number): Promise<ByAgentResponse> {
  const { reads, workspace } = usage;
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
        all_estimated: number;
        newest: number;
      }
  >`
    WITH m AS (
      SELECT agent_id, agent_name, model, max(last_at) AS last_at, max(position) AS position, ${SUMS}
      FROM (${sumsSince(usage, 'agent', since, now)}) a
      GROUP BY agent_id, agent_name, model ${IN_WINDOW}),
    t AS (
      SELECT agent_id, agent_name, max(last_at) AS last_at, max(position) AS position, ${SUMS},
        json_agg(row_to_json(m) ORDER BY m.input_tokens + m.output_tokens DESC, model) AS models
      FROM m GROUP BY agent_id, agent_name),
    s AS (
      SELECT agent_id, agent_name, count(*) AS sessions
      FROM (${sessionsSince(usage, since)}) a GROUP BY agent_id, agent_name)
    SELECT t.*, coalesce(s.sessions, 0) AS sessions, count(*) OVER () AS groups,
      (sum(requests) OVER ())::bigint AS all_requests, sum(input_tokens + output_tokens) OVER () AS all_tokens,
      sum(cost) OVER () AS all_cost, sum(estimated) OVER () AS all_estimated, max(position) OVER () AS newest
    FROM t LEFT JOIN s USING (agent_id, agent_name)
    ORDER BY input_tokens + output_tokens DESC, agent_id, agent_name LIMIT ${MAX_GROUPS}`.execute(reads.db);
  const nameOf = await namesOf(reads, workspace, rows);
  const [first] = rows;
  const response = {
    agents: rows.map((row) => ({
      agent: nameOf(row),
      agent_id: row.agent_id || null,
      total_input_tokens: row.input_tokens,
      total_output_tokens: row.output_tokens,
      total_tokens: tokensOf(row),
      total_cost: dollars(row.cost),
      estimated_cost: dollars(row.estimated),
      session_count: Number(row.sessions),
      request_count: row.requests,
      last_active: new Date(row.last_at).toISOString(),
      models: row.models.slice(0, MAX_GROUPS).map((one) => ({
        model: one.model,
        input_tokens: one.input_tokens,
        output_tokens: one.output_tokens,
        request_count: one.requests,
        cost: dollars(one.cost),
        estimated_cost: dollars(one.estimated),
      })),
    })),
    summary: {
      total_cost: dollars(first?.all_cost ?? 0),
      estimated_cost: dollars(first?.all_estimated ?? 0),
      total_tokens: first?.all_tokens ?? 0,
      agent_count: first?.groups ?? 0,
      days,
    },
  };
  if (most === undefined) return response;
  const evidence = await reportDerivations(reads, workspace, { since, now, to: first?.newest ?? 0, most }, [
    ['summary', first?.all_requests ?? 0, {}],
    ...rows.flatMap((row) => agentNumbers(nameOf(row), row)),
  ]);
  return { ...response, evidence };
}
