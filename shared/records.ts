/**
 * What an event means to the read models and to the stream that all resources share: activities, audit entries,
 * notifications, frames. The meaning stands on the event's definition; this file turns it into records.
 *
 * Ids are the event's number: an event gives at most one record of each kind, and the number never changes.
 */
import type { DomainEvent, EventDefinition, FrameDraft } from './events/define.ts';
import { masked } from './secrets.ts';
import { seconds } from './time.ts';

export interface ActivityRecord {
  readonly id: number;
  readonly type: string;
  readonly entity_type: string;
  readonly entity_id: number;
  readonly actor: string;
  readonly description: string;
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly created_at: number;
  readonly workspace_id: number;
}

export function activityOf(definition: EventDefinition, event: DomainEvent): ActivityRecord | undefined {
  const draft = definition.activity?.(event);
  return (
    draft && {
      id: event.meta.number,
      type: draft.type,
      entity_type: draft.entity_type,
      entity_id: draft.entity_id,
      actor: draft.actor ?? event.meta.actor.name,
      description: draft.description,
      data: draft.data ?? null,
      created_at: seconds(event.meta.at),
      workspace_id: event.meta.workspace,
    }
  );
}

export interface AuditRecord {
  readonly id: number;
  readonly action: string;
  readonly actor: string;
  readonly actor_id: number | null;
  readonly target_type: string | null;
  readonly target_id: number | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly ip_address: string | null;
  readonly user_agent: string | null;
  readonly created_at: number;
  readonly workspace_id: number;
}

export function auditOf(definition: EventDefinition, event: DomainEvent): AuditRecord | undefined {
  const draft = definition.audit?.(event);
  const { meta } = event;
  return (
    draft && {
      id: meta.number,
      action: draft.action,
      actor: draft.actor ?? meta.actor.name,
      actor_id: draft.actor_id === undefined ? meta.actor.id : draft.actor_id,
      target_type: draft.target_type ?? null,
      target_id: draft.target_id ?? null,
      detail: draft.detail ?? null,
      ip_address: meta.ip,
      user_agent: meta.userAgent,
      created_at: seconds(meta.at),
      workspace_id: meta.workspace,
    }
  );
}

export interface NotificationRecord {
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

/** All frames of an event, in the order in which they are sent. */
export function framesOf(definition: EventDefinition, event: DomainEvent): readonly FrameDraft[] {
  const frames: FrameDraft[] = [...(definition.frames?.(event) ?? [])];
  const notification = notificationOf(definition, event);
  if (notification) frames.push({ type: 'notification.created', data: { ...notification } });
  const activity = activityOf(definition, event);
  if (activity) frames.push({ type: 'activity.created', data: { ...activity, metadata: activity.data } });
  return frames.map((frame) => ({ ...frame, data: { ...frame.data, workspace_id: event.meta.workspace } }));
}

/** The data of a frame for those who must not see secrets. */
export function maskedFrame({ data, secrets = [] }: FrameDraft): FrameDraft['data'] {
  const given = Object.fromEntries(secrets.filter((key) => key in data).map((key) => [key, data[key]]));
  return { ...data, ...(masked(given) as typeof given) };
}
