/**
 * The notification that an event sends, as its definition words it; a notification of its own; and changes of
 * notifications. Streams: `notifications-<workspace>-<day>` for changes of several at once, days counted since 1970;
 * `notification-<workspace>-<id>` for a delivery, which happens once; `notifications-<workspace>` for everything else.
 */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { conversationOf } from '../agents/messages.ts';
import { securityFrame } from '../auth/security-events.ts';
import { type DomainEvent, defineEvent, type EventDefinition, type NotificationDraft } from '../define.ts';
import type { Metadata } from '../metadata.ts';

export interface NotificationRecord {
  /** The event's number: an event produces at most one notification, and its number never changes. */
  readonly id: number;
  readonly recipient: string;
  readonly type: string;
  readonly title: string;
  readonly message: string;
  readonly source_type: string | null;
  readonly source_id: number | null;
  readonly created_at: number;
  readonly workspace_id: number;
}

export function notificationOf(definition: EventDefinition, event: DomainEvent): NotificationRecord | undefined {
  const draft = definition.notification?.(event);
  return (
    draft && {
      id: event.meta.number,
      recipient: draft.recipient,
      type: draft.type,
      title: draft.title,
      message: draft.message,
      source_type: draft.source_type ?? null,
      source_id: draft.source_id ?? null,
      created_at: seconds(event.meta.at),
      workspace_id: event.meta.workspace,
    }
  );
}

/** For a notification whose text contains its actor's username; empty if the actor is not a user with that name. */
export const byUser = (
  key: 'title' | 'message',
  meta: Pick<Metadata, 'actor'>,
  username: string,
): Pick<NotificationDraft, 'by'> =>
  meta.actor.type === 'user' && meta.actor.name === username ? { by: { key, username } } : {};

export const notificationRaised = defineEvent({
  type: 'NotificationRaised',
  doc: 'A recipient was notified of the events before this one. Each recipient has a separate event, so that each notification has its own number.',
  schema: z.object({
    recipient: z.string(),
    type: z.string(),
    title: z.string(),
    message: z.string(),
    source_type: z.string().nullable(),
    source_id: z.int().nullable(),
    /** Username with which the message begins; null: none. */
    by: z.string().nullable(),
  }),
  notification: ({ data: { recipient, type, title, message, source_type, source_id, by }, meta }) => ({
    recipient,
    type,
    title,
    message,
    ...(by !== null && byUser('message', meta, by)),
    ...(source_type !== null && { source_type }),
    ...(source_id !== null && { source_id }),
  }),
});

const notification_ids = z.array(z.int().positive());

export const notificationsRead = defineEvent({
  type: 'NotificationsRead',
  doc: 'Notifications were marked as read.',
  schema: z.object({ notification_ids }),
});

export const notificationsDelivered = defineEvent({
  type: 'NotificationsDelivered',
  doc: 'A recipient confirmed that it fetched its notifications.',
  schema: z.object({ recipient: z.string(), notification_ids }),
});

export const notificationsDeleted = defineEvent({
  type: 'NotificationsDeleted',
  doc: 'Notifications were removed, on request or because they expired. Their texts remain in the log.',
  schema: z.object({ notification_ids, cause: z.enum(['request', 'retention']) }),
});

/** Sender of notifications that become messages. No user or agent may have this name. */
export const NOTIFIER = 'system';
/** The kind of message that a notification becomes. */
export const NOTIFICATION_MESSAGE = 'notification';

export const notificationForwarded = defineEvent({
  type: 'NotificationForwarded',
  doc: 'A notification was delivered to the inbox of its agent. For users, who see it in their list, it is only marked as delivered.',
  schema: z.object({
    notification_id: z.int().positive(),
    recipient: z.string(),
    notification_type: z.string(),
    title: z.string(),
    /** Session key of the agent at that time. */
    session_key: z.string().nullable(),
    /** Null for users. */
    message: z
      .object({ message_id: z.int().positive(), to_agent_id: z.int().positive(), content: z.string() })
      .nullable(),
    /** Names of the critical screening rules that the text breaks, so that the message does not contain it. */
    withheld: z.array(z.string()).optional(),
  }),
  activity: ({ data }) => ({
    type: 'notification_delivered',
    entity_type: 'notification',
    entity_id: data.notification_id,
    actor: NOTIFIER,
    description: `The notification "${data.title}" was delivered to ${data.recipient}`,
    data: { notification_type: data.notification_type, session_key: data.session_key, title: data.title },
  }),
  recipient: ({ data }) => data.recipient,
  frames: (event) => {
    const { notification_id, recipient, message, withheld } = event.data;
    if (message === null) return [];
    const detail = { notification_id, agent: recipient, rules: withheld };
    return [
      {
        type: 'chat.message',
        data: {
          id: message.message_id,
          conversation_id: conversationOf({ from: NOTIFIER, from_agent_id: null, to_agent_id: message.to_agent_id }),
          from_agent: NOTIFIER,
          to_agent: recipient,
          content: message.content,
          message_type: NOTIFICATION_MESSAGE,
          metadata: null,
          read_at: null,
          created_at: seconds(event.meta.at),
        },
      },
      ...(withheld ? securityFrame(event, 'injection_attempt', 'warning', 'notifications', detail) : []),
    ];
  },
});

export const notificationDeliveryCompleted = defineEvent({
  type: 'NotificationDeliveryCompleted',
  doc: 'Undelivered notifications were processed, to deliver them or to preview what would be delivered.',
  schema: z.object({
    processed: z.int().nonnegative(),
    delivered: z.int().nonnegative(),
    errors: z.int().nonnegative(),
    dry_run: z.boolean(),
    agent_filter: z.string().nullable(),
  }),
  activity: ({ data: { processed, delivered, errors, dry_run, agent_filter } }) => ({
    type: 'notification_delivery_batch',
    entity_type: 'system',
    entity_id: 0,
    actor: 'notification_daemon',
    description: dry_run
      ? `${delivered} of ${processed} notifications would be delivered`
      : `${delivered} of ${processed} notifications were delivered`,
    data: { total_processed: processed, delivered, errors, dry_run, agent_filter },
  }),
});
