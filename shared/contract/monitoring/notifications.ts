/** Notifications: the list, actions on them, and their delivery. */
import { z } from 'zod';
import { filterParam, idValue, jsonObject, limitParam, offsetParam, unixSeconds } from '../common.ts';
import { filledText, isStorable, nameText, text, UNSTORABLE_TEXT } from '../storable.ts';

const notificationFields = {
  id: z.int(),
  recipient: z.string().describe('name of an agent or a user; `system` for notices to operators'),
  type: z.string(),
  title: z.string(),
  message: z.string(),
  source_type: z.string().nullable(),
  source_id: z.int().nullable(),
  read: z.boolean(),
  read_at: unixSeconds.nullable().describe('null: unread'),
  delivered_at: unixSeconds.nullable().describe('null: not delivered'),
  created_at: unixSeconds,
  workspace_id: z.int(),
};
export const notificationSchema = z.object(notificationFields).meta({ id: 'Notification' });
export type NotificationResponse = z.infer<typeof notificationSchema>;
export const listedNotificationSchema = z
  .object({
    ...notificationFields,
    source: jsonObject.nullable().describe('its subject, as it is now; null if it no longer exists'),
  })
  .meta({ id: 'ListedNotification' });
export type ListedNotification = z.infer<typeof listedNotificationSchema>;

const recipientName = nameText(500);
const exactly = z
  .string()
  .optional()
  .transform((value) => value === 'true')
  .meta({ override: { type: 'string', enum: ['true', 'false'], default: 'false' } });

export const notificationsQuery = z.object({
  recipient: recipientName.describe('exact name'),
  unread_only: exactly,
  unread: exactly.describe('alias of unread_only'),
  type: filterParam.refine(isStorable, UNSTORABLE_TEXT),
  limit: limitParam(50, 500),
  offset: offsetParam,
});
export type NotificationsQuery = z.infer<typeof notificationsQuery>;

export const notificationsResponse = z.object({
  notifications: z.array(listedNotificationSchema),
  total: z.int(),
  page: z.int(),
  limit: z.int(),
  unreadCount: z.int().describe('all unread ones of the recipient, of any type'),
});

/** Maximum number of ids in one request. */
const MAX_IDS = 1_000;
const ids = z.array(idValue).max(MAX_IDS).optional();

export const markReadBody = z
  .object({
    recipient: recipientName.optional(),
    markAllRead: z.boolean().optional().describe('with `recipient`: all of them'),
    ids,
  })
  .refine(({ recipient, markAllRead, ids: some }) => (recipient !== undefined && markAllRead) || some !== undefined, {
    path: ['ids'],
    message: 'send ids, or recipient with markAllRead: true',
  });
export const markReadResponse = z.object({ success: z.literal(true), markedAsRead: z.int() });

export const deleteNotificationsBody = z
  .object({
    ids,
    recipient: recipientName.optional(),
    olderThan: z.int().min(0).max(999_999_999_999).optional().describe('created before this time, Unix seconds'),
  })
  .refine((body) => body.ids !== undefined || (body.recipient !== undefined && body.olderThan !== undefined), {
    path: ['ids'],
    message: 'send ids, or recipient with olderThan',
  });
export const deleteNotificationsResponse = z.object({ success: z.literal(true), deleted: z.int() });

const NEEDED = {
  'mark-delivered': 'agent',
  mark_read: 'id',
  mark_all_read: 'recipient',
  dismiss: 'id',
} as const;

export const notificationActionBody = z
  .object({
    action: z
      .enum(['mark-delivered', 'mark_read', 'mark_all_read', 'dismiss'])
      .describe(
        'mark-delivered needs `agent`, mark_all_read `recipient`, the others `id`; dismiss deletes: admins only',
      ),
    agent: recipientName.optional(),
    id: idValue.optional(),
    recipient: recipientName.optional(),
  })
  .superRefine((body, context) => {
    const field = NEEDED[body.action];
    if (body[field] === undefined) {
      context.addIssue({ code: 'custom', path: [field], message: `is required with the action ${body.action}` });
    }
  });
export const notificationActionResponse = z.object({
  success: z.literal(true),
  delivered: z.int().optional().describe('with mark-delivered'),
  notifications: z.array(notificationSchema).optional().describe('with mark-delivered: the newest 1000 of them'),
});

/** Maximum number of notifications that one run delivers. */
export const MAX_DELIVERED = 1_000;

export const deliverBody = z
  .object({
    agent_filter: recipientName.optional().describe('only notifications of this recipient'),
    limit: z
      .int()
      .min(1)
      .optional()
      .transform((limit) => Math.min(limit ?? 50, MAX_DELIVERED))
      .meta({ override: { type: 'integer', minimum: 1, maximum: MAX_DELIVERED, default: 50 } }),
    dry_run: z.boolean().optional(),
    agent: recipientName.optional().describe('with `title` and `message`: creates and delivers one notification'),
    title: filledText(500).optional(),
    message: text(10_000).optional(),
    type: filledText(100).optional().describe('of the notification that is created; default message'),
  })
  .superRefine((body, context) => {
    if (body.title === undefined && body.message === undefined) return;
    for (const field of ['agent', 'title', 'message'] as const) {
      if (body[field] === undefined || body[field].trim() === '') {
        context.addIssue({ code: 'custom', path: [field], message: 'is required to create a notification' });
      }
    }
  });

const deliveryResult = z.object({
  notification_id: z.int(),
  recipient: z.string(),
  session_key: z.string().nullable(),
  status: z.enum(['delivered', 'dry_run']),
  delivered_at: unixSeconds.optional(),
  stdout: z.string().optional().describe('where it went'),
  message: z.string().optional().describe('of a dry run: the text that would be delivered'),
});
export type DeliveryResult = z.infer<typeof deliveryResult>;
const deliveryError = z.object({ notification_id: z.int(), recipient: z.string(), error: z.string() });
export type DeliveryError = z.infer<typeof deliveryError>;

export const deliverResponse = z.union([
  z.object({
    status: z.literal('success'),
    message: z.string(),
    processed: z.literal(0),
    delivered: z.literal(0),
    errors: z.array(deliveryError).max(0).describe('nothing was to be delivered'),
  }),
  z.object({
    status: z.literal('success'),
    message: z.string(),
    total_processed: z.int(),
    delivered: z.int(),
    errors: z.int(),
    dry_run: z.boolean(),
    delivery_results: z.array(deliveryResult),
    error_details: z.array(deliveryError),
  }),
  z.object({ success: z.literal(true) }),
]);

export const deliveriesQuery = z.object({ agent: filterParam.refine(isStorable, UNSTORABLE_TEXT) });
export const deliveriesResponse = z.object({
  statistics: z.object({
    total: z.int(),
    delivered: z.int(),
    undelivered: z.int(),
    delivery_rate: z.int().describe('percent'),
  }),
  agents_with_pending: z.array(
    z.object({ recipient: z.string(), session_key: z.string().nullable(), pending_count: z.int() }),
  ),
  recent_deliveries: z.array(
    z.object({
      recipient: z.string(),
      type: z.string(),
      title: z.string(),
      delivered_at: unixSeconds,
      created_at: unixSeconds,
    }),
  ),
  agent_filter: z.string().nullable(),
});
