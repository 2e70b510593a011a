/**
 * The past of read models. A batch that replaces or deletes a row writes the row as it was, its version, into
 * `<schema>_history`, in the same statement. A row that never changes has no version. The views of `<schema>_past` show the
 * tables as they were at the position in the setting `signalbox.as_of`: the live rows that were there already, and the
 * versions that stood then.
 *
 * A version stood from `position` up to `until`. It is filed under the smallest block that holds all of that time; the blocks
 * are the halves of the log, their halves, and so on. A position lies in one block of each size, so the versions that stood
 * at a position are found with one look at each of these blocks, however long the history is.
 */
import { sql } from 'kysely';
import type { AnyStoredRow } from '../../projections/apply.ts';
import { historyOf, type Projection, type Table } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../database/database.ts';

/** A row as it was, up to the position of the event that replaced or deleted it. */
export type Version = AnyStoredRow & { readonly until: Position; readonly block: number };

/** Blocks of more positions than this are not needed: no log has as many. */
const SIZES = 50;

/** The schema of the views of the past. */
export const pastOf = (schema: string): string => `${schema}_past`;

/** The number of the block of `size` positions (a power of two) that has `position`: blocks of all sizes have different ones. */
const blockAt = (position: Position, size: number): number => (2 * Math.floor(position / size) + 1) * size;

/** The smallest block that has every position from `from` to before `until`. */
export function blockOf(from: Position, until: Position): number {
  let size = 1;
  while (Math.floor(from / size) !== Math.floor((until - 1) / size)) size *= 2;
  return blockAt(from, size);
}

/** The blocks that have a position. */
const blocksAt = (position: Position): number[] => Array.from({ length: SIZES }, (_, n) => blockAt(position, 2 ** n));

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

/** Creates empty tables of versions, replacing earlier ones. The tables themselves must be there. */
export async function createHistory(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  const history = historyOf(schema);
  await sql`DROP SCHEMA IF EXISTS ${sql.id(history)} CASCADE`.execute(db);
  await sql`CREATE SCHEMA ${sql.id(history)}`.execute(db);
  for (const table of projection.tables) {
    await sql`CREATE TABLE ${sql.table(`${history}.${table.name}`)} (LIKE ${sql.table(`${schema}.${table.name}`)})`.execute(
      db,
    );
    await sql`ALTER TABLE ${sql.table(`${history}.${table.name}`)}
      ADD COLUMN until bigint NOT NULL, ADD COLUMN block bigint NOT NULL`.execute(db);
  }
}

/** Adds the indexes to tables of versions. */
export async function indexHistory(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  for (const table of projection.tables) {
    const columns = sql.join(['block', ...table.key].map((column) => sql.id(column)));
    await sql`CREATE INDEX IF NOT EXISTS ${sql.id(`${table.name}_blocks`)}
      ON ${sql.table(`${historyOf(schema)}.${table.name}`)} (${columns})`.execute(db);
  }
}

/** Creates the views of the past, replacing those of tables that another schema had before. */
export async function createPast(db: AnyDatabase, projection: Projection, schema: string): Promise<void> {
  const past = pastOf(schema);
  await sql`DROP SCHEMA IF EXISTS ${sql.id(past)} CASCADE`.execute(db);
  await sql`CREATE SCHEMA ${sql.id(past)}`.execute(db);
  for (const table of projection.tables) {
    const columns = sql.join([...Object.keys(table.columns), 'position'].map((column) => sql.id(column)));
    await sql`CREATE VIEW ${sql.table(`${past}.${table.name}`)} AS
      SELECT ${columns} FROM ${sql.table(`${schema}.${table.name}`)}
        WHERE position <= current_setting('signalbox.as_of')::bigint
      UNION ALL
      SELECT ${columns} FROM ${sql.table(`${historyOf(schema)}.${table.name}`)}
        WHERE block = ANY (current_setting('signalbox.as_of_blocks')::bigint[])
          AND position <= current_setting('signalbox.as_of')::bigint
          AND until > current_setting('signalbox.as_of')::bigint`.execute(db);
  }
}

/** Says at which position the views of the past show their tables, until the end of the transaction. */
export async function lookAt(trx: AnyDatabase, position: Position): Promise<void> {
  await sql`SELECT set_config('signalbox.as_of', ${String(position)}, true),
    set_config('signalbox.as_of_blocks', ${`{${blocksAt(position).join(',')}}`}, true)`.execute(trx);
}
