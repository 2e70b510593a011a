/** One batch of events into one schema: load what it touches, apply in memory, write in one statement. */
import { LRUCache } from 'lru-cache';
import { type AnyStoredRow, applyEvent, keyText, type RowSet } from '../../projections/apply.ts';
import type { Change, Projection, Table } from '../../projections/projection.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { AnyDatabase } from '../database/database.ts';
import { type CheckpointMove, loadRows, type TableWrite, writeBatch } from './tables.ts';

/** Rows that a runner keeps, so that hot records are not read back: it is the only writer of its tables. */
const CACHE_CHARACTERS = 16_000_000;

/** Marks a key that is known to have no row. */
const ABSENT = Symbol('absent');
type Cached = AnyStoredRow | typeof ABSENT;
export type RowCache = LRUCache<string, Cached>;

export function createRowCache(): RowCache {
  return new LRUCache<string, Cached>({
    maxSize: CACHE_CHARACTERS,
    sizeCalculation: (row, key) => key.length + (row === ABSENT ? 1 : JSON.stringify(row).length),
    max: 50_000,
  });
}

interface Touched {
  readonly table: Table;
  readonly keys: Map<string, Readonly<Record<string, unknown>>>;
  readonly rows: Map<string, AnyStoredRow | undefined>;
  readonly changed: Set<string>;
}

/**
 * Applies `events` (in order, all behind the checkpoint) and moves the checkpoint.
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
  const planned: { event: DomainEvent; changes: readonly Change[] }[] = [];
  const touched = new Map<string, Touched>();
  for (const table of projection.tables) {
    touched.set(table.name, { table, keys: new Map(), rows: new Map(), changed: new Set() });
  }
  const toLoad = new Map<string, Map<string, Readonly<Record<string, unknown>>>>();
  const born = new Set<string>();
  for (const event of events) {
    const changes = projection.project(event);
    planned.push({ event, changes });
    for (const { table, key, fresh } of changes) {
      const place = touched.get(table.name);
      if (!place) throw new Error(`${projection.name}: table ${table.name} is not in its list of tables`);
      const text = keyText(table, key);
      const cacheKey = `${table.name}:${text}`;
      if (place.keys.has(text)) continue;
      place.keys.set(text, key);
      if (fresh) {
        born.add(cacheKey);
        continue;
      }
      const known = cache.get(cacheKey);
      if (known !== undefined) place.rows.set(text, known === ABSENT ? undefined : known);
      else {
        const keys = toLoad.get(table.name) ?? new Map();
        toLoad.set(table.name, keys.set(text, key));
      }
    }
  }
  for (const [name, keys] of toLoad) {
    const place = touched.get(name) as Touched;
    const rows = await loadRows(db, move.schema, place.table, [...keys.values()]);
    for (const text of keys.keys()) place.rows.set(text, rows.get(text));
  }

  const rowSet: RowSet = {
    get: (table, key) => touched.get(table.name)?.rows.get(key),
    set(table, key, row) {
      const place = touched.get(table.name) as Touched;
      place.rows.set(key, row);
      place.changed.add(key);
    },
  };
  for (const { event, changes } of planned) applyEvent(changes, event, rowSet);

  const writes: TableWrite[] = [];
  for (const { table, keys, rows, changed } of touched.values()) {
    const upserts: AnyStoredRow[] = [];
    const deletes: Readonly<Record<string, unknown>>[] = [];
    for (const key of changed) {
      const row = rows.get(key);
      if (row) upserts.push(row);
      else deletes.push(keys.get(key) as Readonly<Record<string, unknown>>);
    }
    if (upserts.length > 0 || deletes.length > 0) writes.push({ table, upserts, deletes });
  }
  await writeBatch(db, writes, move);

  for (const { table, rows } of touched.values()) {
    for (const [key, row] of rows) {
      const cacheKey = `${table.name}:${key}`;
      // Rows that are born and never changed again (activities) would only push the hot ones out.
      if (born.has(cacheKey)) continue;
      cache.set(cacheKey, row ?? ABSENT);
    }
  }
}
