/**
 * The history of read models. A batch that replaces or deletes a row writes the old row, its version, into
 * `<schema>_history`, in the same statement. A row that never changes has no version. The views of `<schema>_past` show
 * the tables as they were at the position in the setting `signalbox.as_of`: the live rows that existed by then, and the
 * versions that were valid then.
 *
 * A version is valid from `position` up to `until`. It is stored under the smallest block that contains this whole
 * period; the blocks are the halves of the log, their halves, and so on. A position is in one block of each size, so
 * the versions valid at a position are found with one lookup in each of these blocks, however long the history is. A
 * block has at most one version of each row, most of them valid at other positions: the index has both ends, so these
 * are not read from the table.
 */
import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { AnyStoredRow } from '../../projections/apply.ts';
import { type CountedRows, historyOf, type Projection, type Table } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../database/database.ts';

/** A row as it was, up to the position of the event that replaced or deleted it. */
export type Version = AnyStoredRow & { readonly until: Position; readonly block: number };

/** Blocks of more positions than this are not needed: no log has as many. */
const SIZES = 50;
/** Maximum growth of a log between two statements, positions. It may also double. */
const GROWTH = 2 ** 20;

/** End of the validity of a live row: larger than any position. */
const STANDS = Number.MAX_SAFE_INTEGER;
/** The block of live rows; those of versions have larger numbers. Every look-up includes it. */
const LIVE = 0;

/** The schema of the views of the past. */
export const pastOf = (schema: string): string => `${schema}_past`;

/** The number of the block of `size` positions (a power of two) with `position`: unique for blocks of all sizes. */
const blockAt = (position: Position, size: number): number => (2 * Math.floor(position / size) + 1) * size;

/** The smallest block that contains every position from `from` to before `until`. */
export function blockOf(from: Position, until: Position): number {
  let size = 1;
  while (Math.floor(from / size) !== Math.floor((until - 1) / size)) size *= 2;
  return blockAt(from, size);
}

/** An upper bound for the blocks of versions that ended up to a position; some other blocks are below it too. */
export const blocksBefore = (position: Position): number => 2 * position;

/** The blocks that contain a position, and the block of live rows. */
const blocksAt = (position: Position): number[] => [
  LIVE,
  ...Array.from({ length: SIZES }, (_, n) => blockAt(position, 2 ** n)),
];

export const versionOf = (row: Readonly<Record<string, unknown>>, position: Position, until: Position): Version =>
  Object.assign({}, row, { position, until, block: blockOf(position, until) });

/** The table of versions of a table's rows. */
export function versionTableOf(table: Table): Table {
  let versions = versionTables.get(table);
  if (!versions) {
    versions = { ...table, columns: { ...table.columns, until: 'bigint', block: 'bigint' } };
    versionTables.set(table, versions);
  }
  return versions;
}
const versionTables = new WeakMap<Table, Table>();

/** Creates empty tables of versions, replacing earlier ones. The tables themselves must exist. */
export async function createHistory(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  const history = historyOf(schema);
  await sql`DROP SCHEMA IF EXISTS ${sql.id(history)} CASCADE`.execute(db);
  await sql`CREATE SCHEMA ${sql.id(history)}`.execute(db);
  for (const table of projection.tables) {
    await sql`CREATE TABLE ${sql.table(`${history}.${table.name}`)} (LIKE ${sql.table(`${schema}.${table.name}`)} INCLUDING GENERATED)`.execute(
      db,
    );
    await sql`ALTER TABLE ${sql.table(`${history}.${table.name}`)}
      ADD COLUMN until bigint NOT NULL, ADD COLUMN block bigint NOT NULL`.execute(db);
  }
}

/** Adds the indexes to tables of versions. */
export async function indexHistory(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  for (const table of projection.tables) {
    const columns = sql.join(['block', ...table.key, 'position', 'until'].map((column) => sql.id(column)));
    await sql`CREATE INDEX IF NOT EXISTS ${sql.id(`${table.name}_blocks`)}
      ON ${sql.table(`${historyOf(schema)}.${table.name}`)} (${columns})`.execute(db);
  }
}

/** Creates the views of the past, replacing views of tables that were in another schema. */
export async function createPast(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  const past = pastOf(schema);
  await sql`DROP SCHEMA IF EXISTS ${sql.id(past)} CASCADE`.execute(db);
  await sql`CREATE SCHEMA ${sql.id(past)}`.execute(db);
  for (const table of projection.tables) {
    if (table.counted) await createOpenHour(db, past);
    const rows = table.counted ? countedRows(projection, table, table.counted, schema) : shownRows(table, schema);
    await sql`CREATE VIEW ${sql.table(`${past}.${table.name}`)} AS ${rows}`.execute(db);
  }
}

const columnNames = (table: Table): string[] => [
  ...Object.keys(table.columns),
  'position',
  ...(table.sized ? ['bytes'] : []),
];

/** The rows of a table as of the position. */
function rowsThen(table: Table, schema: string): RawBuilder<unknown> {
  const columns = sql.join(columnNames(table).map((column) => sql.id(column)));
  const asOf = sql`(SELECT current_setting('signalbox.as_of')::bigint)`;
  return sql`
    SELECT ${columns} FROM (
      SELECT ${columns}, ${sql.lit(STANDS)}::bigint AS until, ${sql.lit(LIVE)}::bigint AS block
        FROM ${sql.table(`${schema}.${table.name}`)}
      UNION ALL
      SELECT ${columns}, until, block FROM ${sql.table(`${historyOf(schema)}.${table.name}`)}
    ) rows
    WHERE position <= ${asOf} AND until > ${asOf}
      AND block = ANY ((SELECT current_setting('signalbox.as_of_blocks')::bigint[])::bigint[])`;
}

/** Those that the caller may see. */
function shownRows(table: Table, schema: string): RawBuilder<unknown> {
  const time = sql`(SELECT current_setting('signalbox.as_of_time')::bigint)`;
  const showsDeleted = sql`(SELECT coalesce(current_setting('signalbox.as_of_deleted', true), '') <> 'hidden')`;
  const isSame = sql.join(
    table.key.map((column) => sql`${sql.ref(`now.${column}`)} = ${sql.ref(`rows.${column}`)}`),
    sql` AND `,
  );
  return sql`${rowsThen(table, schema)}
    AND (${showsDeleted} OR block = ${sql.lit(LIVE)}
      OR EXISTS (SELECT FROM ${sql.table(`${schema}.${table.name}`)} now WHERE ${isSame}))
    ${table.createdAt ? sql`AND ${sql.id(table.createdAt)} <= ${time}` : sql``}`;
}

/**
 * Closed buckets as their rows and versions say, and the open ones counted. Rows of counts are never deleted, and what
 * they count includes rows that were deleted since, so both are read without a look for them.
 */
function countedRows({ tables }: Projection, table: Table, { of, open, where }: CountedRows, schema: string) {
  const source = tables.find(({ name }) => name === of);
  if (!source) throw new Error(`${schema}.${table.name}: there is no table ${of}`);
  const columns = sql.join(
    Object.keys(table.columns).map((column) => sql.ref(column === 'count' ? 'c.count' : `b.${column}`)),
  );
  const own = sql.join(columnNames(table).map((column) => sql.ref(`b.${column}`)));
  // As a subquery, the function is called once, and its value is a condition of the index.
  const hour = sql`(SELECT ${sql.id(pastOf(schema), 'open_hour_then')}())`;
  const start = sql`(${sql.join(
    open.split('open_hour').map((part) => sql.raw(part)),
    hour,
  )})`;
  return sql`
    SELECT ${own} FROM (${rowsThen(table, schema)}) b WHERE (b.start < ${start}) IS NOT FALSE
    UNION ALL
    SELECT ${columns}, c.position FROM ${sql.table(`${schema}.${table.name}`)} b
      CROSS JOIN LATERAL (
        SELECT count(*) AS count, max(r.position) AS position FROM (${rowsThen(source, schema)}) r
        WHERE r.workspace_id = b.workspace_id AND ${sql.raw(where)}) c
      WHERE b.start = ${start} AND c.count > 0`;
}

/** A function, so that each connection plans it once, instead of each statement that reads a view of counted rows. */
const createOpenHour = (db: AnyDatabase, past: string) =>
  sql`CREATE OR REPLACE FUNCTION ${sql.id(past, 'open_hour_then')}() RETURNS bigint LANGUAGE plpgsql STABLE AS ${sql.lit(
    `BEGIN RETURN (SELECT hour FROM "${past}".open_hour); END`,
  )}`.execute(db);

/**
 * Says at which position the views of the past show their tables, until the end of the transaction.
 *
 * No version is in a block that is larger than what its read model has read of the log, so larger ones are left out: of a
 * log of a million events, that is half of the looks.
 *
 * A list takes its rows from the live table and from the versions that stood then in the order of the list, and stops when
 * the page is full. For that, the versions are sorted. PostgreSQL believes that all versions of the table are, not only those
 * that stood then (it takes `tuples` for `rows` in `create_merge_append_path`), and would rather read and sort the whole live
 * table. So comparisons cost nothing here. And the versions are to be found by their index, even in a small table: pages
 * in any order cost about as much as pages in sequence, as on an SSD.
 *
 * @param schemas of the tables; by default, blocks of every size are looked at
 * @param at Unix milliseconds; no event up to the position is newer
 * @param deleted whether rows are shown that were deleted since
 */
export const lookAt = (
  position: Position,
  schemas: readonly string[] = [],
  at?: number,
  deleted = true,
): Pick<CompiledQuery, 'sql' | 'parameters'> => ({
  sql: `SELECT set_config('signalbox.as_of', $1, true), set_config('signalbox.as_of_time', $4, true),
    set_config('signalbox.as_of_deleted', $5, true),
    set_config('cpu_operator_cost', '0', true),
    set_config('random_page_cost', '1.1', true),
    set_config('signalbox.as_of_blocks', ($2::bigint[])[:coalesce(
      (SELECT ceil(log(2, max(position) + ${GROWTH}))::int + 3 FROM service.checkpoints WHERE schema_name = ANY ($3::text[])),
      ${SIZES + 1})]::text, true)`,
  // The block of live rows, then the others from the smallest to the largest.
  parameters: [
    String(position),
    `{${blocksAt(position).join(',')}}`,
    schemas,
    String(at === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(at / 1_000)),
    deleted ? 'shown' : 'hidden',
  ],
});

/** A read model whose history does not contain a position. */
export interface Missing {
  readonly schema: string;
  /** Where its history begins; null: it has none. */
  readonly from: Position | null;
  /** The bundle with the archived events of the position, if they were archived. */
  readonly bundle?: string | null;
}

/** Finds those of some read models whose history does not contain a position. */
export const findMissing = (
  position: Position,
  schemas: readonly string[],
): Pick<CompiledQuery, 'sql' | 'parameters'> => ({
  sql: `SELECT schema_name AS schema, history_from AS "from",
      (SELECT name FROM log.archives WHERE after < $2::bigint AND until >= $2::bigint) AS bundle
    FROM service.checkpoints
    WHERE schema_name = ANY ($1::text[]) AND (history_from <= $2::bigint AND history_to = position) IS NOT TRUE`,
  parameters: [schemas, position],
});
