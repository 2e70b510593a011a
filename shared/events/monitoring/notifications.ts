/** The notification that an event sends, as its definition words it. */
import { seconds } from '../../time.ts';
import type { DomainEvent, EventDefinition } from '../define.ts';

export interface NotificationRecord {
  /** The event's number: an event gives at most one notification, and its number never changes. */
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
