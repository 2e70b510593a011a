/** The notification that an event sends, as its definition words it; and one that stands for itself. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent, type EventDefinition } from '../define.ts';

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

export const notificationRaised = defineEvent({
  type: 'NotificationRaised',
  version: 1,
  doc: 'Somebody is told of what the events before it say. Each recipient has one of their own, so that each notification has its own number.',
  schema: z.object({
    recipient: z.string(),
    type: z.string(),
    title: z.string(),
    message: z.string(),
    sourceType: z.string().nullable(),
    sourceId: z.int().nullable(),
  }),
  notification: ({ data: { recipient, type, title, message, sourceType, sourceId } }) => ({
    recipient,
    type,
    title,
    message,
    ...(sourceType !== null && { source_type: sourceType }),
    ...(sourceId !== null && { source_id: sourceId }),
  }),
});

export const notificationEvents = [notificationRaised];
