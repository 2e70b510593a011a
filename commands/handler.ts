/**
 * The one way a command is run: load the stream (or take the state kept in memory), decide, append with the exact
 * revision, wait until the read models show it. A conflict is retried from a fresh load.
 *
 * Commands on one stream of this process queue only for the decision, not for the append: the next one decides on
 * the state that the one before will leave, and its append expects that revision. When an append fails, everything
 * decided on top of it conflicts, forgets the state and starts over.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shared/bounded.ts';
import { AppError, ConflictError, conflict, LogUnavailableError, unavailable } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent, EventDraft } from '../shared/events/define.ts';
import type { Origin } from '../shared/events/metadata.ts';
import type { Counters } from '../shared/ports/counters.ts';
import type { Expectation, NewEvent } from '../shared/ports/event-log.ts';
import type { ReadModels } from '../shared/ports/read-models.ts';
import type { Snapshots } from '../shared/ports/snapshots.ts';
import type { Decider } from './decider.ts';

/**
 * What was decided for an idempotent request, kept before it is appended: after a crash or a lost answer the same
 * request appends the same events again, which the log answers as it did before.
 */
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

/** Who asks, and how the request can be found again. One per request or job. */
export interface CommandContext {
  readonly origin: Origin;
  readonly intents?: Intents;
  /** Steps done so far; the handler counts. */
  step?: number;
}

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
/** Streams whose state is kept. States are small by rule: texts stay out of them. */
const KEPT_STREAMS = 20_000;

/** Events of a stream between two snapshots of its state. */
const SNAPSHOT_EVERY = 200;

const snapshotKind = ({ kind, snapshotVersion }: Decider<unknown>): string | undefined =>
  snapshotVersion === undefined ? undefined : `${kind}.${snapshotVersion}`;

/** What is known of a stream. */
interface Known {
  readonly state: unknown;
  /** -1: no events. */
  readonly revision: number;
  readonly position: number;
  /** Unix ms of the last event; 0 without events. */
  readonly at: number;
  /** Types of the last events, for waiting on the read models that show them. */
  readonly types: readonly string[];
}

interface Entry {
  state: unknown;
  revision: number;
  position: number;
  at: number;
  types: readonly string[];
  /** Revision of the last snapshot, or of the first load. */
  savedAt: number;
  /** Appends decided on this entry that are not answered yet. */
  inFlight: Set<Promise<unknown>>;
}

export function createCommands(parts: {
  store: EventStore;
  counters: Counters;
  readModels: ReadModels;
  snapshots?: Snapshots;
}): Commands {
  const { store, counters, readModels, snapshots } = parts;
  const kept = new LRUCache<string, Entry>(atMost(KEPT_STREAMS));
  /** The last in line on each stream; resolves with the failure when the log could not be read. */
  const queues = new Map<string, Promise<LogUnavailableError | undefined>>();

  /** Brings what is known of a stream up to what the log says now; only what is new is read. */
  async function readState(
    decider: Decider<unknown>,
    stream: string,
    known: Known | undefined,
    trustSnapshots = true,
  ): Promise<Known> {
    const kind = snapshotKind(decider);
    const kept = kind && !known && trustSnapshots ? await snapshots?.find(stream, kind) : undefined;
    const start = known ?? (kept && { ...kept, types: [] });
    const events = await store.readStream(stream, start ? start.revision + 1 : 0);
    const last = events.at(-1);
    const now: Known = {
      state: events.reduce(
        (state, event) => decider.evolve(state, { ...event, at: event.meta.at }),
        start ? start.state : decider.initial,
      ),
      revision: last?.revision ?? start?.revision ?? -1,
      position: last?.position ?? start?.position ?? 0,
      at: last?.meta.at ?? start?.at ?? 0,
      types: last ? [last.type] : (start?.types ?? []),
    };
    if (kind && events.length >= SNAPSHOT_EVERY) snapshots?.save(stream, kind, now);
    return now;
  }

  async function loadEntry(
    decider: Decider<unknown>,
    stream: string,
    known?: Entry,
    trustSnapshots = true,
  ): Promise<Entry> {
    const now = await readState(decider, stream, known, trustSnapshots);
    const entry: Entry = { ...now, savedAt: known?.savedAt ?? now.revision, inFlight: new Set() };
    kept.set(stream, entry);
    return entry;
  }

  /** Only a state of which every event is in the log is saved. */
  function saveSnapshot(decider: Decider<unknown>, stream: string, entry: Entry): void {
    const kind = snapshotKind(decider);
    if (!kind || entry.inFlight.size > 0 || entry.revision - entry.savedAt < SNAPSHOT_EVERY) return;
    if (kept.get(stream) !== entry) return;
    entry.savedAt = entry.revision;
    const { revision, position, at, state } = entry;
    snapshots?.save(stream, kind, { revision, position, at, state });
  }

  /**
   * One decision at a time per stream; gives what `work` gives. Whoever waited while the one before waited for a log
   * that is away has waited as long as it, and fails with it: one time-out for all, not one after the other.
   */
  function inTurn<T>(stream: string, work: () => Promise<T>): Promise<T> {
    const before = queues.get(stream);
    const mine = before
      ? before.then((away) => {
          if (away) throw away;
          return work();
        })
      : work();
    const settled = mine
      .then(
        () => undefined,
        (error) => (error instanceof LogUnavailableError ? error : undefined),
      )
      .finally(() => {
        if (queues.get(stream) === settled) queues.delete(stream);
      });
    queues.set(stream, settled);
    return mine;
  }

  /** Decides and starts the append; the append itself is awaited outside the turn. */
  async function decideAndStart(
    decider: Decider<unknown>,
    stream: string,
    context: CommandContext,
    step: number,
    decide: (state: never) => readonly EventDraft[],
    attempt: number,
  ): Promise<{ entry: Entry; append?: Promise<Executed> }> {
    // After a conflict the log alone is believed, from its first event on.
    const known = kept.get(stream);
    // A refusal is final only when it was decided on what has just been read.
    const fresh = known === undefined;
    let entry = known ?? (await loadEntry(decider, stream, undefined, attempt === 1));
    let drafts: readonly EventDraft[] | undefined;
    try {
      drafts = decide(entry.state as never);
    } catch (error) {
      if (fresh) throw error;
    }
    if ((drafts === undefined || drafts.length === 0) && !fresh) {
      // No append will tell whether the state was right: only what the log says now may refuse, or find nothing to do.
      await Promise.allSettled(entry.inFlight);
      // An append that failed took the entry away: what was decided on top of it never happened.
      entry = await loadEntry(decider, stream, kept.get(stream) === entry ? entry : undefined);
      drafts = decide(entry.state as never);
    }
    if (drafts === undefined) throw new Error(`${decider.kind}: no decision`);
    if (drafts.length === 0) return { entry };
    const prepared = await store.prepare(drafts, context.origin);
    const expected = entry.revision < 0 ? 'none' : entry.revision;
    await context.intents?.record(step, { stream, expected, events: prepared });
    const { revision } = entry;
    const events = prepared.map((event, index): DomainEvent => {
      const meta = event.meta as unknown as DomainEvent['meta'];
      const data = (drafts[index] as EventDraft).data;
      return {
        ...event,
        meta: { ...meta, ip: context.origin.ip },
        data,
        stream,
        revision: revision + 1 + index,
        position: 0,
      };
    });
    for (const event of events) entry.state = decider.evolve(entry.state, { ...event, at: event.meta.at });
    entry.revision += events.length;
    entry.at = events.at(-1)?.meta.at ?? entry.at;
    const started = entry;
    const append = store.append(stream, prepared, expected).then(
      (appended): Executed => {
        if (appended.position > started.position) {
          started.position = appended.position;
          started.types = events.map((event) => event.type);
        }
        return {
          events: events.map((event) => ({ ...event, position: appended.position })),
          position: appended.position,
        };
      },
      (error) => {
        if (kept.get(stream) === started) kept.delete(stream);
        throw error;
      },
    );
    entry.inFlight.add(append);
    append.then(
      () => {
        started.inFlight.delete(append);
        saveSnapshot(decider, stream, started);
      },
      () => started.inFlight.delete(append),
    );
    return { entry, append };
  }

  /** Repeats a step of an earlier run of the same request; undefined when it was never written and never will be. */
  async function repeat(intent: Intent | undefined, stream: string): Promise<Executed | undefined> {
    // A run that takes another way than the one before has other steps.
    if (intent?.stream !== stream || intent.events.length === 0) return undefined;
    try {
      const appended = await store.append(intent.stream, intent.events, intent.expected);
      kept.delete(intent.stream);
      const first = appended.revision - intent.events.length + 1;
      const events = await Promise.all(
        intent.events.map((event, index) =>
          store.decode({ ...event, stream: intent.stream, revision: first + index, position: appended.position }),
        ),
      );
      return { events, position: appended.position };
    } catch (error) {
      if (error instanceof ConflictError) return undefined;
      throw asAnswer(error);
    }
  }

  async function shown(executed: Executed): Promise<Executed> {
    await readModels.visible(
      executed.events.map((event) => event.type),
      executed.position,
    );
    return executed;
  }

  const nextStep = (context: CommandContext): number => {
    const step = context.step ?? 0;
    context.step = step + 1;
    return step;
  };

  return {
    counters,
    async execute(decider, stream, context, decide) {
      const step = nextStep(context);
      const repeated = await repeat(context.intents?.recorded[step], stream);
      if (repeated) return shown(repeated);
      for (let attempt = 1; ; attempt++) {
        const { entry, append } = await inTurn(stream, () =>
          decideAndStart(decider as Decider<unknown>, stream, context, step, decide, attempt),
        );
        if (!append) {
          // Nothing to change. What that was decided on has to hold, and to be readable like any other success.
          const settled = await Promise.allSettled(entry.inFlight);
          if (settled.some((one) => one.status === 'rejected')) continue;
          await readModels.visible(entry.types, entry.position);
          return { events: [], position: entry.position };
        }
        try {
          return await shown(await append);
        } catch (error) {
          if (!(error instanceof ConflictError)) throw asAnswer(error);
          if (attempt >= MAX_TRIES) {
            throw conflict(`Too many changes of this ${decider.kind} at once; try again.`, {
              code: 'BUSY',
              cause: error,
            });
          }
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 5 * attempt));
        }
      }
    },
    async record(stream, context, drafts) {
      const step = nextStep(context);
      const repeated = await repeat(context.intents?.recorded[step], stream);
      if (repeated) return shown(repeated);
      const events = await store.prepare(drafts, context.origin);
      await context.intents?.record(step, { stream, expected: 'any', events });
      const appended = await store.append(stream, events, 'any').catch((error) => {
        throw asAnswer(error);
      });
      const { revision, position } = appended;
      kept.delete(stream);
      return shown({
        position,
        events: events.map((event, index) => ({
          ...event,
          data: (drafts[index] as EventDraft).data,
          meta: { ...(event.meta as unknown as DomainEvent['meta']), ip: context.origin.ip },
          stream,
          revision: revision - events.length + 1 + index,
          position,
        })),
      });
    },
    async load<State>(decider: Decider<State>, stream: string) {
      const { state, at } = await readState(decider as Decider<unknown>, stream, undefined);
      return { state: state as State, lastAt: at };
    },
  };
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
