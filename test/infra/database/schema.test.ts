/**
 * The schema of a migrated database with all read models, as text: a migration, or a read model whose tables change,
 * shows in review as a change of `test/golden/schema.txt`. UPDATE_GOLDEN=1 writes it. The tables in the database of the
 * build are the same.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Pool } from 'pg';
import { readConfig } from '../../../infra/config.ts';
import { openCore } from '../../../infra/core.ts';
import { openDatabase } from '../../../infra/database/database.ts';
import { createLogger } from '../../../infra/logging.ts';
import { hashOfTables, markPrepared, readMark, settlePrepared } from '../../../infra/read-models/prepared.ts';
import { projections } from '../../../projections/index.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { closing, fixture } from '../../support/fixture.ts';
import { embeddedDatabase, ensureTables } from '../../support/world.ts';

// Compiled tests run from dist/; the golden files stay with the sources.
const file = fileURLToPath(new URL('../../../../test/golden/schema.txt', import.meta.url));

/** Kinds of relations that have columns. */
const KINDS: Readonly<Record<string, string>> = {
  r: 'table',
  p: 'partitioned table',
  v: 'view',
  m: 'materialized view',
};

/** The tables and views of the past follow from those that they belong to. */
const OURS = `n.nspname !~ '^pg_|_v[0-9]+_(history|past)$' AND n.nspname <> 'information_schema'`;

/** Tables with columns, constraints, indexes and triggers, then sequences, functions and types; sorted by name. */
async function schemaText(pool: Pool): Promise<string> {
  // Sorted here: the order of a database depends on its collation.
  const lines = async (text: string) => (await pool.query<{ line: string }>(text)).rows.map(({ line }) => line).sort();
  const { rows: tables } = await pool.query<{ id: number; name: string; kind: string }>(
    `SELECT c.oid::int AS id, n.nspname || '.' || c.relname AS name, c.relkind AS kind
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE ${OURS} AND c.relkind = ANY($1) `,
    [Object.keys(KINDS)],
  );
  tables.sort((one, other) => (one.name < other.name ? -1 : 1));
  /** By table, in one statement for all of them. */
  const byTable = async (text: string) => {
    const { rows } = await pool.query<{ id: number; line: string }>(text, [tables.map(({ id }) => id)]);
    const found = new Map<number, string[]>(tables.map(({ id }) => [id, []]));
    for (const { id, line } of rows) found.get(id)?.push(line);
    return found;
  };
  const columns = await byTable(
    `SELECT a.attrelid::int AS id, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
            || CASE WHEN a.attidentity <> '' THEN ' IDENTITY ' || a.attidentity::text ELSE '' END
            || coalesce(CASE WHEN a.attgenerated <> '' THEN ' GENERATED AS ' ELSE ' DEFAULT ' END
                        || pg_get_expr(d.adbin, d.adrelid), '') AS line
       FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
  );
  const constraints = await byTable(
    `SELECT conrelid::int AS id, 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) AS line
       FROM pg_constraint WHERE conrelid = ANY($1) AND contype <> 'n'`,
  );
  const indexes = await byTable(
    `SELECT i.indrelid::int AS id, pg_get_indexdef(i.indexrelid) AS line FROM pg_index i
      WHERE i.indrelid = ANY($1) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
  );
  const triggers = await byTable(
    `SELECT tgrelid::int AS id, pg_get_triggerdef(oid) AS line FROM pg_trigger
      WHERE tgrelid = ANY($1) AND NOT tgisinternal`,
  );
  const parts = tables.map(({ id, name, kind }) => {
    const sorted = [constraints, indexes, triggers].flatMap((found) => (found.get(id) as string[]).sort());
    const lines = [...(columns.get(id) as string[]), ...sorted];
    return [`${KINDS[kind]} ${name}`, ...lines.map((line) => `  ${line}`)].join('\n');
  });
  const rest = [
    ...(await lines(
      `SELECT 'sequence ' || n.nspname || '.' || c.relname AS line FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${OURS} AND c.relkind = 'S'`,
    )),
    ...(await lines(
      `SELECT 'type ' || n.nspname || '.' || t.typname || coalesce(' ENUM (' ||
              (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
              || ')', '') AS line
         FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
        WHERE ${OURS} AND t.typtype IN ('e', 'd')`,
    )),
    ...(await lines(`SELECT 'extension ' || extname AS line FROM pg_extension WHERE extname <> 'plpgsql'`)),
    ...(await lines(
      `SELECT trim(E'\\n ' FROM pg_get_functiondef(p.oid)) AS line FROM pg_proc p
         JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE ${OURS} AND p.prokind IN ('f', 'p')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')`,
    )),
  ];
  return `${[...parts, ...rest].join('\n\n')}\n`;
}

describe('schema of a migrated database', function () {
  this.timeout(60_000);
  const place = fixture(embeddedDatabase);
  before(async () => {
    await ensureTables(place.database, projections);
  });

  it('matches test/golden/schema.txt', async () => {
    const now = await schemaText(place.database.pool);
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, now);
    expect(existsSync(file), `${file} is missing: write it with UPDATE_GOLDEN=1`).to.equal(true);
    expect(now, 'the schema has changed: look at it, then write it with UPDATE_GOLDEN=1').to.equal(
      readFileSync(file, 'utf8'),
    );
  });

  it('shows a column, default, index, trigger or function that a migration adds', async () => {
    const before = await schemaText(place.database.pool);
    for (const [statement, shown] of [
      ['ALTER TABLE service.counters ADD COLUMN more bigint DEFAULT 7', '  more bigint DEFAULT 7'],
      ['CREATE INDEX counters_more ON service.counters (more)', 'CREATE INDEX counters_more ON service.counters'],
      ['ALTER TABLE service.counters ADD CONSTRAINT few CHECK (more < 9)', '  CONSTRAINT few CHECK ((more < 9))'],
      [
        'CREATE TRIGGER kept BEFORE DELETE ON service.counters FOR EACH ROW EXECUTE FUNCTION log.refuse_change()',
        '  CREATE TRIGGER kept BEFORE DELETE ON service.counters',
      ],
      [
        "CREATE FUNCTION service.one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        'CREATE OR REPLACE FUNCTION service.one()',
      ],
    ] as const) {
      expect(before, shown).not.to.include(shown);
      await place.database.pool.query(statement);
      expect(await schemaText(place.database.pool)).to.include(shown);
    }
  });
});

describe('prebuilt database tables', function () {
  // Making all tables takes a busy machine half a minute.
  this.timeout(120_000);
  let dataDir: string;
  const log = createLogger('silent');
  const open = async () => closing(await openDatabase({ dataDir, poolSize: 2, statementTimeoutMs: 30_000, log }));
  const start = async () => closing(await openCore(readConfig({ DATA_DIR: dataDir }), log));

  /** Without the tables of the jobs, which are BullMQ's. */
  async function ours(pool: Pool): Promise<string> {
    await pool.query('DROP SCHEMA IF EXISTS bullmq CASCADE');
    return schemaText(pool);
  }

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sbx-'));
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  it('contain no data of a deployment, and carry the mark of this program', async () => {
    await using database = await open();
    const { pool, db } = database;
    expect(await readMark(db)).to.equal(await hashOfTables(projections));
    const { rows: tables } = await pool.query<{ name: string }>(
      `SELECT schemaname || '.' || tablename AS name FROM pg_tables
        WHERE schemaname !~ '^pg_' AND schemaname <> 'information_schema'`,
    );
    const filled: string[] = [];
    for (const { name } of tables) {
      const { rows } = await pool.query(`SELECT FROM ${name} LIMIT 1`);
      if (rows.length > 0) filled.push(name);
    }
    expect(tables.length).to.be.greaterThan(projections.length);
    expect(filled.sort()).to.deep.equal([
      'bullmq.migration',
      'credentials.version',
      'log.head',
      'migrations.kysely_migration',
      'migrations.kysely_migration_lock',
      'service.checkpoints',
      'service.lease_moves',
    ]);
    const { rows } = await pool.query(
      'SELECT max(position) AS position, max(leader) AS leader FROM service.checkpoints',
    );
    expect(rows).to.deep.equal([{ position: 0, leader: null }]);
  });

  it('match those that a start creates; a start keeps them and removes the mark', async () => {
    await using core = await start();
    expect(await readMark(core.database.db)).to.equal(undefined);
    const { rows } = await core.database.pool.query<{ there: boolean }>(
      `SELECT to_regclass('bullmq.migration') IS NOT NULL AS there`,
    );
    expect(rows, 'the tables of the jobs were there before').to.deep.equal([{ there: true }]);
    expect(await ours(core.database.pool)).to.equal(readFileSync(file, 'utf8'));
  });

  it('are rebuilt if another version created them', async () => {
    const other = projections[0] as (typeof projections)[number];
    {
      await using database = await open();
      await database.pool.query(`ALTER TABLE "${schemaOf(other)}"."${other.tables[0]?.name}" ADD COLUMN old text`);
      await database.pool.query('CREATE SCHEMA gone CREATE TABLE things (id int)');
      await markPrepared(database.db, 'of another version');
    }
    await using core = await start();
    expect(await readMark(core.database.db)).to.equal(undefined);
    expect(await ours(core.database.pool)).to.equal(readFileSync(file, 'utf8'));
  });

  it('are never dropped if there are events', async () => {
    await using database = await open();
    await database.pool.query(
      `INSERT INTO log.events (position, id, stream, revision, type, data, meta) VALUES (1, gen_random_uuid(), 'thing-1', 0, 'thing', '{}', '{}')`,
    );
    const refused = await settlePrepared(database.db, 'of another version', projections).then(String, String);
    expect(refused).to.include('the database has events');
    expect((await database.pool.query('SELECT FROM log.events')).rows).to.have.length(1);
  });
});
