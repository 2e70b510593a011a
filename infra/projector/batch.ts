/** One batch of events into one schema: load what it touches, apply in memory, write in one statement. */
import { LRUCache } from 'lru-cache';
import { type AnyStoredRow, keyText } from '../../projections/apply.ts';
import type { Change, Projection, Table } from '../../projections/projection.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { AnyDatabase } from '../database/database.ts';
import { type CheckpointMove, loadRows, type TableWrite, writeBatch } from './tables.ts';

/** Rows that a runner keeps, so that hot records are not read back: it is the only writer of its tables. */
const CACHE_CHARACTERS = 16_000_000;

/** Marks a key that is known to have no row. */
const ABSENT = Symbol('absent');
type Cached = AnyStoredRow | typeof ABSENT;
const NOTHING = { row: undefined };

/** What the only writer of a projection's tables knows of their rows. */
export class RowCache {
  /** Tables of which every row is in here: a key that is not has no row, and is not looked for. */
  readonly #complete: Set<string>;
  readonly #rows: LRUCache<string, Cached>;

  /** @param empty tables known to have no rows yet */
  constructor(empty: readonly Table[] = []) {
    this.#complete = new Set(empty.map((table) => table.name));
    this.#rows = new LRUCache<string, Cached>({
      maxSize: CACHE_CHARACTERS,
      sizeCalculation: (row, key) => key.length + (row === ABSENT ? 1 : JSON.stringify(row).length),
      max: 50_000,
      dispose: (row, key, reason) => {
        if (reason === 'evict' && row !== ABSENT) this.#complete.delete(key.slice(0, key.indexOf(':')));
      },
    });
  }

  /** Undefined: nothing is known of this key. */
  find(table: string, key: string): { readonly row: AnyStoredRow | undefined } | undefined {
    const known = this.#rows.get(`${table}:${key}`);
    if (known !== undefined) return { row: known === ABSENT ? undefined : known };
    return this.#complete.has(table) ? NOTHING : undefined;
  }

  remember(table: string, key: string, row: AnyStoredRow | undefined): void {
    const name = `${table}:${key}`;
    this.#rows.set(name, row ?? ABSENT);
    // Too large to be kept.
    if (row && !this.#rows.has(name)) this.#complete.delete(table);
  }

  forget(table: string, key: string): void {
    this.#rows.delete(`${table}:${key}`);
    this.#complete.delete(table);
  }

  clear(): void {
    this.#rows.clear();
    this.#complete.clear();
  }
}

export const createRowCache = (): RowCache => new RowCache();

/** One row that a batch touches. */
interface Slot {
  readonly key: Readonly<Record<string, unknown>>;
  /** As the table has it; undefined: not there. */
  before: AnyStoredRow | undefined;
  row: AnyStoredRow | undefined;
  /** Born in this batch by a change that needs no look at the table. */
  readonly fresh: boolean;
}

/** A batch that has been thought through: what is to be written, and what to remember once that is done. */
export interface PlannedBatch {
  readonly writes: readonly TableWrite[];
  /** To be called when `writes` has been committed. */
  written(): void;
}

/**
 * Applies `events` (in order, all behind the checkpoint) in memory.
 *
 * @param load gives those rows of a table that exist, by `keyText`
 * @throws whatever the projection throws
 */
export async function planBatch(
  projection: Projection,
  events: readonly DomainEvent[],
  cache: RowCache,
  load: (table: Table, keys: readonly Slot['key'][]) => Promise<ReadonlyMap<string, AnyStoredRow>>,
): Promise<PlannedBatch> {
  const places = new Map<string, Map<string, Slot>>();
  for (const table of projection.tables) places.set(table.name, new Map());
  const steps: { slot: Slot; apply: Change['apply']; position: number }[] = [];
  const toLoad = new Map<string, Map<string, Slot>>();
  for (const event of events) {
    for (const { table, key, fresh, apply } of projection.project(event)) {
      const slots = places.get(table.name);
      if (!slots) throw new Error(`${projection.name}: table ${table.name} is not in its list of tables`);
      const text = keyText(table, key);
      let slot = slots.get(text);
      if (!slot) {
        const known = fresh ? NOTHING : cache.find(table.name, text);
        slot = { key, before: known?.row, row: known?.row, fresh };
        slots.set(text, slot);
        if (!known) {
          const wanted = toLoad.get(table.name) ?? new Map<string, Slot>();
          toLoad.set(table.name, wanted.set(text, slot));
        }
      }
      steps.push({ slot, apply, position: event.position });
    }
  }
  for (const table of projection.tables) {
    const wanted = toLoad.get(table.name);
    if (!wanted) continue;
    const rows = await load(
      table,
      Array.from(wanted.values(), ({ key }) => key),
    );
    for (const [text, slot] of wanted) {
      slot.before = rows.get(text);
      slot.row = slot.before;
    }
  }

  // As `applyEvent` does it; keys are not written out a second time.
  for (const { slot, apply, position } of steps) {
    const { row } = slot;
    if (row && row.position >= position) continue;
    const next = apply(row);
    if (next !== row) slot.row = next === undefined ? undefined : { ...next, position };
  }

  const writes: TableWrite[] = [];
  for (const table of projection.tables) {
    const inserts: AnyStoredRow[] = [];
    const upserts: AnyStoredRow[] = [];
    const deletes: Readonly<Record<string, unknown>>[] = [];
    for (const { key, before, row } of (places.get(table.name) as Map<string, Slot>).values()) {
      if (row === before) continue;
      if (row) (before ? upserts : inserts).push(row);
      else deletes.push(key);
    }
    if (inserts.length + upserts.length + deletes.length > 0) writes.push({ table, inserts, upserts, deletes });
  }
  return {
    writes,
    written() {
      for (const [name, slots] of places) {
        for (const [text, { row, fresh }] of slots) {
          // Rows that are born and never changed again (activities) would only push the hot ones out.
          if (fresh) cache.forget(name, text);
          else cache.remember(name, text, row);
        }
      }
    },
  };
}

/**
 * Applies `events` and moves the checkpoint.
 *
 * @throws FencedError or a constraint error (`isFenced`) when another runner leads; whatever the projection throws
 */
export async function applyBatch(
  db: AnyDatabase,
  projection: Projection,
  events: readonly DomainEvent[],
  move: CheckpointMove,
  cache: RowCache,
): Promise<void> {
  const planned = await planBatch(projection, events, cache, (table, keys) => loadRows(db, move.schema, table, keys));
  await writeBatch(db, planned.writes, move);
  planned.written();
}
