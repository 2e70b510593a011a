/**
 * Embedded databases that test files of a process use one after another: opening PGlite costs 0.3 s of CPU, more than the
 * tests of many files. Before the next file gets one, its rows and sequences are those of the template again. One whose
 * tables, functions or settings differ from the template is closed instead.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { type Database, type DatabaseOptions, openDatabase } from '../../infra/database/database.ts';
import { atTheEnd, keptDirectory, type Template } from './template.ts';

export interface KeptDatabase {
  readonly database: Database;
  readonly dataDir: string;
  /** The next caller gets it. Connections of the process stay open. */
  giveBack(): Promise<void>;
}

type Options = Pick<DatabaseOptions, 'poolSize' | 'statementTimeoutMs' | 'log'>;

/** How many test files use one: the catalog keeps old rows of each restoration. */
const USES = 50;

interface Idle {
  readonly uses: number;
  readonly key: string;
  readonly database: Database;
  readonly dataDir: string;
  readonly beginning: Beginning;
}

interface Beginning {
  readonly catalog: string;
  readonly schemas: readonly string[];
  /** Rows in JSON, by table. */
  readonly rows: ReadonlyMap<string, string>;
  readonly sequences: readonly Sequence[];
}

interface Sequence {
  readonly name: string;
  readonly value: string | null;
}

const idle = new Map<Template, Idle>();
atTheEnd.push(async () => {
  for (const { database } of idle.values()) await database.close();
});

/** PostgreSQL's own relations have smaller ones. */
const FIRST_OWN_OID = 16384;
const OWN = `n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'`;

/**
 * Differs after every change of the schema, of triggers that are off, and of settings of the database. Of columns, whose
 * texts would take half of the time, the transactions that wrote them are compared.
 */
const CATALOG = `SELECT md5(concat_ws(chr(10),
    (SELECT string_agg(n.oid || n.nspname, ' ' ORDER BY n.oid) FROM pg_namespace n WHERE ${OWN}),
    (SELECT string_agg(concat_ws(' ', c.oid, c.relname, c.reloptions), ' ' ORDER BY c.oid)
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${OWN}),
    (SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM pg_attribute WHERE attrelid >= ${FIRST_OWN_OID}),
    (SELECT string_agg(concat_ws(' ', oid, tgenabled), ' ' ORDER BY oid) FROM pg_trigger),
    (SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_constraint),
    (SELECT string_agg(concat_ws(' ', p.oid, md5(p.prosrc)), ' ' ORDER BY p.oid)
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ${OWN}),
    (SELECT string_agg(oid || extname, ' ' ORDER BY oid) FROM pg_extension),
    (SELECT string_agg(concat_ws(' ', setdatabase, setrole, setconfig), ' ' ORDER BY setdatabase, setrole)
      FROM pg_db_role_setting))) AS catalog`;

/**
 * `small`: the planner looks at it as at an empty table, whatever rows it had, as long as it has under 10 pages and was not
 * analysed.
 */
const FILLED = `WITH tables AS MATERIALIZED (
    SELECT n.nspname, c.relname, c.reltuples, pg_relation_size(c.oid) AS bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${OWN} AND c.relkind = 'r'
  )
  SELECT format('%I.%I', nspname, relname) AS name, bytes <= 8 * 8192 AND reltuples < 0 AS small
  FROM tables WHERE bytes > 0 ORDER BY 1`;

const SCHEMAS = `SELECT n.nspname AS name FROM pg_namespace n WHERE ${OWN} ORDER BY 1`;

const SEQUENCES = `SELECT format('%I.%I', schemaname, sequencename) AS name, last_value::text AS value FROM pg_sequences ORDER BY 1`;

type Queried = Pick<pg.Pool, 'query'>;

const catalogOf = async (pool: Queried): Promise<string> => (await pool.query(CATALOG)).rows[0].catalog;
const namesOf = async (pool: Queried, statement: string): Promise<string[]> =>
  (await pool.query(statement)).rows.map(({ name }) => name);
const sequencesOf = async (pool: Queried): Promise<Sequence[]> => (await pool.query(SEQUENCES)).rows;

async function beginningOf(pool: pg.Pool): Promise<Beginning> {
  const rows = new Map<string, string>();
  for (const table of await namesOf(pool, FILLED)) {
    const found = await pool.query(`SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${table} t`);
    rows.set(table, found.rows[0].rows);
  }
  return {
    catalog: await catalogOf(pool),
    schemas: await namesOf(pool, SCHEMAS),
    rows,
    sequences: await sequencesOf(pool),
  };
}

/** @returns whether the database is as it was */
async function isRestored({ pool }: Database, { catalog, schemas, rows, sequences }: Beginning): Promise<boolean> {
  // BullMQ has set a search path.
  await pool.query('RESET ALL');
  for (const schema of await namesOf(pool, SCHEMAS))
    if (!schemas.includes(schema)) await pool.query(`DROP SCHEMA "${schema}" CASCADE`);
  if ((await catalogOf(pool)) !== catalog) return false;
  const client = await pool.connect();
  try {
    // Without the triggers that refuse changes of the log.
    const { rows: tables } = await client.query<{ name: string; small: boolean }>(FILLED);
    // The files that TRUNCATE makes for each table and index cost three times what all other steps do.
    const deletions = tables.filter(({ small }) => small).map(({ name }) => `DELETE FROM ${name}`);
    const large = tables.filter(({ small }) => !small).map(({ name }) => name);
    if (large.length > 0) deletions.push(`TRUNCATE ${large.join(', ')} CASCADE`);
    deletions.push(`DELETE FROM pg_statistic WHERE starelid >= ${FIRST_OWN_OID}`);
    await client.query(`BEGIN; SET LOCAL session_replication_role = replica; ${deletions.join('; ')}`);
    for (const [table, json] of rows) {
      const values = `SELECT * FROM json_populate_recordset(NULL::${table}, $1)`;
      await client.query(`INSERT INTO ${table} OVERRIDING SYSTEM VALUE ${values}`, [json]);
    }
    for (const [at, { name, value }] of (await sequencesOf(client)).entries()) {
      const first = sequences[at]?.value;
      if (value === first) continue;
      if (first === null) await client.query(`ALTER SEQUENCE ${name} RESTART`);
      else await client.query('SELECT setval($1, $2)', [name, first]);
    }
    await client.query('COMMIT');
  } finally {
    client.release();
  }
  return true;
}

/** A database as the template has it. */
export async function keptDatabase(template: Template, options: Options): Promise<KeptDatabase> {
  const key = JSON.stringify([options.poolSize, options.statementTimeoutMs]);
  const found = idle.get(template);
  if (found?.key === key) idle.delete(template);
  const { database, dataDir, beginning, uses } = found?.key === key ? found : await opened(template, options);
  return {
    database: { ...database, close: async () => undefined },
    dataDir,
    async giveBack() {
      // Tests that need two at the same time open a second one.
      if (uses + 1 >= USES || idle.has(template) || !(await isRestored(database, beginning))) {
        await database.close();
        await rm(dataDir, { recursive: true, force: true });
        return;
      }
      for (const name of await readdir(dataDir))
        if (name !== 'pg' && name !== 'run') await rm(join(dataDir, name), { recursive: true, force: true });
      idle.set(template, { key, database, dataDir, beginning, uses: uses + 1 });
    },
  };
}

async function opened(template: Template, options: Options): Promise<Omit<Idle, 'key'>> {
  const dataDir = await keptDirectory(template);
  const database = await openDatabase({ dataDir, ...options });
  return { database, dataDir, uses: 0, beginning: await beginningOf(database.pool) };
}
