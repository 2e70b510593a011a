/** Notifications: the list, what is done to them, and their delivery. */
import {
  deleteNotifications,
  deliverNotifications,
  markDelivered,
  markRead,
  notifyAgent,
} from '../../../commands/monitoring/notifications.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import {
  DELIVERY_MODELS,
  deliveryState,
  listNotifications,
  NOTIFICATION_MODELS,
  notificationsOf,
} from '../../../queries/monitoring/notifications.ts';
import {
  deleteNotificationsAnswer,
  deleteNotificationsBody,
  deliverAnswer,
  deliverBody,
  deliveriesAnswer,
  deliveriesQuery,
  markReadAnswer,
  markReadBody,
  notificationActionAnswer,
  notificationActionBody,
  notificationsAnswer,
  notificationsQuery,
} from '../../../shared/contract/monitoring/notifications.ts';
import { forbidden } from '../../../shared/errors.ts';
import { reaches } from '../../../shared/identity.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/** Notifications that the answer to mark-delivered shows at most. */
const SHOWN = 1_000;

const list = defineRoute({
  method: 'get',
  path: '/api/notifications',
  tag: 'Monitoring',
  summary: 'List the notifications of a recipient, newest first',
  access: 'viewer',
  query: notificationsQuery,
  responses: { 200: { description: 'A page of notifications', schema: notificationsAnswer } },
  cache: { models: NOTIFICATION_MODELS, scope: 'workspace' },
  handle: async ({ query, identity, services }) => ({
    body: await listNotifications(services.reads, identity.workspace, query),
  }),
});

const markAsRead = defineRoute({
  method: 'put',
  path: '/api/notifications',
  tag: 'Monitoring',
  summary: 'Mark notifications as read',
  access: 'operator',
  limit: 'mutation',
  body: markReadBody,
  responses: { 200: { description: 'Marked', schema: markReadAnswer } },
  async handle({ body, services, command }) {
    const { recipient, markAllRead, ids = [] } = body;
    const which = recipient !== undefined && markAllRead ? { recipient } : { ids };
    const markedAsRead = await markRead(services.commands, command, services.notifications, which);
    return { body: { success: true, markedAsRead } };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/notifications',
  tag: 'Monitoring',
  summary: 'Delete notifications, by id or by age',
  access: 'admin',
  limit: 'mutation',
  body: deleteNotificationsBody,
  responses: { 200: { description: 'Deleted', schema: deleteNotificationsAnswer } },
  async handle({ body, services, command }) {
    const { ids, recipient = '', olderThan = 0 } = body;
    const which = ids ? { ids } : { recipient, before: olderThan };
    const deleted = await deleteNotifications(services.commands, command, services.notifications, which);
    return { body: { success: true, deleted } };
  },
});

const act = defineRoute({
  method: 'post',
  path: '/api/notifications',
  tag: 'Monitoring',
  summary: 'Mark all notifications of a recipient as delivered',
  description: 'The other actions do to one notification, or to all of a recipient, what PUT and DELETE do.',
  access: 'operator',
  limit: 'mutation',
  body: notificationActionBody,
  responses: { 200: { description: 'Done', schema: notificationActionAnswer } },
  async handle({ body, identity, services, command }) {
    const { commands, notifications, reads } = services;
    const { action, agent = '', recipient = '' } = body;
    const ids = body.id === undefined ? [] : [body.id];
    if (action === 'mark-delivered') {
      const delivered = await markDelivered(commands, command, notifications, agent);
      const shown = await notificationsOf(reads, identity.workspace, delivered.slice(-SHOWN));
      return { body: { success: true, delivered: delivered.length, notifications: shown } };
    }
    if (action === 'dismiss') {
      if (!reaches(identity.role, 'admin')) {
        throw forbidden(
          `To dismiss a notification deletes it, which requires the role admin; yours is ${identity.role}.`,
        );
      }
      await deleteNotifications(commands, command, notifications, { ids });
    } else await markRead(commands, command, notifications, action === 'mark_read' ? { ids } : { recipient });
    return { body: { success: true } };
  },
});

const deliver = defineRoute({
  method: 'post',
  path: '/api/notifications/deliver',
  tag: 'Monitoring',
  summary: 'Deliver notifications, or create one and deliver it',
  description:
    'A notification for an agent is delivered into its inbox, as a message that its next heartbeat shows. Users have theirs in the list; those only count as delivered. With `agent`, `title` and `message`, one notification is created and delivered.',
  access: 'operator',
  body: deliverBody,
  refuses: [404, 422],
  responses: { 200: { description: 'What was delivered and what could not be', schema: deliverAnswer } },
  async handle({ body, identity, services, command }) {
    const { commands, notifications, reads } = services;
    const { agent, title, message } = body;
    if (agent !== undefined && title !== undefined && message !== undefined) {
      const agentOf = async (name: string) => {
        const found = await findAgent(reads, identity.workspace, { name });
        return found ? { id: found.id, sessionKey: found.session_key } : null;
      };
      await notifyAgent(commands, command, agentOf, { agent, title, message, type: body.type ?? 'message' });
      return { body: { success: true } };
    }
    const dryRun = body.dry_run ?? false;
    const run = { recipient: body.agent_filter, limit: body.limit, dryRun };
    const { processed, results, errors } = await deliverNotifications(commands, command, notifications, run);
    if (processed === 0) {
      const nothing = { message: 'There are no notifications to deliver.', processed, delivered: 0, errors: [] };
      return { body: { status: 'success', ...nothing } };
    }
    const failed = errors.length > 0 ? `; ${errors.length} could not be delivered` : '';
    return {
      body: {
        status: 'success',
        message: `${results.length} of ${processed} notifications ${dryRun ? 'would be' : 'were'} delivered${failed}.`,
        total_processed: processed,
        delivered: results.length,
        errors: errors.length,
        dry_run: dryRun,
        delivery_results: results,
        error_details: errors,
      },
    };
  },
});

const deliveries = defineRoute({
  method: 'get',
  path: '/api/notifications/deliver',
  tag: 'Monitoring',
  summary: 'How deliveries stand: counts, who has some pending, the latest',
  access: 'viewer',
  query: deliveriesQuery,
  responses: { 200: { description: 'The state of deliveries', schema: deliveriesAnswer } },
  cache: { models: DELIVERY_MODELS, scope: 'workspace' },
  handle: async ({ query, identity, services }) => ({
    body: await deliveryState(services.reads, identity.workspace, query.agent),
  }),
});

export const notificationRoutes: readonly Route[] = [list, markAsRead, remove, act, deliver, deliveries];
