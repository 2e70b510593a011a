/** The activity that an event produces, according to its definition. */
import { seconds } from '../../time.ts';
import type { DomainEvent, EventDefinition, UserInText } from '../define.ts';

export interface ActivityRecord {
  /** The event's number: an event produces at most one activity, and its number never changes. */
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

/**
 * Types of activities whose actor is the author of a text, and is shown by the display name; the description may begin
 * with it. In all others, users are shown by their usernames.
 */
const AUTHORED: ReadonlySet<string> = new Set([
  'task_created',
  'comment_added',
  'task_broadcast',
  'task_assigned',
  'chat_message',
]);

/** Texts of an activity that may contain a username. */
export const peopleOfActivity = ({ type, actor }: Pick<ActivityRecord, 'type' | 'actor'>): readonly UserInText[] =>
  AUTHORED.has(type) ? ['actor', 'description'].map((key) => ({ key, username: actor })) : [];

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
