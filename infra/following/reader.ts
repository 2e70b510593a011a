/**
 * The one reader of the log in a process. It follows the log from its end and hands each batch to the followers that
 * listen to its event types. The others need no call: their position is that of the reader.
 *
 * It never waits. Each follower has its own inbox (`follower.ts`); one that cannot keep up leaves, reads the log
 * itself, and joins again.
 */
import { UnknownPositionError } from '../../shared/errors.ts';
import {
  BEGINNING,
  type EventLog,
  type Followed,
  type LoggedEvent,
  type Position,
} from '../../shared/ports/event-log.ts';
import { createBackOff, createOutage, pause } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { endOfWhole } from './appends.ts';

export interface Member {
  /** Undefined: all types. */
  readonly types: ReadonlySet<string> | undefined;
  /** Whether the member needs an event of its types. */
  readonly wants?: ((event: LoggedEvent) => boolean) | undefined;
  /**
   * Receives events of its types, in order, each once, and all events of an append in one call. Called for all members
   * in the same turn of the event loop; must not throw.
   */
  take(events: readonly LoggedEvent[]): void;
  /** The log has been replaced by another one, so the member must find its position again. */
  lost(reason: unknown): void;
}

/** Called with the events that were handed out, and their last position. */
type Watcher = (position: Position, events: readonly LoggedEvent[]) => void;

const BACK_OFF = { firstMs: 50, lastMs: 5_000 };

export class LogReader {
  readonly #log: EventLog;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #members = new Set<Member>();
  readonly #byType = new Map<string, Set<Member>>();
  readonly #toAll = new Set<Member>();
  readonly #watchers = new Set<Watcher>();
  #position: Position | undefined;
  /** The beginning of an append whose other events have not arrived yet. */
  #held: readonly LoggedEvent[] = [];
  #running: Promise<void> | undefined;
  #started: (() => void)[] = [];

  constructor(log: EventLog, logger: Logger) {
    this.#log = log;
    this.#logger = logger;
  }

  get log(): EventLog {
    return this.#log;
  }

  /** Position up to which everything has been handed out; BEGINNING until it is known. */
  get position(): Position {
    return this.#position ?? BEGINNING;
  }

  /**
   * Resolves when the reader follows the log, or when the signal aborts. The first call starts the reader.
   *
   * @param from where it begins; default: the head of the log
   */
  async started(signal: AbortSignal, from?: Position): Promise<void> {
    this.#running ??= this.#run(from);
    if (this.#position !== undefined || signal.aborted || this.#closing.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#started.push(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  /** From now on the member receives the events after `position`. @returns a function that ends this */
  join(member: Member): () => void {
    this.#members.add(member);
    for (const set of this.#setsOf(member)) set.add(member);
    return () => {
      this.#members.delete(member);
      for (const set of this.#setsOf(member)) set.delete(member);
    };
  }

  /**
   * Calls `watcher` after each batch, once all members have received their events. @returns a function that ends this
   */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #setsOf(member: Member): Set<Member>[] {
    if (!member.types) return [this.#toAll];
    return Array.from(member.types, (type) => {
      const known = this.#byType.get(type);
      if (known) return known;
      const fresh = new Set<Member>();
      this.#byType.set(type, fresh);
      return fresh;
    });
  }

  async #run(from: Position | undefined): Promise<void> {
    let begin = from;
    const { signal } = this.#closing;
    const backOff = createBackOff(BACK_OFF);
    const outage = createOutage(this.#logger, 'the log cannot be read; trying again', 'the log can be read again');
    while (!signal.aborted) {
      try {
        this.#position ??= begin ?? (await this.#log.head());
        begin = undefined;
        const after = this.#position;
        this.#held = [];
        for (const watcher of this.#watchers) watcher(after, []);
        this.#release();
        for await (const step of this.#log.follow({ after, signal })) {
          backOff.reset();
          outage.worked();
          this.#handOut(step);
        }
      } catch (error) {
        if (signal.aborted) break;
        outage.failed(error);
        if (error instanceof UnknownPositionError) {
          // The log has been replaced, for example by a restored backup: positions read before are meaningless in it.
          this.#position = undefined;
          for (const member of [...this.#members]) member.lost(error);
        }
        await pause(backOff.next(), signal);
      }
    }
    this.#release();
  }

  #handOut(step: Followed): void {
    const arrived = this.#held.length > 0 ? [...this.#held, ...step.events] : step.events;
    const end = endOfWhole(arrived);
    const events = end === arrived.length ? arrived : arrived.slice(0, end);
    this.#held = arrived.slice(end);
    const position = this.#held.length === 0 ? step.position : (events.at(-1)?.position ?? this.position);
    const parts = new Map<Member, LoggedEvent[]>();
    for (const event of events) {
      for (const members of [this.#toAll, this.#byType.get(event.type)]) {
        if (!members) continue;
        for (const member of members) {
          if (member.wants?.(event) === false) continue;
          const part = parts.get(member);
          if (part) part.push(event);
          else parts.set(member, [event]);
        }
      }
    }
    for (const [member, part] of parts) member.take(part);
    // Set last, because members that received nothing take this as their position.
    this.#position = position;
    for (const watcher of this.#watchers) watcher(position, events);
  }

  #release(): void {
    const waiting = this.#started;
    this.#started = [];
    for (const resolve of waiting) resolve();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }
}
