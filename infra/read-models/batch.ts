/**
 * Applies one batch of events to one schema: loads the affected rows, changes them in memory, and writes them in one
 * statement.
 */
import { type AnyStoredRow, keyText, withPosition } from '../../projections/apply.ts';
import type { Change, Concerned, Projection, Table } from '../../projections/projection.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { BatchWriter } from './batch-writer.ts';
import { type Version, versionOf } from './history.ts';
import type { RowCache } from './row-cache.ts';
import { type CheckpointMove, type Forgotten, loadRows, type TableWrite } from './tables.ts';

const NOTHING = { row: undefined };

/** A row that a batch changes. */
interface Slot {
  readonly key: Readonly<Record<string, unknown>>;
  /** The row in the table; undefined: there is none. */
  before: AnyStoredRow | undefined;
  /** The row to be written, without `position`; undefined: it will be deleted. */
  row: Readonly<Record<string, unknown>> | undefined;
  /** Position of the last event that changed the row; -1 if none did. */
  position: number;
  /** Inserted in this batch by a change that does not read the table. */
  readonly fresh: boolean;
  /** Receives the row as it was before each change. */
  readonly versions: Version[];
  /** Position of the last change in place, which deletes the earlier versions of the row. */
  inPlaceAt?: Position;
}

/** A change that waits until the missing rows of the batch are loaded. */
interface Waiting {
  readonly slot: Slot;
  readonly change: Change;
  readonly position: number;
}

/** A changed row, and the agents of its workspace that it concerned before the change or concerns now. */
export interface ConcernedRow {
  readonly table: string;
  readonly workspace: number;
  readonly concerned: Concerned;
}

export interface BatchOptions {
  readonly projection: Projection;
  readonly cache: RowCache;
  /** Loads the existing rows of a table, by `keyText`. */
  readonly load: (
    table: Table,
    keys: readonly Readonly<Record<string, unknown>>[],
  ) => Promise<ReadonlyMap<string, AnyStoredRow>>;
}

/** Pending changes to a projection's tables. */
export class Batch {
  readonly #options: BatchOptions;
  readonly #places: ReadonlyMap<string, Map<string, Slot>>;
  readonly #versions: ReadonlyMap<string, Version[]>;

  constructor(options: BatchOptions) {
    this.#options = options;
    const { tables } = options.projection;
    this.#places = new Map(tables.map((table) => [table.name, new Map()]));
    this.#versions = new Map(tables.map((table) => [table.name, []]));
  }

  /**
   * Applies events in memory; in order, and all after those applied before.
   *
   * @throws whatever the projection throws; the batch must then be discarded
   */
  async add(events: readonly DomainEvent[]): Promise<void> {
    const { projection } = this.#options;
    const toLoad = new Map<Table, Map<string, Slot>>();
    const waiting: Waiting[] = [];
    for (const event of events)
      for (const change of projection.project(event)) this.#take(change, event.position, toLoad, waiting);
    for (const [table, wanted] of toLoad) {
      const rows = await this.#options.load(
        table,
        Array.from(wanted.values(), ({ key }) => key),
      );
      for (const [text, slot] of wanted) {
        slot.before = rows.get(text);
        slot.row = slot.before;
        slot.position = slot.before?.position ?? -1;
      }
    }
    for (const { slot, change, position } of waiting) applyTo(slot, change, position);
  }

  #take(change: Change, position: number, toLoad: Map<Table, Map<string, Slot>>, waiting: Waiting[]): void {
    const { table, key, fresh } = change;
    const { projection, cache } = this.#options;
    const slots = this.#places.get(table.name);
    if (!slots) throw new Error(`${projection.name}: table ${table.name} is not in its list of tables`);
    if (!fresh) cache.changes(table.name);
    const text = keyText(table, key);
    let slot = slots.get(text);
    if (!slot) {
      const known = fresh ? NOTHING : cache.find(table.name, text);
      const row = known?.row;
      const versions = this.#versions.get(table.name) as Version[];
      slot = { key, before: row, row, position: row?.position ?? -1, fresh, versions };
      slots.set(text, slot);
      if (!known) {
        const wanted = toLoad.get(table) ?? new Map<string, Slot>();
        toLoad.set(table, wanted.set(text, slot));
      }
    }
    // If a row is missing, every later change waits: changes are applied in order (`Change`).
    if (toLoad.size > 0) waiting.push({ slot, change, position });
    else applyTo(slot, change, position);
  }

  /** What is to be written. */
  writes(): TableWrite[] {
    const writes: TableWrite[] = [];
    for (const table of this.#options.projection.tables) {
      const rows: AnyStoredRow[] = [];
      const deletes: Readonly<Record<string, unknown>>[] = [];
      for (const slot of (this.#places.get(table.name) as Map<string, Slot>).values()) {
        const { before, row, fresh } = slot;
        if (row) {
          if (row !== before) rows.push(storedRow(slot) as AnyStoredRow);
        } else if (before || fresh) deletes.push(slot.key);
      }
      const slots = this.#places.get(table.name) as Map<string, Slot>;
      const forgets = Array.from(slots.values()).flatMap(({ key, inPlaceAt }) =>
        inPlaceAt === undefined ? [] : [{ ...key, until: inPlaceAt }],
      );
      const versions = versionsAfter(table, this.#versions.get(table.name) as Version[], forgets);
      if (rows.length + deletes.length + versions.length + forgets.length > 0)
        writes.push({ table, rows, deletes, versions, forgets });
    }
    return writes;
  }

  /** The agents that the changed rows of tables with `concerns` concern. */
  concerned(): ConcernedRow[] {
    const all: ConcernedRow[] = [];
    for (const { name, concerns } of this.#options.projection.tables) {
      if (!concerns) continue;
      for (const { key, before, row, fresh } of (this.#places.get(name) as Map<string, Slot>).values()) {
        const add = (concerned: Concerned) => all.push({ table: name, workspace: Number(key.workspace_id), concerned });
        if (row === before && !(fresh && !row)) continue;
        if (row) add(concerns(row, before));
        if (before) add(concerns(before, row));
        // A row that was not loaded was deleted.
        if (!row && !before) add('all');
      }
    }
    return all;
  }

  /** Updates the cache. Call this after the commit, and before the cache is read again. */
  written(): void {
    const { cache } = this.#options;
    for (const [name, slots] of this.#places) {
      for (const [text, slot] of slots) {
        if (slot.fresh) cache.inserted(name, text, storedRow(slot));
        else cache.remember(name, text, storedRow(slot));
      }
    }
  }
}

/** Like `applyEvent`, but does not build the key text again, and sets the row's position only at the end. */
function applyTo(slot: Slot, { apply, inPlace, isUnversioned }: Change, position: number): void {
  if (slot.row && slot.position >= position) return;
  // A change in place applies to the earlier versions as well, so they are deleted.
  if (inPlace) slot.inPlaceAt = position;
  const next = apply(slot.row);
  if (next === slot.row) return;
  if (slot.row && !inPlace && !isUnversioned?.(slot.row))
    slot.versions.push(versionOf(slot.row, slot.position, position));
  if (!inPlace || !slot.row) slot.position = position;
  slot.row = next;
}

/** Versions that no change in place has deleted. */
export function versionsAfter(
  table: Table,
  versions: readonly Version[],
  forgets: readonly Forgotten[],
): readonly Version[] {
  if (forgets.length === 0) return versions;
  const inPlaceAt = new Map(forgets.map((one) => [keyText(table, one), one.until]));
  return versions.filter((version) => version.until > (inPlaceAt.get(keyText(table, version)) ?? 0));
}

/** The row with its position, kept in the slot because it is needed twice. */
function storedRow(slot: Slot): AnyStoredRow | undefined {
  const { row, position } = slot;
  if (row && row.position !== position) slot.row = withPosition(row, position);
  return slot.row as AnyStoredRow | undefined;
}

/**
 * Applies `events` (in order, all after the checkpoint) and moves the checkpoint.
 *
 * @returns whether a row changed, and the agents that changed rows concern
 * @throws FencedError or a constraint error (`isFenced`) when another process leads; whatever the projection throws
 */
export async function applyBatch(
  writer: BatchWriter,
  projection: Projection,
  events: readonly DomainEvent[],
  move: CheckpointMove,
  cache: RowCache,
): Promise<{ readonly changed: boolean; readonly concerned: readonly ConcernedRow[] }> {
  const batch = new Batch({ projection, cache, load: (table, keys) => loadRows(writer.db, move.schema, table, keys) });
  await batch.add(events);
  const concerned = batch.concerned();
  const writes = batch.writes();
  await writer.write({ writes, move });
  batch.written();
  return { changed: writes.length > 0, concerned };
}
