/** Notifications: the list of a recipient, pending deliveries, and their state. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import type {
  ListedNotification,
  NotificationResponse,
  NotificationsQuery,
} from '../../shared/contract/monitoring/notifications.ts';
import { NOTIFIER, type NotificationRecord } from '../../shared/events/monitoring/notifications.ts';
import type { Recipient, TaskView } from '../../shared/identity.ts';
import { withName } from '../../shared/names.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { type DisplayNames, PEOPLE_MODELS } from '../names.ts';
import { inWorkspace, prepared, type Reads, tableOf, tables } from '../reads.ts';
import { columnsOf } from '../records.ts';
import { SUBJECT_MODELS, subjectOf } from './subjects.ts';

/** Read models from which the list is built. */
export const NOTIFICATION_MODELS: readonly string[] = [
  notificationsProjection.name,
  ...SUBJECT_MODELS,
  ...PEOPLE_MODELS,
];
/** Read models from which the state of deliveries is built. */
export const DELIVERY_MODELS: readonly string[] = [notificationsProjection.name, agentsProjection.name];

/** Maximum number of recipients in the state of deliveries. */
const LISTED_RECIPIENTS = 200;

const own = (reads: Reads) => tables(reads, notificationsProjection);
const all = (reads: Reads, workspace: number) =>
  inWorkspace(reads, notificationsProjection, 'notifications', workspace);
const ids = (rows: readonly { readonly id: number }[]): number[] => rows.map(({ id }) => id);

/** The position since which the latest owner of a name has it, as SQL; null if no user or agent had it. */
export const nameSince = (reads: Reads, workspace: number, name: RawBuilder<unknown>): RawBuilder<Position | null> =>
  sql`(SELECT since FROM ${tableOf(reads, notificationsProjection, 'name_owners')} owned
    WHERE owned.workspace_id = ${workspace} AND owned.name = ${name})`;

/** The same as a value; 0 if no user or agent had the name. */
export async function nameSinceOf(reads: Reads, workspace: number, name: string): Promise<Position> {
  const { rows } = await sql<{ since: Position | null }>`
    SELECT ${nameSince(reads, workspace, sql`${name}`)} AS since`.execute(reads.db);
  return Number(rows[0]?.since ?? BEGINNING);
}

/** A notification as JSON, from row `n`, and the user whose name begins or ends one of its texts. */
const NOTIFICATION_JSON = `'by_key', n.by_key, 'by_name', n.by_name, 'id', n.id, 'recipient', n.recipient, 'type', n.type, 'title', n.title, 'message', n.message,
  'source_type', n.source_type, 'source_id', n.source_id, 'read', n.read_at IS NOT NULL, 'read_at', n.read_at,
  'delivered_at', n.delivered_at, 'created_at', n.created_at, 'workspace_id', n.workspace_id`;

interface Named {
  readonly by_key: 'title' | 'message' | null;
  readonly by_name: string | null;
  readonly title: string;
  readonly message: string;
  readonly created_at: number;
}

/** Notifications with the display names of users. */
async function shown<T extends Named>(
  names: DisplayNames,
  workspace: number,
  rows: readonly T[],
): Promise<Omit<T, 'by_key' | 'by_name'>[]> {
  const shownAs = await names.of(
    workspace,
    rows.flatMap(({ by_name }) => by_name ?? []),
  );
  return rows.map(({ by_key: key, by_name: name, ...row }) =>
    key === null || name === null ? row : { ...row, [key]: withName(row[key], name, shownAs(name, row.created_at)) },
  );
}

/** Those of a recipient. */
const isFor = ({ name, owner }: Recipient) =>
  owner === undefined ? sql<boolean>`recipient = ${name}` : sql<boolean>`recipient = ${name} AND owner = ${owner}`;

/** A page of the notifications of one recipient, newest first. Subjects are included if the caller may see them. */
export async function listNotifications(
  reads: Reads,
  view: TaskView,
  recipient: Recipient,
  query: Omit<NotificationsQuery, 'recipient'>,
  names: DisplayNames,
) {
  const { type, limit, offset } = query;
  const theirs = all(reads, view.workspace).where(isFor(recipient));
  const unread = theirs.where('read_at', 'is', null);
  let listed = query.unread_only || query.unread ? unread : theirs;
  if (type !== undefined) listed = listed.where('type', '=', type);
  const page = listed.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).offset(offset);
  const count = (of: typeof theirs) => of.select(({ fn }) => fn.countAll<number>().as('count'));
  // List and counts in one statement, so that all show the same moment.
  const { rows } = await sql<{
    notifications: (ListedNotification & Named)[] | null;
    total: number;
    unread: number;
  }>`${prepared}
    WITH page AS (${page})
    SELECT json_agg(json_build_object(${sql.raw(NOTIFICATION_JSON)}, 'source', ${subjectOf(reads, view, sql`n.source_type`, sql`n.source_id`)})
        ORDER BY n.created_at DESC, n.id DESC) AS notifications,
      (${count(listed)}) AS total, (${count(unread)}) AS unread
    FROM page n`.execute(reads.db);
  const [row] = rows;
  return {
    notifications: await shown(names, view.workspace, row?.notifications ?? []),
    total: Number(row?.total ?? 0),
    page: Math.floor(offset / limit) + 1,
    limit,
    unreadCount: Number(row?.unread ?? 0),
  };
}

/** Notifications by their ids, newest first. */
export async function notificationsOf(
  reads: Reads,
  workspace: number,
  some: readonly number[],
  names: DisplayNames,
): Promise<NotificationResponse[]> {
  const { rows } = await sql<{ notifications: (NotificationResponse & Named)[] | null }>`
    SELECT json_agg(json_build_object(${sql.raw(NOTIFICATION_JSON)}) ORDER BY n.created_at DESC, n.id DESC) AS notifications
    FROM (${all(reads, workspace).selectAll().where(sql<boolean>`id = ANY(${some})`)}) n`.execute(reads.db);
  return shown(names, workspace, rows[0]?.notifications ?? []);
}

/**
 * Delivered and pending notifications, in total or of one recipient.
 *
 * @param only the only recipient in the list of recipients with pending notifications
 */
export async function deliveryState(
  reads: Reads,
  workspace: number,
  agent: Recipient | undefined,
  only: Recipient | undefined,
) {
  const waiting = all(reads, workspace).where('delivered_at', 'is', null);
  const some = agent === undefined ? all(reads, workspace) : all(reads, workspace).where(isFor(agent));
  const [counted, pending, recent] = await Promise.all([
    agent === undefined
      ? inWorkspace(reads, notificationsProjection, 'notification_totals', workspace)
          .select(['total', 'delivered'])
          .executeTakeFirst()
      : some
          .select(({ fn }) => [fn.countAll<number>().as('total'), fn.count<number>('delivered_at').as('delivered')])
          .executeTakeFirst(),
    (only === undefined ? waiting : waiting.where(isFor(only)))
      .select(({ fn }) => ['recipient', fn.countAll<number>().as('pending_count')])
      .groupBy('recipient')
      .orderBy('pending_count', 'desc')
      .orderBy('recipient')
      .limit(LISTED_RECIPIENTS)
      .execute(),
    some
      .where('delivered_at', 'is not', null)
      .select(['recipient', 'type', 'title', sql<number>`delivered_at`.as('delivered_at'), 'created_at'])
      .orderBy('delivered_at', 'desc')
      .orderBy('id', 'desc')
      .limit(10)
      .execute(),
  ]);
  const sessions = new Map(
    (
      await inWorkspace(reads, agentsProjection, 'agents', workspace)
        .select(['name', 'session_key'])
        .where(sql<boolean>`name = ANY(${pending.map(({ recipient }) => recipient)})`)
        .execute()
    ).map(({ name, session_key }) => [name, session_key]),
  );
  const { total = 0, delivered = 0 } = counted ?? {};
  return {
    statistics: {
      total,
      delivered,
      undelivered: total - delivered,
      delivery_rate: total === 0 ? 0 : Math.round((100 * delivered) / total),
    },
    agents_with_pending: pending.map(({ recipient, pending_count }) => ({
      recipient,
      session_key: sessions.get(recipient) ?? null,
      pending_count,
    })),
    recent_deliveries: recent,
    agent_filter: agent?.name ?? null,
  };
}

/** The id in the owner `agent:<id>`; null for others. */
const OWNING_AGENT = sql.raw("substring(owner FROM '^agent:([0-9]+)$')::bigint");
const owningAgent = (owner: string | null): number | undefined =>
  owner?.startsWith('agent:') ? Number(owner.slice('agent:'.length)) : undefined;

const PENDING = [
  ...(['id', 'recipient', 'type', 'title', 'message'] as const),
  ...(['source_type', 'source_id', 'created_at'] as const),
];

/** A pending notification, and whether its recipient exists. */
export interface PendingNotification extends Omit<NotificationRecord, 'workspace_id'> {
  /** The agent that it was raised for, possibly under another name now; null: none, or it is deleted. */
  readonly agent: { readonly id: number; readonly session_key: string | null } | null;
  /** Whether there is a user with this name, or it stands for the operators. */
  readonly isPerson: boolean;
}

/** A selection of notifications: by recipient, by ids, or by both. */
export type Some =
  | { readonly recipient: Recipient; readonly ids?: undefined }
  | { readonly ids: readonly number[]; readonly recipient: Recipient | undefined };

/** The lookups of commands about notifications. */
export type NotificationDirectory = ReturnType<typeof notificationDirectory>;
export const notificationDirectory = (reads: Reads) => ({
  /** Unread notifications; at most `limit`. */
  async unread(workspace: number, of: Some, limit: number): Promise<number[]> {
    const unread = all(reads, workspace).select('id').where('read_at', 'is', null).limit(limit);
    const some = of.ids === undefined ? unread : unread.where(sql<boolean>`id = ANY(${of.ids})`);
    return ids(await (of.recipient === undefined ? some : some.where(isFor(of.recipient))).execute());
  },
  /** Ids of notifications that a recipient has not received yet. */
  async undelivered(workspace: number, recipient: Recipient, limit: number): Promise<number[]> {
    const some = all(reads, workspace).select('id').where('delivered_at', 'is', null);
    return ids(await some.where(isFor(recipient)).orderBy('created_at').orderBy('id').limit(limit).execute());
  },
  /** Those of the ids that exist. */
  existing: async (workspace: number, some: readonly number[]): Promise<number[]> =>
    ids(await all(reads, workspace).select('id').where(sql<boolean>`id = ANY(${some})`).execute()),
  /** Notifications of a recipient, created before `before`, Unix seconds. */
  older: async (workspace: number, recipient: string, before: number, limit: number): Promise<number[]> =>
    ids(
      await all(reads, workspace)
        .select('id')
        .where('recipient', '=', recipient)
        .where('created_at', '<', before)
        .limit(limit)
        .execute(),
    ),
  /**
   * Pending notifications, oldest first; those that cannot be delivered come last, so that they never block the others.
   */
  async pending(workspace: number, recipient: Recipient | undefined, limit: number): Promise<PendingNotification[]> {
    const agents = tableOf(reads, agentsProjection, 'agents');
    const users = tableOf(reads, usersProjection, 'users');
    let some = all(reads, workspace).selectAll().where('delivered_at', 'is', null);
    if (recipient !== undefined) some = some.where(isFor(recipient));
    const reachable = sql<boolean>`(recipient = ${NOTIFIER}
      OR EXISTS (SELECT FROM ${agents} a WHERE a.workspace_id = ${workspace} AND a.id = ${OWNING_AGENT})
      OR (owner IS NULL AND EXISTS (SELECT FROM ${agents} a WHERE a.workspace_id = ${workspace} AND a.name = recipient))
      OR EXISTS (SELECT FROM ${users} u WHERE u.workspace_id = ${workspace} AND u.username = recipient))`;
    const oldest = (of: typeof some, count: number) => of.orderBy('created_at').orderBy('id').limit(count);
    const found = await oldest(some.where(reachable), limit).execute();
    if (found.length < limit) {
      found.push(...(await oldest(some.where(sql<boolean>`NOT ${reachable}`), limit - found.length).execute()));
    }
    const names = [...new Set(found.map((row) => row.recipient))];
    const owning = found.flatMap(({ owner }) => owningAgent(owner) ?? []);
    const [theirAgents, theirUsers] = await Promise.all([
      inWorkspace(reads, agentsProjection, 'agents', workspace)
        .select(['id', 'name', 'session_key'])
        .where(sql<boolean>`(name = ANY(${names}) OR id = ANY(${owning}))`)
        .execute(),
      inWorkspace(reads, usersProjection, 'users', workspace)
        .select('username')
        .where(sql<boolean>`username = ANY(${names})`)
        .execute(),
    ]);
    const byId = new Map(theirAgents.map(({ id, session_key }) => [Number(id), { id, session_key }]));
    const byName = new Map(theirAgents.map(({ id, name, session_key }) => [name, { id, session_key }]));
    const agentOf = ({ owner, recipient: name }: (typeof found)[number]) => {
      const id = owningAgent(owner);
      return id === undefined ? (owner === null ? byName.get(name) : undefined) : byId.get(id);
    };
    const people = new Set([NOTIFIER, ...theirUsers.map(({ username }) => username)]);
    return found.map(
      (row): PendingNotification => ({
        ...columnsOf(row, PENDING),
        agent: agentOf(row) ?? null,
        isPerson: people.has(row.recipient),
      }),
    );
  },
});

/** Notifications of all workspaces, created before `before`, Unix seconds; the oldest `limit`. */
export const expiredNotifications = (reads: Reads, before: number, limit: number): Promise<readonly RecordPlace[]> =>
  own(reads)
    .selectFrom('notifications')
    .select(['workspace_id as workspace', 'tenant_id as tenant', 'id'])
    .where('created_at', '<', before)
    .orderBy('created_at')
    .orderBy('workspace_id')
    .orderBy('id')
    .limit(limit)
    .execute();
