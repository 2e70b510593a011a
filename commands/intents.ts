/**
 * Idempotent requests. Each step of a request is stored before it is appended. If the same request is repeated after a
 * crash or a lost response, it appends the same events, and the log responds as it did the first time.
 */
import { ConflictError } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent } from '../shared/events/define.ts';
import type { Origin } from '../shared/events/metadata.ts';
import type { Expectation, NewEvent } from '../shared/ports/event-log.ts';

export interface Intents {
  /** The steps of the earlier run, in order. */
  readonly recorded: readonly Intent[];
  record(step: number, intent: Intent): Promise<void>;
}
export interface Intent {
  readonly stream: string;
  readonly expected: Expectation;
  readonly events: readonly NewEvent[];
}

/** The origin of a command, and how its request can be resumed. One per request or job. */
export interface CommandContext {
  readonly origin: Origin;
  readonly intents?: Intents;
  /** When the request arrived, `performance.now()`. */
  readonly arrivedAt?: number;
  /** Steps done so far; `nextStep` counts them. */
  step?: number;
}

/** The moment as of which a command looks things up: its request has asked for the head of the log already. */
export const arrival = ({ arrivedAt }: CommandContext): { readonly since: number } | undefined =>
  arrivedAt === undefined ? undefined : { since: arrivedAt };

/** The context for work that may be repeated safely: a repeated request does it again, instead of its recorded steps. */
export const withoutIntents = ({ origin }: CommandContext): CommandContext => ({ origin });

interface Acknowledged {
  position: number;
}

/** By origin; the commands of one request share one entry. */
const acknowledged = new WeakMap<Origin, Acknowledged>();

function acknowledgedIn(origin: Origin): Acknowledged {
  const known = acknowledged.get(origin) ?? { position: 0 };
  acknowledged.set(origin, known);
  return known;
}

/** Position of the last event that the commands of a request have appended, or found in the log; 0: none. */
export const acknowledgedOf = (origin: Origin): number => acknowledged.get(origin)?.position ?? 0;

export function acknowledge({ origin }: CommandContext, position: number): void {
  const known = acknowledgedIn(origin);
  known.position = Math.max(known.position, position);
}

/** The origin of events that the same request causes elsewhere. */
export function originWith(origin: Origin, changes: Partial<Origin>): Origin {
  const other = { ...origin, ...changes };
  acknowledged.set(other, acknowledgedIn(origin));
  return other;
}

/** Counts one more step of a request. @returns its number, from 0, which is the same in every run of the request */
export function nextStep(context: CommandContext): number {
  const step = context.step ?? 0;
  context.step = step + 1;
  return step;
}

/**
 * Appends the events that an earlier run stored; undefined when they were not appended and can no longer be.
 *
 * @throws errors of the log, except for conflicts
 */
export async function repeatIntent(
  store: EventStore,
  { stream, events, expected }: Intent,
): Promise<{ readonly events: readonly DomainEvent[]; readonly position: number } | undefined> {
  try {
    const { revision, position } = await store.append(stream, events, expected);
    const first = revision - events.length + 1;
    const decoded = events.map((event, index) => store.decode({ ...event, stream, revision: first + index, position }));
    return { events: await Promise.all(decoded), position };
  } catch (error) {
    if (error instanceof ConflictError) return undefined;
    throw error;
  }
}
