/**
 * Rows that answered writes have changed and that are not written yet, where reads wait for read models instead of writes
 * (docs/adr/0026-reads-wait.md). A request that asks for one row need not have everything written that has gathered: the
 * row as it was, with the changes of the events since, is what will be written.
 */
import { type AnyStoredRow, keyText, withPosition } from '../../projections/apply.ts';
import { type Change, type Projection, schemaOf, type Table } from '../../projections/projection.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { charactersOf } from './row-cache.ts';

/** In place of its size, for an event that is not known in clear. */
const UNKNOWN = -1;

/** What is known of a row; `row` undefined: there is none. */
export interface KnownRow {
  readonly row: AnyStoredRow | undefined;
}

interface PendingChange extends Pick<Change, 'fresh' | 'apply'> {
  readonly position: Position;
}

/**
 * So much is remembered at most: the events that can be pending while the read model keeps up, and characters of their
 * data.
 */
const MAX_PENDING = { events: 2_000, characters: 8_000_000 };

/**
 * The changes to one read model that its rows in memory lack. Only for projections whose changes depend on nothing but
 * their own row.
 */
export class PendingChanges {
  readonly #projection: Projection;
  /** Position of the read model. */
  readonly #current: () => Position;
  /** How many characters each event has, in the order in which they came; `UNKNOWN`: see `expect`. */
  readonly #events = new Map<Position, number>();
  #characters = 0;
  /** Known events whose changes are not in `#changes` yet. */
  #unread: DomainEvent[] = [];
  /** By table and key, in the order of their positions. */
  readonly #changes = new Map<string, PendingChange[]>();
  /** How many of the events are not known in clear. */
  #unknown = 0;
  /** There were too many: nothing is known up to here. */
  #lostUpTo: Position = 0;
  #prunedAt: Position = 0;

  constructor(projection: Projection, current: () => Position) {
    this.#projection = projection;
    this.#current = current;
  }

  /** An event that this process has appended. */
  add(event: DomainEvent): void {
    const { type, position } = event;
    if (!this.#projection.handles.has(type)) return;
    const characters = charactersOf(event.data);
    if (!this.#takes(position, characters)) return;
    const known = this.#events.get(position);
    if (known !== undefined && known !== UNKNOWN) return;
    if (known === UNKNOWN) this.#unknown--;
    this.#events.set(position, characters);
    this.#characters += characters;
    this.#unread.push(event);
  }

  /** An event that must not be missing, although it is not known in clear. Whoever has appended it may still add it. */
  expect(position: Position): void {
    if (!this.#takes(position, 0) || this.#events.has(position)) return;
    this.#events.set(position, UNKNOWN);
    this.#unknown++;
  }

  /** Whether there are events that are not known in clear, or not yet: whoever has appended one may be about to add it. */
  get lacksSome(): boolean {
    return this.#prune() < this.#lostUpTo || this.#unknown > 0;
  }

  /**
   * The row under this key with everything that is pending. Undefined: that cannot be told.
   *
   * @param kept the row in memory; undefined: nothing is known about it
   */
  row(
    table: Pick<Table, 'name' | 'key'>,
    key: Readonly<Record<string, string | number>>,
    kept: KnownRow | undefined,
  ): KnownRow | undefined {
    if (this.lacksSome || !this.#read()) return undefined;
    const changes = this.#changes.get(nameOf(table, key));
    if (!changes) return kept;
    const known = kept ?? (changes[0]?.fresh ? { row: undefined } : undefined);
    if (!known) return undefined;
    let { row } = known;
    try {
      for (const { position, apply } of changes) {
        if (row && row.position >= position) continue;
        const next: Readonly<Record<string, unknown>> | undefined = apply(row);
        if (next !== row) row = next && withPosition(next, position);
      }
    } catch {
      // The read model is going to get stuck on it, and says so to whoever waits for it.
      return undefined;
    }
    return { row };
  }

  /** Whether an event is to be remembered. */
  #takes(position: Position, characters: number): boolean {
    const current = this.#prune();
    if (position <= current) return false;
    const fits = this.#events.size < MAX_PENDING.events && this.#characters + characters <= MAX_PENDING.characters;
    if (current >= this.#lostUpTo && fits) return true;
    this.#lostUpTo = Math.max(this.#lostUpTo, position, ...this.#events.keys());
    this.#events.clear();
    this.#changes.clear();
    this.#unread = [];
    this.#unknown = 0;
    this.#characters = 0;
    return false;
  }

  /** @returns false when there is an event that cannot be applied */
  #read(): boolean {
    const unread = this.#unread;
    this.#unread = [];
    for (const event of unread) {
      try {
        for (const { table, key, fresh, apply } of this.#projection.project(event)) {
          const name = nameOf(table, key);
          const changes = this.#changes.get(name) ?? [];
          changes.push({ position: event.position, fresh, apply });
          // Requests need not be told of their appends in the order of the log.
          changes.sort((one, other) => one.position - other.position);
          this.#changes.set(name, changes);
        }
      } catch {
        // As if it were not known: the read model is going to get stuck on it, and says so to whoever waits for it.
        this.#forget(event.position);
        this.#events.set(event.position, UNKNOWN);
        this.#unknown++;
      }
    }
    return this.#unknown === 0;
  }

  #forget(position: Position): void {
    const characters = this.#events.get(position);
    if (characters === UNKNOWN) this.#unknown--;
    else this.#characters -= characters ?? 0;
    this.#events.delete(position);
  }

  /** Forgets what is written. @returns up to where that is */
  #prune(): Position {
    const current = this.#current();
    if (current <= this.#prunedAt) return current;
    this.#prunedAt = current;
    for (const position of this.#events.keys()) if (position <= current) this.#forget(position);
    this.#unread = this.#unread.filter(({ position }) => position > current);
    for (const [name, changes] of this.#changes) {
      const left = changes.filter(({ position }) => position > current);
      if (left.length === 0) this.#changes.delete(name);
      else this.#changes.set(name, left);
    }
    return current;
  }
}

const nameOf = (table: Pick<Table, 'name' | 'key'>, key: Readonly<Record<string, string | number>>): string =>
  `${table.name}:${keyText(table, key)}`;

/** For each of the projections: what is pending of it, by schema. */
export const pendingOf = (
  projections: readonly Projection[],
  current: (schema: string) => Position,
): ReadonlyMap<string, PendingChanges> =>
  new Map(
    projections.map((projection) => {
      const schema = schemaOf(projection);
      return [schema, new PendingChanges(projection, () => current(schema))];
    }),
  );
