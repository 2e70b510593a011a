/** The audit entry that an event produces, according to its definition. */
import { seconds } from '../../time.ts';
import type { DomainEvent, EventDefinition } from '../define.ts';

export interface AuditRecord {
  /** The event's number: an event produces at most one entry, and its number never changes. */
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
  const [targetType = null, targetId = null] = draft?.target ?? [];
  return (
    draft && {
      id: meta.number,
      action: draft.action,
      actor: draft.actor ?? meta.actor.name,
      actor_id: draft.actor_id === undefined ? meta.actor.id : draft.actor_id,
      target_type: targetType,
      target_id: targetId,
      detail: draft.detail ?? null,
      ip_address: meta.ip,
      user_agent: meta.userAgent,
      created_at: seconds(meta.at),
      workspace_id: meta.workspace,
    }
  );
}
