/** Notifications: the list, actions on them, and their delivery. */
import {
  deleteNotifications,
  deliverNotifications,
  markDelivered,
  markRead,
  notifyAgent,
} from '../../../commands/monitoring/notifications.ts';
import { agentsNamed, findAgent } from '../../../queries/agents/agents.ts';
import {
  DELIVERY_MODELS,
  deliveryState,
  listNotifications,
  NOTIFICATION_MODELS,
  notificationsOf,
} from '../../../queries/monitoring/notifications.ts';
import * as contract from '../../../shared/contract/monitoring/notifications.ts';
import { forbidden } from '../../../shared/errors.ts';
import {
  type Identity,
  onlyRecipientOf,
  RECIPIENT,
  type Recipient,
  reaches,
  TASK_VIEW,
  taskViewOf,
} from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** Maximum number of notifications in the response to mark-delivered. */
const SHOWN = 1_000;

const OWN =
  'A viewer reads and marks the notifications under its own username, and the key of an agent those of its agent; operators and admins those of every recipient.';

/** The recipient as far as the caller may access it. @throws AppError 403 for another one */
function recipientFor(identity: Pick<Identity, (typeof RECIPIENT)[number]>, recipient: string): Recipient {
  const only = onlyRecipientOf(identity);
  if (only !== undefined && recipient !== only.name)
    throw forbidden(`These notifications are for ${recipient}; you may read and mark those for ${only.name} only.`);
  return only ?? { name: recipient };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/notifications',
  summary: 'List the notifications of a recipient, newest first',
  description: OWN,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.notificationsQuery,
  refuses: [403],
  responses: { 200: { description: 'A page of notifications', schema: contract.notificationsResponse } },
  cache: { models: NOTIFICATION_MODELS, caller: [...TASK_VIEW, ...RECIPIENT] },
  async respond({ query, identity, services }) {
    const recipient = await services.displayNames.usernameOf(identity.workspace, query.recipient);
    const whose = recipientFor(identity, recipient);
    return listNotifications(services.reads, taskViewOf(identity), whose, query, services.displayNames);
  },
});

/** The recipients of these notifications that are agents. */
async function recipientsOf(
  { reads, displayNames }: Services,
  { workspace }: Identity,
  recipient: string | undefined,
  ids: readonly number[] = [],
) {
  const found = ids.length === 0 ? [] : await notificationsOf(reads, workspace, ids, displayNames);
  const names = new Set(found.map((one) => one.recipient));
  if (recipient !== undefined) names.add(recipient);
  return agentsNamed(reads, workspace, [...names]);
}

const markAsRead = defineRoute({
  method: 'put',
  path: '/api/notifications',
  summary: 'Mark notifications as read',
  description: `${OWN} Ids of notifications for others are skipped, like those that do not exist, except that the key of an agent gets 403 for those of other agents.`,
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.markReadBody,
  agents: ({ body, identity, services }) => recipientsOf(services, identity, body.recipient, body.ids),
  responses: { 200: { description: 'Marked', schema: contract.markReadResponse } },
  async respond({ body, identity, services, command }) {
    const { recipient, markAllRead, ids = [] } = body;
    const all = recipient !== undefined && markAllRead;
    const which = all
      ? { recipient: recipientFor(identity, recipient) }
      : { ids, recipient: onlyRecipientOf(identity) };
    const markedAsRead = await markRead(services.commands, command, services.notifications, which);
    return { success: true, markedAsRead };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/notifications',
  summary: 'Delete notifications, by id or by age',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.deleteNotificationsBody,
  responses: { 200: { description: 'Deleted', schema: contract.deleteNotificationsResponse } },
  async respond({ body, services, command }) {
    const { ids, recipient = '', olderThan = 0 } = body;
    const which = ids ? { ids } : { recipient, before: olderThan };
    const deleted = await deleteNotifications(services.commands, command, services.notifications, which);
    return { success: true, deleted };
  },
});

const act = defineRoute({
  method: 'post',
  path: '/api/notifications',
  summary: 'Mark all notifications of a recipient as delivered',
  description: `The other actions work like PUT and DELETE, on one notification or on all of a recipient. ${OWN}`,
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.notificationActionBody,
  agents: ({ body: { agent, recipient, id }, identity, services }) =>
    recipientsOf(services, identity, agent ?? recipient, id === undefined ? [] : [id]),
  responses: { 200: { description: 'Done', schema: contract.notificationActionResponse } },
  async respond({ body, identity, services, command }) {
    const { commands, notifications, reads } = services;
    const { action, agent = '', recipient = '' } = body;
    const some = body.id === undefined ? [] : [body.id];
    if (action === 'mark-delivered') {
      const whose = recipientFor(identity, agent);
      const delivered = await markDelivered(commands, command, notifications, whose);
      const ids = [...delivered.keys()].slice(-SHOWN);
      // The notifications existed before, but the read model need not show yet that they are now delivered.
      const found = await notificationsOf(reads.at({}), identity.workspace, ids, services.displayNames);
      const shown = found.map((one) => ({ ...one, delivered_at: one.delivered_at ?? delivered.get(one.id) ?? null }));
      return { success: true, delivered: delivered.size, notifications: shown };
    }
    if (action === 'dismiss') {
      if (!reaches(identity.role, 'admin')) {
        throw forbidden(
          `To dismiss a notification deletes it, which requires the role admin; yours is ${identity.role}.`,
        );
      }
      await deleteNotifications(commands, command, notifications, { ids: some });
    } else if (action === 'mark_read') {
      await markRead(commands, command, notifications, { ids: some, recipient: onlyRecipientOf(identity) });
    } else {
      await markRead(commands, command, notifications, { recipient: recipientFor(identity, recipient) });
    }
    return { success: true };
  },
});

const deliver = defineRoute({
  method: 'post',
  path: '/api/notifications/deliver',
  summary: 'Deliver notifications, or create one and deliver it',
  description:
    'A notification for an agent is delivered into its inbox, as a message that its next heartbeat shows. Users have theirs in the list; those only count as delivered. With `agent`, `title` and `message`, one notification is created and delivered. The key of an agent creates and delivers notifications for its agent only, unless it has the scope `admin`.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'refused' },
  limit: 'none',
  body: contract.deliverBody,
  agents: ({ body: { agent, agent_filter } }) =>
    [agent, agent_filter].flatMap((name) => (name === undefined ? [] : [{ name }])),
  refuses: [404, 422],
  responses: { 200: { description: 'What was delivered and what could not be', schema: contract.deliverResponse } },
  async respond({ body, identity, services, command }) {
    const { commands, notifications, reads } = services;
    const { agent, title, message } = body;
    if (agent !== undefined && title !== undefined && message !== undefined) {
      const agentOf = async (name: string) => {
        const found = await findAgent(reads, identity.workspace, { name });
        return found ? { id: found.id, session_key: found.session_key } : null;
      };
      await notifyAgent(commands, command, agentOf, { agent, title, message, type: body.type ?? 'message' });
      return { success: true };
    }
    const dryRun = body.dry_run ?? false;
    const whose =
      body.agent_filter === undefined ? onlyRecipientOf(identity) : recipientFor(identity, body.agent_filter);
    const run = { recipient: whose, limit: body.limit, dry_run: dryRun };
    const { processed, results, errors } = await deliverNotifications(commands, command, notifications, run);
    if (processed === 0) {
      const nothing = { message: 'There are no notifications to deliver.', processed, delivered: 0, errors: [] };
      return { status: 'success', ...nothing };
    }
    const failed = errors.length > 0 ? `; ${errors.length} could not be delivered` : '';
    return {
      status: 'success',
      message: `${results.length} of ${processed} notifications ${dryRun ? 'would be' : 'were'} delivered${failed}.`,
      total_processed: processed,
      delivered: results.length,
      errors: errors.length,
      dry_run: dryRun,
      delivery_results: results,
      error_details: errors,
    };
  },
});

const deliveries = defineCachedRoute({
  method: 'get',
  path: '/api/notifications/deliver',
  summary: 'Delivery status: counts, pending recipients, latest deliveries',
  description: `${OWN} Without \`agent\`, they get the state of these.`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.deliveriesQuery,
  refuses: [403],
  responses: { 200: { description: 'The state of deliveries', schema: contract.deliveriesResponse } },
  cache: { models: DELIVERY_MODELS, caller: ['workspace', ...RECIPIENT] },
  async respond({ query, identity, services }) {
    const only = onlyRecipientOf(identity);
    const agent = query.agent === undefined ? only : recipientFor(identity, query.agent);
    return deliveryState(services.reads, identity.workspace, agent, only);
  },
});

export const notificationRoutes: readonly Route[] = [list, markAsRead, remove, act, deliver, deliveries];
