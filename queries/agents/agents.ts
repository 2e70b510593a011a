/** Agents: the list, one record, and lookups for commands. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection, agentsTable, agentTextsTable } from '../../projections/agents/agents.ts';
import {
  type AgentRecord,
  type AgentRef,
  type AgentsQuery,
  agentSchema,
  type TaskStats,
} from '../../shared/contract/agents/agents.ts';
import { notFound } from '../../shared/errors.ts';
import { fieldNames } from '../../shared/fields.ts';
import {
  countOf,
  inWorkspace,
  jsonFields,
  prepared,
  type Reads,
  type Row,
  tableOf,
  tables,
  upToSize,
} from '../reads.ts';
import { columnsOf, type Records } from '../records.ts';
import { taskStatsOf } from '../tasks/assignments.ts';
import { type LastBeatOf, lastSeen } from './leases.ts';

export const agentTables = (reads: Reads) => tables(reads, agentsProjection);

const TEXTS = ['soul_content', 'working_memory', 'config'] as const;
const UNUSED = { content_hash: null, workspace_path: null };
const COLUMNS = fieldNames(
  agentSchema.omit({
    soul_content: true,
    working_memory: true,
    config: true,
    content_hash: true,
    workspace_path: true,
    last_seen: true,
  }),
);

/** An agent record as JSON, from row `a` of agents and row `t` of agent_texts. */
const recordJson = (reads: Reads): RawBuilder<AgentRecord> => sql`json_build_object(
  ${sql.raw(`${jsonFields('a', COLUMNS)}, ${jsonFields('t', TEXTS)}`)}, 'last_seen', ${lastSeen(reads, 'a')},
  'content_hash', NULL, 'workspace_path', NULL)`;

/** The same from rows in memory. */
const recordOf = (
  a: Row<typeof agentsTable>,
  t: Row<typeof agentTextsTable>,
  last_seen: number | null = a.last_seen,
): AgentRecord => ({ ...columnsOf(a, COLUMNS), last_seen, ...columnsOf(t, TEXTS), ...UNUSED }) as AgentRecord;

/** Row `a` of every agent of a workspace, with row `t` of its texts. */
export function withTexts(reads: Reads, workspace: number) {
  return agentTables(reads)
    .selectFrom('agents as a')
    .innerJoin('agent_texts as t', (join) =>
      join.onRef('t.workspace_id', '=', 'a.workspace_id').onRef('t.id', '=', 'a.id'),
    )
    .where('a.workspace_id', '=', workspace);
}

/** A page of agents, newest first, with their task counts. */
export async function listAgents(reads: Reads, workspace: number, query: AgentsQuery) {
  const { status, role, limit, offset } = query;
  const hidden = query.show_hidden === 'true' || query.show_hidden === '1';
  let matching = inWorkspace(reads, agentsProjection, 'agents', workspace);
  if (status !== undefined) matching = matching.where('status', '=', status);
  if (role !== undefined) matching = matching.where('role', '=', role);
  if (!hidden) matching = matching.where('hidden', '=', 0);
  const page = matching.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).offset(offset);
  const texts = tableOf(reads, agentsProjection, 'agent_texts');
  const sized = sql`SELECT a.*, t.bytes FROM (${page}) a JOIN ${texts} t ON t.workspace_id = a.workspace_id AND t.id = a.id`;
  const { rows } = await sql<{ total: number; agents: AgentRecord[] | null }>`${prepared}
    WITH page AS (${upToSize(sized, sql`created_at DESC, id DESC`)})
    SELECT (${matching.select(({ fn }) => fn.countAll<number>().as('total'))}) AS total,
      (SELECT json_agg(${recordJson(reads)} ORDER BY a.created_at DESC, a.id DESC)
       FROM page a JOIN ${texts} t ON t.workspace_id = a.workspace_id AND t.id = a.id) AS agents`.execute(reads.db);
  const { total = 0, agents } = rows[0] ?? {};
  return {
    agents: await withTaskStats(reads, workspace, agents ?? []),
    total: Number(total),
    page: Math.floor(offset / limit) + 1,
    limit,
  };
}

/** Records with their task counts. */
export async function withTaskStats<const T extends readonly AgentRecord[]>(
  reads: Reads,
  workspace: number,
  agents: T,
): Promise<{ [K in keyof T]: AgentRecord & { taskStats: TaskStats } }> {
  const stats = await taskStatsOf(reads, workspace, agents);
  const withStats = agents.map((agent, n) => Object.assign({}, agent, { taskStats: stats[n] }));
  return withStats as { [K in keyof T]: AgentRecord & { taskStats: TaskStats } };
}

/** Condition on rows `a` for the agent of a reference. */
export const isRef = (ref: AgentRef) =>
  'id' in ref ? sql<boolean>`a.id = ${ref.id}` : sql<boolean>`a.name = ${ref.name}`;

/** One agent with its texts; undefined when the workspace has no such agent. */
export async function agentRecord(reads: Reads, workspace: number, ref: AgentRef): Promise<AgentRecord | undefined> {
  const row = await withTexts(reads, workspace)
    .where(isRef(ref))
    .select(recordJson(reads).as('agent'))
    .executeTakeFirst();
  return row?.agent;
}

/** The rows of an agent after a command. @throws AppError 404 when it has been deleted */
export async function rowsAfter(
  records: Records,
  workspace: number,
  id: number,
  executed: Parameters<Records['after']>[3],
): Promise<readonly [agent: Row<typeof agentsTable>, texts: Row<typeof agentTextsTable>]> {
  const key = { workspace_id: workspace, id };
  const [agent, texts] = await records.after(agentsProjection, [agentsTable, agentTextsTable], key, executed);
  if (!agent || !texts) throw notFound('Agent');
  return [agent, texts];
}

/**
 * The record of an agent after a command.
 *
 * @param lastBeatOf undefined: the agent is new, and has sent no heartbeat
 * @throws AppError 404 when it has been deleted
 */
export async function recordAfter(
  records: Records,
  lastBeatOf: LastBeatOf | undefined,
  workspace: number,
  id: number,
  executed: Parameters<Records['after']>[3],
): Promise<AgentRecord> {
  const [[agent, texts], beat = null] = await Promise.all([
    rowsAfter(records, workspace, id, executed),
    // If it cannot be read, the record is still returned.
    lastBeatOf?.(workspace, id).catch(() => null),
  ]);
  return recordOf(agent, texts, beat === null ? agent.last_seen : Math.max(agent.last_seen ?? 0, beat));
}

/** One agent with its texts: id, name and role, to which more may be selected. */
export const oneWithTexts = (reads: Reads, workspace: number, ref: AgentRef) =>
  withTexts(reads, workspace).where(isRef(ref)).select(['a.id', 'a.name', 'a.role']);

/** An agent without its texts, for commands and checks. */
export function findAgent(reads: Reads, workspace: number, ref: AgentRef) {
  return agentTables(reads)
    .selectFrom('agents as a')
    .where('a.workspace_id', '=', workspace)
    .where(isRef(ref))
    .select(['a.id', 'a.name', 'a.role', 'a.status', 'a.session_key', 'a.created_at'])
    .executeTakeFirst();
}

/** How many agents a workspace has. */
export const countAgents = (reads: Reads, workspace: number): Promise<number> =>
  countOf(inWorkspace(reads, agentsProjection, 'agents', workspace));

/** Ids of the agents with these names. */
export async function agentIds(
  reads: Reads,
  workspace: number,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .where(sql<boolean>`name = ANY(${names})`)
    .select(['id', 'name'])
    .execute();
  return new Map(rows.map((row) => [row.name, row.id]));
}

/** Names of the agents with these ids. */
export async function agentNamesOf(
  reads: Reads,
  workspace: number,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .where(sql<boolean>`id = ANY(${ids})`)
    .select(['id', 'name'])
    .execute();
  return new Map(rows.map((row) => [row.id, row.name]));
}

/** Names of all agents of a workspace. */
export async function agentNames(reads: Reads, workspace: number): Promise<readonly string[]> {
  const rows = await inWorkspace(reads, agentsProjection, 'agents', workspace).select('name').execute();
  return rows.map(({ name }) => name);
}

/** Those names that belong to agents of the workspace, and whether each has a session. In the order of the names. */
export async function agentsNamed(
  reads: Reads,
  workspace: number,
  names: readonly string[],
): Promise<readonly { readonly id: number; readonly name: string; readonly hasSession: boolean }[]> {
  const rows = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .where(sql<boolean>`name = ANY(${names})`)
    .select(['id', 'name', 'session_key'])
    .execute();
  const found = new Map(
    rows.map(({ id, name, session_key }) => [name, { id: Number(id), name, hasSession: session_key !== null }]),
  );
  return names.flatMap((name) => found.get(name) ?? []);
}
