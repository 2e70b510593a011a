/**
 * The one reader of the log in a process. It follows the log from its end and hands each step to those followers that
 * listen to its types. Those that do not are not asked at all: they are wherever the reader is.
 *
 * It waits for nobody. A follower takes what it is given into an inbox of its own (`follower.ts`); whoever cannot keep up
 * leaves, reads the log for itself, and joins again.
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

export interface Member {
  /** Undefined: all. */
  readonly types: ReadonlySet<string> | undefined;
  /** Events of its types, in order, each once. Called in the same turn for all members; must not throw. */
  take(events: readonly LoggedEvent[]): void;
  /** The log is another one than before: the member has to look for its place in it. */
  lost(reason: unknown): void;
}

const BACK_OFF = { firstMs: 50, lastMs: 5_000 };

export class LogReader {
  readonly #log: EventLog;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #members = new Set<Member>();
  readonly #byType = new Map<string, Set<Member>>();
  readonly #toAll = new Set<Member>();
  readonly #watchers = new Set<(position: Position) => void>();
  #position: Position | undefined;
  #running: Promise<void> | undefined;
  #started: (() => void)[] = [];

  constructor(log: EventLog, logger: Logger) {
    this.#log = log;
    this.#logger = logger;
  }

  get log(): EventLog {
    return this.#log;
  }

  /** Everything up to here has been handed out; BEGINNING while it is not known. */
  get position(): Position {
    return this.#position ?? BEGINNING;
  }

  /** Resolves when the reader follows the log, or when the signal aborts. The first call starts it. */
  async started(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#run();
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

  /** From now on the member gets what stands behind `position`. @returns how to leave */
  join(member: Member): () => void {
    this.#members.add(member);
    for (const set of this.#setsOf(member)) set.add(member);
    return () => {
      this.#members.delete(member);
      for (const set of this.#setsOf(member)) set.delete(member);
    };
  }

  /** `watcher` is called after each step, when all members have what concerns them. @returns how to end it */
  watch(watcher: (position: Position) => void): () => void {
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

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const backOff = createBackOff(BACK_OFF);
    const outage = createOutage(this.#logger, 'the log cannot be read; trying again', 'the log can be read again');
    while (!signal.aborted) {
      try {
        this.#position ??= await this.#log.head();
        const after = this.#position;
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
          // The log is another one, as after a backup was restored: what was read before says nothing of it.
          this.#position = undefined;
          for (const member of [...this.#members]) member.lost(error);
        }
        await pause(backOff.next(), signal);
      }
    }
    this.#release();
  }

  #handOut({ events, position }: Followed): void {
    const parts = new Map<Member, LoggedEvent[]>();
    for (const event of events) {
      for (const members of [this.#toAll, this.#byType.get(event.type)]) {
        if (!members) continue;
        for (const member of members) {
          const part = parts.get(member);
          if (part) part.push(event);
          else parts.set(member, [event]);
        }
      }
    }
    for (const [member, part] of parts) member.take(part);
    // Only now: a member without a part is where the reader is, and one with a part is not.
    this.#position = position;
    for (const watcher of this.#watchers) watcher(position);
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
