/** Messages between agents: the feed, and the graph of senders and recipients. */
import { type RawBuilder, sql } from 'kysely';
import { chatProjection } from '../../projections/chat.ts';
import { type AgentMessageRecord, type CommsQuery, MAX_GRAPH } from '../../shared/contract/agents/messages.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads, tableOf, upToSize } from '../reads.ts';
import { messageSeen } from '../tasks/visibility.ts';
import { agentNamed, type NamedAgent, nameNow, type Reference, refersTo } from './names.ts';

type Side = 'from_agent' | 'to_agent';
/** The columns of a message that refer to its sender or recipient. */
const referenceOf = (side: Side): Reference => ({ name: side, id: `${side}_id` });
const sideNow = (reads: Reads, row: string, side: Side) => nameNow(reads, row, referenceOf(side), { apart: true });

/** A message as JSON, from row `m`, with the names to show. */
export const messageJson = (
  from: RawBuilder<string>,
  to: RawBuilder<string>,
) => sql<AgentMessageRecord>`json_build_object(
  'id', m.id, 'from_agent', ${from}, 'to_agent', ${to},
  'content', m.content, 'type', m.message_type,
  'created_at', m.created_at, 'message_type', m.message_type, 'conversation_id', m.conversation,
  'metadata', NULL, 'read_at', m.read_at, 'workspace_id', m.workspace_id)`;

/** The same with the names that sender and recipient have now. */
const shownMessage = (reads: Reads) => messageJson(sideNow(reads, 'm', 'from_agent'), sideNow(reads, 'm', 'to_agent'));

/** The names of the senders of these messages, by message. */
export async function senderNames(
  reads: Reads,
  workspace: number,
  messages: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const { rows } = await sql<{ id: number; name: string }>`SELECT m.id, ${sideNow(reads, 'm', 'from_agent')} AS name
    FROM ${tableOf(reads, chatProjection, 'messages')} m
    WHERE m.workspace_id = ${workspace} AND m.id = ANY(${messages}::bigint[])`.execute(reads.db);
  return new Map(rows.map(({ id, name }) => [Number(id), name]));
}

/** Names that are not agents' but those of people or of the service; the graph leaves them out. */
const NO_AGENTS = ['human', 'system', 'operator'];

// These names are ASCII, and the collation "C" folds ASCII letters several times as fast as others.
const isAgent = (column: 'from_agent' | 'to_agent') =>
  sql<boolean>`lower(${sql.ref(column)} COLLATE "C") <> ALL(${NO_AGENTS})`;
const amongAgents = sql<boolean>`${isAgent('from_agent')} AND ${isAgent('to_agent')}`;

const rowsOf = (reads: Reads, table: 'messages' | 'message_edges', side: Side, agent: NamedAgent) =>
  refersTo(reads, table, { ...referenceOf(side), ...(table === 'message_edges' && { none: 0 }) }, agent);

/** The latest messages that match: rows of `messages`. */
function pageOf(reads: Reads, view: TaskView, agent: NamedAgent | undefined, { since, limit, offset }: CommsQuery) {
  let all = inWorkspace(reads, chatProjection, 'messages', view.workspace)
    .selectAll()
    .where('to_agent_id', 'is not', null)
    .where(messageSeen(view, 'messages'));
  if (since !== undefined) all = all.where('created_at', '>', since);
  const latest = (query: typeof all, count: number) =>
    query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(count);
  if (agent === undefined) return latest(all, limit).offset(offset);
  // The newest messages as sender and as recipient, each found by its own index.
  const parts = (['from_agent', 'to_agent'] as const)
    .flatMap((side) => rowsOf(reads, 'messages', side, agent))
    .map((own) => sql`(${latest(all.where(own), limit + offset)})`);
  return sql`${sql.join(parts, sql` UNION `)} ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`;
}

/** Matching edges; counted from the messages only with a time filter, or if the caller may not see all messages. */
function edgesOf(reads: Reads, view: TaskView, agent: NamedAgent | undefined, { since = 0 }: CommsQuery) {
  const { workspace } = view;
  const touching = (table: 'messages' | 'message_edges') =>
    agent === undefined
      ? sql<boolean>`true`
      : sql<boolean>`(${sql.join(
          (['from_agent', 'to_agent'] as const).flatMap((side) => rowsOf(reads, table, side, agent)),
          sql` OR `,
        )})`;
  if (since === 0 && view.agent === null)
    return inWorkspace(reads, chatProjection, 'message_edges', workspace).selectAll().where(touching('message_edges'));
  return inWorkspace(reads, chatProjection, 'messages', workspace)
    .where('to_agent_id', 'is not', null)
    .where('created_at', '>', since)
    .where(messageSeen(view, 'messages'))
    .where(touching('messages'))
    .select(({ fn }) => [
      'workspace_id',
      'from_agent',
      'to_agent',
      'from_agent_id',
      'to_agent_id',
      fn.countAll<number>().as('count'),
      fn.max('created_at').as('last_message_at'),
    ])
    .groupBy(['workspace_id', 'from_agent', 'to_agent', 'from_agent_id', 'to_agent_id']);
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
  const { agent } = query;
  const filtered = agent === undefined ? undefined : await agentNamed(reads, workspace, agent);
  /** Messages by agent, either as sender or as recipient. */
  const countsBy = (side: Side) => sql`
    SELECT ${sideNow(reads, 'e', side)} AS agent, sum(e.count)::bigint AS count
    FROM ${tableOf(reads, chatProjection, 'message_edges')} e WHERE e.workspace_id = ${workspace} AND ${amongAgents} GROUP BY 1`;
  const { rows } = await sql<{
    messages: AgentMessageRecord[] | null;
    total: number;
    edges: Edge[] | null;
    stats: { readonly agent: string; readonly sent: number; readonly received: number }[] | null;
  }>`
    WITH page AS (${upToSize(sql`${pageOf(reads, view, filtered, query)}`, sql`created_at DESC, id DESC`)}),
    edges AS (
      SELECT ${sideNow(reads, 'e', 'from_agent')} AS from_agent, ${sideNow(reads, 'e', 'to_agent')} AS to_agent,
        sum(e.count)::bigint AS count, max(e.last_message_at) AS last_message_at
      FROM (${edgesOf(reads, view, filtered, query)}) e GROUP BY 1, 2),
    busiest AS (
      SELECT * FROM edges WHERE ${amongAgents} ORDER BY count DESC, from_agent, to_agent LIMIT ${MAX_GRAPH}),
    stats AS (
      SELECT agent, coalesce(s.count, 0) AS sent, coalesce(r.count, 0) AS received
      FROM (${countsBy('from_agent')}) s FULL JOIN (${countsBy('to_agent')}) r USING (agent)
      ORDER BY coalesce(s.count, 0) + coalesce(r.count, 0) DESC, agent LIMIT ${MAX_GRAPH})
    SELECT (SELECT json_agg(${shownMessage(reads)} ORDER BY m.created_at, m.id) FROM page m) AS messages,
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
