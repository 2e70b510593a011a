/** Agents: the list, one record, and lookups for commands. */
import { type RawBuilder, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { agentsProjection, agentsTable, agentTextsTable } from '../../projections/agents/agents.ts';
import { keyText, MemoryTables } from '../../projections/apply.ts';
import { atMost } from '../../shared/bounded.ts';
import type { AgentRecord, AgentRef, AgentsQuery, TaskStats } from '../../shared/contract/agents/agents.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { AgentDirectory } from '../../shared/ports/agents.ts';
import { keptRows, prepared, type Reads, type Row, tables } from '../reads.ts';
import { NO_TASKS, taskStatsOf } from '../tasks/assignments.ts';

export const agentTables = (reads: Reads) => tables(reads, agentsProjection);

/** An agent record as JSON, from row `a` of agents and row `t` of agent_texts. */
const RECORD: RawBuilder<AgentRecord> = sql`json_build_object(
  'id', a.id, 'name', a.name, 'role', a.role, 'status', a.status, 'session_key', a.session_key,
  'soul_content', t.soul_content, 'working_memory', t.working_memory, 'config', t.config,
  'last_seen', a.last_seen, 'last_activity', a.last_activity, 'created_at', a.created_at, 'updated_at', a.updated_at,
  'source', a.source, 'hidden', a.hidden, 'runtime_type', a.runtime_type,
  'content_hash', NULL, 'workspace_path', NULL, 'workspace_id', a.workspace_id)`;

/** The same from rows in memory. */
const recordOf = (a: Row<typeof agentsTable>, t: Row<typeof agentTextsTable>): AgentRecord => ({
  id: a.id,
  name: a.name,
  role: a.role,
  status: a.status,
  session_key: a.session_key,
  soul_content: t.soul_content,
  working_memory: t.working_memory,
  config: t.config as AgentRecord['config'],
  last_seen: a.last_seen,
  last_activity: a.last_activity,
  created_at: a.created_at,
  updated_at: a.updated_at,
  source: a.source,
  hidden: a.hidden,
  runtime_type: a.runtime_type,
  content_hash: null,
  workspace_path: null,
  workspace_id: a.workspace_id,
});

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
  let matching = agentTables(reads).selectFrom('agents').where('workspace_id', '=', workspace);
  if (status !== undefined) matching = matching.where('status', '=', status);
  if (role !== undefined) matching = matching.where('role', '=', role);
  if (!hidden) matching = matching.where('hidden', '=', 0);
  const page = matching.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).offset(offset);
  const texts = sql.table(`${reads.schema(agentsProjection)}.agent_texts`);
  const { rows } = await sql<{ total: number; agents: AgentRecord[] | null }>`${prepared}
    WITH page AS (${page})
    SELECT (${matching.select(({ fn }) => fn.countAll<number>().as('total'))}) AS total,
      (SELECT json_agg(${RECORD} ORDER BY a.created_at DESC, a.id DESC)
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
  const names = agents.map((agent) => agent.name);
  const stats = await taskStatsOf(reads, workspace, names);
  const withStats = agents.map((agent) => Object.assign({}, agent, { taskStats: stats.get(agent.name) ?? NO_TASKS }));
  return withStats as { [K in keyof T]: AgentRecord & { taskStats: TaskStats } };
}

/** Picks the agent of a reference from rows `a`. */
export const isRef = (ref: AgentRef) =>
  'id' in ref ? sql<boolean>`a.id = ${ref.id}` : sql<boolean>`a.name = ${ref.name}`;

/**
 * One agent with its texts; undefined when the workspace has no such agent.
 *
 * @param since position of an event of the agent, for the answer to the command that appended it
 */
export async function agentRecord(
  reads: Reads,
  workspace: number,
  ref: AgentRef,
  since?: number,
): Promise<AgentRecord | undefined> {
  const kept = await keptWithTexts(reads, workspace, ref, since);
  if (kept) return recordOf(...kept);
  const row = await withTexts(reads, workspace).where(isRef(ref)).select(RECORD.as('agent')).executeTakeFirst();
  return row?.agent;
}

/**
 * The record of an agent as these events have made it: the first ones of its stream. Undefined when it is not among them.
 */
export function recordFrom(events: readonly DomainEvent[], workspace: number, id: number): AgentRecord | undefined {
  const made = new MemoryTables();
  made.apply(agentsProjection, events);
  const key = { workspace_id: workspace, id };
  const agent = made.get(agentsTable, keyText(agentsTable, key));
  const texts = made.get(agentTextsTable, keyText(agentTextsTable, key));
  return agent && texts && recordOf(agent as Row<typeof agentsTable>, texts as Row<typeof agentTextsTable>);
}

/** One agent with its texts: id, name and role, to which more may be selected. */
export const oneWithTexts = (reads: Reads, workspace: number, ref: AgentRef) =>
  withTexts(reads, workspace).where(isRef(ref)).select(['a.id', 'a.name', 'a.role']);

/** Under which ids names were found, by the workspace and the name: where their rows may be in memory. */
const idsByName = new WeakMap<Reads, LRUCache<string, number>>();
const MAX_NAMES = 20_000;

/** Rows of an agent from memory (see `keptRows`). A name belongs to one agent, so whoever has it there is the one. */
function keptOf<const T extends readonly [typeof agentsTable, ...(typeof agentTextsTable)[]]>(
  reads: Reads,
  workspace: number,
  ref: AgentRef,
  wanted: T,
  since?: number,
) {
  const id = 'id' in ref ? ref.id : idsByName.get(reads)?.get(`${workspace} ${ref.name}`);
  if (id === undefined) return undefined;
  const kept = keptRows(reads, agentsProjection, wanted, { workspace_id: workspace, id }, { since });
  const named = kept?.[0] as Row<typeof agentsTable> | undefined;
  return 'id' in ref || named?.name === ref.name ? kept : undefined;
}

/**
 * What `kept` finds in memory. What has gathered is written only if that is not there or not current, because it costs
 * others their larger groups.
 */
async function keptOrSettled<T>(reads: Reads, kept: () => T | undefined): Promise<T | undefined> {
  let found = kept();
  if (found) return found;
  const told = reads.told(agentsProjection);
  if (told) {
    await told;
    found = kept();
    if (found) return found;
  }
  const settled = reads.settled(agentsProjection);
  if (!settled) return undefined;
  await settled;
  return kept();
}

/**
 * An agent with its texts from memory.
 *
 * @param since as in `agentRecord`
 */
export const keptWithTexts = (reads: Reads, workspace: number, ref: AgentRef, since?: number) =>
  keptOrSettled(reads, () => keptOf(reads, workspace, ref, [agentsTable, agentTextsTable], since));

/** An agent without its texts, for commands and checks. */
export async function findAgent(reads: Reads, workspace: number, ref: AgentRef) {
  const [kept] = (await keptOrSettled(reads, () => keptOf(reads, workspace, ref, [agentsTable]))) ?? [];
  if (kept) return kept;
  const row = await agentTables(reads)
    .selectFrom('agents as a')
    .where('a.workspace_id', '=', workspace)
    .where(isRef(ref))
    .select(['a.id', 'a.name', 'a.role', 'a.status', 'a.session_key', 'a.created_at'])
    .executeTakeFirst();
  if (row) {
    const ids = idsByName.get(reads) ?? new LRUCache<string, number>(atMost(MAX_NAMES));
    idsByName.set(reads, ids);
    ids.set(`${workspace} ${row.name}`, row.id);
  }
  return row;
}

/** Ids of the agents with these names. */
export async function agentIds(
  reads: Reads,
  workspace: number,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await agentTables(reads)
    .selectFrom('agents')
    .where('workspace_id', '=', workspace)
    .where(sql<boolean>`name = ANY(${names})`)
    .select(['id', 'name'])
    .execute();
  return new Map(rows.map((row) => [row.name, row.id]));
}

/** What commands need to look up about agents. */
export const agentDirectory = (reads: Reads): AgentDirectory => ({
  async named(workspace, names) {
    const rows = await agentTables(reads)
      .selectFrom('agents')
      .where('workspace_id', '=', workspace)
      .where(sql<boolean>`name = ANY(${names})`)
      .select(['name', 'session_key'])
      .execute();
    const found = new Map(rows.map((row) => [row.name, { name: row.name, hasSession: row.session_key !== null }]));
    return names.flatMap((name) => found.get(name) ?? []);
  },
});
