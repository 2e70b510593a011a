/**
 * The rows of a read model that is being built, kept in memory across writes: a row that changes a hundred times is
 * written once, and a row that changes again is not read back.
 *
 * Insert-only tables keep nothing in memory: their rows are encoded for COPY at once.
 */
import { type AnyStoredRow, keyText, withPosition } from '../../../projections/apply.ts';
import type { Change, Projection, Table } from '../../../projections/projection.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { versionsAfter } from '../batch.ts';
import { type Version, versionOf, versionTableOf } from '../history.ts';
import { charactersOf } from '../row-cache.ts';
import type { Forgotten, TableWrite } from '../tables.ts';
import { encodeRow } from './bulk.ts';
import type { WrittenKeys } from './written-keys.ts';

type Key = Readonly<Record<string, unknown>>;

/** A row in memory. */
interface Slot {
  /** Only set while there is no row, because the row contains it. */
  key: Key | undefined;
  /** Undefined if there is none. */
  row: Key | undefined;
  /** Position of the last event that changed it; -1 if none did. */
  position: number;
  /** Whether the table has a row with this key. */
  stored: boolean;
  /** Whether the table may have the row although it should not exist yet. */
  doubtful: boolean;
  /** Whether it must be written. */
  dirty: boolean;
  /** Approximate size, characters. */
  size: number;
}

/** A change that is applied once the missing rows are loaded. */
interface Waiting {
  readonly slot: Slot;
  readonly state: TableState;
  readonly change: Change;
  readonly position: number;
}

/** Size of a slot besides its row, characters. */
const SLOT_CHARACTERS = 200;
/** Size of the first buffer for encoded rows, bytes; each further one is twice as large, up to the largest. */
const FIRST_PIECE = 8_192;
const LARGEST_PIECE = 262_144;
/** Maximum number of bytes that a character takes in UTF-8. */
const CHARACTER_BYTES = 3;

/**
 * Rows in COPY's format, immediately as bytes outside the heap: each garbage collection would copy the many small
 * strings of the texts.
 */
class CopyText {
  readonly #pieces: Buffer[] = [];
  #size = FIRST_PIECE;
  /** The free part of the last buffer, and its used length. */
  #piece = Buffer.allocUnsafe(FIRST_PIECE);
  #length = 0;

  add(text: string): void {
    const bytes = text.length * CHARACTER_BYTES;
    if (this.#piece.length - this.#length < bytes) {
      this.settle();
      this.#size = Math.min(LARGEST_PIECE, 2 * this.#size);
      this.#piece = Buffer.allocUnsafe(Math.max(this.#size, bytes));
    }
    this.#length += this.#piece.write(text, this.#length);
  }

  /** All pieces so far. */
  settle(): readonly Buffer[] {
    if (this.#length > 0) {
      this.#pieces.push(this.#piece.subarray(0, this.#length));
      this.#piece = this.#piece.subarray(this.#length);
      this.#length = 0;
    }
    return this.#pieces;
  }
}

class TableState {
  readonly table: Table;
  /** Rows of two generations: a used row moves to the newer one, and the older one is discarded as a whole. */
  newer = new Map<string, Slot>();
  older = new Map<string, Slot>();
  dirty: Slot[] = [];
  copied: CopyText | undefined;
  /** Versions of rows, encoded or not. */
  readonly versions: Version[] = [];
  versionText: CopyText | undefined;
  readonly forgets: Forgotten[] = [];
  /** Every row of the table is in memory, or its key is in `Room.written`. */
  complete: boolean;
  /** Rows were only added so far. */
  growing = true;

  constructor(table: Table, complete: boolean) {
    this.table = table;
    this.complete = complete;
  }
}

/** The memory of all read models of a rebuild. */
export interface Room {
  /** Approximate size of the rows in memory, characters. */
  characters: number;
  /** Keys of rows that were discarded. */
  readonly written: WrittenKeys;
}

/** The changes since the last call. */
export interface Changed {
  readonly writes: readonly TableWrite[];
  /** Rows to be added by COPY, encoded. */
  readonly copies: ReadonlyMap<Table, readonly Buffer[]>;
  /** Versions of rows to be added by COPY, encoded, by the table of the rows. */
  readonly versionCopies: ReadonlyMap<Table, readonly Buffer[]>;
}

export interface BuiltRowsOptions {
  readonly projection: Projection;
  readonly room: Room;
  /** Whether the tables have no rows yet. */
  readonly empty: boolean;
  /** Whether new rows can be added by COPY. */
  readonly copies: boolean;
  /** Whether the row before each change is kept as a version. */
  readonly history: boolean;
  /** Loads the existing rows of a table, by `keyText`. */
  readonly load: (table: Table, keys: readonly Key[]) => Promise<ReadonlyMap<string, AnyStoredRow>>;
}

export class BuiltRows {
  readonly #options: BuiltRowsOptions;
  readonly #tables: ReadonlyMap<Table, TableState>;
  /** Sizes of the two generations of all tables, and of the encoded rows. */
  #newer = 0;
  #older = 0;
  #encoded = 0;

  constructor(options: BuiltRowsOptions) {
    this.#options = options;
    this.#tables = new Map(options.projection.tables.map((table) => [table, new TableState(table, options.empty)]));
  }

  /** Size of the encoded rows, characters. */
  get encoded(): number {
    return this.#encoded;
  }

  /** Size of the rows in memory that have been used since rows were last discarded, characters. */
  get used(): number {
    return this.#newer;
  }

  /** Size of the rows in memory that have not been used since. */
  get unused(): number {
    return this.#older;
  }

  /**
   * Applies events in memory; in order, and all after those applied before.
   *
   * @returns how many were applied; fewer than given when a row must be written before it can be changed
   * @throws errors of the projection; the rows must then be discarded
   */
  async add(events: readonly DomainEvent[]): Promise<number> {
    const missing = new Map<TableState, Map<string, Slot>>();
    const waiting: Waiting[] = [];
    let taken = 0;
    for (const event of events) {
      const changes = this.#options.projection.project(event);
      if (!this.#accepts(changes)) break;
      for (const change of changes) this.#take(change, event.position, missing, waiting);
      taken++;
    }
    for (const [state, slots] of missing) await this.#load(state, slots);
    for (const { slot, state, change, position } of waiting) this.#apply(slot, state, change, position);
    return taken;
  }

  /** Whether these changes can be applied: an encoded row cannot be changed before it is written. */
  #accepts(changes: readonly Change[]): boolean {
    for (const { table, fresh } of changes) {
      if (fresh) continue;
      const state = this.#stateOf(table);
      state.growing = false;
      if (state.copied) return false;
    }
    return true;
  }

  #take(change: Change, position: number, missing: Map<TableState, Map<string, Slot>>, waiting: Waiting[]): void {
    const { table, key, fresh, apply } = change;
    const state = this.#stateOf(table);
    if (fresh && state.growing && this.#options.copies) {
      const row = apply(undefined);
      if (row !== undefined) this.#encode(state, row, position);
      state.complete = false;
      return;
    }
    const text = keyText(table, key);
    const slot = this.#find(state, text) ?? this.#slotFor(state, text, key, fresh, missing);
    // If a row is missing, every later change waits: changes are applied in order (`Change`).
    if (missing.size > 0) waiting.push({ slot, state, change, position });
    else this.#apply(slot, state, change, position);
  }

  #find(state: TableState, text: string): Slot | undefined {
    const slot = state.newer.get(text);
    if (slot) return slot;
    const old = state.older.get(text);
    if (!old) return undefined;
    state.older.delete(text);
    state.newer.set(text, old);
    this.#older -= old.size;
    this.#newer += old.size;
    return old;
  }

  #slotFor(
    state: TableState,
    text: string,
    key: Key,
    fresh: boolean,
    missing: Map<TableState, Map<string, Slot>>,
  ): Slot {
    const slot: Slot = { key, row: undefined, position: -1, stored: false, doubtful: false, dirty: false, size: 0 };
    state.newer.set(text, slot);
    this.#resize(slot, SLOT_CHARACTERS + text.length);
    if (state.complete && !this.#options.room.written.mayHave(this.#nameOf(state), text)) return slot;
    if (fresh) slot.doubtful = true;
    else {
      const slots = missing.get(state) ?? new Map<string, Slot>();
      missing.set(state, slots.set(text, slot));
    }
    return slot;
  }

  async #load(state: TableState, slots: ReadonlyMap<string, Slot>): Promise<void> {
    const keys = Array.from(slots.values(), ({ key }) => key as Key);
    const rows = await this.#options.load(state.table, keys);
    for (const [text, row] of rows) {
      const slot = slots.get(text);
      if (!slot) continue;
      Object.assign(slot, { key: undefined, row, position: row.position, stored: true });
      this.#resize(slot, slot.size + charactersOf(row));
    }
  }

  /** @returns its number of characters */
  #encode(state: TableState, row: Key, position: number): number {
    const text = encodeRow(state.table, row, position);
    state.copied ??= new CopyText();
    state.copied.add(text);
    this.#encoded += text.length;
    return text.length;
  }

  #apply(slot: Slot, state: TableState, change: Change, position: number): void {
    const { row, position: since } = slot;
    const { inPlace, isUnversioned } = change;
    applyTo(slot, state, change, position);
    if (!this.#options.history) return;
    // A change in place applies to the earlier versions as well, so they are deleted, and it creates none.
    if (inPlace) state.forgets.push({ ...change.key, until: position });
    if (!row || slot.row === row || inPlace || isUnversioned?.(row)) return;
    const version = versionOf(row, since, position);
    if (!this.#options.copies) {
      state.versions.push(version);
      return;
    }
    const text = encodeRow(versionTableOf(state.table), version, since);
    state.versionText ??= new CopyText();
    state.versionText.add(text);
    this.#encoded += text.length;
  }

  /** A slot of the newer generation has another size. */
  #resize(slot: Slot, size: number): void {
    this.#newer += size - slot.size;
    this.#options.room.characters += size - slot.size;
    slot.size = size;
  }

  /** The pending writes. From here on, they count as written. */
  changed(): Changed {
    const writes: TableWrite[] = [];
    const copies = new Map<Table, readonly Buffer[]>();
    const versionCopies = new Map<Table, readonly Buffer[]>();
    for (const state of this.#tables.values()) {
      const { table } = state;
      const rows: AnyStoredRow[] = [];
      const deletes: Key[] = [];
      for (const slot of state.dirty) {
        const { row, position, stored, doubtful, key } = slot;
        slot.dirty = false;
        slot.stored = row !== undefined;
        slot.doubtful = false;
        if (!row) {
          if (stored || doubtful) deletes.push(key as Key);
          this.#resize(slot, SLOT_CHARACTERS);
        } else if (!stored && this.#options.copies) {
          this.#resize(slot, SLOT_CHARACTERS + this.#encode(state, row, position));
        } else {
          const whole = withPosition(row, position);
          this.#resize(slot, SLOT_CHARACTERS + charactersOf(whole));
          rows.push(whole);
        }
      }
      state.dirty = [];
      if (state.copied) copies.set(table, state.copied.settle());
      state.copied = undefined;
      if (state.versionText) versionCopies.set(table, state.versionText.settle());
      state.versionText = undefined;
      const forgets = state.forgets.splice(0);
      const versions = versionsAfter(table, state.versions.splice(0), forgets);
      if (rows.length + deletes.length + versions.length + forgets.length > 0)
        writes.push({ table, rows, deletes, versions, forgets });
      if (state.growing) this.#forget(state);
    }
    this.#encoded = 0;
    return { writes, copies, versionCopies };
  }

  /** Discards rows that have not been used for long. Call this right after `changed`. */
  age(): void {
    const { room } = this.#options;
    for (const state of this.#tables.values()) {
      for (const [text, { row }] of state.complete ? state.older : []) {
        if (!row || room.written.add(this.#nameOf(state), text)) continue;
        state.complete = false;
        break;
      }
      state.older = state.newer;
      state.newer = new Map();
    }
    room.characters -= this.#older;
    this.#older = this.#newer;
    this.#newer = 0;
  }

  /** Discards rows of a table whose rows are never changed. */
  #forget(state: TableState): void {
    if (state.newer.size === 0) return;
    for (const slot of state.newer.values()) this.#resize(slot, 0);
    state.newer = new Map();
    state.complete = false;
  }

  #nameOf({ table }: TableState): string {
    return `${this.#options.projection.name}.${table.name}`;
  }

  #stateOf(table: Table): TableState {
    const state = this.#tables.get(table);
    if (!state) throw new Error(`${this.#options.projection.name}: table ${table.name} is not in its list of tables`);
    return state;
  }
}

function applyTo(slot: Slot, state: TableState, { key, apply, inPlace }: Change, position: number): void {
  if (slot.row && slot.position >= position) return;
  const next = apply(slot.row);
  if (next === slot.row) return;
  if (!inPlace || !slot.row) slot.position = position;
  slot.row = next;
  slot.key = next ? undefined : key;
  if (slot.dirty) return;
  slot.dirty = true;
  state.dirty.push(slot);
}
