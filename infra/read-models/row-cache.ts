/**
 * Rows that a projection's only writer keeps in memory, so that hot ones are not read back to be changed.
 */
import { LRUCache } from 'lru-cache';
import type { AnyStoredRow } from '../../projections/apply.ts';
import type { Table } from '../../projections/projection.ts';

/** Characters that a cache of its own may have. */
const CACHE_CHARACTERS = 16_000_000;
/** Characters that all projections of a process may have together. */
const SHARED_CHARACTERS = 64_000_000;
/** Overhead of a cache entry, characters. */
const ENTRY_CHARACTERS = 200;

/** Marks a key that is known to have no row. */
const ABSENT = Symbol('absent');
type Cached = AnyStoredRow | typeof ABSENT;
const NOTHING = { row: undefined };

/** The memory of one or several caches. */
class Room {
  readonly rows: LRUCache<string, Cached>;
  readonly #caches: RowCache[] = [];

  /** @param characters room for rows, with `ENTRY_CHARACTERS` for each of them */
  constructor(characters: number) {
    this.rows = new LRUCache<string, Cached>({
      maxSize: characters,
      sizeCalculation: (row, key) => ENTRY_CHARACTERS + key.length + (row === ABSENT ? 1 : charactersOf(row)),
      dispose: (row, key, reason) => {
        if (reason !== 'evict' || row === ABSENT) return;
        const [number = '', table = ''] = key.split(':', 2);
        this.#caches[Number(number)]?.lacks(table);
      },
    });
  }

  /** @returns what the keys of this cache begin with */
  admit(cache: RowCache): string {
    return `${this.#caches.push(cache) - 1}:`;
  }
}

/** Caches rows of a projection's tables, for their only writer. */
export class RowCache {
  /** Tables that are cached completely: a key that is not in the cache has no row, and need not be looked up. */
  readonly #complete: Set<string>;
  /** Tables of which rows are changed after they were inserted. */
  readonly #changed = new Set<string>();
  readonly #rows: LRUCache<string, Cached>;
  readonly #prefix: string;

  /** @param empty tables known to have no rows yet */
  constructor(empty: readonly Table[] = [], room = new Room(CACHE_CHARACTERS)) {
    this.#complete = new Set(empty.map((table) => table.name));
    this.#rows = room.rows;
    this.#prefix = room.admit(this);
  }

  /** Undefined: nothing is known about this key. */
  find(table: string, key: string): { readonly row: AnyStoredRow | undefined } | undefined {
    const known = this.#rows.get(this.#nameOf(table, key));
    if (known !== undefined) return { row: known === ABSENT ? undefined : known };
    return this.#complete.has(table) ? NOTHING : undefined;
  }

  remember(table: string, key: string, row: AnyStoredRow | undefined): void {
    const name = this.#nameOf(table, key);
    this.#rows.set(name, row ?? ABSENT);
    // The row is too large for the cache.
    if (row && !this.#rows.has(name)) this.lacks(table);
  }

  /** To be called with a row that was inserted. Rows that nobody changes again (activities) would only evict the hot ones. */
  inserted(table: string, key: string, row: AnyStoredRow | undefined): void {
    if (this.#changed.has(table)) this.remember(table, key, row);
    else this.forget(table, key);
  }

  /** To be called when a row of this table is changed by its key. */
  changes(table: string): void {
    this.#changed.add(table);
  }

  forget(table: string, key: string): void {
    this.#rows.delete(this.#nameOf(table, key));
    this.lacks(table);
  }

  /** To be called when the table has rows that are not cached. */
  lacks(table: string): void {
    this.#complete.delete(table);
  }

  clear(): void {
    for (const name of [...this.#rows.keys()]) if (name.startsWith(this.#prefix)) this.#rows.delete(name);
    this.#complete.clear();
  }

  #nameOf(table: string, key: string): string {
    return `${this.#prefix}${table}:${key}`;
  }
}

/** Approximate length of the row in JSON, characters. */
export function charactersOf(row: Readonly<Record<string, unknown>>): number {
  let characters = 0;
  for (const value of Object.values(row)) {
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'object' && value !== null) characters += JSON.stringify(value).length;
    characters += 16;
  }
  return characters;
}

/** The caches of all projections of a process, under one bound. */
export class RowCaches {
  readonly #room = new Room(SHARED_CHARACTERS);
  readonly #caches = new Map<string, RowCache>();

  /** The cache of a projection's live tables. */
  of(schema: string): RowCache {
    let cache = this.#caches.get(schema);
    if (!cache) {
      cache = new RowCache([], this.#room);
      this.#caches.set(schema, cache);
    }
    return cache;
  }
}
