/**
 * Deciding again what the log says was decided. The log has events, not commands, so a replay gives a decision what its
 * events say the command was, and the state before them. Where events do not say it, nothing is decided again. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../shared/errors.ts';
import type { DomainEvent, EventDefinition, EventDraft, EventOf } from '../shared/events/define.ts';
import type { Decider } from './decider.ts';

/** The events of one command on one stream: they were appended together. At least one. */
export type Append = readonly DomainEvent[];

type Decided = readonly EventDraft[] | undefined;
type Again<State> = readonly [type: string, decide: (state: State, append: Append) => Decided];

// biome-ignore lint/suspicious/noExplicitAny: any definition; the data of its events is inferred.
type AnyDefinition = EventDefinition<any, any>;

/**
 * Says how appends are decided again whose first event is of one of these types: `decide` calls the decision with what the
 * events say of the command, which throws AppError to refuse, as ever. Undefined: they do not say what it was.
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
  /** What the names of its streams begin with. */
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

/** What became of an append when it was decided again. */
export type Outcome =
  | { readonly kind: 'same' }
  | { readonly kind: 'not decided again' }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `would`: what is decided now; as many as there are. */
  | { readonly kind: 'otherwise'; readonly would: readonly EventDraft[] };

const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

/** @throws what a decision throws besides refusals */
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
