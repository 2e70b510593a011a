/**
 * One read model of a rebuild: `<schema>_rebuild` is filled, gets its keys and indexes, is compared with the live
 * tables, and takes their place.
 *
 * It is compared where both show the same position. On a server the live tables are looked at in a snapshot, which
 * holds nothing up. PGlite has one session and no such snapshot: rows that the live runner changed meanwhile make a
 * table differ, and a table that differs is compared once more under the lock. What changed since the comparison is
 * compared under the lock of the live checkpoint in both cases, so the pause of the live read model is short.
 *
 * The switch renames two schemas. The old one is dropped afterwards, not with it: a batch of the live runner may hold
 * its tables while it waits for the checkpoint that we hold.
 */
import { sql } from 'kysely';
import { type Projection, schemaOf, type Table } from '../../projections/projection.ts';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../database/database.ts';
import { isFenced } from '../following/checkpoints.ts';
import { LOCK_CLASS } from '../following/leadership.ts';
import { Batch, RowCache } from './batch.ts';
import { type BulkSession, encodeRow, openBulkSession } from './bulk.ts';
import type { Build, RebuildReport, TableReport } from './rebuild.ts';
import {
  addIndexes,
  addKey,
  type CheckpointMove,
  createBareTables,
  dropSchema,
  type Fingerprint,
  hashChanges,
  hashTable,
  loadRows,
  qualified,
  type TableWrite,
  writeBatches,
} from './tables.ts';

/** A checkpoint is stored at least this often, milliseconds, so that a later run need not read far back. */
const STORE_MS = 2_000;
/** Events read ahead of the lock; more means another round without it. */
const AHEAD = 20_000;
/** A batch is written when it has this many characters for COPY. */
const MAX_CHARACTERS = 8_000_000;
/** Blocks of 8 kB hashed per statement on the embedded database: about a tenth of a second. */
const HASH_BLOCKS = 1_000;
/**
 * A longer log on the embedded database is indexed while it is filled: that takes twice as long, but one statement
 * that indexes millions of rows would keep everybody waiting for longer than they do.
 */
const INDEX_AFTERWARDS = 2_000_000;
/** How long a statement waits for a lock before it lets others pass and tries again, milliseconds. */
const LOCK_MS = 5_000;
const TRIES = 10;

/** How a table compares where both show the same position. */
interface Compared {
  at: Position;
  /** Undefined: it could not be read. */
  live: Fingerprint | undefined;
  rebuilt: Fingerprint;
  /** False: the live rows may have changed while they were looked at. */
  certain: boolean;
}

/** By table. */
type Comparison = Map<string, Compared>;

/** Rows in COPY's format. Bytes outside of the heap: strings in thousands of pieces would be copied by each collection. */
class CopyText {
  text: string;
  readonly #pieces: Buffer[] = [];
  constructor(text: string) {
    this.text = text;
  }
  /** All pieces so far. */
  settle(): readonly Buffer[] {
    if (this.text !== '') this.#pieces.push(Buffer.from(this.text));
    this.text = '';
    return this.#pieces;
  }
}

export class Lane {
  readonly projection: Projection;
  /** Everything up to here was taken. */
  position: Position = 0;
  /** Where reading stops. */
  target: Position = 0;
  readonly #build: Build;
  readonly #live: string;
  readonly #schema: string;
  readonly #old: string;
  readonly #begun = performance.now();
  /** Tables that have their primary key. */
  readonly #keyed = new Set<string>();
  #cache = new RowCache();
  #generation = 0;
  /** As it stands in the database. */
  #stored: Position = 0;
  #storedAt = performance.now();
  #batch: Batch;
  /** Rows of the batch for tables to which rows have only been added so far, in COPY's format. */
  #copies = new Map<Table, CopyText>();
  /** Tables whose rows change: theirs go through the batch. */
  readonly #mixed = new Set<string>();
  /** Events that the batch holds, and characters of `#copies`. */
  #size = { events: 0, characters: 0 };
  #writing: Promise<void> = Promise.resolve();
  #failure: Error | undefined;
  #events = 0;
  /** Goes to the end of the log instead of where the live tables are. */
  #toHead = false;
  /** The log does not have the position that the live tables are at: they are from another one. */
  #foreign = false;

  private constructor(build: Build, projection: Projection) {
    this.#build = build;
    this.projection = projection;
    this.#live = schemaOf(projection);
    this.#schema = `${this.#live}_rebuild`;
    this.#old = `${this.#live}_old`;
    this.#batch = this.#newBatch();
  }

  static async open(build: Build, projection: Projection): Promise<Lane> {
    const lane = new Lane(build, projection);
    await lane.#begin();
    return lane;
  }

  /** Takes up what an interrupted rebuild has built, or begins with empty tables. */
  async #begin(): Promise<void> {
    const { sessions, code, check, head, stores } = this.#build;
    const fingerprint = `rebuild by ${code}`;
    await sessions.use(({ db }) =>
      db.transaction().execute(async (trx) => {
        await sql`SELECT pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(${this.#schema}))`.execute(trx);
        // Fences whoever builds these tables at the moment.
        const { rows } = await sql<{ position: number; generation: number; leader: string }>`
          UPDATE service.checkpoints SET generation = generation + 1 WHERE schema_name = ${this.#schema}
          RETURNING position, generation, leader`.execute(trx);
        const [known] = rows;
        if (known && known.leader === fingerprint && !this.#build.fresh) {
          this.position = known.position;
          this.#stored = known.position;
          this.#generation = known.generation;
          for (const name of await keyedTables(trx, this.#schema)) this.#keyed.add(name);
          return;
        }
        await sql`DELETE FROM service.checkpoints WHERE schema_name = ${this.#schema}`.execute(trx);
        await dropSchema(trx, this.#schema);
        await createBareTables(trx, this.projection, this.#schema);
        this.#cache = new RowCache(this.projection.tables);
        this.#batch = this.#newBatch();
        this.#generation = (known?.generation ?? 0) + 1;
        await sql`INSERT INTO service.checkpoints (schema_name, projection, version, generation, leader, updated_at)
          VALUES (${this.#schema}, ${this.projection.name}, ${this.projection.version}, ${this.#generation}, ${fingerprint}, ${Date.now()})`.execute(
          trx,
        );
      }),
    );
    await this.#dropOld();
    const { position } = await this.#liveCheckpoint();
    this.#toHead = !check && (await this.#isFarBehind(position));
    if (stores.database.kind === 'embedded' && head > INDEX_AFTERWARDS) await this.#index();
  }

  /** By more than `farBehind` events, and a twentieth of the log: of two positions only the share tells something. */
  async #isFarBehind(position: Position): Promise<boolean> {
    const { farBehind, head, stores } = this.#build;
    const limit = head - position > head / 20 ? farBehind + 1 : 1;
    let events = 0;
    try {
      for await (const page of stores.store.log.readAll({ from: position, limit })) events += page.length;
    } catch (error) {
      if (!(error instanceof UnknownPositionError)) throw error;
      this.#foreign = true;
    }
    return this.#foreign || events > farBehind;
  }

  async #liveCheckpoint(): Promise<{ position: Position }> {
    const { rows } = await this.#build.stores.database.pool.query(
      'SELECT position FROM service.checkpoints WHERE schema_name = $1',
      [this.#live],
    );
    if (!rows[0]) throw new Error(`there is no read model ${this.#live}; start the service once, then rebuild`);
    return rows[0] as { position: Position };
  }

  /** Sets the target to where the live tables (or the log) are now. */
  async aim(): Promise<void> {
    const { position } = await this.#liveCheckpoint();
    const head = this.#toHead ? await this.#build.stores.store.log.head() : 0;
    // A live checkpoint can stand behind the last event, where the store has something else.
    this.target = Math.max(this.target, head, this.#foreign ? 0 : position);
  }

  /** Takes events up to `end`: those of other types, behind the target or known already are passed over. */
  async take(events: readonly DomainEvent[], end: Position): Promise<void> {
    const { handles } = this.projection;
    let mine = events.filter(
      (event) => handles.has(event.type) && event.position > this.position && event.position <= this.target,
    );
    while (mine.length > 0) {
      const taken = await this.#batch.add(mine);
      this.#size.events += taken;
      if (taken > 0) this.position = (mine[taken - 1] as DomainEvent).position;
      if (taken === mine.length) break;
      // A row that was only just added is changed: it has to be in the table to be found.
      await this.#store();
      mine = mine.slice(taken);
    }
    this.position = Math.max(this.position, Math.min(end, this.target));
    for (const copied of this.#copies.values()) copied.settle();
    const full = this.#size.events >= this.#build.batchSize || this.#size.characters > MAX_CHARACTERS;
    if (full || performance.now() - this.#storedAt > STORE_MS) await this.#store();
  }

  #newBatch(): Batch {
    return new Batch({
      projection: this.projection,
      cache: this.#cache,
      load: async (table, keys) => {
        await this.#written();
        return this.#build.sessions.use(async ({ db }) => {
          await this.#ensureKey(db, table);
          return loadRows(db, this.#schema, table, keys);
        });
      },
      append: {
        takes: (table) => this.#build.copies && !this.#mixed.has(table.name),
        take: (table, row, position) => {
          const text = encodeRow(table, row, position);
          this.#size.characters += text.length;
          const copied = this.#copies.get(table);
          if (copied) copied.text += text;
          else this.#copies.set(table, new CopyText(text));
        },
        refuses: (table) => {
          this.#mixed.add(table.name);
          return this.#copies.has(table);
        },
      },
    });
  }

  /** Writes the batch while the next one is filled; one write at a time. */
  async #store(): Promise<void> {
    await this.#written();
    const end = this.position;
    const batch = this.#batch;
    const copies = this.#copies;
    const { events } = this.#size;
    this.#storedAt = performance.now();
    if (events === 0 && end === this.#stored) return;
    batch.written();
    this.#batch = this.#newBatch();
    this.#copies = new Map();
    this.#size = { events: 0, characters: 0 };
    this.#writing = this.#write(batch.writes(), copies, end)
      .then(() => {
        this.#events += events;
      })
      .catch((error) => {
        this.#failure = error instanceof Error ? error : new Error(String(error));
      });
  }

  async #written(): Promise<void> {
    await this.#writing;
    if (this.#failure) throw this.#failure;
  }

  /** Resolves when everything that was taken is written. */
  async flush(): Promise<void> {
    await this.#store();
    await this.#written();
    // All that there is up to the target has been read.
    this.position = Math.max(this.position, this.target);
  }

  async #write(writes: readonly TableWrite[], copies: ReadonlyMap<Table, CopyText>, end: Position): Promise<void> {
    const move = this.#move(end);
    await this.#build.sessions.use(async (session) => {
      for (const { table, upserts, deletes } of writes) {
        if (upserts.length + deletes.length > 0 || !session.copy) await this.#ensureKey(session.db, table);
      }
      try {
        await this.#copyAndMove(session, writes, copies, move);
      } catch (error) {
        if (!isDuplicate(error)) throw this.#explained(error);
        // A row that was said to be new is not: without the key both get in, and the older one is removed.
        await this.#copyAndMove(session, writes, copies, move, true);
      }
    });
    this.#stored = end;
  }

  #copyAndMove(
    session: BulkSession,
    writes: readonly TableWrite[],
    copies: ReadonlyMap<Table, CopyText>,
    move: CheckpointMove,
    twice = false,
  ): Promise<void> {
    const { copy } = session;
    if (!copy) return writeBatches(session.db, [{ writes, move }]);
    return session.db.transaction().execute(async (trx) => {
      const tables = new Set([...copies.keys(), ...writes.map(({ table }) => table)]);
      if (twice) for (const table of tables) await this.#dropKey(trx, table);
      for (const [table, copied] of copies) await copy(this.#schema, table, copied.settle());
      for (const { table, inserts } of writes) {
        if (inserts.length === 0) continue;
        const text = inserts.map((row) => encodeRow(table, row, row.position)).join('');
        await copy(this.#schema, table, [Buffer.from(text)]);
      }
      if (twice) for (const table of tables) await this.#addKeyToOne(trx, table);
      const rest = writes
        .filter(({ upserts, deletes }) => upserts.length + deletes.length > 0)
        .map((write) => ({ ...write, inserts: [] }));
      await writeBatches(trx, [{ writes: rest, move }]);
    });
  }

  #move(to: Position): CheckpointMove {
    return {
      schema: this.#schema,
      generation: this.#generation,
      from: this.#stored,
      to,
      at: Date.now(),
      notify: false,
    };
  }

  #explained(error: unknown): unknown {
    if (!isFenced(error)) return error;
    return new Error(`another rebuild of ${this.projection.name} has taken over`, { cause: error });
  }

  /** Gives a table its key when rows are first looked for: filling a table without one is faster. */
  async #ensureKey(db: AnyDatabase, table: Table): Promise<void> {
    if (this.#keyed.has(table.name)) return;
    try {
      await addKey(db, this.#schema, table);
      this.#keyed.add(table.name);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      await db.transaction().execute((trx) => this.#addKeyToOne(trx, table));
    }
  }

  /** Removes rows that share a key, then adds it. Of two by one event the first counts, of others the later: as live. */
  async #addKeyToOne(trx: AnyDatabase, table: Table): Promise<void> {
    const target = qualified(this.#schema, table);
    const same = sql.join(
      table.key.map((column) => sql`a.${sql.id(column)} = b.${sql.id(column)}`),
      sql` AND `,
    );
    await sql`DELETE FROM ${target} a USING ${target} b WHERE ${same}
      AND (a.position < b.position OR (a.position = b.position AND a.ctid > b.ctid))`.execute(trx);
    await addKey(trx, this.#schema, table);
    this.#keyed.add(table.name);
  }

  async #dropKey(db: AnyDatabase, table: Table): Promise<void> {
    if (!this.#keyed.delete(table.name)) return;
    await sql`ALTER TABLE ${qualified(this.#schema, table)} DROP CONSTRAINT ${sql.id(`${table.name}_pkey`)}`.execute(
      db,
    );
  }

  async #index(): Promise<void> {
    for (const table of this.projection.tables) {
      this.#build.signal.throwIfAborted();
      await this.#build.sessions.use(async ({ db }) => {
        await this.#ensureKey(db, table);
        if (!this.#build.check) await addIndexes(db, this.#schema, table);
        // The planner knows nothing of new tables.
        await sql`ANALYZE ${qualified(this.#schema, table)}`.execute(db);
      });
    }
  }

  /** To be called when the tables are filled. */
  async finish(): Promise<RebuildReport> {
    const { check, signal } = this.#build;
    const rows = performance.now() - this.#begun;
    this.#tell('indexing');
    await this.#index();
    const indexes = performance.now() - this.#begun;
    await this.#catchUp();
    this.#tell('comparing');
    const comparison = this.#toHead ? undefined : await this.#compare();
    signal.throwIfAborted();
    const uncertain = [...(comparison?.values() ?? [])].some((table) => !table.certain);
    if (!check || uncertain) await this.#settle(comparison);
    if (check) await this.#dropBuilt();
    else await this.#dropOld();

    const tables = [...(comparison ?? [])].map(
      ([table, { live, rebuilt }]): TableReport => ({
        table,
        live,
        rebuilt,
        equal: live?.hash === rebuilt.hash && live.rows === rebuilt.rows,
      }),
    );
    return {
      projection: this.projection.name,
      schema: this.#live,
      position: this.position,
      events: this.#events,
      tables,
      compared: comparison !== undefined,
      equal: tables.every((table) => table.equal),
      switched: !check,
      ms: { rows, indexes, total: performance.now() - this.#begun },
    };
  }

  #tell(phase: 'indexing' | 'comparing' | 'switching'): void {
    const { position, target } = this;
    this.#build.tell({ phase, projection: this.projection.name, position, target });
  }

  async #catchUp(): Promise<void> {
    await this.aim();
    await this.#build.feed([this]);
  }

  /** Undefined when the live tables are behind the rebuilt ones, so that there is no common position. */
  async #compare(): Promise<Comparison | undefined> {
    const { stores, sessions } = this.#build;
    const tables: Comparison = new Map();
    if (stores.database.kind === 'embedded') {
      await this.#catchUp();
      const at = this.position;
      if ((await this.#liveCheckpoint()).position < at) return undefined;
      const options = { blocks: HASH_BLOCKS };
      for (const table of this.projection.tables) {
        const rebuilt = await sessions.use(({ db }) => hashTable(db, this.#schema, table, options));
        const live = await sessions.use(({ db }) =>
          readable(() => hashTable(db, this.#live, table, { ...options, upTo: at })),
        );
        tables.set(table.name, { at, live, rebuilt, certain: live === undefined || live.hash === rebuilt.hash });
      }
      return tables;
    }
    const snapshot = await openBulkSession(stores.database, stores.config.dataDir, 'rebuild: comparing');
    try {
      for (const table of this.projection.tables) {
        const compared = await snapshot.db
          .transaction()
          .setIsolationLevel('repeatable read')
          .setAccessMode('read only')
          .execute((trx) => this.#compareInSnapshot(trx, table));
        if (!compared) return undefined;
        tables.set(table.name, compared);
      }
    } finally {
      await snapshot.close();
    }
    return tables;
  }

  async #compareInSnapshot(trx: AnyDatabase, table: Table): Promise<Compared | undefined> {
    const { rows } = await sql<{ position: number }>`
      SELECT position FROM service.checkpoints WHERE schema_name = ${this.#live}`.execute(trx);
    this.target = rows[0]?.position ?? 0;
    if (this.target < this.position) return undefined;
    await this.#build.feed([this]);
    const [live, rebuilt] = await Promise.all([
      readable(() => hashTable(trx, this.#live, table)),
      this.#build.sessions.use(({ db }) => hashTable(db, this.#schema, table)),
    ]);
    return { at: this.position, live, rebuilt, certain: true };
  }

  /** Catches up, compares what is left to be compared, and switches unless this is only a check. */
  async #settle(comparison: Comparison | undefined): Promise<void> {
    const { sessions, check, signal } = this.#build;
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      await this.#catchUp();
      const ahead = await this.#readAhead();
      if (!check) this.#tell('switching');
      try {
        const settled = await sessions.use(({ db }) =>
          db.transaction().execute(async (trx) => {
            await sql.raw(`SET LOCAL lock_timeout = ${LOCK_MS}`).execute(trx);
            const { rows } = await sql<{ position: number }>`
              SELECT position FROM service.checkpoints WHERE schema_name = ${this.#live} FOR UPDATE`.execute(trx);
            const live = this.#foreign ? 0 : (rows[0]?.position ?? 0);
            if (live > ahead.end) return undefined;
            await this.#catchUpLocked(trx, ahead.events, live);
            const end = Math.max(live, this.position);
            if (comparison && end === live) await this.#compareLocked(trx, comparison);
            if (!check) await this.#switch(trx, end);
            return { end };
          }),
        );
        if (settled) {
          this.position = settled.end;
          this.#stored = settled.end;
          return;
        }
      } catch (error) {
        const code = (error as { code?: string }).code;
        if ((code !== '55P03' && code !== '40P01') || attempt >= TRIES) throw this.#explained(error);
      }
    }
  }

  /** Events between here and the end of the log: under the lock the log is not read, on PGlite it could not be. */
  async #readAhead(): Promise<{ events: DomainEvent[]; end: Position }> {
    const { store } = this.#build.stores;
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

  async #catchUpLocked(trx: AnyDatabase, ahead: readonly DomainEvent[], to: Position): Promise<void> {
    const events = ahead.filter(({ position }) => position > this.position && position <= to);
    // What it would remember is forgotten if the transaction is rolled back, and not needed if it is not.
    const batch = new Batch({
      projection: this.projection,
      cache: this.#cache,
      load: (table, keys) => loadRows(trx, this.#schema, table, keys),
    });
    await batch.add(events);
    await writeBatches(trx, [{ writes: batch.writes(), move: this.#move(Math.max(to, this.position)) }]);
    this.#events += events.length;
  }

  /** Both show the same position now, and the live tables stand still. */
  async #compareLocked(trx: AnyDatabase, comparison: Comparison): Promise<void> {
    for (const table of this.projection.tables) {
      const compared = comparison.get(table.name);
      if (!compared?.live) continue;
      if (!compared.certain) {
        compared.live = await hashTable(trx, this.#live, table);
        compared.rebuilt = await hashTable(trx, this.#schema, table);
      } else if (compared.live.hash === compared.rebuilt.hash) {
        const live = await hashChanges(trx, this.#live, table, compared.at);
        const rebuilt = await hashChanges(trx, this.#schema, table, compared.at);
        if (live.hash !== rebuilt.hash || live.rows !== rebuilt.rows) Object.assign(compared, { live, rebuilt });
      }
    }
  }

  async #switch(trx: AnyDatabase, position: Position): Promise<void> {
    await sql`DELETE FROM service.checkpoints WHERE schema_name = ${this.#schema}`.execute(trx);
    await sql`UPDATE service.checkpoints SET position = ${position}, changed = ${position}, generation = generation + 1,
      stuck_at = NULL, stuck_reason = NULL, updated_at = ${Date.now()} WHERE schema_name = ${this.#live}`.execute(trx);
    const { rows } = await sql`SELECT 1 FROM pg_namespace WHERE nspname = ${this.#live}`.execute(trx);
    if (rows.length > 0) {
      await sql`ALTER SCHEMA ${sql.id(this.#live)} RENAME TO ${sql.id(this.#old)}`.execute(trx);
    }
    await sql`ALTER SCHEMA ${sql.id(this.#schema)} RENAME TO ${sql.id(this.#live)}`.execute(trx);
    if (this.#build.stores.database.kind === 'server') {
      await sql`SELECT pg_notify('signalbox_positions', ${`${this.#live}:${position}`})`.execute(trx);
    }
  }

  async #dropBuilt(): Promise<void> {
    await this.#build.sessions.use(({ db }) =>
      db.transaction().execute(async (trx) => {
        await dropSchema(trx, this.#schema);
        await sql`DELETE FROM service.checkpoints WHERE schema_name = ${this.#schema}`.execute(trx);
      }),
    );
  }

  /** Readers of the old tables finish first; each try lets new ones pass. */
  async #dropOld(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#build.sessions.use(({ db }) =>
          db.transaction().execute(async (trx) => {
            await sql.raw(`SET LOCAL lock_timeout = ${LOCK_MS}`).execute(trx);
            await dropSchema(trx, this.#old);
          }),
        );
        return;
      } catch (error) {
        const code = (error as { code?: string }).code;
        if (code !== '55P03' && code !== '40P01') throw error;
        if (attempt < TRIES) continue;
        this.#build.stores.log.warn({ schema: this.#old }, 'the old tables are in use; the next rebuild removes them');
        return;
      }
    }
  }
}

async function keyedTables(db: AnyDatabase, schema: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT c.relname AS name FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE k.contype = 'p' AND n.nspname = ${schema}`.execute(db);
  return rows.map(({ name }) => name);
}

const isDuplicate = (error: unknown): boolean => (error as { code?: string }).code === '23505';

/** Undefined when the table or a column is not there, or of another type: what is to be repaired may be broken. */
async function readable<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('42')) return undefined;
    throw error;
  }
}
