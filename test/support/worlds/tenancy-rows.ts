/** What workspaces have in the tables of all read models: a new table is in here without being named. */
import { createHash } from 'node:crypto';
import type { QueryResultRow } from 'pg';
import type { Core } from '../../../infra/core.ts';
import { projections } from '../../../projections/index.ts';
import { defineTable, schemaOf, type Table } from '../../../projections/projection.ts';
import { allCaughtUp } from '../caught-up.ts';
import { type Described, kindOf, type Values } from '../requests.ts';

export interface Place {
  readonly workspace: number;
  readonly tenant: number;
}

/** How many records of each kind and workspace others ask for by their ids. */
const IDS = 4;

/** Kept beside the read models, and listed to callers. */
const deliveries = defineTable(
  'webhook_deliveries',
  { workspace_id: 'int', webhook_id: 'bigint', id: 'bigint', payload: 'text' },
  { key: ['id'] },
);

const DELIVERIES = 'service.webhook_deliveries';

/** Filled with the deployment's token, which only its own tenant may use. */
export const DEPLOYMENT_ONLY = ['github_syncs', 'github_projects', 'github_links'];

export const all = [
  ...projections.flatMap((projection) =>
    projection.tables.map((table) => ({ table, place: `${schemaOf(projection)}.${table.name}` })),
  ),
  { table: deliveries as unknown as Table, place: DELIVERIES },
];
/** Columns whose texts are words of Signalbox: callers cannot mark them. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  'key',
  'kind',
  'type',
  'entity_type',
  'known_by',
  'unit',
  'action',
  'status',
]);
export const hasTexts = (table: Table) =>
  Object.entries(table.columns).some(([name, type]) => /text|json/.test(String(type)) && !OWN_WORDS.has(name));
/** The column that says whose a row is. */
export const ownerOf = (table: Table): 'workspace_id' | 'tenant_id' | undefined => {
  if ('workspace_id' in table.columns) return 'workspace_id';
  return table.name === 'workspaces' ? 'tenant_id' : undefined;
};

/** @param isSecret whether others cannot know this text */
export function tenancyRows(core: () => Core, isSecret: (text: string) => boolean) {
  /** Rows of a table, those of workspaces where the table has some. */
  function from({ table, place }: (typeof all)[number], parties: readonly Place[]): string {
    const owner = ownerOf(table);
    const owners = parties.map(({ workspace, tenant }) => (owner === 'tenant_id' ? tenant : workspace));
    return `FROM ${place} t ${owner ? `WHERE ${owner} IN (${owners.join(', ')})` : ''}`;
  }

  /** Reads them as text. */
  const rowsIn = (one: (typeof all)[number], party: Place) =>
    `SELECT '${one.place}' AS place, row_to_json(t)::text COLLATE "C" AS row ${from(one, [party])}`;

  /** Prepares the statement: planning it takes longer than what it reads, and it is asked for hundreds of times. */
  async function query<Row extends QueryResultRow>(text: string): Promise<Row[]> {
    const name = createHash('sha1').update(text).digest('base64url');
    await allCaughtUp(core());
    return (await core().database.pool.query<Row>({ name, text })).rows;
  }

  /** Rows of tables as text, in order, in one statement. */
  async function rowsOf(party: Place, tables = all): Promise<Map<string, string[]>> {
    const each = tables.map((one) => rowsIn(one, party));
    const found = new Map(tables.map(({ place }): [string, string[]] => [place, []]));
    for (const { place, row } of await query<{ place: string; row: string }>(
      `${each.join(' UNION ALL ')} ORDER BY 1, 2`,
    )) {
      found.get(place)?.push(row);
    }
    return found;
  }

  /**
   * Differs, in some table, after every change that a projection makes to what these have: a row gets the position of the
   * event that changes it, which is higher than all before. Takes a fraction of what hashes do.
   */
  async function marksOf(parties: readonly Place[]): Promise<Record<string, string>> {
    const rows = 'count(*), max(t."position"), sum(t."position")';
    await allCaughtUp(core());
    const each = all.map((one) => {
      const what = one.place === DELIVERIES ? `json_agg(t ORDER BY t.id)` : rows;
      return `SELECT '${one.place}' AS place, concat_ws(' ', ${what}) AS mark ${from(one, parties)}`;
    });
    const found = await query<{ place: string; mark: string }>(each.join(' UNION ALL '));
    return Object.fromEntries(found.map(({ place, mark }) => [place, mark]));
  }

  /** Hash of everything that a workspace has, by table. */
  async function hashesOf(party: Place): Promise<Record<string, string>> {
    const hash = `encode(sha256(convert_to(coalesce(string_agg(row, chr(10) ORDER BY row), ''), 'UTF8')), 'hex') AS hash`;
    const each = all.map((one) => `SELECT '${one.place}' AS place, ${hash} FROM (${rowsIn(one, party)}) rows`);
    const rows = await query<{ place: string; hash: string }>(each.join(' UNION ALL '));
    return Object.fromEntries(rows.map(({ place, hash }) => [place, hash]));
  }

  /** Ids and names in the records of these: the last of each column. */
  async function valuesOf(parties: readonly Place[], tables = all): Promise<Values> {
    await allCaughtUp(core());
    const numbers = new Set<number>();
    const names = new Set<string>();
    const ids = new Map<string, number[]>();
    for (const party of parties) {
      const stored = await rowsOf(party);
      for (const { table, place } of tables) {
        const rows = (stored.get(place) ?? []).map((row) => JSON.parse(row) as Record<string, unknown>);
        const known = rows.flatMap(({ id }) => (typeof id === 'number' && id > 0 ? [id] : []));
        const some = known.sort((a, b) => a - b).slice(-IDS);
        if (some.length > 0) ids.set(table.name, [...(ids.get(table.name) ?? []), ...some]);
        for (const column of Object.keys(table.columns).filter((name) => /^(id|.*_id|name|username)$/.test(name))) {
          if (column === 'workspace_id' || column === 'tenant_id') continue;
          const value = rows.map((row) => row[column]).findLast((cell) => cell !== null);
          if (typeof value === 'number' && value > 0) numbers.add(value);
          if (typeof value === 'string' && /name$/.test(column) && !isSecret(value)) names.add(value);
        }
      }
    }
    return { numbers: [...numbers], names: [...names], ids };
  }

  /** The path of an operation with a record of the caller's own, the last of the kind that the path names. */
  async function ownPathOf({ path }: Described, party: Place): Promise<string | undefined> {
    const kind = kindOf(path);
    const one = all.find(({ table }) => table.name === kind);
    const row = one && (await rowsOf(party, [one])).get(one.place)?.at(-1);
    const id = row === undefined ? undefined : (JSON.parse(row) as { id?: number }).id;
    return id === undefined ? undefined : path.replace('{id}', String(id));
  }

  return { rowsOf, marksOf, hashesOf, valuesOf, ownPathOf };
}
