/** Messages between agents: the feed, and the graph of senders and recipients. */
import { sql } from 'kysely';
import { chatProjection } from '../../projections/chat.ts';
import { type AgentMessageRecord, type CommsQuery, MAX_GRAPH } from '../../shared/contract/agents/messages.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads, upToSize } from '../reads.ts';
import { messageSeen } from '../tasks/visibility.ts';

/** A message as JSON, from row `m`. */
export const MESSAGE_JSON = sql<AgentMessageRecord>`json_build_object(
  'id', m.id, 'from_agent', m.from_agent, 'to_agent', m.to_agent, 'content', m.content, 'type', m.message_type,
  'created_at', m.created_at, 'message_type', m.message_type, 'conversation_id', m.conversation,
  'metadata', NULL, 'read_at', m.read_at, 'workspace_id', m.workspace_id)`;

/** Names that are not agents' but those of people or of the service; the graph leaves them out. */
const NO_AGENTS = ['human', 'system', 'operator'];

// These names are ASCII, and the collation "C" folds ASCII letters several times as fast as others.
const isAgent = (column: 'from_agent' | 'to_agent') =>
  sql<boolean>`lower(${sql.ref(column)} COLLATE "C") <> ALL(${NO_AGENTS})`;
const amongAgents = sql<boolean>`${isAgent('from_agent')} AND ${isAgent('to_agent')}`;

/** The latest messages that match: rows of `messages`. */
function pageOf(reads: Reads, view: TaskView, { agent, since, limit, offset }: CommsQuery) {
  let all = inWorkspace(reads, chatProjection, 'messages', view.workspace)
    .selectAll()
    .where('to_agent_id', 'is not', null)
    .where(messageSeen(view, 'messages'));
  if (since !== undefined) all = all.where('created_at', '>', since);
  const latest = (query: typeof all, count: number) =>
    query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(count);
  if (agent === undefined) return latest(all, limit).offset(offset);
  // The newest messages as sender and as recipient, each found by its own index.
  const of = (column: 'from_agent' | 'to_agent') => latest(all.where(column, '=', agent), limit + offset);
  return sql`(${of('from_agent')}) UNION (${of('to_agent')}) ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`;
}

/** Matching edges; counted from the messages only with a time filter, or if the caller may not see all messages. */
function edgesOf(reads: Reads, view: TaskView, { agent, since = 0 }: CommsQuery) {
  const { workspace } = view;
  const touching = sql<boolean>`(from_agent = ${agent ?? ''} OR to_agent = ${agent ?? ''})`;
  if (since === 0 && view.agent === null) {
    const kept = inWorkspace(reads, chatProjection, 'message_edges', workspace).select([
      'from_agent',
      'to_agent',
      'count',
      'last_message_at',
    ]);
    return agent === undefined ? kept : kept.where(touching);
  }
  const counted = inWorkspace(reads, chatProjection, 'messages', workspace)
    .where('to_agent_id', 'is not', null)
    .where('created_at', '>', since)
    .where(messageSeen(view, 'messages'))
    .select(({ fn }) => [
      'from_agent',
      'to_agent',
      fn.countAll<number>().as('count'),
      fn.max('created_at').as('last_message_at'),
    ])
    .groupBy(['from_agent', 'to_agent']);
  return agent === undefined ? counted : counted.where(touching);
}

interface Edge {
  readonly from_agent: string;
  readonly to_agent: string;
  readonly message_count: number;
  readonly last_message_at: number;
}

/** The feed of messages with its graph, in one statement, so that both show the same moment. */
export async function listComms(reads: Reads, view: TaskView, query: CommsQuery) {
  const { workspace } = view;
  const all = inWorkspace(reads, chatProjection, 'message_edges', workspace).where(amongAgents);
  /** Messages by agent, either as sender or as recipient. */
  const countsBy = (column: 'from_agent' | 'to_agent') =>
    all.select(({ fn }) => [`${column} as agent`, fn.sum<number>('count').as('count')]).groupBy(column);
  const { rows } = await sql<{
    messages: AgentMessageRecord[] | null;
    total: number;
    edges: Edge[] | null;
    stats: { readonly agent: string; readonly sent: number; readonly received: number }[] | null;
  }>`
    WITH page AS (${upToSize(sql`${pageOf(reads, view, query)}`, sql`created_at DESC, id DESC`)}),
    edges AS (${edgesOf(reads, view, query)}),
    busiest AS (
      SELECT * FROM edges WHERE ${amongAgents} ORDER BY count DESC, from_agent, to_agent LIMIT ${MAX_GRAPH}),
    stats AS (
      SELECT agent, coalesce(s.count, 0) AS sent, coalesce(r.count, 0) AS received
      FROM (${countsBy('from_agent')}) s FULL JOIN (${countsBy('to_agent')}) r USING (agent)
      ORDER BY coalesce(s.count, 0) + coalesce(r.count, 0) DESC, agent LIMIT ${MAX_GRAPH})
    SELECT (SELECT json_agg(${MESSAGE_JSON} ORDER BY m.created_at, m.id) FROM page m) AS messages,
      (SELECT coalesce(sum(count), 0)::bigint FROM edges) AS total,
      (SELECT json_agg(json_build_object('from_agent', from_agent, 'to_agent', to_agent, 'message_count', count,
        'last_message_at', last_message_at) ORDER BY count DESC, from_agent, to_agent) FROM busiest) AS edges,
      (SELECT json_agg(json_build_object('agent', agent, 'sent', sent, 'received', received)
        ORDER BY sent + received DESC, agent) FROM stats) AS stats`.execute(reads.db);
  const { messages, total = 0, edges, stats } = rows[0] ?? {};
  const count = Number(total);
  return {
    messages: messages ?? [],
    total: count,
    graph: { edges: edges ?? [], agentStats: stats ?? [] },
    source: { mode: count > 0 ? ('live' as const) : ('empty' as const), seededCount: 0, liveCount: count },
  };
}
