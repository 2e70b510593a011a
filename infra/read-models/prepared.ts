/**
 * The tables in the database that the build creates (`infra/prepare.ts`), so that a first start need not create them:
 * those of the migrations, of the read models and of the jobs.
 *
 * The database contains a mark, a hash of the SQL that creates such tables. A first start removes the mark before
 * anything else. If this program would create other tables, it first drops all of them, and then creates its own in the
 * usual way.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { AnyDatabase } from '../database/database.ts';
import { kyselyRunBy } from '../database/kysely.ts';
import { MIGRATION_TABLE, runMigrations } from '../database/migrations.ts';
import { createTables } from './tables.ts';

/** Hash of the SQL that creates the tables of the migrations and of these read models. */
export async function hashOfTables(projections: readonly Projection[]): Promise<string> {
  const hash = createHash('sha256');
  const db = kyselyRunBy(async ({ sql: text, parameters }) => {
    hash.update(JSON.stringify([text, parameters]));
    // Responds to the only query of table creation: the schema of the extension pg_trgm.
    return { rows: [{ schema: 'service' }] };
  });
  await runMigrations(db);
  for (const projection of projections) await createTables(db, projection, schemaOf(projection));
  return hash.digest('hex').slice(0, 32);
}

const KIND = 'prepared ';

async function comment(db: AnyDatabase, text: string | null): Promise<void> {
  await sql`COMMENT ON TABLE ${sql.table(MIGRATION_TABLE)} IS ${sql.lit(text)}`.execute(db);
}

/** Marks a database of the build. */
export const markPrepared = (db: AnyDatabase, hash: string): Promise<void> => comment(db, `${KIND}${hash}`);

/** The hash with which the database is marked; undefined for any but one that comes straight from the build. */
export async function readMark(db: AnyDatabase): Promise<string | undefined> {
  const { rows } = await sql<{ mark: string | null }>`
    SELECT obj_description(to_regclass(${MIGRATION_TABLE}), 'pg_class') AS mark`.execute(db);
  const mark = rows[0]?.mark;
  return mark?.startsWith(KIND) ? mark.slice(KIND.length) : undefined;
}

/**
 * Turns a marked database into an ordinary one, with the tables of this program or without tables. It has no other data
 * yet, because every start does this first.
 */
export async function settlePrepared(
  db: AnyDatabase,
  mark: string,
  projections: readonly Projection[],
): Promise<'kept' | 'dropped'> {
  if (mark === (await hashOfTables(projections))) {
    await comment(db, null);
    return 'kept';
  }
  await dropEverything(db);
  return 'dropped';
}

/** Drops all tables of the service in a database without events. @throws Error if there are events */
export async function dropEverything(db: AnyDatabase): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const { rows: log } = await sql`SELECT FROM pg_tables WHERE schemaname = 'log' AND tablename = 'events'`.execute(
      trx,
    );
    const { rows: events } = log.length === 0 ? { rows: [] } : await sql`SELECT FROM log.events LIMIT 1`.execute(trx);
    if (events.length > 0) throw new Error('the database has events, so its tables must not be dropped');
    const { rows } = await sql<{ name: string }>`
      SELECT nspname AS name FROM pg_namespace
      WHERE nspname NOT LIKE 'pg\\_%' AND nspname NOT IN ('information_schema', 'public')`.execute(trx);
    for (const { name } of rows) await sql`DROP SCHEMA IF EXISTS ${sql.id(name)} CASCADE`.execute(trx);
  });
}
