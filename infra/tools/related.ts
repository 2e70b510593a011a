/**
 * Data that belongs to a log but is not in it: counters, persons' keys, credentials. Read as texts that another
 * database can load.
 */
import { sql } from 'kysely';
import type { AnyDatabase } from '../database/database.ts';

/**
 * Tables that are replaced as a whole. The log refers to credentials and persons by id; these tables have the data for
 * these ids.
 */
export const RELATED = ['person_keys', 'passwords', 'sessions', 'keys', 'secrets', 'log_keys', 'log_checkpoints'].map(
  (table) => `credentials.${table}`,
);
const PAGE = 2_000;

export interface Counter {
  readonly name: string;
  readonly value: number;
}

/** Rows per table: pages of JSON text. */
export interface RelatedRows {
  readonly counts: Readonly<Record<string, number>>;
  readonly pages: ReadonlyMap<string, readonly string[]>;
  readonly counters: readonly Counter[];
}

/** Tables whose rows are removed once an event names another row, with the columns that events refer to. */
const REPLACED = new Map([
  ['credentials.passwords', 'id'],
  ['credentials.keys', 'key_hash'],
]);

/** All of it at one moment: if rows were removed between pages, the next page could skip a row. */
export const readRelated = (from: AnyDatabase): Promise<RelatedRows> => readTables(from, RELATED);

/** The rows that may be removed while a log is read, although the events already read refer to them. */
export const readReplaced = (from: AnyDatabase): Promise<RelatedRows> => readTables(from, [...REPLACED.keys()]);

/** The rows of a read, with those that have been replaced since an earlier read. */
export function withReplaced(now: RelatedRows, earlier: RelatedRows): RelatedRows {
  const counts: Record<string, number> = { ...now.counts };
  const pages = new Map(now.pages);
  for (const [table, name] of REPLACED) {
    const rowsIn = (all: RelatedRows) =>
      (all.pages.get(table) ?? []).flatMap((page) => JSON.parse(page) as Readonly<Record<string, unknown>>[]);
    const known = new Set(rowsIn(now).map((row) => row[name]));
    const lost = rowsIn(earlier).filter((row) => !known.has(row[name]));
    if (lost.length === 0) continue;
    counts[table] = (counts[table] ?? 0) + lost.length;
    pages.set(table, [...(pages.get(table) ?? []), JSON.stringify(lost)]);
  }
  return { ...now, counts, pages };
}

const readTables = (from: AnyDatabase, names: readonly string[]): Promise<RelatedRows> =>
  from
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((transaction) => readIn(transaction, names));

async function readIn(from: AnyDatabase, names: readonly string[]): Promise<RelatedRows> {
  const counts: Record<string, number> = {};
  const pages = new Map<string, string[]>();
  for (const table of names) {
    const texts: string[] = [];
    let count = 0;
    for (;;) {
      const { rows } = await sql<{ count: number; rows: string }>`
        SELECT count(*)::int AS count, json_agg(page)::text AS rows
        FROM (SELECT * FROM ${sql.table(table)} ORDER BY 1, 2 LIMIT ${PAGE} OFFSET ${count}) page`.execute(from);
      const [page] = rows;
      if (!page || page.count === 0) break;
      texts.push(page.rows);
      count += page.count;
      if (page.count < PAGE) break;
    }
    counts[table] = count;
    pages.set(table, texts);
  }
  const { rows: counters } = await sql<Counter>`SELECT name, value FROM service.counters`.execute(from);
  return { counts, pages, counters };
}

/** Writes the rows in one transaction. @returns the number of rows by table */
export async function writeRelated(
  to: AnyDatabase,
  { counts, pages, counters }: RelatedRows,
): Promise<Record<string, number>> {
  await to.transaction().execute(async (trx) => {
    for (const [table, texts] of pages) {
      const name = sql.table(table);
      await sql`DELETE FROM ${name}`.execute(trx);
      for (const text of texts) {
        await sql`INSERT INTO ${name} SELECT * FROM json_populate_recordset(null::${name}, ${text}::json)`.execute(trx);
      }
    }
    for (const { name, value } of counters) {
      await sql`INSERT INTO service.counters (name, value) VALUES (${name}, ${value})
        ON CONFLICT (name) DO UPDATE SET value = greatest(service.counters.value, excluded.value)`.execute(trx);
    }
    await sql`UPDATE credentials.version SET version = version + 1`.execute(trx);
  });
  return { ...counts, 'service.counters': counters.length };
}
