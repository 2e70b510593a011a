/**
 * The only way to run a command: load the stream (or use the cached state), decide, append with the exact revision. A
 * conflict is retried from a fresh load. A command is done when its events are durable: reads wait for read models,
 * writes do not.
 *
 * Commands on the same stream in this process take turns: each decides on a state whose events are all in the log.
 * Deciding earlier, on events still in flight, would be unsafe although each append expects its revision: if the first
 * append conflicts because others have written the same number of events, a later one fits behind those, although it
 * was decided on events that were never written.
 */

import { AppError, ConflictError, conflict, LogUnavailableError, unavailable } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent, EventDraft } from '../shared/events/define.ts';
import type { Counters } from '../shared/ports/counters.ts';
import type { NewEvent } from '../shared/ports/event-log.ts';
import type { Snapshots } from '../shared/ports/snapshots.ts';
import { pause, takingTurnsByKey } from '../shared/waiting.ts';
import type { Decider, Loaded, LoadOptions } from './decider.ts';
import { acknowledge, arrival, type CommandContext, nextStep, repeatIntent } from './intents.ts';
import { createStates, type KeptState } from './states.ts';

export { acknowledgedOf, arrival, type CommandContext, type Intent, type Intents, originWith } from './intents.ts';

export interface Executed {
  readonly stream: string;
  /** The appended events, personal fields readable; empty when nothing had to change. */
  readonly events: readonly DomainEvent[];
  /** Position of the stream's last event. */
  readonly position: number;
}

export interface ExecuteOptions {
  /**
   * The stream most likely does not exist yet, so it is not read first. If it does exist, the append conflicts, and the
   * decision is repeated on the state in the log.
   */
  readonly fresh?: boolean;
  /** Aborted when nothing more may be appended, because the decision relies on a lock that was lost. */
  readonly unless?: AbortSignal | undefined;
}

export interface Commands {
  readonly counters: Counters;
  /** Ids of the users of a workspace whose display names have this key (`displayKeys`), according to the read model. */
  readonly displayed?: ((workspace: number, key: string) => Promise<readonly number[]>) | undefined;
  /**
   * Runs one command against one stream.
   *
   * @param decide pure: state in, events out; throws AppError to refuse. It may be called several times.
   * @throws AppError what `decide` throws; 409 after repeated conflicts; 503 when the log is unavailable
   */
  execute<State>(
    decider: Decider<State>,
    stream: string,
    context: CommandContext,
    decide: (state: State) => readonly EventDraft[],
    options?: ExecuteOptions,
  ): Promise<Executed>;
  /** Appends without a decision: for streams that only record (sign-ins, denials). */
  record(stream: string, context: CommandContext, drafts: readonly EventDraft[]): Promise<Executed>;
  /** Removes the cached state of a stream, because some of its events now read differently. */
  forget(stream: string): void;
  /** Called with the events of the log as this process sees them, in order, and the position of the last one. */
  saw(position: number, events: readonly Pick<DomainEvent, 'stream' | 'revision'>[]): void;
  /**
   * The current state of a stream according to the log, with revision (-1 without events), position and time of its last
   * event (Unix ms; 0 without events).
   */
  load<State>(decider: Decider<State>, stream: string, options?: LoadOptions): Promise<Loaded<State>>;
}

/** Most attempts after conflicts before the command fails. */
const MAX_TRIES = 12;
/** Longest pause after the first conflict, milliseconds; it grows with each further one. */
const RETRY_MS = 5;

type Decide = (state: unknown) => readonly EventDraft[];

export function createCommands(parts: {
  store: EventStore;
  counters: Counters;
  snapshots?: Snapshots;
  displayed?: Commands['displayed'];
  /** See `createStates`. */
  seen?: (since: number) => Promise<boolean> | boolean;
  /** Called with the appended events before they are acknowledged; undefined: no wait is necessary. */
  beforeAcknowledged?: (executed: Executed) => Promise<void> | undefined;
}): Commands {
  const { store, counters, snapshots, beforeAcknowledged } = parts;
  const states = createStates(store, snapshots, parts.seen);
  /**
   * One decision at a time on each stream. While the log is unavailable, all waiting commands fail with the first in
   * the queue.
   */
  const inTurn = takingTurnsByKey((error) => error instanceof LogUnavailableError);

  /**
   * Decides on the cached state, or on a fresh one. After a refusal or "nothing to do" no append shows whether the
   * cached state was current, so the decision is repeated on the current state of the log.
   */
  async function decideOn(
    decider: Decider<unknown>,
    stream: string,
    decide: Decide,
    { attempt, fresh }: { readonly attempt: number; readonly fresh: boolean },
  ) {
    const cached = states.kept(stream);
    if (cached) await answered(cached);
    // If an append failed, the state was discarded.
    const known = states.kept(stream) === cached ? cached : undefined;
    const assumed = known ?? (fresh && attempt === 1 ? states.begin(decider, stream) : undefined);
    if (assumed) {
      const drafts = unlessRefused(() => decide(assumed.state));
      if (drafts && drafts.length > 0) return { kept: assumed, drafts };
    }
    // After a conflict, only the log is trusted.
    const current = await states.load(decider, stream, known, attempt === 1);
    return { kept: current, drafts: decide(current.state) };
  }

  async function load<State>(
    typed: Decider<State>,
    stream: string,
    { recent = false, since = performance.now() }: LoadOptions = {},
  ) {
    const decider = typed as Decider<unknown>;
    const loaded = await (recent ? states.recent(decider, stream) : states.read(decider, stream, since));
    const { state, revision, position, at } = loaded;
    return { state: state as State, revision, position, lastAt: at };
  }

  /** Starts appending the decided events; the caller awaits the append outside the queue. */
  async function start(
    decider: Decider<unknown>,
    stream: string,
    context: CommandContext,
    step: number,
    { kept, drafts: decidedOn }: { readonly kept: KeptState; readonly drafts: readonly EventDraft[] },
    unless: AbortSignal | undefined,
  ): Promise<{ readonly kept: KeptState; readonly append?: Promise<Executed> }> {
    if (decidedOn.length === 0) return { kept };
    const drafts = decider.complete
      ? await decider.complete(decidedOn, kept.state, {
          workspace: context.origin.workspace,
          at: arrival(context),
          load,
        })
      : decidedOn;
    const prepared = await store.prepare(drafts, context.origin);
    const expected = kept.revision < 0 ? 'none' : kept.revision;
    await context.intents?.record(step, { stream, expected, events: prepared });
    const first = kept.revision + 1;
    const decided = readable(prepared, drafts, context, { stream, first, position: 0 });
    states.advance(decider, stream, kept, decided);
    const append = store.append(stream, prepared, expected, unless).then(({ position }) => ({
      stream,
      events: decided.map((event) => ({ ...event, position })),
      position,
    }));
    return { kept, append: states.track(decider, stream, kept, append) };
  }

  /** Repeats the append that an earlier run of the request stored; undefined when a new decision is needed. */
  async function repeat(context: CommandContext, step: number, stream: string): Promise<Executed | undefined> {
    const intent = context.intents?.recorded[step];
    // A run that takes another path than the earlier one has other steps.
    if (intent?.stream !== stream || intent.events.length === 0) return undefined;
    const repeated = repeatIntent(store, intent).finally(() => states.forget(stream));
    const executed = await repeated.catch(answerWith);
    return executed && { stream, ...executed };
  }

  /** Records with the request the log position of its last write. */
  async function acknowledged(context: CommandContext, executed: Executed): Promise<Executed> {
    const work = executed.events.length > 0 ? beforeAcknowledged?.(executed) : undefined;
    if (work) await work;
    acknowledge(context, executed.position);
    return executed;
  }

  /** Nothing to change. The state behind this decision must be in the log, as after any other success. */
  async function unchanged(stream: string, kept: KeptState): Promise<Executed | undefined> {
    const settled = await Promise.allSettled(kept.appends);
    if (settled.some((one) => one.status === 'rejected')) return undefined;
    return { stream, events: [], position: kept.position };
  }

  return {
    counters,
    displayed: parts.displayed,
    async execute<State>(
      typed: Decider<State>,
      stream: string,
      context: CommandContext,
      decide: (state: State) => readonly EventDraft[],
      { fresh = false, unless }: ExecuteOptions = {},
    ) {
      const decider = typed as Decider<unknown>;
      const step = nextStep(context);
      const repeated = await repeat(context, step, stream);
      if (repeated) return acknowledged(context, repeated);
      for (let attempt = 1; ; attempt++) {
        const { kept, append } = await inTurn(stream, async () => {
          const decided = await decideOn(decider, stream, decide as Decide, { attempt, fresh });
          return start(decider, stream, context, step, decided, unless);
        });
        try {
          const executed = append ? await append : await unchanged(stream, kept);
          if (executed) return await acknowledged(context, executed);
        } catch (error) {
          if (!(error instanceof ConflictError)) throw asResponse(error);
          if (attempt >= MAX_TRIES) throw busy(decider, error);
          await pause(Math.random() * RETRY_MS * attempt);
        }
      }
    },
    async record(stream, context, drafts) {
      const step = nextStep(context);
      const repeated = await repeat(context, step, stream);
      if (repeated) return acknowledged(context, repeated);
      const prepared = await store.prepare(drafts, context.origin);
      await context.intents?.record(step, { stream, expected: 'any', events: prepared });
      const { revision, position } = await store.append(stream, prepared, 'any').catch(answerWith);
      states.forget(stream);
      const first = revision - prepared.length + 1;
      return acknowledged(context, {
        stream,
        events: readable(prepared, drafts, context, { stream, first, position }),
        position,
      });
    },
    forget: (stream) => states.forget(stream),
    saw: states.saw,
    load,
  };
}

/**
 * Waits for the appends of a state.
 *
 * @throws LogUnavailableError if the log did not respond to one of them: the next one would fail too
 */
async function answered({ appends }: KeptState): Promise<void> {
  for (const one of await Promise.allSettled(appends)) {
    if (one.status === 'rejected' && one.reason instanceof LogUnavailableError) throw one.reason;
  }
}

/** The result of `decide`; undefined when it refuses. */
function unlessRefused<T>(decide: () => T): T | undefined {
  try {
    return decide();
  } catch {
    return undefined;
  }
}

/** The events as prepared for the log, with data and address as they were before sealing. */
function readable(
  prepared: readonly NewEvent[],
  drafts: readonly EventDraft[],
  { origin }: CommandContext,
  at: { readonly stream: string; readonly first: number; readonly position: number },
): DomainEvent[] {
  // Names every property, so that all events have one hidden class: see "hidden class" in docs/benchmarks.md.
  return prepared.map(({ id, type, meta }, index) => ({
    id,
    type,
    data: (drafts[index] as EventDraft).data,
    meta: { ...(meta as DomainEvent['meta']), ip: origin.ip },
    stream: at.stream,
    revision: at.first + index,
    position: at.position,
  }));
}

const busy = ({ kind }: Decider<unknown>, cause: unknown) =>
  conflict(`Too many changes of this ${kind} at once; try again.`, { code: 'BUSY', cause });

/** @throws what `asResponse` makes of the error */
function answerWith(error: unknown): never {
  throw asResponse(error);
}

/** Translates failures of the log into errors for the caller. */
function asResponse(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error.name === 'LogUnavailableError') {
    const { remedy } = error as LogUnavailableError;
    const unknown =
      'The event log cannot be reached, so it is unknown whether the change was stored. Repeat the request with the same Idempotency-Key to find out.';
    return unavailable(remedy === undefined ? unknown : `${unknown} ${remedy}`, {
      code: 'LOG_UNAVAILABLE',
      headers: { 'Retry-After': '5' },
      cause: error,
    });
  }
  if (error.name === 'EventTooLargeError') {
    return new AppError(413, `The change is too large: ${error.message}. Send less.`, { cause: error });
  }
  return error;
}
