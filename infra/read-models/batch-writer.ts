/**
 * Writes the batches of all projections of a process. Batches that are ready at the same time share a statement: an
 * event usually concerns several read models, whose followers receive it in the same turn of the event loop. While a
 * statement is in flight, the next batches gather; none waits for more to come.
 */
import type { AnyDatabase } from '../database/database.ts';
import { type BatchWrite, writeBatches } from './tables.ts';

/** Batches with more rows are written on their own, so that small ones need not wait for them. */
const SMALL_ROWS = 500;

interface Waiting {
  readonly batch: BatchWrite;
  resolve(): void;
  reject(error: unknown): void;
}

export class BatchWriter {
  readonly db: AnyDatabase;
  /** At most one per follower, because each waits for its last batch. */
  #waiting: Waiting[] = [];
  #pumping = false;

  constructor(db: AnyDatabase) {
    this.db = db;
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
      // Lets the other followers that received the same events add their batches first.
      setImmediate(() => {
        this.#pump().catch(reject);
      });
    });
  }

  /** Never throws. */
  async #pump(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      await this.#writeGroup(group);
    }
    this.#pumping = false;
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
  let rows = 0;
  for (const { inserts, upserts, deletes } of writes) rows += inserts.length + upserts.length + deletes.length;
  return rows;
}
