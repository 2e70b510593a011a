/** Reports of used tokens: the newest, all in pages, and the lookups of commands. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { tokenPricesProjection } from '../../projections/tokens/prices.ts';
import { tokensProjection } from '../../projections/tokens/reports.ts';
import type { Derivations } from '../../shared/contract/evidence.ts';
import { allInput, type ModelPrice } from '../../shared/contract/tokens/costs.ts';
import type { TokenRecord } from '../../shared/contract/tokens/reports.ts';
import type { TokenListResponse } from '../../shared/contract/tokens/usage.ts';
import type { TokenReport } from '../../shared/events/tokens/reports.ts';
import { prepared, type Reads, tableOf, tables } from '../reads.ts';
import { type ReportNumber, reportDerivations } from './evidence.ts';
import { sinceOf, tokensTable, totalSince } from './usage.ts';

/** A report with the time at which its tokens were used: `used_at`, else when it was recorded, Unix ms. */
export interface KnownReport extends TokenReport {
  readonly at: number;
}

/** A report in the form of the contract. */
export const recordOf = (workspace: number, report: KnownReport): TokenRecord => ({
  id: report.id,
  model: report.model,
  sessionId: report.session_id,
  agentId: report.agent_id,
  agentName: report.agent_name,
  timestamp: report.at,
  inputTokens: report.input_tokens,
  outputTokens: report.output_tokens,
  cacheReadTokens: report.cache_read_tokens,
  cacheWriteTokens: report.cache_write_tokens,
  totalTokens: allInput(report) + report.output_tokens,
  cost: report.cost,
  price: report.price,
  operation: report.operation,
  taskId: report.task_id,
  workspaceId: workspace,
  ...(report.duration !== null && { duration: report.duration }),
});

const COLUMNS = sql`r.id, r.at, r.model, r.session_id, r.agent_id, r.agent_name, r.input_tokens, r.output_tokens,
  r.cache_read_tokens, r.cache_write_tokens, r.cost, r.price, r.operation, r.task_id, r.duration, r.used_at`;

/**
 * The newest 100 reports of a timeframe, and the total number.
 *
 * @param now Unix ms
 * @param before Unix ms: only earlier reports; the number counts all
 */
export async function listTokens(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most?: number,
  before = Number.MAX_SAFE_INTEGER,
): Promise<TokenListResponse> {
  const since = sinceOf(timeframe, now);
  const { rows } = await sql<KnownReport>`
    SELECT ${COLUMNS} FROM ${tokensTable(reads, 'reports')} r
    WHERE r.workspace_id = ${workspace} AND r.at >= ${since} AND r.at < ${before}
    ORDER BY r.at DESC, r.position DESC, r.place DESC LIMIT 100`.execute(reads.db);
  const { requests, position: to } = await totalSince(reads, workspace, since, now);
  const response = { usage: rows.map((row) => recordOf(workspace, row)), total: requests, timeframe };
  if (most === undefined) return response;
  const asked = { since, now, to, most };
  return { ...response, evidence: await reportDerivations(reads, workspace, asked, [['total', requests, {}]]) };
}

/** Reports per page of an export. */
const PAGE = 1_000;

/**
 * All reports of a timeframe, newest first, in pages; those recorded after the first page was read are left out.
 *
 * @param now Unix ms
 * @param upTo only reports of events up to this position; default: those that the first page could show
 */
export async function* allTokens(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  upTo?: number,
): AsyncGenerator<readonly TokenRecord[]> {
  const since = sinceOf(timeframe, now);
  type Found = KnownReport & { readonly position: number; readonly place: number };
  let before: RawBuilder<unknown> = sql`true`;
  let to = upTo ?? Number.MAX_SAFE_INTEGER;
  for (;;) {
    const { rows }: { rows: Found[] } = await sql<Found>`
      SELECT ${COLUMNS}, r.position, r.place FROM ${tokensTable(reads, 'reports')} r
      WHERE r.workspace_id = ${workspace} AND r.at >= ${since} AND r.position <= ${to} AND ${before}
      ORDER BY r.at DESC, r.position DESC, r.place DESC LIMIT ${PAGE}`.execute(reads.db);
    // A report that is recorded later may be older than those of the next page.
    to = upTo ?? reads.position ?? to;
    yield rows.map((row) => recordOf(workspace, row));
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    before = sql`(r.at, r.position, r.place) < (${last.at}::bigint, ${last.position}::bigint, ${last.place}::int)`;
  }
}

/** Finds the events behind the sums of an export, after it has been read completely. */
export type ExportEvidence = (numbers: readonly ReportNumber[]) => Promise<Derivations>;

/** The same for events up to now, with the events behind their sums. @param now Unix ms */
export async function evidentTokens(
  reads: Reads,
  workspace: number,
  timeframe: string,
  now: number,
  most: number,
): Promise<{ readonly pages: AsyncGenerator<readonly TokenRecord[]>; readonly evidence: ExportEvidence }> {
  const since = sinceOf(timeframe, now);
  const { position: to, requests } = await totalSince(reads, workspace, since, now);
  return {
    pages: allTokens(reads, workspace, timeframe, now, to),
    evidence(numbers) {
      if (numbers[0]?.[1] !== requests) throw new Error('reports were removed while they were exported');
      return reportDerivations(reads, workspace, { since, now, to, most }, numbers);
    },
  };
}

/** An agent to which sessions belong whose ids begin with a name. */
export interface SessionAgent {
  readonly id: number;
  /** As it is now. */
  readonly name: string;
}

/**
 * Rows `prefix, id, name` of the agents that have these names; a name that no agent has now stands for the agent that had
 * it last, because tools keep the ids of their sessions when an agent is renamed.
 */
function sessionAgents(reads: Reads, workspace: number, names: readonly string[]): RawBuilder<unknown> {
  const agents = tableOf(reads, agentsProjection, 'agents');
  const owners = tableOf(reads, notificationsProjection, 'name_owners');
  return sql`SELECT asked.prefix, a.id, a.name FROM unnest(${[...new Set(names)]}::text[]) asked(prefix)
    JOIN ${agents} a ON a.workspace_id = ${workspace} AND a.id = coalesce(
      (SELECT now.id FROM ${agents} now WHERE now.workspace_id = ${workspace} AND now.name = asked.prefix),
      (SELECT substring(o.owner FROM '^agent:([0-9]+)$')::bigint FROM ${owners} o
        WHERE o.workspace_id = ${workspace} AND o.name = asked.prefix))`;
}

/** The agents of `sessionAgents` by name. */
export async function agentsOfSessions(
  reads: Reads,
  workspace: number,
  names: readonly string[],
): Promise<ReadonlyMap<string, SessionAgent>> {
  const { rows } = await sql<
    SessionAgent & { readonly prefix: string }
  >`${sessionAgents(reads, workspace, names)}`.execute(reads.db);
  return new Map(rows.map(({ prefix, id, name }) => [prefix, { id: Number(id), name }]));
}

export interface TokenKnowledge {
  /**
   * The ledger's open page, from 1. The reports of all pages before it are visible; those of this page and later ones
   * may not be.
   */
  readonly page: number;
  /** By id. */
  readonly reports: ReadonlyMap<string, KnownReport>;
  /** Agents by name, also by an earlier one (`sessionAgents`). */
  readonly agents: ReadonlyMap<string, SessionAgent>;
  /** Those of the requested tasks that exist. */
  readonly tasks: ReadonlySet<number>;
  /** The workspace's own prices. */
  readonly prices: readonly ModelPrice[];
}

/** The lookups of commands that report tokens. */
export type TokenDirectory = ReturnType<typeof tokenDirectory>;
export const tokenDirectory = (reads: Reads) => ({
  /** All lookups as of one moment. */
  async lookUp(
    workspace: number,
    {
      reportIds = [],
      agentNames = [],
      taskIds = [],
    }: {
      readonly reportIds?: readonly string[];
      readonly agentNames?: readonly string[];
      readonly taskIds?: readonly number[];
    },
  ): Promise<TokenKnowledge> {
    const own = tables(reads, tokensProjection);
    const tasks = tableOf(reads, tasksProjection, 'tasks');
    const prices = tableOf(reads, tokenPricesProjection, 'prices');
    // One statement, so that the page and the reports show the same moment.
    const { rows } = await sql<{
      page: number | null;
      reports: KnownReport[] | null;
      agents: { prefix: string; id: number; name: string }[] | null;
      tasks: number[] | null;
      prices: ModelPrice[] | null;
    }>`${prepared}
      SELECT (${own.selectFrom('ledgers').select('page').where('workspace_id', '=', workspace)}) AS page,
        (SELECT json_agg(row_to_json(known)) FROM (
          SELECT ${COLUMNS} FROM ${tokensTable(reads, 'reports')} r
          WHERE r.workspace_id = ${workspace} AND r.id = ANY(${[...reportIds]}::text[])) known) AS reports,
        (SELECT json_agg(row_to_json(s)) FROM (${sessionAgents(reads, workspace, agentNames)}) s) AS agents,
        (SELECT json_agg(t.id) FROM ${tasks} t
          WHERE t.workspace_id = ${workspace} AND t.id = ANY(${[...new Set(taskIds)]}::bigint[])) AS tasks,
        (SELECT json_agg(json_build_object('model', p.model, 'input', p.input, 'output', p.output,
          'cache_read', p.cache_read, 'cache_write', p.cache_write)) FROM ${prices} p
          WHERE p.workspace_id = ${workspace}) AS prices`.execute(reads.db);
    const [found] = rows;
    return {
      page: found?.page ?? 1,
      reports: new Map((found?.reports ?? []).map((one) => [one.id, one])),
      agents: new Map((found?.agents ?? []).map(({ prefix, ...agent }) => [prefix, agent])),
      tasks: new Set(found?.tasks ?? []),
      prices: found?.prices ?? [],
    };
  },
});
