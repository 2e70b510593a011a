/**
 * Fills `<schema>_rebuild`, or `<schema>_replay`: rows from the log, then keys and indexes. An interrupted rebuild is resumed where it
 * stopped.
 */
import { sql } from 'kysely';
import { historyOf, type Projection, schemaOf, type Table } from '../../../projections/projection.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../../database/database.ts';
import { isFenced } from '../../following/checkpoints.ts';
import { LOCK_CLASS } from '../../following/leadership.ts';
import { Batch } from '../batch.ts';
import { createHistory, indexHistory, versionTableOf } from '../history.ts';
import { RowCache } from '../row-cache.ts';
import {
  addIndexes,
  addKey,
  type CheckpointMove,
  createBareTables,
  dropUnused,
  loadRows,
  qualified,
  writeBatches,
} from '../tables.ts';
import type { BulkSession } from './bulk.ts';
import type { Build, Fed } from './plan.ts';
import { BuiltRows, type Changed } from './rows.ts';

/** Longest interval between stored checkpoints, milliseconds, so that a resumed run has little to repeat. */
const STORE_MS = 10_000;
/** Maximum number of events read before the lock is taken; if there are more, another round without it follows. */
const AHEAD = 20_000;
/** Rows are written when the encoded rows, or the events since the last write, reach this number of characters. */
const MAX_CHARACTERS = 8_000_000;
/**
 * Maximum number of characters of rows in memory, in all read models together. A read model that uses most of its rows
 * at first keeps all of them, so there may be twice as many.
 */
const ROOM_CHARACTERS = 32_000_000;
/**
 * On the embedded database, the tables of a log with more events than this are indexed while they are filled: that
 * takes twice as long, but a single statement that indexes millions of rows would make all others exceed their time
 * limits.
 */
const INDEX_AFTERWARDS = 2_000_000;

/** The schema of the tables of a replay. */
export const replayOf = (schema: string): string => `${schema}_replay`;

/** The name of a replay in `service.checkpoints.leader`. */
export const replayerOf = (pid: number | string): string => `replay by process ${pid}`;

export class Building implements Fed {
  readonly projection: Projection;
  /** Position up to which everything was applied. */
  position: Position = 0;
  /** Where reading stops. */
  target: Position = 0;
  readonly build: Build;
  readonly live: string;
  readonly schema: string;
  readonly old: string;
  readonly begun = performance.now();
  /** Tables that have their primary key. */
  readonly #keyed = new Set<string>();
  #generation = 0;
  /** The position stored in the database. */
  stored: Position = 0;
  #storedAt = performance.now();
  #rows: BuiltRows;
  /** Number of events applied since the last write, and of their characters. */
  #size = { events: 0, characters: 0 };
  #writing: Promise<void> = Promise.resolve();
  #failure: Error | undefined;
  events = 0;
  /** Builds up to the end of the log instead of the position of the live tables. */
  toHead = false;
  /** True when the log does not have the position of the live tables, so they were built from another log. */
  foreign = false;

  private constructor(build: Build, projection: Projection) {
    this.build = build;
    this.projection = projection;
    this.live = schemaOf(projection);
    this.schema = build.replay ? replayOf(this.live) : `${this.live}_rebuild`;
    this.old = `${this.live}_old`;
    this.#rows = this.#newRows(false);
  }

  static async open(build: Build, projection: Projection): Promise<Building> {
    const building = new Building(build, projection);
    await building.#begin();
    return building;
  }

  /** Resumes an interrupted rebuild, or starts with empty tables. */
  async #begin(): Promise<void> {
    const { sessions, code, check, head, history, replay, stores } = this.build;
    const fingerprint = replay ? replayerOf(process.pid) : `rebuild${history ? ' with history' : ''} by ${code}`;
    await sessions.use(({ db }) =>
      db.transaction().execute(async (trx) => {
        await sql`SELECT pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(${this.schema}))`.execute(trx);
        // Fences any other process that is building these tables.
        const { rows } = await sql<{ position: number; generation: number; leader: string }>`
          UPDATE service.checkpoints SET generation = generation + 1 WHERE schema_name = ${this.schema}
          RETURNING position, generation, leader`.execute(trx);
        const [known] = rows;
        if (known && known.leader === fingerprint && !this.build.fresh) {
          this.position = known.position;
          this.stored = known.position;
          this.#generation = known.generation;
          for (const name of await keyedTables(trx, this.schema)) this.#keyed.add(name);
          return;
        }
        await dropUnused(trx, this.schema);
        await createBareTables(trx, this.projection, this.schema);
        if (history) await createHistory(trx, this.projection, this.schema);
        this.#rows = this.#newRows(true);
        this.#generation = (known?.generation ?? 0) + 1;
        await sql`INSERT INTO service.checkpoints (schema_name, projection, version, generation, leader, updated_at)
          VALUES (${this.schema}, ${this.projection.name}, ${this.projection.version}, ${this.#generation}, ${fingerprint}, ${Date.now()})`.execute(
          trx,
        );
      }),
    );
    if (replay) return;
    const { position } = await this.liveCheckpoint();
    const standing = check ? 'near' : await this.build.standing(position);
    this.foreign = standing === 'foreign';
    this.toHead = standing !== 'near';
    if (stores.database.kind === 'embedded' && head > INDEX_AFTERWARDS) await this.index();
  }

  async liveCheckpoint(): Promise<{ position: Position }> {
    const { rows } = await this.build.stores.database.pool.query(
      'SELECT position FROM service.checkpoints WHERE schema_name = $1',
      [this.live],
    );
    if (!rows[0]) throw new Error(`there is no read model ${this.live}; start the service once, then rebuild`);
    return rows[0] as { position: Position };
  }

  /** Sets the target to the current position of the live tables (or of the log). */
  async aim(): Promise<void> {
    const { position } = await this.liveCheckpoint();
    const head = this.toHead ? await this.build.stores.store.log.head() : 0;
    // A live checkpoint can be after the last event, if the store has other entries there.
    this.target = Math.max(this.target, head, this.foreign ? 0 : position);
  }

  /**
   * Applies events up to `end`; those after the target, or already applied, are skipped.
   *
   * @param events of types that the projection handles
   * @param characters approximate size of their data
   */
  async take(events: readonly DomainEvent[], end: Position, characters: number): Promise<void> {
    const from = this.position;
    let mine = events.filter(({ position }) => position > from && position <= this.target);
    while (mine.length > 0) {
      const taken = await this.#rows.add(mine).catch((error) => {
        // An event may have been applied partly, so nothing of it may be written.
        this.#failure = error instanceof Error ? error : new Error(String(error));
        throw error;
      });
      this.#size.events += taken;
      if (taken > 0) this.position = (mine[taken - 1] as DomainEvent).position;
      if (taken === mine.length) break;
      // A row that was just added is changed, so it must be written before it can be found.
      await this.#store();
      mine = mine.slice(taken);
    }
    this.position = Math.max(this.position, Math.min(end, this.target));
    this.#size.characters += characters;
    const full =
      this.#size.events >= this.build.batchSize ||
      this.#size.characters > MAX_CHARACTERS ||
      this.#rows.encoded > MAX_CHARACTERS;
    if (full || this.#crowded || performance.now() - this.#storedAt > STORE_MS) await this.#store();
  }

  /** Whether it should discard rows from memory. */
  get #crowded(): boolean {
    const { used, unused } = this.#rows;
    const { room, share } = this.build;
    return room.characters > ROOM_CHARACTERS && used >= unused && used > ROOM_CHARACTERS * share;
  }

  #newRows(empty: boolean): BuiltRows {
    return new BuiltRows({
      projection: this.projection,
      room: this.build.room,
      empty,
      copies: this.build.copies,
      history: this.build.history,
      load: async (table, keys) => {
        await this.#written();
        return this.build.sessions.use(async ({ db }) => {
          await this.#ensureKey(db, table);
          return loadRows(db, this.schema, table, keys);
        });
      },
    });
  }

  /** Writes the changes while the next events are being applied; one write at a time. */
  async #store(): Promise<void> {
    await this.#written();
    const end = this.position;
    const { events } = this.#size;
    this.#storedAt = performance.now();
    if (events === 0 && end === this.stored) return;
    const crowded = this.#crowded;
    const changed = this.#rows.changed();
    if (crowded) this.#rows.age();
    this.#size = { events: 0, characters: 0 };
    this.#writing = this.#write(changed, end)
      .then(() => {
        this.events += events;
      })
      .catch((error) => {
        this.#failure = error instanceof Error ? error : new Error(String(error));
      });
  }

  async #written(): Promise<void> {
    await this.#writing;
    if (this.#failure) throw this.#failure;
  }

  /** Resolves when everything applied has been written. */
  async flush(): Promise<void> {
    await this.#store();
    await this.#written();
    // The log has been read up to the target.
    this.position = Math.max(this.position, this.target);
  }

  async #write(changed: Changed, end: Position): Promise<void> {
    const move = this.#move(end);
    await this.build.sessions.use(async (session) => {
      for (const { table } of changed.writes) await this.#ensureKey(session.db, table);
      try {
        await this.#copyAndMove(session, changed, move);
      } catch (error) {
        if (!isDuplicate(error)) throw this.explained(error);
        // A row that was expected to be new exists already: without the primary key both are inserted, and the older
        // one is removed.
        await this.#copyAndMove(session, changed, move, true);
      }
    });
    this.stored = end;
  }

  #copyAndMove(
    session: BulkSession,
    { writes, copies, versionCopies }: Changed,
    move: CheckpointMove,
    twice = false,
  ): Promise<void> {
    const { copy } = session;
    if (!copy) return writeBatches(session.db, [{ writes, move }]);
    return session.db.transaction().execute(async (trx) => {
      const tables = new Set([...copies.keys(), ...writes.map(({ table }) => table)]);
      if (twice) for (const table of tables) await this.#dropKey(trx, table);
      for (const [table, pieces] of copies) await copy(this.schema, table, pieces);
      for (const [table, pieces] of versionCopies) await copy(historyOf(this.schema), versionTableOf(table), pieces);
      if (twice) for (const table of tables) await this.#addKeyToOne(trx, table);
      await writeBatches(trx, [{ writes, move }]);
    });
  }

  #move(to: Position): CheckpointMove {
    return {
      schema: this.schema,
      generation: this.#generation,
      from: this.stored,
      to,
      at: Date.now(),
      notify: false,
    };
  }

  explained(error: unknown): unknown {
    if (!isFenced(error)) return error;
    return new Error(`another rebuild of ${this.projection.name} has taken over`, { cause: error });
  }

  /** Adds a table's primary key when rows are first looked up, because filling a table without one is faster. */
  async #ensureKey(db: AnyDatabase, table: Table): Promise<void> {
    if (this.#keyed.has(table.name)) return;
    try {
      await addKey(db, this.schema, table);
      this.#keyed.add(table.name);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      await db.transaction().execute((trx) => this.#addKeyToOne(trx, table));
    }
  }

  /**
   * Removes rows with duplicate keys, then adds the primary key. As in the live tables, the first of two rows by the
   * same event wins, otherwise the later one.
   */
  async #addKeyToOne(trx: AnyDatabase, table: Table): Promise<void> {
    const target = qualified(this.schema, table);
    const same = sql.join(
      table.key.map((column) => sql`a.${sql.id(column)} = b.${sql.id(column)}`),
      sql` AND `,
    );
    await sql`DELETE FROM ${target} a USING ${target} b WHERE ${same}
      AND (a.position < b.position OR (a.position = b.position AND a.ctid > b.ctid))`.execute(trx);
    await addKey(trx, this.schema, table);
    this.#keyed.add(table.name);
  }

  async #dropKey(db: AnyDatabase, table: Table): Promise<void> {
    if (!this.#keyed.delete(table.name)) return;
    await sql`ALTER TABLE ${qualified(this.schema, table)} DROP CONSTRAINT ${sql.id(`${table.name}_pkey`)}`.execute(db);
  }

  async index(): Promise<void> {
    for (const table of this.projection.tables) {
      this.build.signal.throwIfAborted();
      await this.build.sessions.use(async ({ db }) => {
        await this.#ensureKey(db, table);
        if (!this.build.check) await addIndexes(db, this.schema, table);
        // The planner has no statistics for new tables.
        await sql`ANALYZE ${qualified(this.schema, table)}`.execute(db);
      });
    }
    if (!this.build.history || this.build.check) return;
    await this.build.sessions.use(async ({ db }) => {
      await indexHistory(db, this.projection, this.schema);
      for (const table of this.projection.tables)
        await sql`ANALYZE ${qualified(historyOf(this.schema), table)}`.execute(db);
    });
  }

  tell(phase: 'indexing' | 'comparing' | 'switching'): void {
    const { position, target } = this;
    this.build.tell({ phase, projection: this.projection.name, position, target });
  }

  async catchUp(): Promise<void> {
    await this.aim();
    await this.build.feed([this]);
  }

  /**
   * Reads the events up to the end of the log in advance, because the log is not read under the lock (on PGlite it
   * could not be).
   */
  async readAhead(): Promise<{ events: DomainEvent[]; end: Position }> {
    const { store } = this.build.stores;
    const events: DomainEvent[] = [];
    let end = Math.max(this.position, await store.log.head());
    let count = 0;
    for await (const page of store.log.readAll({ from: this.position })) {
      for (const event of page) if (this.projection.handles.has(event.type)) events.push(await store.decode(event));
      count += page.length;
      const last = page.at(-1)?.position ?? 0;
      if (count >= AHEAD) return { events, end: last };
      end = Math.max(end, last);
    }
    return { events, end };
  }

  async catchUpLocked(trx: AnyDatabase, ahead: readonly DomainEvent[], to: Position): Promise<void> {
    const events = ahead.filter(({ position }) => position > this.position && position <= to);
    // Without cached rows: they would be wrong if the transaction is rolled back, and are not needed if it is not.
    const batch = new Batch({
      projection: this.projection,
      cache: new RowCache(),
      load: (table, keys) => loadRows(trx, this.schema, table, keys),
    });
    await batch.add(events);
    const writes = this.build.history ? batch.writes() : batch.writes().map((one) => ({ ...one, versions: [] }));
    await writeBatches(trx, [{ writes, move: this.#move(Math.max(to, this.position)) }]);
    this.events += events.length;
  }
}

async function keyedTables(db: AnyDatabase, schema: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT c.relname AS name FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE k.contype = 'p' AND n.nspname = ${schema}`.execute(db);
  return rows.map(({ name }) => name);
}

const isDuplicate = (error: unknown): boolean => (error as { code?: string }).code === '23505';
