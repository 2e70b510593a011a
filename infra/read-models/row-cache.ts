/** Rows that the only writer of a projection keeps in memory, so that frequently changed rows need not be read back. */
import { LRUCache } from 'lru-cache';
import type { AnyStoredRow } from '../../projections/apply.ts';

/** Maximum number of characters in a cache of its own. */
const CACHE_CHARACTERS = 16_000_000;
/** Maximum number of characters in the caches of all projections of a process. */
const SHARED_CHARACTERS = 64_000_000;
/** Overhead of a cache entry, characters. */
const ENTRY_CHARACTERS = 200;

/** Marks a key that is known to have no row. */
const ABSENT = Symbol('absent');
type Cached = AnyStoredRow | typeof ABSENT;

/** The memory of one or several caches. @param characters room for rows, with `ENTRY_CHARACTERS` for each of them */
const roomOf = (characters: number) =>
  new LRUCache<string, Cached>({
    maxSize: characters,
    sizeCalculation: (row, key) => ENTRY_CHARACTERS + key.length + (row === ABSENT ? 1 : charactersOf(row)),
  });

/** Caches rows of a projection's tables, for their only writer. */
export class RowCache {
  /** Tables whose rows are changed after they were inserted. */
  readonly #changed = new Set<string>();
  readonly #rows: LRUCache<string, Cached>;
  readonly #prefix: string;

  /** @param name under which others in the same room do not have their rows */
  constructor(name = '', room = roomOf(CACHE_CHARACTERS)) {
    this.#rows = room;
    this.#prefix = `${name}:`;
  }

  /** Undefined: nothing is known about this key. */
  find(table: string, key: string): { readonly row: AnyStoredRow | undefined } | undefined {
    const known = this.#rows.get(this.#nameOf(table, key));
    return known === undefined ? undefined : { row: known === ABSENT ? undefined : known };
  }

  /** A row that is too large for the cache is not kept. */
  remember(table: string, key: string, row: AnyStoredRow | undefined): void {
    this.#rows.set(this.#nameOf(table, key), row ?? ABSENT);
  }

  /** Call this with an inserted row. Rows that never change (activities) would only evict frequently changed ones. */
  inserted(table: string, key: string, row: AnyStoredRow | undefined): void {
    if (this.#changed.has(table)) this.remember(table, key, row);
    else this.forget(table, key);
  }

  /** Call this when a row of this table is changed by its key. */
  changes(table: string): void {
    this.#changed.add(table);
  }

  forget(table: string, key: string): void {
    this.#rows.delete(this.#nameOf(table, key));
  }

  clear(): void {
    for (const name of [...this.#rows.keys()]) if (name.startsWith(this.#prefix)) this.#rows.delete(name);
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

/** The caches of all projections of a process, with a shared limit. */
export class RowCaches {
  readonly #room = roomOf(SHARED_CHARACTERS);
  readonly #caches = new Map<string, RowCache>();

  /** The cache of a projection's live tables. */
  of(schema: string): RowCache {
    let cache = this.#caches.get(schema);
    if (!cache) {
      cache = new RowCache(schema, this.#room);
      this.#caches.set(schema, cache);
    }
    return cache;
  }
}
