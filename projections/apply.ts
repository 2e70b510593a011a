/** Applies changes to rows in memory. Pure: used between loading and writing rows, and in tests. */
import type { DomainEvent } from '../shared/events/define.ts';
import type { Change, Projection, Table } from './projection.ts';

export type AnyStoredRow = Readonly<Record<string, unknown>> & { readonly position: number };

/** The row as it is stored, with the position of the event that last changed it. */
export function withPosition(row: Readonly<Record<string, unknown>>, position: number): AnyStoredRow {
  // Not a spread to which a property is added: see `projection.ts`.
  return Object.assign({}, row, { position });
}

/** Identifies a row of a table: the values of its key. Strings are preceded by their length, so no two keys agree. */
export function keyText(table: Pick<Table, 'key'>, key: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const column of table.key) {
    const value = key[column];
    text += typeof value === 'string' ? `${value.length}"${value},` : `${value},`;
  }
  return text;
}

/** The rows of a batch: loaded, then changed. */
export interface RowSet {
  /** Undefined: known to be absent. */
  get(table: Table, key: string): AnyStoredRow | undefined;
  set(table: Table, key: string, row: AnyStoredRow | undefined): void;
}

/** Applies the changes of one event. @returns the number of rows that changed */
export function applyEvent(changes: readonly Change[], event: Pick<DomainEvent, 'position'>, rows: RowSet): number {
  let changed = 0;
  for (const { table, key, apply, inPlace } of changes) {
    const text = keyText(table, key);
    const row = rows.get(table, text);
    if (row && row.position >= event.position) continue;
    const next = apply(row);
    if (next === row) continue;
    rows.set(
      table,
      text,
      next === undefined ? undefined : withPosition(next, inPlace && row ? row.position : event.position),
    );
    changed++;
  }
  return changed;
}

/**
 * Tables of projections in memory, for tests and for "what if" calculations without a database. Two projections may
 * each have a table of the same name.
 */
export class MemoryTables implements RowSet {
  readonly #tables = new Map<object, Map<string, AnyStoredRow>>();

  get(table: Table, key: string): AnyStoredRow | undefined {
    return this.#tables.get(table)?.get(key);
  }

  set(table: Table, key: string, row: AnyStoredRow | undefined): void {
    let rows = this.#tables.get(table);
    if (!rows) {
      rows = new Map();
      this.#tables.set(table, rows);
    }
    if (row) rows.set(key, row);
    else rows.delete(key);
  }

  rows(table: object): readonly AnyStoredRow[] {
    return [...(this.#tables.get(table)?.values() ?? [])];
  }

  apply(projection: Projection, events: readonly DomainEvent[]): void {
    for (const event of events) applyEvent(projection.project(event), event, this);
  }
}
