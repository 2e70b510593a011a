/**
 * Policies: "whenever this event, then that job".
 *
 * A policy is a pure function of one event, so calling it twice gives the same jobs. It has no effects itself: each
 * returned value becomes a job whose id is derived from the policy's name and the event's id, and the job's handler has
 * the effect. `infra/jobs/policies.ts` calls each policy for every event since its first start; rebuilding read models
 * does not call policies.
 */
import { z } from 'zod';
import { AppError } from '../../shared/errors.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { systemActor } from '../../shared/identity.ts';
import type { JobKind } from '../../shared/ports/jobs.ts';
import { currentTraceparent } from '../../shared/ports/tracing.ts';
import type { CommandContext, Executed } from '../handler.ts';

/** A job that a policy requests. */
export interface WantedJob {
  readonly kind: JobKind;
  readonly payload: object;
  /** Distinguishes several jobs of one event; must be the same each time. Letters, digits, `-`, `_`, `.`. */
  readonly key: string | undefined;
}

/** @param payload names the work and where its data is; it does not contain the data */
export function wantJob<Payload extends object>(kind: JobKind<Payload>, payload: Payload, key?: string): WantedJob {
  return { kind, payload, key };
}

/** One `whenever(definition, then)` per event type. */
export interface Reaction {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: `whenever` ties the reaction to its definition's data.
  readonly then: (event: any) => readonly WantedJob[];
}

export function whenever<Type extends string, Data>(
  definition: EventDefinition<Type, Data>,
  then: (event: DomainEvent<Type, Data>) => readonly WantedJob[],
): Reaction {
  return { type: definition.type, then };
}

export interface Policy {
  /**
   * Lower-case words joined by `-`. Part of job ids and of the checkpoint's name, so a renamed policy is a new policy.
   */
  readonly name: string;
  readonly listensTo: ReadonlySet<string>;
  /**
   * Where the policy begins at its first run. `beginning`: it misses no event, not even one that was appended before
   * any process ran the policy; its jobs must do nothing if the work is already done.
   */
  readonly begins: 'beginning' | 'end';
  react(event: DomainEvent): readonly WantedJob[];
}

const POLICY_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** @param begins default: `end` */
export function definePolicy(name: string, reactions: readonly Reaction[], begins: Policy['begins'] = 'end'): Policy {
  if (!POLICY_NAME.test(name)) throw new Error(`invalid name of a policy "${name}": use lower-case words joined by -`);
  const byType = new Map(reactions.map((reaction) => [reaction.type, reaction.then]));
  if (byType.size !== reactions.length) throw new Error(`${name}: two reactions to one event type`);
  return {
    name,
    listensTo: new Set(byType.keys()),
    begins,
    react(event) {
      const wanted = byType.get(event.type)?.(event) ?? [];
      if (new Set(wanted.map((job) => job.key)).size !== wanted.length)
        throw new Error(`${name}: two jobs of one event have the same key`);
      return wanted;
    },
  };
}

/** The id of the job that a policy requests for an event. */
export function jobIdOf(policy: Pick<Policy, 'name'>, event: Pick<DomainEvent, 'id'>, key: string | undefined): string {
  return key === undefined ? `${policy.name}-${event.id}` : `${policy.name}-${event.id}-${key}`;
}

/** The context for commands of a schedule. `run`: one id for everything that is done in one turn. */
export function scheduledContext(run: string, tenant: number, workspace: number): CommandContext {
  const traceparent = currentTraceparent();
  return {
    origin: {
      tenant,
      workspace,
      actor: systemActor('scheduler'),
      ip: null,
      userAgent: null,
      requestId: null,
      correlationId: run,
      causationId: null,
      ...(traceparent !== undefined && { traceparent }),
    },
  };
}

/** The event behind a job, as part of its payload. */
export const cause = z.object({ tenant: z.int(), workspace: z.int(), event: z.string(), correlation: z.string() });

export const causeOf = ({ id, meta }: Pick<DomainEvent, 'id' | 'meta'>): z.infer<typeof cause> => ({
  tenant: meta.tenant,
  workspace: meta.workspace,
  event: id,
  correlation: meta.correlationId,
});

/** The context for commands of a job. */
export const causedBy = ({ correlation, tenant, workspace, event }: z.infer<typeof cause>): CommandContext => ({
  origin: { ...scheduledContext(correlation, tenant, workspace).origin, causationId: event },
});

/** The events of a command of a schedule; none if the record is busy, because others are then already changing it. */
export const unlessBusy = (executed: Promise<Executed>): Promise<Executed['events']> =>
  executed.then(
    ({ events }) => events,
    (error) => {
      if (error instanceof AppError && error.status === 409) return [];
      throw error;
    },
  );
