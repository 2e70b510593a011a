/**
 * The state of one kind of stream, folded from its events. Decisions are pure functions of that state, kept next to it;
 * `handler.ts` runs them.
 */
import type { DomainEvent, EventDefinition, EventDraft, EventOf } from '../shared/events/define.ts';
import type { Actor } from '../shared/events/metadata.ts';

/** A stream according to the log. */
export interface Loaded<State> {
  readonly state: State;
  readonly revision: number;
  readonly position: number;
  readonly lastAt: number;
}

/** The part of an event that a fold may read. */
export type Evolving = Pick<DomainEvent, 'type' | 'data'> & {
  readonly at: number;
  /** Who caused the event; missing for an event that is only being decided. */
  readonly by?: Actor;
};

export interface LoadOptions {
  /** The state of this moment (`performance.now()`) or later; default: of the call. */
  readonly since?: number | undefined;
  /**
   * Accepts a cached state, which may lack events of other processes: for a caller whose command detects that, and then
   * loads the current state.
   */
  readonly recent?: boolean;
}

/** What `complete` may use: the workspace of the command, and states of other streams according to the log. */
export interface Look {
  readonly workspace: number;
  /** As of which moment states are loaded. */
  readonly at: LoadOptions | undefined;
  load<Other>(decider: Decider<Other>, stream: string, options?: LoadOptions): Promise<Loaded<Other>>;
}

/** The state of one kind of stream. `evolve` is pure and total: it ignores event types that it does not know. */
export interface Decider<State> {
  /** Name of the kind, for messages: `agent`. */
  readonly kind: string;
  readonly initial: State;
  /**
   * For streams that grow without bound: states are saved as snapshots under this version. Raise it whenever `evolve`
   * would produce a different state from the same events. The state must be JSON.
   */
  readonly snapshotVersion?: number;
  /** For kinds with possibly large states: approximate size of a state in characters. Default: states are small. */
  sizeOf?(state: State): number;
  /** Adds to decided events what is in other streams, such as the id of the agent that a name refers to. */
  complete?(drafts: readonly EventDraft[], state: State, look: Look): Promise<readonly EventDraft[]>;
  evolve(state: State, event: Evolving): State;
}

/** How events of some types change a state. Created by `on`. */
export interface Fold<State> {
  readonly types: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: `on` ties the function to the data of its definitions.
  readonly fold: (state: State, event: any) => State;
}

// biome-ignore lint/suspicious/noExplicitAny: any definition; the data of its events is inferred.
export type AnyDefinition = EventDefinition<any, any>;

/** Returns the state after an event of these definitions. `at` is the time of the event, Unix ms; `by` caused it. */
export function on<State, const D extends AnyDefinition>(
  definitions: D | readonly D[],
  fold: (
    state: State,
    event: {
      readonly type: string;
      readonly data: EventOf<D>['data'];
      readonly at: number;
      readonly by: Actor | undefined;
    },
  ) => NoInfer<State>,
): Fold<State> {
  const all = Array.isArray(definitions) ? (definitions as readonly D[]) : [definitions as D];
  return { types: all.map((definition) => definition.type), fold };
}

/**
 * Declares a decider. Event types without a fold leave the state unchanged.
 *
 * @throws Error when two folds have the same event type
 */
export function defineDecider<State>(definition: {
  readonly kind: string;
  readonly initial: State;
  readonly snapshotVersion?: number;
  readonly sizeOf?: (state: State) => number;
  readonly complete?: Decider<State>['complete'];
  readonly folds: readonly Fold<State>[];
}): Decider<State> {
  const { folds, ...rest } = definition;
  const byType = new Map<string, Fold<State>['fold']>();
  for (const { types, fold } of folds) {
    for (const type of types) {
      if (byType.has(type)) throw new Error(`${definition.kind}: two folds for the event type ${type}`);
      byType.set(type, fold);
    }
  }
  return {
    ...rest,
    evolve(state, { type, data, at, by }) {
      const fold = byType.get(type);
      return fold ? fold(state, { type, data, at, by }) : state;
    },
  };
}
