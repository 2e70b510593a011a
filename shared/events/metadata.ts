/**
 * What every event says besides its data: who, for whom, from where, why, when, and its schema version.
 */
import { z } from 'zod';

export const ACTOR_TYPES = ['user', 'agent', 'api', 'system', 'anonymous'] as const;

export const actorSchema = z.object({
  /** `user`: a person; `agent`: an agent by its own key; `api`: the deployment's key; `system`: Signalbox itself. */
  type: z.enum(ACTOR_TYPES),
  /** User id or agent id; 0 for the others. */
  id: z.int(),
  /** Username, agent name or the system part's name, as it was when the event happened. */
  name: z.string().max(300),
});
export type Actor = z.infer<typeof actorSchema>;

export const metadataSchema = z.object({
  /** Version of the event's data schema when it was written. */
  version: z.int().positive(),
  /** Deployment-wide number of the event from a counter outside the log; ids of derived records (activities, audit entries) are this number. */
  number: z.int().positive(),
  /** Unix milliseconds. */
  at: z.int().nonnegative(),
  tenant: z.int().positive(),
  workspace: z.int().positive(),
  actor: actorSchema,
  /** Client address, sealed per actor in the log; null when there was none or the person was erased. */
  ip: z.string().nullable(),
  userAgent: z.string().max(512).nullable(),
  /** The HTTP request that caused it. */
  requestId: z.string().nullable(),
  /** One id for everything that a first cause set off. */
  correlationId: z.string(),
  /** The event or request that caused this event directly. */
  causationId: z.string().nullable(),
});
export type Metadata = z.infer<typeof metadataSchema>;

/** What the caller of a command knows for the metadata; the event store adds version, number and time. */
export interface Origin {
  readonly tenant: number;
  readonly workspace: number;
  readonly actor: Actor;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly correlationId: string;
  readonly causationId: string | null;
}

/** The default tenant and workspace, made by the first start and never removed. */
export const DEFAULT_TENANT = 1;
export const DEFAULT_WORKSPACE = 1;
