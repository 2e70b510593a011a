/**
 * The webhook messages of an event: frames of the live stream under the names of webhook events, without their secrets.
 * An event gives at most one message of each type.
 */
import { catalogue } from '../catalogue.ts';
import type { DomainEvent, EventDefinition, FrameDraft } from '../define.ts';
import { auditOf } from '../monitoring/audit.ts';
import { framesOf, maskedFrame } from '../monitoring/frames.ts';

export interface WebhookMessage {
  /** The same for every attempt and every webhook. */
  readonly id: string;
  /** Such as `activity.task_created`. */
  readonly type: string;
  /** Time of the event, Unix ms. */
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
  /** The trace of the event, which a delivery continues. A retry does not have it. */
  readonly traceparent?: string;
}

/** Types of messages, by types of frames whose data has no type of its own. */
const BY_FRAME: Readonly<Record<string, string>> = {
  'agent.status_changed': 'agent.status_change',
  'task.created': 'activity.task_created',
  'task.updated': 'activity.task_updated',
  'task.deleted': 'activity.task_deleted',
  'task.status_changed': 'activity.task_status_changed',
};

/** Audit entries that become messages, although they send no frame. */
const BY_AUDIT: Readonly<Record<string, string>> = {
  user_create: 'security.user_created',
  user_delete: 'security.user_deleted',
};

/** Whether a webhook that subscribes to these types receives this type. Prefixes do not match. */
export const isChosen = (chosen: readonly string[], type: string): boolean =>
  chosen.includes('*') || chosen.includes(type);

const typesOf = ({ type, data }: FrameDraft): string[] => {
  if (type === 'activity.created') return [`activity.${String(data.type)}`];
  if (type === 'notification.created') return [`notification.${String(data.type)}`];
  if (type === 'audit.security') return [`security.${String(data.action)}`];
  const named = BY_FRAME[type];
  return named === undefined ? [] : [named];
};

const withheld = ({ unsent = [] }: FrameDraft): FrameDraft['data'] =>
  Object.fromEntries(unsent.map((key) => [key, null]));

/** The messages of an event, in the order in which they are sent. @param frames of the event, as displayed */
export function messagesOf(
  definition: EventDefinition,
  event: DomainEvent,
  frames: readonly FrameDraft[] = framesOf(definition, event),
): readonly WebhookMessage[] {
  const found = new Map<string, WebhookMessage['data']>();
  const add = (type: string, data: WebhookMessage['data']) => {
    const record = found.get(type);
    // A record and its activity become one message: the record, with the additional fields of the activity.
    found.set(type, record ? { ...data, ...record, activity: data } : data);
  };
  for (const frame of frames) {
    const data = { ...(frame.secrets ? maskedFrame(frame) : frame.data), ...withheld(frame) };
    for (const type of typesOf(frame)) add(type, data);
    if (frame.type === 'agent.status_changed' && data.status === 'error') add('agent.error', data);
  }
  for (const { type, data } of definition.webhooks?.(event) ?? [])
    add(type, { ...data, workspace_id: event.meta.workspace });
  const audit = auditOf(definition, event);
  const audited = BY_AUDIT[audit?.action ?? ''];
  if (audit && audited !== undefined) {
    const { actor, target_type, target_id, created_at, workspace_id } = audit;
    add(audited, {
      action: audited.slice('security.'.length),
      actor,
      target_type,
      target_id,
      timestamp: created_at,
      workspace_id,
    });
  }
  const { at, traceparent } = event.meta;
  const trace = traceparent !== undefined && { traceparent };
  return [...found].map(([type, data]) => ({
    id: `msg_${event.id}_${type.replaceAll('.', '-')}`,
    type,
    at,
    data,
    ...trace,
  }));
}

/** Types of events that may give messages; the others need not be decoded. */
export const MESSAGE_EVENTS: ReadonlySet<string> = new Set(
  [...catalogue.values()]
    .filter(
      ({ frames, notification, activity, webhooks, audit }) => frames ?? notification ?? activity ?? webhooks ?? audit,
    )
    .map(({ type }) => type),
);

/** The id of a message's event; undefined for an id that is not of this form. */
export const eventOfMessage = (messageId: string): string | undefined =>
  /^msg_([0-9a-f-]{36})_[a-z_-]+$/.exec(messageId)?.[1];
