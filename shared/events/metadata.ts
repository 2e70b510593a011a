/** The metadata of every event: actor, workspace, address, cause, time, and schema version. */
import { z } from 'zod';

export const ACTOR_TYPES = ['user', 'agent', 'api', 'system', 'anonymous'] as const;

export const actorSchema = z.object({
  /** `user`: a person; `agent`: an agent by its own key; `api`: the deployment's key; `system`: Signalbox itself. */
  type: z.enum(ACTOR_TYPES),
  /** User id or agent id; 0 for the others. */
  id: z.int(),
  /** Name of the user, agent or part of the system at the time of the event. */
  name: z.string().max(300),
});
export type Actor = z.infer<typeof actorSchema>;

/** Channels of requests other than the REST interface. `mcp`: a tool call of the Model Context Protocol. */
export const CHANNELS = ['mcp'] as const;
export type Channel = (typeof CHANNELS)[number];

export const metadataSchema = z.object({
  /** Version of the event's data schema when it was written. */
  version: z.int().positive(),
  /**
   * Deployment-wide number of the event, from a counter outside the log; also the id of derived records (activities,
   * audit entries).
   */
  number: z.int().positive(),
  /** Unix milliseconds. */
  at: z.int().nonnegative(),
  /** How many events of the same append follow this one; absent for the last. */
  rest: z.int().positive().optional(),
  tenant: z.int().positive(),
  workspace: z.int().positive(),
  actor: actorSchema,
  /**
   * Id of the agent that a user, or the holder of the deployment's key, spoke for (`x-agent-name`). Absent: none; an
   * actor that is an agent speaks for itself.
   */
  agent: z.int().positive().optional(),
  /** The channel of the request; absent for calls of the REST interface. */
  via: z.enum(CHANNELS).optional(),
  /** Client address, sealed per actor in the log; null when there was none or the person was erased. */
  ip: z.string().nullable(),
  userAgent: z.string().max(512).nullable(),
  /** The HTTP request that caused it. */
  requestId: z.string().nullable(),
  /** Shared by all events with the same first cause. */
  correlationId: z.string(),
  /** The event or request that directly caused this event. */
  causationId: z.string().nullable(),
  /**
   * Trace context (https://www.w3.org/TR/trace-context/) of the request that caused it, or of the job. Absent without one.
   */
  traceparent: z.string().max(55).optional(),
});
export type Metadata = z.infer<typeof metadataSchema>;

/** The metadata that the caller of a command provides; the event store adds version, number and time. */
export interface Origin {
  readonly tenant: number;
  readonly workspace: number;
  readonly actor: Actor;
  readonly agent?: number;
  readonly via?: Channel;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly correlationId: string;
  readonly causationId: string | null;
  readonly traceparent?: string;
}

/** The default tenant and workspace, created by the first start and never removed. */
export const DEFAULT_TENANT = 1;
export const DEFAULT_WORKSPACE = 1;
