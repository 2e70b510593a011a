/** Messages between agents: the feed, and the graph of who talks to whom. */
import { sql } from 'kysely';
import { agentMessagesProjection, messageEdgesTable, messagesTable } from '../projections/agent-messages.ts';
import type { CommsQuery } from '../shared/contract/agent-life.ts';
import { type Reads, tables } from './reads.ts';

const own = (reads: Reads) =>
  tables(reads, agentMessagesProjection, { messages: messagesTable, message_edges: messageEdgesTable });

type Json = Readonly<Record<string, unknown>>;

/** A message as JSON, from row `m`. */
export const MESSAGE_JSON = sql<Json>`json_build_object(
  'id', m.id, 'from_agent', m.from_agent, 'to_agent', m.to_agent, 'content', m.content, 'type', m.message_type,
  'created_at', m.created_at, 'message_type', m.message_type, 'conversation_id', m.conversation_id,
  'metadata', NULL, 'read_at', m.read_at, 'workspace_id', m.workspace_id)`;

/** Names that stand for people and the service, not for agents: the graph leaves them out. */
const NO_AGENTS = ['human', 'system', 'operator'];

const amongAgents = sql<boolean>`lower(from_agent) <> ALL(${NO_AGENTS}) AND lower(to_agent) <> ALL(${NO_AGENTS})`;

/** The latest messages that match, oldest first. */
async function pageOf(reads: Reads, workspace: number, { agent, since, limit, offset }: CommsQuery): Promise<Json[]> {
  let all = own(reads).selectFrom('messages').selectAll().where('workspace_id', '=', workspace);
  if (since !== undefined) all = all.where('created_at', '>', since);
  const latest = (query: typeof all, count: number) => query.orderBy('position', 'desc').limit(count);
  // Sender or recipient: the newest of both, each by its own index.
  const page =
    agent === undefined
      ? latest(all, limit).offset(offset)
      : own(reads)
          .selectFrom(sql<never>`(${latest(all.where('from_agent', '=', agent), limit + offset)})`.as('sent'))
          .selectAll()
          .union(
            own(reads)
              .selectFrom(sql<never>`(${latest(all.where('to_agent', '=', agent), limit + offset)})`.as('received'))
              .selectAll(),
          )
          .orderBy(sql`position`, 'desc')
          .limit(limit)
          .offset(offset);
  const { rows } = await sql<{ messages: Json[] | null }>`
    SELECT json_agg(${MESSAGE_JSON} ORDER BY m.position) AS messages FROM (${page}) m`.execute(reads.db);
  return rows[0]?.messages ?? [];
}

/** Edges of the graph; counted from the messages themselves only where a moment limits them. */
async function edgesOf(reads: Reads, workspace: number, { agent, since }: Pick<CommsQuery, 'agent' | 'since'>) {
  const touching = sql<boolean>`(from_agent = ${agent ?? ''} OR to_agent = ${agent ?? ''})`;
  if (since === undefined) {
    let kept = own(reads)
      .selectFrom('message_edges')
      .where('workspace_id', '=', workspace)
      .select(['from_agent', 'to_agent', 'count as message_count', 'last_message_at']);
    if (agent !== undefined) kept = kept.where(touching);
    return kept.orderBy('message_count', 'desc').orderBy('from_agent').orderBy('to_agent').execute();
  }
  let counted = own(reads)
    .selectFrom('messages')
    .where('workspace_id', '=', workspace)
    .where('created_at', '>', since)
    .select(({ fn }) => [
      'from_agent',
      'to_agent',
      fn.countAll<number>().as('message_count'),
      fn.max('created_at').as('last_message_at'),
    ])
    .groupBy(['from_agent', 'to_agent']);
  if (agent !== undefined) counted = counted.where(touching);
  return counted.orderBy('message_count', 'desc').orderBy('from_agent').orderBy('to_agent').execute();
}

/** Sent and received per agent, over everything. */
async function statsOf(reads: Reads, workspace: number) {
  const edges = own(reads).selectFrom('message_edges').where('workspace_id', '=', workspace).where(amongAgents);
  const { rows } = await sql<{ agent: string; sent: number; received: number }>`
    SELECT agent, sum(sent)::bigint AS sent, sum(received)::bigint AS received FROM (
      ${edges.select(['from_agent as agent', 'count as sent', sql<number>`0`.as('received')])}
      UNION ALL
      ${edges.select(['to_agent as agent', sql<number>`0`.as('sent'), 'count as received'])}
    ) both_ways GROUP BY agent ORDER BY sum(sent) + sum(received) DESC, agent`.execute(reads.db);
  return rows.map((row) => ({ agent: row.agent, sent: Number(row.sent), received: Number(row.received) }));
}

const isAgent = (name: string) => !NO_AGENTS.includes(name.toLowerCase());

/** The feed of messages with its graph. */
export async function listComms(reads: Reads, workspace: number, query: CommsQuery) {
  const [messages, edges, agentStats] = await Promise.all([
    pageOf(reads, workspace, query),
    edgesOf(reads, workspace, query),
    statsOf(reads, workspace),
  ]);
  const total = edges.reduce((sum, edge) => sum + Number(edge.message_count), 0);
  return {
    messages,
    total,
    graph: {
      edges: edges
        .filter((edge) => isAgent(edge.from_agent) && isAgent(edge.to_agent))
        .map(({ message_count, last_message_at, ...edge }) => ({
          ...edge,
          message_count: Number(message_count),
          last_message_at: Number(last_message_at),
        })),
      agentStats,
    },
    source: { mode: total > 0 ? ('live' as const) : ('empty' as const), seededCount: 0, liveCount: total },
  };
}
