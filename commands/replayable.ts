/**
 * Replays decisions that are recorded in the log. The log has events, not commands, so a replay passes to a decision
 * the command as far as its events show it, and the state before them. If the events do not show the command, it is not
 * replayed. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../shared/errors.ts';
import type { DomainEvent, EventDefinition, EventDraft, EventOf } from '../shared/events/define.ts';
import type { Decider } from './decider.ts';

/** The events of one command on one stream, appended together; at least one. */
export type Append = readonly DomainEvent[];

type Decided = readonly EventDraft[] | undefined;
type Again<State> = readonly [type: string, decide: (state: State, append: Append) => Decided];

// biome-ignore lint/suspicious/noExplicitAny: any definition; the data of its events is inferred.
type AnyDefinition = EventDefinition<any, any>;

/**
 * Declares how appends are replayed whose first event has one of these types: `decide` calls the decision with the
 * command that the events show; the decision throws AppError to refuse. Undefined: they do not show the command.
 */
type On<State> = <const D extends AnyDefinition>(
  definitions: D | readonly D[],
  decide: (
    state: State,
    first: { readonly data: EventOf<D>['data']; readonly event: DomainEvent },
    append: Append,
  ) => Decided,
) => readonly Again<State>[];

/** A decider whose streams can be replayed. */
export interface Replayable {
  readonly name: string;
  readonly decider: Decider<unknown>;
  /** Prefix of the names of its streams. */
  readonly prefix: string;
  readonly decide: (state: unknown, append: Append) => Decided;
}

export function replayable<State>(definition: {
  readonly name: string;
  readonly decider: Decider<State>;
  readonly prefix: string;
  readonly again: (on: On<State>) => readonly (readonly Again<State>[])[];
}): Replayable {
  const on: On<State> = (definitions, decide) =>
    [definitions].flat().map(({ type }) => [
      type,
      (state, append) => {
        const event = append[0] as DomainEvent;
        return decide(state, { data: event.data, event }, append);
      },
    ]);
  const byType = new Map(definition.again(on).flat());
  return {
    name: definition.name,
    decider: definition.decider as Decider<unknown>,
    prefix: definition.prefix,
    decide: (state, append) => byType.get((append[0] as DomainEvent).type)?.(state as State, append),
  };
}

/** The outcome of a replayed append. */
export type Outcome =
  | { readonly kind: 'same' }
  | { readonly kind: 'not decided again' }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `would`: all events that the decision now gives. */
  | { readonly kind: 'otherwise'; readonly would: readonly EventDraft[] };

const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

/** @throws errors of a decision other than refusals */
export function decideAgain(of: Pick<Replayable, 'decide'>, state: unknown, append: Append): Outcome {
  try {
    const would = of.decide(state, append);
    if (!would) return { kind: 'not decided again' };
    const isSame =
      would.length === append.length &&
      would.every(
        ({ type, data }, n) => type === append[n]?.type && isDeepStrictEqual(asStored(data), asStored(append[n]?.data)),
      );
    return isSame ? { kind: 'same' } : { kind: 'otherwise', would };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { kind: 'refused', reason: error.message };
  }
}
