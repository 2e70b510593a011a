/**
 * Writes of all runners of a process. Batches that are ready at the same time go in one statement: one event usually
 * concerns several read models, and their runners hear of it in the same turn. While a statement is in flight the next
 * batches gather; nothing lingers.
 */
import type { AnyDatabase } from '../database/database.ts';
import { type BatchWrite, writeBatches } from './tables.ts';

/** Batches with more rows go on their own: nobody waits for another's bulk. */
const SMALL_ROWS = 500;

interface Waiting {
  readonly batch: BatchWrite;
  resolve(): void;
  reject(error: unknown): void;
}

export class BatchWriter {
  readonly db: AnyDatabase;
  /** At most one per runner: each waits for its last batch. */
  #waiting: Waiting[] = [];
  #pumping = false;

  constructor(db: AnyDatabase) {
    this.db = db;
  }

  /**
   * Rows and checkpoint of one projection, all or nothing.
   *
   * @throws FencedError or a constraint error (`isFenced`) when another runner leads
   */
  async write(batch: BatchWrite): Promise<void> {
    if (rowsOf(batch) > SMALL_ROWS) return writeBatches(this.db, [batch]);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, resolve, reject });
      if (this.#pumping) return;
      this.#pumping = true;
      // The other runners that hear of the same events still have to say what they write.
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
      // Whose fault it is shows alone; the others go on.
      else for (const one of group) await this.#writeGroup([one]);
    }
  }
}

function rowsOf({ writes }: BatchWrite): number {
  let rows = 0;
  for (const { inserts, upserts, deletes } of writes) rows += inserts.length + upserts.length + deletes.length;
  return rows;
}
