/**
 * Follows the log for one subject: a read model, a policy, or anything else with a checkpoint.
 *
 * A follower is in one of four states.
 *
 * - behind: it reads the log itself, starting at its checkpoint. Events that the process's reader hands out in the
 *   meantime wait in its inbox; when the inbox is full, they are dropped and the follower keeps reading.
 * - busy: it applies the events of its inbox.
 * - resting: it has applied every event of its types, so its position is that of the reader. Its checkpoint is stored
 *   at intervals.
 * - stopped: something failed. It restarts from the stored checkpoint after a growing pause; an event that it fails on
 *   is stored with the checkpoint, so that every process can show it.
 *
 * No follower ever blocks another.
 */
import { isArchived, UnknownPositionError } from '../../shared/errors.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { createBackOff, pause } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { eachAppend, inWholeAppends } from './appends.ts';
import { type Checkpoint, isFenced, type Move, type Stuck } from './checkpoints.ts';
import type { Gathering } from './gathering.ts';
import type { IdleCheckpoints, Resting } from './idle.ts';
import { Inbox } from './inbox.ts';
import type { LogReader, Member } from './reader.ts';

/** Maximum number of events in a batch if each has the weight 1. */
const MAX_WEIGHT = 1_000;
/** Maximum number of gathered events. */
const MAX_GATHERED = 200;
const BACK_OFF = { firstMs: 200, lastMs: 30_000 };

export interface Subject {
  /** Name of its checkpoint. */
  readonly name: string;
  /** Undefined: all types. */
  readonly types: ReadonlySet<string> | undefined;
  /** Whether the subject needs an event of its types. */
  wants?(event: LoggedEvent): boolean;
  /** Returns the checkpoint to start from and discards everything cached before. */
  begin(): Promise<Checkpoint>;
  /**
   * Applies events and moves the checkpoint, atomically.
   *
   * @throws FencedError when the checkpoint is not at the start of the move
   */
  apply(events: readonly LoggedEvent[], move: Move): Promise<void>;
  /** Weight of this event; default: 1. A batch with a weight above `MAX_WEIGHT` is applied in parts. */
  weigh?(event: LoggedEvent): number;
  /** Called after a batch failed: discards what was cached for it. */
  forget(): void;
  /**
   * True for a transient failure that is not due to the events: the same batch will succeed once a store is available
   * again.
   */
  isTransient(error: unknown): boolean;
  /** Records the event on which the subject fails. */
  stuck(stuck: Stuck, generation: number): Promise<void>;
  /** Called when the subject has reached this position, rows included. */
  reached?(position: Position): void;
  /** Called when there is nothing left to apply. */
  rests?(): void;
  /** Decides when events that arrive one after the other are applied together; undefined: they are applied at once. */
  readonly gathering?: Gathering | undefined;
}

/** The state of a follower, as seen by others. */
export interface FollowerStatus {
  readonly position: Position;
  /** True once it has reached the end of the log after its start. */
  readonly caughtUp: boolean;
  /** The event on which it currently fails. */
  readonly stuck: Stuck | undefined;
  /** Events applied since `since` (Unix milliseconds). */
  readonly applied: number;
  readonly since: number;
}

export interface FollowerTools {
  readonly reader: LogReader;
  /** Undefined for subjects whose checkpoint is kept only in memory. */
  readonly idle: IdleCheckpoints | undefined;
  readonly log: Logger;
}

/** An event that cannot be applied: a retry helps only after something else has changed. */
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
  /** Position stored in the database; `#position` may be ahead of it by events of other types. */
  #stored: Position = 0;
  #generation = 0;
  #leave: (() => void) | undefined;
  /** Set when something failed other than applying events. */
  #failure: { readonly reason: unknown } | undefined;
  #wake = () => {};

  constructor(subject: Subject, tools: FollowerTools) {
    this.#subject = subject;
    this.#tools = tools;
  }

  get types(): ReadonlySet<string> | undefined {
    return this.#subject.types;
  }

  wants(event: LoggedEvent): boolean {
    return this.#subject.wants?.(event) !== false;
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
    } else if (error instanceof StuckError || error instanceof UnknownPositionError || isArchived(error)) {
      const position = isArchived(error) ? this.#position : error.position;
      this.stuck = { position, reason: error.message };
      log.error({ err: error.cause ?? error, position }, `stuck: ${error.message}`);
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
    const wake = () => this.#stir();
    signal.addEventListener('abort', wake);
    try {
      await reader.started(signal);
      while (!signal.aborted) {
        await this.#catchUp(signal);
        await this.#keepUp(signal);
      }
      // So that the next start has few events to read.
      if (this.#isResting()) await idle?.store();
    } finally {
      signal.removeEventListener('abort', wake);
      this.#stopResting();
      this.#state = 'stopped';
      this.#quit();
    }
  }

  /** Reads the log until it can continue with the reader's events without a gap. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const { reader } = this.#tools;
    this.#state = 'behind';
    while (!signal.aborted) {
      this.#quit();
      this.#leave = reader.join(this);
      const joinedAt = reader.position;
      if (this.#position === joinedAt) return;
      for await (const page of inWholeAppends(reader.log.readAll({ from: this.#position }))) {
        if (signal.aborted) return;
        const { types } = this;
        const mine = types ? page.filter((event) => types.has(event.type) && this.wants(event)) : page;
        const end = page.at(-1)?.position ?? this.#position;
        if (mine.length > 0) await this.#apply(mine, end);
        else this.#reached(end);
      }
      this.#checkFailure();
      if (this.#inbox.overflowed) continue;
      // The log was read to its end, which is at least where this follower joined; the store may hold other entries
      // after the last event.
      this.#reached(Math.max(this.#position, joinedAt));
      return;
    }
  }

  /** Applies the events from the reader, until it can no longer keep up. */
  async #keepUp(signal: AbortSignal): Promise<void> {
    const { reader } = this.#tools;
    this.#state = 'busy';
    while (!signal.aborted && !this.#inbox.overflowed) {
      await this.#gathered();
      // Events may have been dropped in the meantime.
      if (this.#inbox.overflowed) return;
      this.#checkFailure();
      const events = this.#inbox.take(this.#position);
      if (events.length > 0) {
        const last = events.at(-1)?.position ?? 0;
        await this.#apply(
          events,
          this.#inbox.isEmpty && !this.#inbox.overflowed ? Math.max(reader.position, last) : last,
        );
      } else if (this.#inbox.isEmpty) {
        this.#rest();
        await this.#news(signal);
      }
    }
  }

  /** Resolves when the events in the inbox should be applied. */
  async #gathered(): Promise<void> {
    if (!this.#inbox.isEmpty && !this.#isPressed()) await this.#subject.gathering?.wait();
  }

  /** Whether it must not wait for more events. */
  #isPressed(): boolean {
    return this.#inbox.size >= MAX_GATHERED || this.#inbox.overflowed || this.#failure !== undefined;
  }

  /** Makes it check for changes. */
  #stir(): void {
    this.#wake();
    this.#subject.gathering?.end();
  }

  /** Resolves when events arrive, when something fails, or when the signal aborts. */
  #news(signal: AbortSignal): Promise<void> {
    if (signal.aborted || !this.#inbox.isEmpty || this.#inbox.overflowed || this.#failure) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #rest(): void {
    this.#state = 'resting';
    this.caughtUp = true;
    this.#subject.rests?.();
    this.#tools.idle?.rest(this);
  }

  #stopResting(): void {
    if (!this.#isResting()) return;
    this.#position = this.position;
    this.#state = 'busy';
    this.#tools.idle?.wake(this);
  }

  /** Called by the reader: see `Member`. */
  take(events: readonly LoggedEvent[]): void {
    this.#stopResting();
    this.#inbox.add(events);
    this.#wake();
    // Then all followers begin, because the others have received nearly as many events.
    if (this.#isPressed()) this.#subject.gathering?.end();
  }

  lost(reason: unknown): void {
    this.failed(reason);
  }

  /** Called by the idle checkpoints: see `Resting`. */
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
    this.#stir();
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
    const { weigh } = this.#subject;
    if (!weigh) return this.#applyPart(events, end);
    let part: LoggedEvent[] = [];
    let weight = 0;
    for (const append of eachAppend(events)) {
      const own = append.reduce((sum, event) => sum + weigh(event), 0);
      if (part.length > 0 && weight + own > MAX_WEIGHT) {
        await this.#applyPart(part, part.at(-1)?.position ?? end);
        part = [];
        weight = 0;
      }
      part.push(...append);
      weight += own;
    }
    await this.#applyPart(part, end);
  }

  async #applyPart(events: readonly LoggedEvent[], end: Position): Promise<void> {
    try {
      await this.#applyTogether(events, end);
    } catch (error) {
      if (isFenced(error) || this.#subject.isTransient(error)) throw error;
      // Retry one by one: the appends before the failing one are applied, and the failing one is identified.
      this.#subject.forget();
      for (const append of eachAppend(events)) {
        const [first, last] = [append[0] as LoggedEvent, append.at(-1) as LoggedEvent];
        try {
          await this.#applyTogether(append, last.position);
        } catch (cause) {
          if (isFenced(cause) || this.#subject.isTransient(cause)) throw cause;
          throw new StuckError(first, cause);
        }
      }
      this.#reached(end);
    }
  }

  async #applyTogether(events: readonly LoggedEvent[], end: Position): Promise<void> {
    // The statement in flight may move this checkpoint.
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
