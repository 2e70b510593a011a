/**
 * Follows the log for one subject: a read model, a policy, whatever keeps a place in it.
 *
 * A follower is in one of four states.
 *
 * - behind: it reads the log for itself, from its checkpoint on. What the reader of the process hands out meanwhile waits
 *   in its inbox; when the inbox is full it is thrown away, and the follower reads on.
 * - busy: it works on what was in its inbox.
 * - resting: it has everything that concerns it, so it is where the reader is. Only its checkpoint is stored now and then.
 * - stopped: something failed. It starts again from the stored checkpoint, after a pause that grows; what it cannot get
 *   past is stored beside the checkpoint for everybody to see.
 *
 * None of it holds up another follower.
 */
import { UnknownPositionError } from '../../shared/errors.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { createBackOff, pause } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { type Checkpoint, isFenced, type Move, type Stuck } from './checkpoints.ts';
import type { IdleCheckpoints, Resting } from './idle.ts';
import { Inbox } from './inbox.ts';
import type { LogReader, Member } from './reader.ts';

const BACK_OFF = { firstMs: 200, lastMs: 30_000 };

export interface Subject {
  /** Of its checkpoint. */
  readonly name: string;
  /** Undefined: all. */
  readonly types: ReadonlySet<string> | undefined;
  /** Where to start. What is remembered of the time before is to be forgotten. */
  begin(): Promise<Checkpoint>;
  /**
   * Takes events and moves the checkpoint, all or nothing.
   *
   * @throws FencedError when the checkpoint is not where the move begins
   */
  apply(events: readonly LoggedEvent[], move: Move): Promise<void>;
  /** After a batch failed: what was prepared for it does not hold. */
  forget(): void;
  /** True for a failure that says nothing about the events: the same will succeed when a store is back. */
  isPassing(error: unknown): boolean;
  /** Makes known what it cannot get past. */
  stuck(stuck: Stuck, generation: number): Promise<void>;
  /** It is at this position, and its rows with it. */
  reached?(position: Position): void;
  /** It rests: it is where the reader is, from `position` on; or it does not any more. */
  rests?(resting: boolean): void;
}

/** What others see of a follower. */
export interface FollowerStatus {
  readonly position: Position;
  /** True once it has reached the end of the log since it was started. */
  readonly caughtUp: boolean;
  /** What it cannot get past at the moment. */
  readonly stuck: Stuck | undefined;
  /** Events taken since `since` (Unix milliseconds). */
  readonly applied: number;
  readonly since: number;
}

export interface FollowerTools {
  readonly reader: LogReader;
  /** Undefined for subjects whose checkpoint is only in memory. */
  readonly idle: IdleCheckpoints | undefined;
  readonly log: Logger;
}

/** An event that cannot be taken: trying again helps only when something else has changed. */
class StuckError extends Error {
  readonly position: Position;
  constructor(event: LoggedEvent, cause: unknown) {
    super(`${event.type}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.position = event.position;
  }
}

type State = 'stopped' | 'behind' | 'busy' | 'resting';

export class Follower implements FollowerStatus, Member, Resting {
  readonly since = Date.now();
  applied = 0;
  caughtUp = false;
  stuck: Stuck | undefined;
  storedAt = 0;
  readonly #subject: Subject;
  readonly #tools: FollowerTools;
  readonly #inbox = new Inbox();
  #state: State = 'stopped';
  #position: Position = 0;
  /** As it stands in the database; the position may be ahead of it by events of others. */
  #stored: Position = 0;
  #generation = 0;
  #leave: (() => void) | undefined;
  /** Set when something other than its own work failed. */
  #failure: { readonly reason: unknown } | undefined;
  #wake = () => {};

  constructor(subject: Subject, tools: FollowerTools) {
    this.#subject = subject;
    this.#tools = tools;
  }

  get types(): ReadonlySet<string> | undefined {
    return this.#subject.types;
  }

  get position(): Position {
    return this.#isResting() ? Math.max(this.#position, this.#tools.reader.position) : this.#position;
  }

  /** Follows until the signal aborts. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#tools;
    const backOff = createBackOff(BACK_OFF);
    while (!signal.aborted) {
      const before = this.#position;
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) break;
        await this.#explain(error, log);
        if (this.#position > before) backOff.reset();
        await pause(backOff.next(), signal);
      }
    }
  }

  async #explain(error: unknown, log: Logger): Promise<void> {
    if (isFenced(error)) {
      log.info('fenced: starting again from the stored checkpoint');
    } else if (error instanceof StuckError || error instanceof UnknownPositionError) {
      this.stuck = { position: error.position, reason: error.message };
      log.error({ err: error.cause ?? error, position: error.position }, `stuck: ${error.message}`);
      await this.#subject
        .stuck(this.stuck, this.#generation)
        .catch((failure) => log.warn({ err: failure }, 'the reason could not be stored'));
    } else {
      log.warn({ err: error }, 'following the log failed; trying again');
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { reader, idle } = this.#tools;
    const { position, generation, stuckAt } = await this.#subject.begin();
    this.#generation = generation;
    this.#stored = position;
    if (stuckAt === null) this.stuck = undefined;
    this.#failure = undefined;
    this.#state = 'behind';
    this.#reached(position);
    const wake = () => this.#wake();
    signal.addEventListener('abort', wake);
    try {
      await reader.started(signal);
      while (!signal.aborted) {
        await this.#catchUp(signal);
        await this.#keepUp(signal);
      }
      // The next start then has little to read.
      if (this.#isResting()) await idle?.store();
    } finally {
      signal.removeEventListener('abort', wake);
      this.#stopResting();
      this.#state = 'stopped';
      this.#quit();
    }
  }

  /** Reads the log until the reader's steps can be taken up without a gap. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const { reader } = this.#tools;
    this.#state = 'behind';
    while (!signal.aborted) {
      this.#quit();
      this.#leave = reader.join(this);
      const joinedAt = reader.position;
      if (this.#position === joinedAt) return;
      for await (const page of reader.log.readAll({ from: this.#position })) {
        if (signal.aborted) return;
        const { types } = this;
        const mine = types ? page.filter((event) => types.has(event.type)) : page;
        const end = page.at(-1)?.position ?? this.#position;
        if (mine.length > 0) await this.#apply(mine, end);
        else this.#reached(end);
      }
      this.#checkFailure();
      if (this.#inbox.overflowed) continue;
      // Read to the end, so everything up to where it joined: behind the last event the store may have other things.
      this.#reached(Math.max(this.#position, joinedAt));
      return;
    }
  }

  /** Takes what the reader hands out, until it cannot keep up. */
  async #keepUp(signal: AbortSignal): Promise<void> {
    const { reader } = this.#tools;
    this.#state = 'busy';
    while (!signal.aborted && !this.#inbox.overflowed) {
      this.#checkFailure();
      const events = this.#inbox.take(this.#position);
      if (events.length > 0) {
        const last = events.at(-1)?.position ?? 0;
        await this.#apply(
          events,
          this.#inbox.isEmpty && !this.#inbox.overflowed ? Math.max(reader.position, last) : last,
        );
      } else {
        this.#rest();
        await this.#news();
      }
    }
  }

  /** Resolves at the next part of a step, at a failure, or when the signal aborts. */
  #news(): Promise<void> {
    if (!this.#inbox.isEmpty || this.#inbox.overflowed || this.#failure) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #rest(): void {
    this.#state = 'resting';
    this.caughtUp = true;
    this.#subject.rests?.(true);
    this.#tools.idle?.rest(this);
  }

  #stopResting(): void {
    if (!this.#isResting()) return;
    this.#position = this.position;
    this.#state = 'busy';
    this.#tools.idle?.wake(this);
    this.#subject.rests?.(false);
    this.#subject.reached?.(this.#position);
  }

  /** Of the reader: see `Member`. */
  take(events: readonly LoggedEvent[]): void {
    this.#stopResting();
    this.#inbox.add(events);
    this.#wake();
  }

  lost(reason: unknown): void {
    this.failed(reason);
  }

  /** Of the idle checkpoints: see `Resting`. */
  idleMove(): Move | undefined {
    const to = this.position;
    if (to <= this.#stored) return undefined;
    return { name: this.#subject.name, generation: this.#generation, from: this.#stored, to };
  }

  stored(position: Position): void {
    this.#stored = position;
    this.storedAt = Date.now();
    this.stuck = undefined;
  }

  failed(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  #isResting(): boolean {
    return this.#state === 'resting';
  }

  #checkFailure(): void {
    if (this.#failure) throw this.#failure.reason;
  }

  #quit(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.#inbox.clear();
  }

  async #apply(events: readonly LoggedEvent[], end: Position): Promise<void> {
    try {
      await this.#applyTogether(events, end);
    } catch (error) {
      if (isFenced(error) || this.#subject.isPassing(error)) throw error;
      // One by one: what stands before the culprit is applied, and the culprit is named.
      this.#subject.forget();
      for (const event of events) {
        try {
          await this.#applyTogether([event], event.position);
        } catch (cause) {
          if (isFenced(cause) || this.#subject.isPassing(cause)) throw cause;
          throw new StuckError(event, cause);
        }
      }
      this.#reached(end);
    }
  }

  async #applyTogether(events: readonly LoggedEvent[], end: Position): Promise<void> {
    // It may hold a move of this checkpoint.
    const storing = this.#tools.idle?.settled();
    if (storing) await storing;
    this.#checkFailure();
    const { name } = this.#subject;
    await this.#subject.apply(events, { name, generation: this.#generation, from: this.#stored, to: end });
    this.stored(end);
    this.applied += events.length;
    this.#reached(end);
  }

  #reached(position: Position): void {
    this.#position = position;
    this.#subject.reached?.(position);
  }
}
