/** Read-model tables in SQL: creating them, loading rows, writing batches, comparing. Projections stay free of SQL. */
import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import { type AnyStoredRow, keyText } from '../../projections/apply.ts';
import { type Columns, historyOf, type Projection, schemaOf, type Table } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { PREPARED } from '../../shared/prepared.ts';
import type { AnyDatabase } from '../database/database.ts';
import { formerDatabase } from '../database/migrations.ts';
import { FencedError } from '../following/checkpoints.ts';
import { createHistory, createPast, indexHistory, pastOf, type Version, versionTableOf } from './history.ts';

const SQL_TYPES: Record<string, string> = {
  int: 'integer',
  bigint: 'bigint',
  text: 'text',
  boolean: 'boolean',
  jsonb: 'jsonb',
  double: 'double precision',
};

function columnSql([name, type]: [string, string]): string {
  const nullable = type.endsWith('?');
  return `"${name}" ${SQL_TYPES[nullable ? type.slice(0, -1) : type]}${nullable ? '' : ' NOT NULL'}`;
}

const columnsSql = (table: Table): string[] => [
  ...Object.entries(table.columns as Columns).map(columnSql),
  '"position" bigint NOT NULL',
];

/**
 * Refuses a database with a read model that has other tables or columns than the same version of it in this program.
 *
 * @throws Error
 */
export async function refuseOtherTables(db: AnyDatabase, projections: readonly Projection[]): Promise<void> {
  const { rows } = await sql<{ schema: string; table: string; columns: readonly string[] }>`
    SELECT n.nspname AS schema, c.relname AS table,
      array_agg('"' || a.attname || '" ' || format_type(a.atttypid, NULL) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        ORDER BY a.attnum) AS columns
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      AND n.nspname IN (SELECT schema_name FROM service.checkpoints)
    GROUP BY n.nspname, c.relname`.execute(db);
  const there = new Map(rows.map(({ schema, table, columns }) => [`${schema}.${table}`, columns.join()]));
  const schemas = new Set(rows.map(({ schema }) => schema));
  for (const projection of projections) {
    const schema = schemaOf(projection);
    const isSame = (table: Table) => there.get(`${schema}.${table.name}`) === columnsSql(table).join();
    if (schemas.has(schema) && !projection.tables.every(isSame)) throw formerDatabase();
  }
}

/**
 * The size of a row. It is computed when the row is written: the size of compressed JSON can only be found by
 * decompressing it. A text counts its bytes, and six for each control character; these are counted only in long texts.
 */
function bytesSql({ columns }: Table): string {
  const parts = Object.entries(columns as Columns).flatMap(([name, type]) => {
    const column = `"${name}"`;
    if (type.startsWith('jsonb')) return [`coalesce(octet_length(${column}::text), 0)`];
    if (!type.startsWith('text')) return [];
    return [
      `CASE WHEN octet_length(${column}) > ${LONG_TEXT} THEN 6 * octet_length(${column})
        - 5 * octet_length(regexp_replace(${column}, ${ESCAPED}, '', 'g')) ELSE coalesce(octet_length(${column}), 0) END`,
    ];
  });
  return `"bytes" integer GENERATED ALWAYS AS (${parts.join(' + ')}) STORED`;
}

/** Bytes. */
const LONG_TEXT = 2_000;
/** Characters that JSON writes with six characters. Tabs, line ends, quotes and backslashes take two, and count as one. */
const ESCAPED = `'[\\u0001-\\u0008\\u000b\\u000c\\u000e-\\u001f]+'`;

export const qualified = (schema: string, table: Pick<Table, 'name'>): RawBuilder<unknown> =>
  sql.table(`${schema}.${table.name}`);

/** Creates a projection's tables in `schema`, which must not exist yet, and those of its history. */
export async function createTables(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  await createBareTables(db, projection, schema);
  for (const table of projection.tables) {
    await addKey(db, schema, table);
    await addIndexes(db, schema, table);
  }
  await createHistory(db, projection, schema);
  await indexHistory(db, projection, schema);
  await createPast(db, projection, schema);
}

/** The same without keys and indexes: filling the tables first and adding these afterwards is faster. */
export async function createBareTables(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  await sql`CREATE SCHEMA ${sql.id(schema)}`.execute(db);
  for (const table of projection.tables) {
    const columns = columnsSql(table);
    if (table.sized) columns.push(bytesSql(table));
    await sql`CREATE TABLE ${qualified(schema, table)} (${sql.raw(columns.join(', '))})
      WITH (fillfactor = ${sql.lit(table.fillFactor)})`.execute(db);
  }
}

/** Adds a table's primary key. */
export async function addKey(db: AnyDatabase, schema: string, table: Table): Promise<void> {
  const key = sql.join(table.key.map((column) => sql.id(column)));
  await sql`ALTER TABLE ${qualified(schema, table)} ADD CONSTRAINT ${sql.id(`${table.name}_pkey`)} PRIMARY KEY (${key})`.execute(
    db,
  );
}

/** Adds the missing secondary indexes of a table. */
export async function addIndexes(db: AnyDatabase, schema: string, table: Table): Promise<void> {
  for (const [number, index] of table.indexes.entries()) {
    const name = sql.id(`${table.name}_${number + 1}`);
    const text = index.startsWith('(') ? index : `(${index})`;
    await sql`CREATE INDEX IF NOT EXISTS ${name} ON ${qualified(schema, table)} ${sql.raw(text)}`.execute(db);
  }
  const trigrams = table.searched.length > 0 ? await trigramsOf(db) : undefined;
  for (const column of trigrams === undefined ? [] : table.searched) {
    const name = sql.id(trigramIndex(table, column));
    const operators = sql.id(trigrams as string, 'gin_trgm_ops');
    await sql`CREATE INDEX IF NOT EXISTS ${name} ON ${qualified(schema, table)}
      USING gin (${sql.id(column)} ${operators}) WITH (gin_pending_list_limit = ${sql.lit(PENDING_KB)})`.execute(db);
  }
}

/**
 * Size in kilobytes of the list of pending index entries: the write that fills it has to sort them in. The default, 4
 * MB, made one write in thousands wait for half a second on PGlite.
 */
const PENDING_KB = 256;

const trigramIndex = (table: Pick<Table, 'name'>, column: string): string => `${table.name}_${column}_trigrams`;

/** The schema of the extension pg_trgm, which is created if that is allowed; undefined: not available. */
async function trigramsOf(db: AnyDatabase): Promise<string | undefined> {
  // A failed CREATE EXTENSION would abort the transaction that creates the tables.
  await sql`DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE EXTENSION pg_trgm WITH SCHEMA service;
      END IF;
    EXCEPTION
      WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR unique_violation THEN NULL;
    END $$`.execute(db);
  const { rows } = await sql<{ schema: string }>`
    SELECT n.nspname AS schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_trgm'`.execute(db);
  return rows[0]?.schema;
}

/** Searched columns of these read models without a trigram index, as `schema.table.column`. */
export async function unindexedTexts(db: AnyDatabase, projections: readonly Projection[]): Promise<string[]> {
  const wanted = projections.flatMap((projection) =>
    projection.tables.flatMap((table) =>
      table.searched.map((column) => ({ schema: schemaOf(projection), table, column })),
    ),
  );
  if (wanted.length === 0) return [];
  const { rows } = await sql<{ name: string }>`
    SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'i' AND n.nspname = ANY(${wanted.map(({ schema }) => schema)})`.execute(db);
  const there = new Set(rows.map(({ name }) => name));
  return wanted
    .filter(({ schema, table, column }) => !there.has(`${schema}.${trigramIndex(table, column)}`))
    .map(({ schema, table, column }) => `${schema}.${table.name}.${column}`);
}

export async function dropSchema(db: AnyDatabase, schema: string): Promise<void> {
  await sql`DROP SCHEMA IF EXISTS ${sql.id(schema)} CASCADE`.execute(db);
}

/**
 * Loads the rows with these keys, looking up one at a time: PostgreSQL estimates a JSON list at a hundred rows, and
 * would rather scan a table of some thousand rows than look up a hundred.
 *
 * A row is looked up as the first one at or after its key, because only the primary key index has that order. Without
 * statistics of the table, PostgreSQL assumes that an index on a part of the key finds a row as well, and then reads
 * all the rows that share that part (docs/benchmarks.md).
 */
export async function loadRows(
  db: AnyDatabase,
  schema: string,
  table: Table,
  keys: readonly Readonly<Record<string, unknown>>[],
): Promise<Map<string, AnyStoredRow>> {
  const columns = table.key.map((column) => `"${column}" ${SQL_TYPES[table.columns[column] as string]}`).join(', ');
  const names = sql.join(table.key.map((column) => sql.ref(`t.${column}`)));
  const wanted = sql.join(table.key.map((column) => sql.ref(`k.${column}`)));
  const { rows } = await sql<AnyStoredRow>`${sql.raw(PREPARED)}
    SELECT t.* FROM json_to_recordset(${JSON.stringify(keys)}::json) AS k(${sql.raw(columns)})
    CROSS JOIN LATERAL (
      SELECT * FROM ${qualified(schema, table)} t WHERE (${names}) >= (${wanted}) ORDER BY ${names} LIMIT 1
    ) t WHERE (${names}) = (${wanted})`.execute(db);
  return new Map(rows.map((row) => [keyText(table, row), row]));
}

/** Drops a read model that is not live: its tables, and its checkpoint. */
export async function dropUnused(db: AnyDatabase, schema: string): Promise<void> {
  await dropTables(db, schema);
  await sql`DELETE FROM service.checkpoints WHERE schema_name = ${schema}`.execute(db);
}

/** Drops a read model's tables with their history. */
export async function dropTables(db: AnyDatabase, schema: string): Promise<void> {
  for (const one of [pastOf(schema), historyOf(schema), schema]) await dropSchema(db, one);
}

export interface TableWrite {
  readonly table: Table;
  /** Rows to insert, or to put in the place of those with their keys. */
  readonly rows: readonly AnyStoredRow[];
  /** Keys of rows to delete. */
  readonly deletes: readonly Readonly<Record<string, unknown>>[];
  /** Rows as they were before they were changed or deleted. */
  readonly versions: readonly Version[];
  /** Keys of rows whose versions are deleted that ended up to the position `until`. */
  readonly forgets: readonly Forgotten[];
}

export type Forgotten = Readonly<Record<string, unknown>> & { readonly until: Position };

export interface CheckpointMove {
  readonly schema: string;
  readonly generation: number;
  readonly from: number;
  readonly to: number;
  /** Unix milliseconds. */
  readonly at: number;
  /** Whether to notify waiting processes; PostgreSQL servers only. */
  readonly notify: boolean;
}

/** One projection's part of a statement: its rows and the move of its checkpoint. */
export interface BatchWrite {
  readonly writes: readonly TableWrite[];
  readonly move: CheckpointMove;
}

/**
 * Writes batches of one or several projections in one statement, with all tables and checkpoints.
 *
 * A checkpoint moves only from the position and generation that its follower expects; otherwise its CHECK constraint
 * rejects the whole statement (see `isFenced`). Durability is left to the log: a crash loses rows together with their
 * checkpoint, so `synchronous_commit` is off for this statement alone.
 */
export async function writeBatches(db: AnyDatabase, batches: readonly BatchWrite[]): Promise<void> {
  const values: unknown[] = [];
  const param = (value: unknown, type: string): string => `$${values.push(value)}::${type}`;
  const parts: string[] = [];
  for (const { writes, move } of batches) {
    for (const { table, rows, deletes, versions, forgets } of writes) {
      if (rows.length > 0)
        parts.push(`w${parts.length} AS (${upsertSql(move.schema, table, param(JSON.stringify(rows), 'json'))})`);
      if (deletes.length > 0)
        parts.push(`w${parts.length} AS (${deleteSql(move.schema, table, param(JSON.stringify(deletes), 'json'))})`);
      if (forgets.length > 0)
        parts.push(`w${parts.length} AS (${forgetSql(move.schema, table, param(JSON.stringify(forgets), 'json'))})`);
      if (versions.length > 0)
        parts.push(`w${parts.length} AS (${versionSql(move.schema, table, param(JSON.stringify(versions), 'json'))})`);
    }
  }
  const reached = batches.flatMap(({ move }) => (move.notify ? `${move.schema}:${move.to}` : []));
  const notification = reached.length > 0 ? `, pg_notify('signalbox_positions', ${param(reached.join(), 'text')})` : '';
  const each = (column: (batch: BatchWrite) => unknown, type: string): string =>
    param(batches.map(column), `${type}[]`);
  parts.push(`moved AS (
      UPDATE service.checkpoints c
      SET position = CASE WHEN c.position = m.start AND c.generation = m.generation THEN m.target ELSE -1 END,
        changed = CASE WHEN m.changes THEN m.target ELSE c.changed END, updated_at = m.at, history_to = m.target, stuck_at = NULL, stuck_reason = NULL
      FROM unnest(${each(({ move }) => move.schema, 'text')}, ${each(({ move }) => move.generation, 'int')},
        ${each(({ move }) => move.from, 'bigint')}, ${each(({ move }) => move.to, 'bigint')},
        ${each(({ move }) => move.at, 'bigint')}, ${each(({ writes }) => writes.length > 0, 'boolean')})
        AS m (name, generation, start, target, at, changes)
      WHERE c.schema_name = m.name
      RETURNING 1)`);
  const text = `${PREPARED}
    WITH ${parts.join(',')}
    SELECT (SELECT count(*) FROM moved)::int AS moved,
      set_config('synchronous_commit', 'off', true)${notification}`;
  const { rows } = await db.executeQuery<{ moved: number }>(CompiledQuery.raw(text, values));
  if (rows[0]?.moved !== batches.length) throw new FencedError(batches.map(({ move }) => move.schema).join(', '));
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const quotedTable = (schema: string, table: Table): string => `${quoted(schema)}.${quoted(table.name)}`;

/** Parts of upserts that depend on the table alone; cached, because every write needs those of several tables. */
const upsertParts = new WeakMap<Table, { readonly columns: string; readonly conflict: string }>();

function upsertPartsOf(table: Table): { readonly columns: string; readonly conflict: string } {
  const known = upsertParts.get(table);
  if (known) return known;
  const names = [...Object.keys(table.columns), 'position'];
  const set = names
    .filter((name) => !table.key.includes(name))
    .map((name) => `${quoted(name)} = excluded.${quoted(name)}`)
    .join(', ');
  const parts = {
    columns: names.map(quoted).join(', '),
    conflict: `ON CONFLICT (${table.key.map(quoted).join(', ')}) DO UPDATE SET ${set}`,
  };
  upsertParts.set(table, parts);
  return parts;
}

/** @param rows expression for a JSON array of whole rows */
function upsertSql(schema: string, table: Table, rows: string): string {
  const target = quotedTable(schema, table);
  const { columns, conflict } = upsertPartsOf(table);
  return `
      INSERT INTO ${target} (${columns})
      SELECT ${columns} FROM json_populate_recordset(null::${target}, ${rows})
      ${conflict}`;
}

/** @param versions expression for a JSON array of versions */
function versionSql(schema: string, table: Table, versions: string): string {
  const target = quotedTable(historyOf(schema), table);
  const { columns } = upsertPartsOf(versionTableOf(table));
  return `
      INSERT INTO ${target} (${columns})
      SELECT ${columns} FROM json_populate_recordset(null::${target}, ${versions})`;
}

/** @param keys expression for a JSON array of keys */
function deleteSql(schema: string, table: Table, keys: string): string {
  const columns = table.key
    .map((column) => `${quoted(column)} ${SQL_TYPES[table.columns[column] as string]}`)
    .join(', ');
  const match = table.key.map((column) => `t.${quoted(column)} = k.${quoted(column)}`).join(' AND ');
  return `
      DELETE FROM ${quotedTable(schema, table)} t USING json_to_recordset(${keys}) AS k(${columns}, until bigint)
      WHERE ${match}`;
}

/** @param forgets expression for a JSON array of keys, each with `until` */
const forgetSql = (schema: string, table: Table, forgets: string): string =>
  `${deleteSql(historyOf(schema), table, forgets)} AND t.until <= k.until`;

export interface Fingerprint {
  readonly rows: number;
  /** 128 bits, hexadecimal. */
  readonly hash: string;
}

/**
 * Order-independent hash and row count of a table's contents; `position` is left out, so that copies of a log compare
 * equal. It is the sum of two 64-bit hashes of each row: this detects accidental differences, but is not secure against
 * deliberate collisions.
 *
 * @param options.upTo include only rows last changed up to this position
 * @param options.blocks number of 8 kB blocks per statement, for a database that runs no other statement meanwhile
 */
export async function hashTable(
  db: AnyDatabase,
  schema: string,
  table: Table,
  options: { readonly upTo?: number; readonly blocks?: number } = {},
): Promise<Fingerprint> {
  const { upTo, blocks } = options;
  const pages = blocks === undefined ? 0 : await pagesOf(db, schema, table);
  const total = { rows: 0, first: 0n, second: 0n };
  for (let page = 0; ; page += blocks ?? 0) {
    const last = blocks === undefined || page + blocks >= pages;
    const conditions = [
      ...(upTo === undefined ? [] : [sql`position <= ${upTo}`]),
      ...(page === 0 ? [] : [sql`ctid >= ${`(${page},0)`}::tid`]),
      ...(last ? [] : [sql`ctid < ${`(${page + (blocks ?? 0)},0)`}::tid`]),
    ];
    const part = await hashRows(db, schema, table, conditions, sql`true`);
    total.rows += part.rows;
    total.first += part.first;
    total.second += part.second;
    if (last) return { rows: total.rows, hash: hex(total.first) + hex(total.second) };
  }
}

/** The number of all rows, and the hash of those last changed after `after`. */
export async function hashChanges(db: AnyDatabase, schema: string, table: Table, after: number): Promise<Fingerprint> {
  const { rows, first, second } = await hashRows(db, schema, table, [], sql`position > ${after}`);
  return { rows, hash: hex(first) + hex(second) };
}

const hex = (sum: bigint): string => BigInt.asUintN(64, sum).toString(16).padStart(16, '0');

async function hashRows(
  db: AnyDatabase,
  schema: string,
  table: Table,
  conditions: readonly RawBuilder<unknown>[],
  hashed: RawBuilder<unknown>,
): Promise<{ rows: number; first: bigint; second: bigint }> {
  const columns = sql.join(Object.keys(table.columns).map((name) => sql.id(name)));
  const where = conditions.length === 0 ? sql`` : sql`WHERE ${sql.join(conditions, sql` AND `)}`;
  const hash = (seed: number) =>
    sql`coalesce(sum(hash_record_extended(r.contents, ${sql.lit(seed)})) FILTER (WHERE ${hashed}), 0)::text`;
  const { rows } = await sql<{ rows: number; first: string; second: string }>`
    SELECT count(*)::int AS rows, ${hash(0)} AS first, ${hash(1)} AS second
    FROM (SELECT position, ROW(${columns}) AS contents FROM ${qualified(schema, table)} ${where}) r`.execute(db);
  const { rows: count, first, second } = rows[0] ?? { rows: 0, first: '0', second: '0' };
  return { rows: count, first: BigInt(first), second: BigInt(second) };
}

async function pagesOf(db: AnyDatabase, schema: string, table: Table): Promise<number> {
  const { rows } = await sql<{ pages: number }>`
    SELECT (pg_relation_size(${`"${schema}"."${table.name}"`}::regclass) / current_setting('block_size')::int)::int AS pages`.execute(
    db,
  );
  return rows[0]?.pages ?? 0;
}
