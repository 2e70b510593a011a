/**
 * What belongs to a log but is not in it: counters, persons' keys, credentials. Read as texts that another database can
 * take.
 */
import { sql } from 'kysely';
import type { AnyDatabase } from '../database/database.ts';

/**
 * Tables that are replaced as a whole. The log refers to credentials and persons by id; these tables hold what the ids
 * stand for.
 */
export const RELATED = ['person_keys', 'passwords', 'sessions', 'keys', 'secrets', 'log_keys', 'log_checkpoints'].map(
  (table) => `credentials.${table}`,
);
const PAGE = 2_000;

export interface Counter {
  readonly name: string;
  readonly value: number;
}

/** Rows of a table: pages of JSON text. */
export interface RelatedRows {
  readonly counts: Readonly<Record<string, number>>;
  readonly pages: ReadonlyMap<string, readonly string[]>;
  readonly counters: readonly Counter[];
}

/** All of it as it is at one moment: between pages, a row that is removed would let another one slip through. */
export const readRelated = (from: AnyDatabase): Promise<RelatedRows> =>
  from.transaction().setIsolationLevel('repeatable read').execute(readIn);

async function readIn(from: AnyDatabase): Promise<RelatedRows> {
  const counts: Record<string, number> = {};
  const pages = new Map<string, string[]>();
  for (const table of RELATED) {
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

/** Writes them in one transaction. @returns the number of rows by table */
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
