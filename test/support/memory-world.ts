/**
 * Commands on a log in memory, for tests of what happens between the appends of a command: several processes on one
 * log, and a hook that holds an append back.
 */
import { type CommandContext, type Commands, createCommands, type Intent } from '../../commands/handler.ts';
import { ConflictError, LogUnavailableError } from '../../shared/errors.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventLog, LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { takingTurnsByKey } from '../../shared/waiting.ts';
import { memoryKeys } from './memory-keys.ts';
import { testOrigin } from './world.ts';

export interface MemoryWorld {
  /** A separate process, which shares nothing with the others. */
  process(): Commands;
  /** Streams and types of everything written, in order. */
  written(): readonly { readonly stream: string; readonly type: string; readonly data: LoggedEvent['data'] }[];
  /** Streams that were read. */
  readonly reads: string[];
  /** Locks that all processes share. */
  readonly locks: Locks;
  /** Removes everything but the first `count` events, for processes created afterwards. */
  forgetAfter(count: number): void;
  /** Awaited before each append is made; a test sets it. */
  beforeAppend: (stream: string, events: readonly NewEvent[]) => Promise<void>;
  /** The same after it was made, before the command hears of it. */
  afterAppend: (stream: string, events: readonly NewEvent[]) => Promise<void>;
  /** Holds the next append that fits back until the gate is opened. */
  holdNext(fits: (stream: string, type: string | undefined) => boolean): Gate;
  /** From now on nothing can be appended to streams whose name begins like this, by default to none. */
  breakStreams(beginning?: string): void;
}

export function memoryWorld(now: () => number = Date.now): MemoryWorld {
  const all: LoggedEvent[] = [];
  const of = (stream: string) => all.filter((event) => event.stream === stream);
  const unsupported = () => {
    throw new Error('the log in memory cannot do that');
  };
  const log: EventLog = {
    stride: 1,
    async append(stream, events, expected, unless) {
      await world.beforeAppend(stream, events);
      if (unless?.aborted) throw new LogUnavailableError('given up');
      const before = of(stream);
      const known = before.filter((event) => events.some((one) => one.id === event.id));
      const lastKnown = known.at(-1);
      if (lastKnown) return { revision: lastKnown.revision, position: lastKnown.position };
      const revision = before.length - 1;
      if (expected !== 'any' && expected !== (revision < 0 ? 'none' : revision))
        throw new ConflictError(stream, expected, revision);
      for (const [index, event] of events.entries()) {
        // As through a store: nothing is shared with the caller.
        all.push({ ...structuredClone(event), stream, revision: revision + 1 + index, position: all.length + 1 });
      }
      const appended = { revision: revision + events.length, position: all.length };
      await world.afterAppend(stream, events);
      return appended;
    },
    async *readStream(stream, { from = 0 } = {}) {
      world.reads.push(stream);
      const events = of(stream).filter((event) => event.revision >= from);
      if (events.length > 0) yield events;
    },
    readAll: unsupported,
    follow: unsupported,
    head: async () => all.length,
    close: async () => undefined,
  };
  const numbers = new Map<string, number>();
  const counters = {
    take(name: string, count = 1) {
      const first = (numbers.get(name) ?? 0) + 1;
      numbers.set(name, first + count - 1);
      return first;
    },
  };
  const keys = memoryKeys();
  const inTurn = takingTurnsByKey(() => false);
  const held = new AbortController().signal;
  const world: MemoryWorld = {
    locks: { isAlone: false, holding: (name, work) => inTurn(name, () => work(held)) },
    reads: [],
    process() {
      const store = createEventStore({ log, catalogue, counters, keys, now });
      return createCommands({ store, counters });
    },
    written: () => all,
    forgetAfter(count) {
      all.length = count;
    },
    beforeAppend: async () => undefined,
    afterAppend: async () => undefined,
    holdNext(fits) {
      const held = gate();
      world.beforeAppend = async (stream, [event]) => {
        if (!fits(stream, event?.type)) return;
        world.beforeAppend = async () => undefined;
        await held.wait();
      };
      return held;
    },
    breakStreams(beginning = '') {
      world.beforeAppend = async (stream) => {
        if (stream.startsWith(beginning)) throw new Error('the disk is full');
      };
    },
  };
  return world;
}

/** Contexts of a request that is repeated: each has the steps that were recorded before. */
export function repeatedRequest(): () => CommandContext {
  const steps: Intent[] = [];
  const record = async (step: number, intent: Intent) => {
    steps[step] = intent;
  };
  return () => ({ origin: testOrigin, intents: { recorded: steps.slice(), record } });
}

/** Blocks callers until it is opened. */
interface Gate {
  /** Resolves when the first caller waits. */
  readonly reached: Promise<void>;
  wait(): Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let arrive: () => void;
  let open: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    reached,
    async wait() {
      arrive();
      await opened;
    },
    open: () => open(),
  };
}
