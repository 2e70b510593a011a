/**
 * One event = one object: type, version, schema, documentation, and its effect on the three read models that every
 * resource shares (activities, audit, notifications) and on the live stream. TypeScript types are derived from it.
 */
import type { z } from 'zod';
import type { Role } from '../identity.ts';
import type { Metadata } from './metadata.ts';

/** An event as the other code sees it: validated, upcast to the newest version, with personal fields decrypted. */
export interface DomainEvent<Type extends string = string, Data = Readonly<Record<string, unknown>>> {
  readonly id: string;
  readonly type: Type;
  readonly data: Data;
  readonly meta: Metadata;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
}

/** An event that a decider wants to append. */
export interface EventDraft<Type extends string = string, Data = Readonly<Record<string, unknown>>> {
  readonly type: Type;
  readonly data: Data;
}

export interface ActivityDraft {
  readonly type: string;
  readonly entity_type: string;
  /** 0 when the activity does not concern a single entity. */
  readonly entity_id: number;
  /** Default: the name of the event's actor. */
  readonly actor?: string;
  readonly description: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface AuditDraft {
  readonly action: string;
  /** Default: the event's actor. */
  readonly actor?: string;
  readonly actor_id?: number | null;
  /** Type and id of the record that the action was about. */
  readonly target?: readonly [type: string, id?: number];
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** A text of a record that may contain a username: as the whole text, at its beginning, or at its end. */
export interface UserInText {
  readonly key: string;
  readonly username: string;
}

export interface NotificationDraft {
  readonly recipient: string;
  readonly type: string;
  readonly title: string;
  readonly message: string;
  readonly source_type?: string;
  readonly source_id?: number;
  /** The user whose name begins or ends the text. */
  readonly by?: UserInText & { readonly key: 'title' | 'message' };
}

/** A frame of `GET /api/events`; the envelope (`timestamp`, `workspace_id`) is added when it is sent. */
export interface FrameDraft {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Keys of `data` that contain JSON from clients: its secrets are masked. */
  readonly secrets?: readonly string[];
  /** The ticket of the task in `data`: the project's fields are looked up and added when the frame is sent. */
  readonly ticket?: { readonly project_id: number; readonly project_ticket_no: number };
  /** Users in texts of `data`: their display names are looked up when the frame is sent. */
  readonly people?: readonly UserInText[];
  /** Keys of `data` that webhooks do not receive, such as text typed into a form: null for them. */
  readonly unsent?: readonly string[];
  /**
   * The lowest role that gets the frame; default: viewer. Data that other calls show only to admins must be limited to
   * admins here, too.
   */
  readonly role?: Role;
  /** Name of the agent or user it is for. Callers without access to others' notifications get only their own. */
  readonly recipient?: string;
}

/** A success or failure of an agent; diagnostics count them by hour. */
export interface SignalDraft {
  /** Name of the agent at that time. */
  readonly agent: string;
  readonly kind: 'completed' | 'failed';
  /** The type by which failures are counted, such as `task_failed`. */
  readonly type: string;
  readonly description: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A message to webhooks; the envelope is added when it is sent. */
export interface WebhookMessageDraft {
  /** A webhook event, such as `alert.triggered`. */
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventDefinition<Type extends string = string, Data = Readonly<Record<string, unknown>>> {
  readonly type: Type;
  /** Version of `schema`. Older versions are upcast in `upcasters.ts`. */
  readonly version: number;
  readonly doc: string;
  readonly schema: z.ZodType<Data>;
  /**
   * Top-level keys of `data` that hold personal data; they are sealed with the person's key before they reach the log.
   * Their schema must allow null, which is their value once the person has been erased.
   */
  readonly personal?: { readonly fields: readonly (keyof Data & string)[]; readonly person: (data: Data) => string };
  /**
   * Fields that contain JSON from clients, as dotted paths into `data`. Its secrets, recognised by name or format, are
   * sealed with the owner's key before they reach the log; they read as null once that key has been deleted.
   */
  readonly secrets?: {
    readonly fields: readonly string[];
    readonly owner: (data: Data, meta: Pick<Metadata, 'workspace'>) => string;
  };
  /** For calls that only an agent makes, such as its heartbeat: the id of that agent, for every sender of the request. */
  readonly self?: (event: DomainEvent<Type, Data>) => number | undefined;
  readonly activity?: (event: DomainEvent<Type, Data>) => ActivityDraft | undefined;
  readonly audit?: (event: DomainEvent<Type, Data>) => AuditDraft | undefined;
  readonly notification?: (event: DomainEvent<Type, Data>) => NotificationDraft | undefined;
  /** At most one of each kind. */
  readonly signals?: (event: DomainEvent<Type, Data>) => readonly SignalDraft[];
  readonly frames?: (event: DomainEvent<Type, Data>) => readonly FrameDraft[];
  /** For events about a notification: its recipient, who is also the recipient of all their frames. */
  readonly recipient?: (event: DomainEvent<Type, Data>) => string;
  /** Messages to webhooks besides those derived from the frames (`webhooks/messages.ts`). No secrets. */
  readonly webhooks?: (event: DomainEvent<Type, Data>) => readonly WebhookMessageDraft[];
}

/** A definition that can also create drafts: `agentRegistered.draft({...})`. */
export interface DefinedEvent<Type extends string, Data> extends EventDefinition<Type, Data> {
  draft(data: Data): EventDraft<Type, Data>;
}

/**
 * Declares an event. The type ends in a past participle, and must never change its meaning once it is written.
 *
 * @param definition.version default: 1
 */
export function defineEvent<const Type extends string, Data extends object>(
  definition: Omit<EventDefinition<Type, Data>, 'version'> & { readonly version?: number },
): DefinedEvent<Type, Data> {
  const { type } = definition;
  return { version: 1, ...definition, draft: (data) => ({ type, data }) };
}

/** An event as it reads after the erasure of its person; the same one if it has no personal fields. */
export function asErased(definition: Pick<EventDefinition, 'personal'>, event: DomainEvent): DomainEvent {
  const present = (definition.personal?.fields ?? []).filter((field) => field in event.data);
  if (present.length === 0) return event;
  return { ...event, data: { ...event.data, ...Object.fromEntries(present.map((field) => [field, null])) } };
}

/** The event type behind one or several definitions: `EventOf<typeof agentRegistered>`. */
export type EventOf<D> = D extends EventDefinition<infer Type, infer Data> ? DomainEvent<Type, Data> : never;

/** The first of these events with this definition. */
export const firstOf = <Type extends string, Data>(
  events: readonly DomainEvent[],
  { type }: EventDefinition<Type, Data>,
): DomainEvent<Type, Data> | undefined =>
  events.find((event) => event.type === type) as DomainEvent<Type, Data> | undefined;
