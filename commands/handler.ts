/**
 * The one way a command is run: load the stream (or take the state kept in memory), decide, append with the exact
 * revision, wait until the read models show it. A conflict is retried from a fresh load.
 *
 * Commands on one stream of this process queue only for the decision, not for the append: the next one decides on
 * the state that the one before will leave, and its append expects that revision. When an append fails, everything
 * decided on top of it conflicts, forgets the state and starts over.
 */
import { AppError, ConflictError, conflict, LogUnavailableError, unavailable } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent, EventDraft } from '../shared/events/define.ts';
import type { Counters } from '../shared/ports/counters.ts';
import type { NewEvent } from '../shared/ports/event-log.ts';
import type { ReadModels } from '../shared/ports/read-models.ts';
import type { Snapshots } from '../shared/ports/snapshots.ts';
import { pause, takingTurnsByKey } from '../shared/waiting.ts';
import type { Decider } from './decider.ts';
import { type CommandContext, nextStep, repeatIntent } from './intents.ts';
import { createStates, type KeptState } from './states.ts';

export type { CommandContext, Intent, Intents } from './intents.ts';

export interface Executed {
  /** The appended events, personal fields readable; empty when there was nothing to change. */
  readonly events: readonly DomainEvent[];
  /** Position of the stream's last event: what a reader has to have seen. */
  readonly position: number;
}

export interface Commands {
  readonly counters: Counters;
  /**
   * Runs one command against one stream.
   *
   * @param decide pure: state in, events out; throws AppError to refuse. It may be called several times.
   * @throws AppError what `decide` throws; 409 after repeated conflicts; 503 when the log is away or a read model is behind
   */
  execute<State>(
    decider: Decider<State>,
    stream: string,
    context: CommandContext,
    decide: (state: State) => readonly EventDraft[],
  ): Promise<Executed>;
  /** Appends without a decision: for streams that only record (sign-ins, denials). */
  record(stream: string, context: CommandContext, drafts: readonly EventDraft[]): Promise<Executed>;
  /** The state of a stream as the log has it now, and the time of its last event (ms, 0 without events). */
  load<State>(decider: Decider<State>, stream: string): Promise<{ readonly state: State; readonly lastAt: number }>;
}

/** Fresh loads after conflicts before the caller is told. */
const MAX_TRIES = 12;
/** The pause after the first conflict is up to this long, milliseconds; it grows with each. */
const RETRY_MS = 5;

type Decide = (state: unknown) => readonly EventDraft[];

export function createCommands(parts: {
  store: EventStore;
  counters: Counters;
  readModels: ReadModels;
  snapshots?: Snapshots;
}): Commands {
  const { store, counters, readModels, snapshots } = parts;
  const states = createStates(store, snapshots);
  /** One decision at a time on each stream. Whoever waits while the log is away fails with the first in line. */
  const inTurn = takingTurnsByKey((error) => error instanceof LogUnavailableError);

  /**
   * Decides on the kept state, or on a fresh one. A refusal or "nothing to do" leads to no append, which would tell
   * whether the kept state was right, so it is decided again on what the log says now.
   */
  async function decideOn(decider: Decider<unknown>, stream: string, decide: Decide, attempt: number) {
    const kept = states.kept(stream);
    if (kept) {
      const drafts = unlessRefused(() => decide(kept.state));
      if (drafts && drafts.length > 0) return { kept, drafts };
      await Promise.allSettled(kept.appends);
    }
    // An append that failed took the state away: what was decided on top of it never happened.
    const known = states.kept(stream) === kept ? kept : undefined;
    // After a conflict the log alone is believed.
    const current = await states.load(decider, stream, known, attempt === 1);
    return { kept: current, drafts: decide(current.state) };
  }

  /** Starts the append of what was decided; it is awaited outside the turn. */
  async function start(
    decider: Decider<unknown>,
    stream: string,
    context: CommandContext,
    step: number,
    { kept, drafts }: { readonly kept: KeptState; readonly drafts: readonly EventDraft[] },
  ): Promise<{ readonly kept: KeptState; readonly append?: Promise<Executed> }> {
    if (drafts.length === 0) return { kept };
    const prepared = await store.prepare(drafts, context.origin);
    const expected = kept.revision < 0 ? 'none' : kept.revision;
    await context.intents?.record(step, { stream, expected, events: prepared });
    const first = kept.revision + 1;
    states.advance(decider, stream, kept, readable(prepared, drafts, context, { stream, first, position: 0 }));
    const append = store.append(stream, prepared, expected).then(({ position }) => ({
      events: readable(prepared, drafts, context, { stream, first, position }),
      position,
    }));
    const types = drafts.map(({ type }) => type);
    return { kept, append: states.track(decider, stream, kept, types, append) };
  }

  /** Appends again what an earlier run of the request was about to append; undefined when it has to be decided. */
  async function repeat(context: CommandContext, step: number, stream: string): Promise<Executed | undefined> {
    const intent = context.intents?.recorded[step];
    // A run that takes another path than the earlier one has other steps.
    if (intent?.stream !== stream || intent.events.length === 0) return undefined;
    const repeated = repeatIntent(store, intent).finally(() => states.forget(stream));
    return repeated.catch(answerWith);
  }

  /** Gives what was executed once the read models show it. */
  async function visible(executed: Executed): Promise<Executed> {
    await readModels.visible(
      executed.events.map((event) => event.type),
      executed.position,
    );
    return executed;
  }

  /** Nothing to change. What that was decided on has to hold, and to be readable like any other success. */
  async function unchanged(kept: KeptState): Promise<Executed | undefined> {
    const settled = await Promise.allSettled(kept.appends);
    if (settled.some((one) => one.status === 'rejected')) return undefined;
    await readModels.visible(kept.types, kept.position);
    return { events: [], position: kept.position };
  }

  return {
    counters,
    async execute<State>(
      typed: Decider<State>,
      stream: string,
      context: CommandContext,
      decide: (state: State) => readonly EventDraft[],
    ) {
      const decider = typed as Decider<unknown>;
      const step = nextStep(context);
      const repeated = await repeat(context, step, stream);
      if (repeated) return visible(repeated);
      for (let attempt = 1; ; attempt++) {
        const { kept, append } = await inTurn(stream, async () =>
          start(decider, stream, context, step, await decideOn(decider, stream, decide as Decide, attempt)),
        );
        try {
          const executed = append ? await visible(await append) : await unchanged(kept);
          if (executed) return executed;
        } catch (error) {
          if (!(error instanceof ConflictError)) throw asAnswer(error);
          if (attempt >= MAX_TRIES) throw busy(decider, error);
          await pause(Math.random() * RETRY_MS * attempt);
        }
      }
    },
    async record(stream, context, drafts) {
      const step = nextStep(context);
      const repeated = await repeat(context, step, stream);
      if (repeated) return visible(repeated);
      const prepared = await store.prepare(drafts, context.origin);
      await context.intents?.record(step, { stream, expected: 'any', events: prepared });
      const { revision, position } = await store.append(stream, prepared, 'any').catch(answerWith);
      states.forget(stream);
      const first = revision - prepared.length + 1;
      return visible({ events: readable(prepared, drafts, context, { stream, first, position }), position });
    },
    async load<State>(decider: Decider<State>, stream: string) {
      const { state, at } = await states.read(decider as Decider<unknown>, stream);
      return { state: state as State, lastAt: at };
    },
  };
}

/** What `decide` gives; undefined when it refuses. */
function unlessRefused<T>(decide: () => T): T | undefined {
  try {
    return decide();
  } catch {
    return undefined;
  }
}

/** Events as they were prepared for the log, with the data and the address as they were before they were sealed. */
function readable(
  prepared: readonly NewEvent[],
  drafts: readonly EventDraft[],
  { origin }: CommandContext,
  at: { readonly stream: string; readonly first: number; readonly position: number },
): DomainEvent[] {
  return prepared.map((event, index) => ({
    ...event,
    data: (drafts[index] as EventDraft).data,
    meta: { ...(event.meta as unknown as DomainEvent['meta']), ip: origin.ip },
    stream: at.stream,
    revision: at.first + index,
    position: at.position,
  }));
}

const busy = ({ kind }: Decider<unknown>, cause: unknown) =>
  conflict(`Too many changes of this ${kind} at once; try again.`, { code: 'BUSY', cause });

/** @throws what `asAnswer` makes of the error */
function answerWith(error: unknown): never {
  throw asAnswer(error);
}

/** The log's failures as answers to a caller. */
function asAnswer(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error.name === 'LogUnavailableError') {
    return unavailable(
      'The event log cannot be reached. It is not known whether the change was stored: repeat the request with the same Idempotency-Key to find out.',
      { code: 'LOG_UNAVAILABLE', cause: error },
    );
  }
  if (error.name === 'EventTooLargeError') {
    return new AppError(413, `The change is too large for one event: ${error.message}.`, { cause: error });
  }
  return error;
}
