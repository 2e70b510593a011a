/**
 * Compares a table of a replay with the live one, at every position of a range at once.
 *
 * A row is a function of the position: its versions give its content from each position on. Consecutive versions with
 * the same content are merged, which leaves the turns: positions from which the row has another content, or does not
 * exist. Two such functions are equal if their turns are; otherwise the first turn that only one of them has is the
 * first position at which they differ.
 */
import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import { historyOf, type Projection, type Table } from '../../../projections/projection.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../../database/database.ts';
import { createPast, lookAt, pastOf } from '../history.ts';
import { qualified } from '../tables.ts';

/** Two schemas with the versions of their rows, and the range of positions to compare. */
export interface Sides {
  /** Of the replay. */
  readonly projection: Projection;
  readonly live: string;
  readonly replayed: string;
  readonly from: Position;
  readonly until: Position;
}

/** A row that differs, with the columns that both tables have. */
export interface Example {
  readonly key: Readonly<Record<string, unknown>>;
  /** The first position at which it differs. */
  readonly first: Position;
  /** The displayed position: the end of the range, or `first` if the row no longer differs at the end. */
  readonly at: Position;
  readonly live: Readonly<Record<string, unknown>> | undefined;
  readonly replayed: Readonly<Record<string, unknown>> | undefined;
}

/** Numbers of rows. */
export interface TableDifferences {
  /** Rows that exist at the end of the range, in either table. */
  readonly rows: number;
  /** Of those: missing from the replay, missing from the live table, different. */
  readonly onlyLive: number;
  readonly onlyReplayed: number;
  readonly different: number;
  /** Rows that differ earlier in the range, but not at its end. */
  readonly past: number;
  /** The first position at which any of them differs; null: none does. */
  readonly first: Position | null;
  /** Those that differ first. */
  readonly examples: readonly Example[];
}

/** Names of columns. */
export interface TableColumns {
  readonly both: readonly string[];
  readonly onlyLive: readonly string[];
  readonly onlyReplayed: readonly string[];
  /** The primary key of the live table. */
  readonly key: readonly string[];
}

/** Tables by name, including those that the program no longer has. */
export async function liveTables(db: AnyDatabase, schema: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await sql<{ name: string; columns: readonly string[] }>`
    SELECT table_name AS name, array_agg(column_name::text ORDER BY ordinal_position) AS columns
    FROM information_schema.columns WHERE table_schema = ${schema} AND is_generated = 'NEVER' GROUP BY table_name ORDER BY table_name`.execute(
    db,
  );
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

export async function columnsOf(
  db: AnyDatabase,
  schema: string,
  table: Table,
  live: readonly string[],
): Promise<TableColumns> {
  const { rows } = await sql<{ name: string }>`
    SELECT a.attname::text AS name FROM pg_constraint c
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey)
    WHERE c.contype = 'p' AND c.conrelid = ${`"${schema}"."${table.name}"`}::regclass`.execute(db);
  const mine = Object.keys(table.columns);
  return {
    both: mine.filter((name) => live.includes(name)),
    onlyLive: live.filter((name) => name !== 'position' && !mine.includes(name)),
    onlyReplayed: mine.filter((name) => !live.includes(name)),
    key: rows.map(({ name }) => name),
  };
}

interface Counts extends Omit<TableDifferences, 'examples'> {
  readonly examples: readonly { readonly key: Example['key']; readonly first: Position; readonly past: boolean }[];
}

/**
 * @param columns of both tables
 * @param options.part approximate number of versions that one statement compares
 * @param options.examples maximum number of examples
 */
export async function compareTable(
  db: AnyDatabase,
  sides: Sides,
  table: Table,
  columns: readonly string[],
  options: { readonly part: number; readonly examples: number },
): Promise<TableDifferences> {
  const parts = partsFor((await versionsIn(db, sides, table)) / options.part);
  const found: Counts[] = [];
  for (let part = 0; part < parts; part++) {
    const { rows } = await statement(sides, table, columns, { part, parts, examples: options.examples }).execute(db);
    found.push(rows[0] as Counts);
  }
  const sum = (of: (one: Counts) => number) => found.reduce((total, one) => total + of(one), 0);
  const firsts = found.flatMap(({ first }) => (first === null ? [] : [first]));
  const wanted = found.flatMap(({ examples }) => examples).toSorted((a, b) => a.first - b.first);
  return {
    rows: sum(({ rows }) => rows),
    onlyLive: sum(({ onlyLive }) => onlyLive),
    onlyReplayed: sum(({ onlyReplayed }) => onlyReplayed),
    different: sum(({ different }) => different),
    past: sum(({ past }) => past),
    first: firsts.length === 0 ? null : Math.min(...firsts),
    examples: await examplesOf(db, sides, table, columns, wanted.slice(0, options.examples)),
  };
}

/** A power of two. */
const partsFor = (many: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(many)));

async function versionsIn(db: AnyDatabase, { replayed }: Sides, table: Table): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT ((SELECT count(*) FROM ${qualified(replayed, table)}) +
      (SELECT count(*) FROM ${qualified(historyOf(replayed), table)}))::int AS count`.execute(db);
  return rows[0]?.count ?? 0;
}

function statement(
  { live, replayed, from, until }: Sides,
  table: Table,
  columns: readonly string[],
  { part, parts, examples }: { readonly part: number; readonly parts: number; readonly examples: number },
): RawBuilder<Counts> {
  const key = sql.join(table.key.map((name) => sql.id(name)));
  const texts = (names: readonly string[]) =>
    sql`ROW(${sql.join(names.map((name) => sql`${sql.id(name)}::text`))})::text`;
  // Compared as text, because the types of a column may differ.
  const contents = sql`encode(sha256(convert_to(${texts(columns)}, 'UTF8')), 'hex')`;
  const here = parts === 1 ? sql`` : sql`AND hashtextextended(${texts(table.key)}, 0) & ${parts - 1} = ${part}`;
  const ordered = sql.join(table.key.map((name) => sql.ref(`c.${name}`)));
  const turns = (schema: string) => sql`
    SELECT ${key}, _at, _contents FROM (
      SELECT ${key}, _at, max(_contents) AS _contents,
        lag(max(_contents)) OVER (PARTITION BY ${key} ORDER BY _at) AS _before
      FROM (
        SELECT ${key}, greatest(position, ${from}) AS _at, ${contents} AS _contents
          FROM ${qualified(schema, table)} WHERE position <= ${until} ${here}
        UNION ALL
        SELECT ${key}, greatest(position, ${from}), ${contents}
          FROM ${qualified(historyOf(schema), table)} WHERE position <= ${until} AND until > ${from} ${here}
        UNION ALL
        SELECT ${key}, until, NULL
          FROM ${qualified(historyOf(schema), table)} WHERE until <= ${until} AND until > ${from} ${here}
      ) points GROUP BY ${key}, _at
    ) turns WHERE _contents IS DISTINCT FROM _before`;
  const last = (side: string) =>
    sql`SELECT DISTINCT ON (${key}) ${key}, _contents AS ${sql.id(side)} FROM ${sql.id(`${side}_turns`)}
      ORDER BY ${key}, _at DESC`;
  // Columns of the table may have any names that do not begin with an underscore.
  return sql<Counts>`
    WITH _live_turns AS MATERIALIZED (${turns(live)}), _replayed_turns AS MATERIALIZED (${turns(replayed)}),
    differing AS (
      SELECT ${key}, min(_at) AS _first FROM (
        SELECT ${key}, _at FROM (SELECT * FROM _live_turns UNION ALL SELECT * FROM _replayed_turns) both_turns
        GROUP BY ${key}, _at, _contents HAVING count(*) = 1
      ) unequal GROUP BY ${key}
    ),
    compared AS MATERIALIZED (
      SELECT * FROM (${last('_live')}) l FULL JOIN (${last('_replayed')}) r USING (${key})
        LEFT JOIN differing USING (${key})
    )
    SELECT count(*) FILTER (WHERE _live IS NOT NULL OR _replayed IS NOT NULL)::int AS rows,
      count(*) FILTER (WHERE _live IS NOT NULL AND _replayed IS NULL)::int AS "onlyLive",
      count(*) FILTER (WHERE _live IS NULL AND _replayed IS NOT NULL)::int AS "onlyReplayed",
      count(*) FILTER (WHERE _live <> _replayed)::int AS different,
      count(_first) FILTER (WHERE _live IS NOT DISTINCT FROM _replayed)::int AS past,
      min(_first) AS first,
      (SELECT coalesce(json_agg(e), '[]') FROM (
        SELECT row_to_json((SELECT k FROM (SELECT ${ordered}) k)) AS key, c._first AS first,
          c._live IS NOT DISTINCT FROM c._replayed AS past
        FROM compared c WHERE c._first IS NOT NULL ORDER BY c._first, ${ordered} LIMIT ${examples}
      ) e) AS examples
    FROM compared`;
}

async function examplesOf(
  db: AnyDatabase,
  sides: Sides,
  table: Table,
  columns: readonly string[],
  wanted: Counts['examples'],
): Promise<Example[]> {
  const rowAt = async (schema: string, key: Example['key'], at: Position): Promise<Example['live']> =>
    db.transaction().execute(async (trx) => {
      const look = lookAt(at);
      await trx.executeQuery(CompiledQuery.raw(look.sql, [...look.parameters]));
      const same = table.key.map((name) => sql`${sql.id(name)} = ${key[name]}`);
      const { rows } = await sql<Record<string, unknown>>`
        SELECT ${sql.join(columns.map((name) => sql.id(name)))} FROM ${sql.table(`${pastOf(schema)}.${table.name}`)}
        WHERE ${sql.join(same, sql` AND `)}`.execute(trx);
      return rows[0];
    });
  const examples: Example[] = [];
  if (wanted.length > 0) await createPast(db, sides.projection, sides.replayed);
  for (const { key, first, past } of wanted) {
    const at = past ? first : sides.until;
    const live = await rowAt(sides.live, key, at);
    examples.push({ key, first, at, live, replayed: await rowAt(sides.replayed, key, at) });
  }
  return examples;
}
