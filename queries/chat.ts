/** Conversations and the messages in them. */
import { sql } from 'kysely';
import { agentsProjection, type agentsTable } from '../projections/agents/agents.ts';
import { chatProjection } from '../projections/chat.ts';
import type { SettingDefaults } from '../shared/contract/admin/settings.ts';
import type {
  ChatMessageRecord,
  ConversationRecord,
  ConversationRef,
  ConversationsQuery,
  MessagesQuery,
} from '../shared/contract/chat.ts';
import type { TaskView } from '../shared/identity.ts';
import type { Freshness, ReadAt } from '../shared/ports/read-models.ts';
import { settingValues } from './admin/settings.ts';
import { agentNamed, type NamedAgent, nameNow, RECIPIENT, type Reference, refersTo, SENDER } from './agents/names.ts';
import { createKept, createLookUps } from './kept.ts';
import { inWorkspace, type Reads, type Row, tableOf, tables, upToSize } from './reads.ts';
import { conversationSeen, messageSeen } from './tasks/visibility.ts';

const own = (reads: Reads) => tables(reads, chatProjection);

/** Maximum number of names that a list shows per conversation. */
const NAMES = 100;

/** A conversation as JSON, from row `c`, its participants `p`, and the number of unread messages `u`. */
const CONVERSATION = sql<ConversationRecord>`json_build_object(
  'id', c.id, 'participants', coalesce(p.names, '[]'::json), 'last_message', c.last_message,
  'updated_at', c.updated_at, 'conversation_id', c.id, 'conversation_key', c.conversation,
  'last_message_at', c.updated_at, 'participant_count', p.count, 'message_count', c.message_count,
  'unread_count', coalesce(u.unread, 0), 'created_at', c.created_at, 'workspace_id', c.workspace_id)`;

const PARTICIPANT: Reference = { id: 'agent_id', name: 'name' };

/** Condition: row `p` of participants is the agent or the person of a name. */
const isParticipant = (reads: Reads, agent: NamedAgent) =>
  sql<boolean>`(${sql.join(refersTo(reads, 'p', PARTICIPANT, agent), sql` OR `)})`;

/** The conversations of a list in parts that do not overlap. Each part has its own index. */
function conversationsOf(reads: Reads, view: TaskView, agent: NamedAgent | undefined) {
  const all = own(reads)
    .selectFrom('conversations as c')
    .where('c.workspace_id', '=', view.workspace)
    .where(conversationSeen(reads, view, 'c'))
    .select(['c.conversation', 'c.updated_at', 'c.id']);
  if (agent === undefined) return [all];
  const within = all
    .where(
      sql<boolean>`c.conversation IN (SELECT p.conversation FROM ${tableOf(reads, chatProjection, 'participants')} p
        WHERE p.workspace_id = ${view.workspace} AND ${isParticipant(reads, agent)})`,
    )
    .where('c.broadcasts', '=', 0);
  return [within, all.where('c.broadcasts', '>', 0)];
}

/** A page of conversations, newest activity first. */
export async function listConversations(reads: Reads, view: TaskView, query: ConversationsQuery) {
  const { workspace } = view;
  const { limit, offset } = query;
  const agent = query.agent === undefined ? undefined : await agentNamed(reads, workspace, query.agent);
  const parts = conversationsOf(reads, view, agent);
  const newest = parts.map(
    (part) =>
      sql`(${part
        .orderBy('c.updated_at', 'desc')
        .orderBy('c.id', 'desc')
        .limit(limit + offset)})`,
  );
  const counts = parts.map((part) => sql`(SELECT count(*) FROM (${part}) part)`);
  const { rows } = await sql<{ total: number; conversations: ConversationRecord[] | null }>`
    WITH page AS (
      SELECT * FROM (${sql.join(newest, sql` UNION ALL `)}) newest
      ORDER BY updated_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}
    )
    SELECT ${sql.join(counts, sql` + `)} AS total,
      (SELECT json_agg(${CONVERSATION} ORDER BY c.updated_at DESC, c.id DESC)
       FROM page JOIN ${tableOf(reads, chatProjection, 'conversations')} c
         ON c.workspace_id = ${workspace} AND c.conversation = page.conversation,
       LATERAL (
         SELECT count(*) AS count, json_agg(x.name ORDER BY x.first_id, x.name) FILTER (WHERE x.place <= ${NAMES}) AS names
         FROM (
           SELECT ${nameNow(reads, 'p', PARTICIPANT, { apart: true })} AS name, first_id,
             row_number() OVER (ORDER BY first_id, participant) AS place
           FROM ${tableOf(reads, chatProjection, 'participants')} p
           WHERE p.workspace_id = ${workspace} AND p.conversation = c.conversation
         ) x
       ) p,
       LATERAL (
         SELECT sum(unread)::bigint AS unread FROM ${tableOf(reads, chatProjection, 'participants')} p
         WHERE p.workspace_id = ${workspace} AND p.conversation = c.conversation
           AND ${agent ? isParticipant(reads, agent) : sql`false`}
       ) u) AS conversations`.execute(reads.db);
  const { total = 0, conversations } = rows[0] ?? {};
  return {
    conversations: conversations ?? [],
    total: Number(total),
    page: Math.floor(offset / limit) + 1,
    limit,
  };
}

const sentBy = (reads: Reads) => nameNow(reads, 'm', SENDER, { apart: true });
const sentTo = (reads: Reads) => nameNow(reads, 'm', RECIPIENT, { apart: true });

/** A message as JSON, from row `m` and row `c` of its conversation, with the names `n`. */
const MESSAGE = sql<ChatMessageRecord>`json_build_object(
  'id', m.id, 'conversation_id', c.id, 'conversation_key', m.conversation, 'sender', n.sender,
  'recipient', n.recipient, 'content', m.content, 'created_at', m.created_at, 'from_agent', n.sender,
  'to_agent', n.recipient, 'message_type', m.message_type, 'metadata', m.metadata, 'read_at', m.read_at,
  'workspace_id', m.workspace_id)`;

/** Rows `m` of all messages that the caller may see, with row `c` of their conversations. */
const withConversation = (reads: Reads, view: TaskView) =>
  own(reads)
    .selectFrom('messages as m')
    .innerJoin('conversations as c', (join) =>
      join.onRef('c.workspace_id', '=', 'm.workspace_id').onRef('c.conversation', '=', 'm.conversation'),
    )
    .innerJoinLateral(
      sql<{
        sender: string;
        recipient: string | null;
      }>`(SELECT ${sentBy(reads)} AS sender, ${sentTo(reads)} AS recipient)`.as('n'),
      (join) => join.onTrue(),
    )
    .where('m.workspace_id', '=', view.workspace)
    .where(messageSeen(view, 'm'));

/** A conversation by id or key; undefined when there is none. */
export async function findConversation(reads: Reads, workspace: number, ref: ConversationRef) {
  const all = inWorkspace(reads, chatProjection, 'conversations', workspace);
  return ('id' in ref ? all.where('id', '=', ref.id) : all.where('conversation', '=', ref.key))
    .select(['id', 'conversation as key', 'message_count'])
    .executeTakeFirst();
}

/** A page of messages, oldest first. */
export async function listMessages(reads: Reads, view: TaskView, query: MessagesQuery) {
  const { workspace } = view;
  const { conversation_id: ref, from_agent, to_agent, since, limit, offset } = query;
  const empty = { messages: [], total: 0, page: Math.floor(offset / limit) + 1, limit };
  const conversation = ref && (await findConversation(reads, workspace, ref));
  if (ref && !conversation) return empty;
  let all = own(reads)
    .selectFrom('messages as m')
    .where('m.workspace_id', '=', workspace)
    .where(messageSeen(view, 'm'));
  if (conversation) all = all.where('m.conversation', '=', conversation.key);
  for (const [name, reference] of [[from_agent, SENDER] as const, [to_agent, RECIPIENT] as const])
    if (name !== undefined) {
      const agent = await agentNamed(reads, workspace, name);
      all = all.where(sql<boolean>`(${sql.join(refersTo(reads, 'm', reference, agent), sql` OR `)})`);
    }
  if (since !== undefined) all = all.where('m.created_at', '>', since);
  // The read model has the count, except with filters or for bound callers.
  const filtered = from_agent !== undefined || to_agent !== undefined || since !== undefined || view.agent !== null;
  const kept = conversation
    ? sql<number>`${conversation.message_count}::bigint`
    : sql<number>`(${inWorkspace(reads, chatProjection, 'message_totals', workspace).select('messages')})`;
  const total = filtered ? sql<number>`(${all.select(({ fn }) => fn.countAll<number>().as('total'))})` : kept;
  const page = all
    .select(['m.id', 'm.created_at', sql.ref<number>('m.bytes').as('bytes')])
    .orderBy('m.created_at')
    .orderBy('m.id')
    .limit(limit)
    .offset(offset);
  const { rows } = await sql<{ total: number | null; messages: ChatMessageRecord[] | null }>`
    WITH page AS (${upToSize(page, sql`created_at, id`)})
    SELECT ${total} AS total,
      (SELECT json_agg(message ORDER BY created_at, id) FROM (
        ${withConversation(reads, view)
          .where(sql<boolean>`m.id IN (SELECT id FROM page)`)
          .select([MESSAGE.as('message'), 'm.created_at', 'm.id'])}
      ) shown) AS messages`.execute(reads.db);
  const { total: count, messages } = rows[0] ?? {};
  return { ...empty, messages: messages ?? [], total: Number(count ?? 0) };
}

/** One message, and its recipient as the event has it; undefined when the workspace has none with this id, or the caller does not see it. */
export async function messageRecord(reads: Reads, view: TaskView, id: number) {
  const row = await withConversation(reads, view)
    .where('m.id', '=', id)
    .select([MESSAGE.as('message'), 'm.to_agent as to', 'm.recipient_id'])
    .executeTakeFirst();
  return row && { message: row.message, recipient: { to: row.to, recipient_id: row.recipient_id } };
}

interface Conversation {
  readonly id: number;
  readonly key: string;
}

type Recipient = Pick<Row<typeof agentsTable>, 'id' | 'name' | 'session_key'>;

/** Maximum number of cached conversations, and of cached recipients, per process. */
const MAX_CONVERSATIONS = 20_000;
const MAX_RECIPIENTS = 10_000;

/**
 * The lookups for sending a message.
 *
 * @param parts.freshness undefined: every recipient is looked up again
 * @returns lookups in a workspace as of `at`; default: the head of the log at each call
 */
export function createChatDirectory(parts: { readonly reads: Reads; readonly freshness?: Pick<Freshness, 'stamp'> }) {
  const { reads, freshness } = parts;
  // The id and the key of a conversation never change, and no conversation is ever deleted.
  const conversations = createKept<Conversation>({ values: MAX_CONVERSATIONS });
  const models = [agentsProjection.name];
  const lookUps = createLookUps<Recipient | undefined>({
    reads,
    freshness,
    models,
    values: MAX_RECIPIENTS,
    scope: 'workspace',
  });
  return (workspace: number, defaults: SettingDefaults, at?: ReadAt) => {
    const then = at ? reads.at(at) : reads;
    const all = (from: Reads) =>
      tables(from, agentsProjection)
        .selectFrom('agents')
        .where('agents.workspace_id', '=', workspace)
        .select(['agents.id', 'agents.name', 'agents.session_key']);
    const withKey = async (column: 'name' | 'session_key', key: string) => {
      const lookUp = await lookUps(workspace, at);
      return lookUp(`${column} ${key}`, (from) => all(from).where(`agents.${column}`, '=', key).executeTakeFirst());
    };
    const own = conversations.of(workspace);
    const place = (ref: ConversationRef) => ('id' in ref ? `id ${ref.id}` : `key ${ref.key}`);
    /** Records a new conversation, so that the next message in it needs no lookup. */
    const begun = (conversation: Conversation): void => {
      own.set(place({ id: conversation.id }), conversation);
      own.set(place({ key: conversation.key }), conversation);
    };
    return {
      async conversation(ref: ConversationRef) {
        const kept = own.get(place(ref));
        if (kept) return kept;
        const found = await findConversation(then, workspace, ref);
        if (found) begun({ id: found.id, key: found.key });
        return found;
      },
      begun,
      agent: (ref: { readonly name: string } | { readonly session_key: string }) =>
        'name' in ref ? withKey('name', ref.name) : withKey('session_key', ref.session_key),
      async coordinator(name: string) {
        const setting = 'chat.coordinator_target_agent';
        const chosen = (await settingValues(then, defaults, [setting]))[setting].trim();
        return (
          (chosen === '' ? undefined : await withKey('name', chosen)) ??
          (await all(then)
            .innerJoin('agent_texts', (join) =>
              join
                .onRef('agent_texts.workspace_id', '=', 'agents.workspace_id')
                .onRef('agent_texts.id', '=', 'agents.id'),
            )
            .where(sql<boolean>`config @> '{"isDefault": true}'`)
            .orderBy('agents.id')
            .executeTakeFirst()) ??
          (await all(then).where('session_key', 'like', '%:main').orderBy('agents.id').executeTakeFirst()) ??
          withKey('name', name)
        );
      },
    };
  };
}
