/**
 * The schema of a migrated database with all read models, as text: a migration, or a read model whose tables change,
 * shows in review as a change of `test/golden/schema.txt`. UPDATE_GOLDEN=1 writes it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Pool } from 'pg';
import { projections } from '../../projections/index.ts';
import { embeddedDatabase, ensureTables } from '../support/world.ts';

// Compiled tests run from dist/; the golden files stay with the sources.
const file = fileURLToPath(new URL('../../../test/golden/schema.txt', import.meta.url));

/** Kinds of relations that have columns. */
const KINDS: Readonly<Record<string, string>> = {
  r: 'table',
  p: 'partitioned table',
  v: 'view',
  m: 'materialized view',
};

const OURS = `n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`;

/** Tables with columns, constraints, indexes and triggers, then sequences, functions and types; sorted by name. */
async function schemaText(pool: Pool): Promise<string> {
  const inOrder = async (text: string, values: readonly unknown[] = []) =>
    (await pool.query<{ line: string }>(text, [...values])).rows.map(({ line }) => line);
  // Sorted here: the order of a database depends on its collation.
  const lines = async (text: string, values?: readonly unknown[]) => (await inOrder(text, values)).sort();
  const { rows: tables } = await pool.query<{ id: number; name: string; kind: string }>(
    `SELECT c.oid::int AS id, n.nspname || '.' || c.relname AS name, c.relkind AS kind
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE ${OURS} AND c.relkind = ANY($1) `,
    [Object.keys(KINDS)],
  );
  tables.sort((one, other) => (one.name < other.name ? -1 : 1));
  const parts: string[] = [];
  for (const { id, name, kind } of tables) {
    const columns = await inOrder(
      `SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
              || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
              || CASE WHEN a.attidentity <> '' THEN ' IDENTITY ' || a.attidentity::text ELSE '' END
              || coalesce(CASE WHEN a.attgenerated <> '' THEN ' GENERATED AS ' ELSE ' DEFAULT ' END
                          || pg_get_expr(d.adbin, d.adrelid), '') AS line
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
      [id],
    );
    const constraints = await lines(
      `SELECT 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) AS line
         FROM pg_constraint WHERE conrelid = $1 AND contype <> 'n'`,
      [id],
    );
    const indexes = await lines(
      `SELECT pg_get_indexdef(i.indexrelid) AS line FROM pg_index i
        WHERE i.indrelid = $1 AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
      [id],
    );
    const triggers = await lines(
      `SELECT pg_get_triggerdef(oid) AS line FROM pg_trigger
        WHERE tgrelid = $1 AND NOT tgisinternal`,
      [id],
    );
    parts.push(
      [
        `${KINDS[kind]} ${name}`,
        ...[...columns, ...constraints, ...indexes, ...triggers].map((line) => `  ${line}`),
      ].join('\n'),
    );
  }
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
  let place: Awaited<ReturnType<typeof embeddedDatabase>>;
  before(async () => {
    place = await embeddedDatabase();
    await ensureTables(place.database, projections);
  });
  after(() => place.close());

  it('matches test/golden/schema.txt', async () => {
    const now = await schemaText(place.database.pool);
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, now);
    expect(existsSync(file), `${file} is missing: write it with UPDATE_GOLDEN=1`).to.equal(true);
    expect(now, 'the schema has changed: look at it, then write it with UPDATE_GOLDEN=1').to.equal(
      readFileSync(file, 'utf8'),
    );
  });

  it('shows what a migration adds, column, default, index, trigger and function', async () => {
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
