/** Notifications of all resources, by recipient. */
import { recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { agentDetailsChanged } from '../../shared/events/agents/agents.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import { userCreated, userMoved, userTransferred } from '../../shared/events/auth/users.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventOf } from '../../shared/events/define.ts';
import {
  notificationForwarded,
  notificationOf,
  notificationsDeleted,
  notificationsDelivered,
  notificationsRead,
} from '../../shared/events/monitoring/notifications.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { seconds } from '../../shared/time.ts';
import {
  type Change,
  change,
  defineProjection,
  defineTable,
  type Handler,
  insert,
  observed,
  on,
  type RowOf,
  type Turn,
} from '../projection.ts';

export const notificationsTable = defineTable(
  'notifications',
  {
    workspace_id: 'int',
    tenant_id: 'int',
    id: 'bigint',
    recipient: 'text',
    /** The owner of the recipient's name when it was raised: `user:7`, `agent:3`; null: none. A later owner differs. */
    owner: 'text?',
    type: 'text',
    title: 'text',
    message: 'text',
    /** The user whose name begins or ends one of these texts: in which of these ways, and the username. */
    by_key: 'text?',
    by_name: 'text?',
    source_type: 'text?',
    source_id: 'bigint?',
    read_at: 'bigint?',
    delivered_at: 'bigint?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    concerns: ({ recipient }) => ({ names: [recipient] }),
    indexes: [
      'workspace_id, recipient, created_at, id',
      '(workspace_id, recipient, created_at, id) WHERE read_at IS NULL',
      '(workspace_id, created_at, id) INCLUDE (recipient) WHERE delivered_at IS NULL',
      '(workspace_id, delivered_at, id) WHERE delivered_at IS NOT NULL',
      '(workspace_id, recipient, delivered_at, id) WHERE delivered_at IS NOT NULL',
      'created_at',
    ],
  },
);

/** The latest user or agent to have a name. The row stays when the name becomes free, and the next owner replaces it. */
export const nameOwnersTable = defineTable(
  'name_owners',
  {
    workspace_id: 'int',
    name: 'text',
    owner: 'text',
    /** Position of the event that gave the name to this owner. */
    since: 'bigint',
  },
  { key: ['workspace_id', 'name'], concerns: ({ name }) => ({ names: [name] }) },
);

const named = (workspace_id: number, name: string, owner: string, since: Position): Change =>
  change(nameOwnersTable, { workspace_id, name }, (row) =>
    row?.owner === owner ? row : { workspace_id, name, owner, since },
  );

/** Number of notifications, and of unread and delivered ones. */
export const notificationTotalsTable = defineTable(
  'notification_totals',
  { workspace_id: 'int', total: 'bigint', unread: 'bigint', delivered: 'bigint' },
  { key: ['workspace_id'] },
);

type NotificationRow = RowOf<(typeof notificationsTable)['columns']>;

const isDelivered = (row: NotificationRow | undefined): number => (row && row.delivered_at !== null ? 1 : 0);
const isUnread = (row: NotificationRow | undefined): number => (row && row.read_at === null ? 1 : 0);

/** The totals after some notifications were changed, added or removed. */
const totals = (workspace_id: number, turns: readonly Turn<(typeof notificationsTable)['columns']>[]): Change =>
  change(notificationTotalsTable, { workspace_id }, (row) => {
    const changed = turns.map((turn) => turn()).filter(({ before, now }) => before !== now);
    if (changed.length === 0) return row;
    const sum = (field: 'total' | 'unread' | 'delivered', of: (one: NotificationRow | undefined) => number) =>
      changed.reduce((all, { before, now }) => all + of(now) - of(before), row?.[field] ?? 0);
    return {
      workspace_id,
      total: sum('total', (one) => (one ? 1 : 0)),
      unread: sum('unread', isUnread),
      delivered: sum('delivered', isDelivered),
    };
  });

/** Changes of several rows; missing rows are skipped. */
const each = (
  workspace_id: number,
  ids: readonly number[],
  apply: (row: NotificationRow) => NotificationRow | undefined,
): Change[] => {
  const all = ids.map((id) => observed(notificationsTable, { workspace_id, id }, (row) => row && apply(row)));
  const turns = all.map(({ turn }) => turn);
  return [...all.map((one) => one.change), totals(workspace_id, turns)];
};

/** The first time counts. */
const deliveredAt = (at: number) => (row: NotificationRow) =>
  row.delivered_at === null ? { ...row, delivered_at: seconds(at) } : row;

const raised: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.notification)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = notificationOf(definition, event);
      if (!record) return [];
      const by = definition.notification?.(event)?.by;
      const texts = { by_key: by?.key ?? null, by_name: by?.username ?? null };
      const now = { tenant_id: event.meta.tenant, read_at: null, delivered_at: null, owner: null, ...texts, ...record };
      const { workspace_id, recipient: name } = record;
      const owner = observed(nameOwnersTable, { workspace_id, name }, (row) => row);
      const added = {
        ...insert(notificationsTable, now),
        apply: () => ({ ...now, owner: owner.turn().now?.owner ?? null }),
      };
      return [owner.change, added, totals(workspace_id, [() => ({ now })])];
    },
  }));

export const notificationsProjection = defineProjection({
  name: 'notifications',
  // 2: indexes for lists, deliveries and retention. 3: the tenant, for removals by retention. 4: totals. 5: users in
  // texts.
  version: 1,
  tables: [notificationsTable, notificationTotalsTable, nameOwnersTable],
  // Agents report their state all the time.
  wants: ({ type, data }) =>
    type !== agentDetailsChanged.type ||
    (data as EventOf<typeof agentDetailsChanged>['data']).changes.name !== undefined,
  handlers: [
    on(userCreated, ({ data, position }) => [named(data.workspace, data.username, `user:${data.user_id}`, position)]),
    on(userMoved, ({ data, position }) => [named(data.workspace, data.username, `user:${data.user_id}`, position)]),
    on(userTransferred, ({ data, position }) => [
      named(data.workspace, data.username, `user:${data.user_id}`, position),
    ]),
    on(agentRegistered, ({ data, meta, position }) => [
      named(meta.workspace, data.name, `agent:${data.agent_id}`, position),
    ]),
    on(agentDetailsChanged, ({ data, meta, position }) =>
      data.changes.name === undefined
        ? []
        : [named(meta.workspace, data.changes.name, `agent:${data.agent_id}`, position)],
    ),
    ...raised,
    on(notificationsRead, ({ data, meta }) =>
      each(meta.workspace, data.notification_ids, (row) =>
        row.read_at === null ? { ...row, read_at: seconds(meta.at) } : row,
      ),
    ),
    on(notificationsDelivered, ({ data, meta }) => each(meta.workspace, data.notification_ids, deliveredAt(meta.at))),
    on(notificationForwarded, ({ data, meta }) => each(meta.workspace, [data.notification_id], deliveredAt(meta.at))),
    on(recordsPurged, ({ data, meta }) =>
      data.table === 'notifications' ? each(meta.workspace, data.ids, () => undefined) : [],
    ),
    on(notificationsDeleted, ({ data, meta }) => each(meta.workspace, data.notification_ids, () => undefined)),
  ],
});
