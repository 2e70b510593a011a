/**
 * Checkpoints of followers that only skip events of other types: all checkpoints of a process are stored at intervals,
 * in one statement. A restart then has few events to read, and `signalbox status` shows their progress.
 */
import type { Position } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { FencedError, type Move, moveCheckpoints } from './checkpoints.ts';
import type { LogReader } from './reader.ts';

/** Shortest interval at which an idle checkpoint is stored, milliseconds. */
const STORE_MS = { server: 1_000, embedded: 10_000 };

/** A follower without events to apply. */
export interface Resting {
  /** When its checkpoint was last stored, Unix milliseconds; 0: not yet. */
  readonly storedAt: number;
  /** The move from its checkpoint to its position; undefined if they are equal. */
  idleMove(): Move | undefined;
  /** Its checkpoint has been stored at this position. */
  stored(position: Position): void;
  failed(error: unknown): void;
}

export class IdleCheckpoints {
  readonly #database: Database;
  readonly #resting = new Set<Resting>();
  readonly #unwatch: () => void;
  #timer: NodeJS.Timeout | undefined;
  #storing: Promise<void> | undefined;

  constructor(database: Database, reader: LogReader) {
    this.#database = database;
    this.#unwatch = reader.watch(() => this.#schedule());
  }

  rest(one: Resting): void {
    this.#resting.add(one);
    // This one may be due earlier than the others.
    if (one.storedAt === 0) clearTimeout(this.#timer);
    if (one.storedAt === 0) this.#timer = undefined;
    this.#schedule();
  }

  /** Does not stop a statement in flight; see `settled`. */
  wake(one: Resting): void {
    this.#resting.delete(one);
  }

  /** Resolves when no statement is in flight: only then may a follower move its own checkpoint. */
  settled(): Promise<void> | undefined {
    return this.#storing;
  }

  #schedule(): void {
    if (this.#timer || this.#resting.size === 0) return;
    let first = Number.POSITIVE_INFINITY;
    for (const one of this.#resting) {
      if (one.storedAt < first && one.idleMove()) first = one.storedAt;
    }
    if (first === Number.POSITIVE_INFINITY) return;
    const due = first + STORE_MS[this.#database.kind] - Date.now();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        // `store` reports failures to the followers, so nothing is left to handle here.
        this.store().catch(() => undefined);
      },
      Math.max(due, 0),
    );
    this.#timer.unref();
  }

  /** Stores the positions of the resting followers. Never throws: each follower is notified of its own failure. */
  async store(): Promise<void> {
    while (this.#storing) await this.#storing;
    this.#storing = this.#store();
    await this.#storing;
    this.#storing = undefined;
    this.#schedule();
  }

  async #store(): Promise<void> {
    const moves = new Map<Resting, Move>();
    for (const one of this.#resting) {
      const move = one.idleMove();
      if (move) moves.set(one, move);
    }
    try {
      if (moves.size === 0) return;
      const moved = await moveCheckpoints(this.#database, [...moves.values()]);
      for (const [one, { name, to }] of moves) {
        if (moved.has(name)) one.stored(to);
        else one.failed(new FencedError(name));
      }
    } catch (error) {
      // Notified here, because there may be no later batch that would meet the same failure.
      for (const one of moves.keys()) one.failed(error);
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#unwatch();
    await this.#storing;
  }
}
