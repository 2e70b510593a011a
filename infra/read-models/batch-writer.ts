/**
 * Writes the batches of all projections of a process. Batches that are ready at the same time share a statement: an
 * event usually concerns several read models, whose followers receive it in the same turn of the event loop. While a
 * statement is in flight, the next batches gather; none waits for more batches.
 */
import { nextTurn } from '../../shared/waiting.ts';
import type { AnyDatabase } from '../database/database.ts';
import { type BatchWrite, writeBatches } from './tables.ts';

/** Batches with more rows are written on their own, so that small ones need not wait for them. */
const SMALL_ROWS = 500;

interface Waiting {
  readonly batch: BatchWrite;
  resolve(): void;
  reject(error: unknown): void;
}

/** The small batches in flight; shared with appends, which should wait for them. */
export interface RowWrites {
  /** Settles when the next statement has its response; never rejects. Undefined: there is none. */
  inFlight: Promise<void> | undefined;
}

export class BatchWriter {
  readonly db: AnyDatabase;
  readonly #writes: RowWrites;
  /** At most one per follower, because each waits for its last batch. */
  #waiting: Waiting[] = [];
  #pumping = false;

  constructor(db: AnyDatabase, writes: RowWrites = { inFlight: undefined }) {
    this.db = db;
    this.#writes = writes;
  }

  /**
   * Writes rows and checkpoint of one projection, atomically.
   *
   * @throws FencedError or a constraint error (`isFenced`) when another process leads
   */
  async write(batch: BatchWrite): Promise<void> {
    if (rowsOf(batch) > SMALL_ROWS) return writeBatches(this.db, [batch]);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, resolve, reject });
      if (this.#pumping) return;
      this.#pumping = true;
      this.#pump().catch(reject);
    });
  }

  /** Never throws. */
  async #pump(): Promise<void> {
    // Lets the other followers that received the same events add their batches first.
    this.#writes.inFlight = nextTurn().then(() => this.#writeNext());
    await this.#writes.inFlight;
    while (this.#waiting.length > 0) {
      this.#writes.inFlight = this.#writeNext();
      await this.#writes.inFlight;
    }
    this.#writes.inFlight = undefined;
    this.#pumping = false;
  }

  #writeNext(): Promise<void> {
    const group = this.#waiting;
    this.#waiting = [];
    return this.#writeGroup(group);
  }

  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    try {
      await writeBatches(
        this.db,
        group.map(({ batch }) => batch),
      );
      for (const { resolve } of group) resolve();
    } catch (error) {
      if (group.length === 1) group[0]?.reject(error);
      // Written one by one, only the failing batch fails.
      else for (const one of group) await this.#writeGroup([one]);
    }
  }
}

function rowsOf({ writes }: BatchWrite): number {
  let count = 0;
  for (const { rows, deletes, versions } of writes) count += rows.length + deletes.length + versions.length;
  return count;
}
