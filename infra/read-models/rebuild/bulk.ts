/**
 * Connections for bulk work, and COPY on them, which is two to three times as fast as INSERT.
 *
 * A server accepts COPY FROM STDIN. PGlite does not, but it can read files in its data directory, so rows are passed to
 * it in a file there. A process that cannot write to that directory works without COPY.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Table } from '../../../projections/projection.ts';
import type { AnyDatabase, Database } from '../../database/database.ts';
import { kyselyOn } from '../../database/kysely.ts';
import { Client, endInTime } from '../../database/session.ts';

/** One connection without time limits. Its users take turns. */
export interface BulkSession {
  /** Kysely on this connection alone: its transactions are the connection's transactions. */
  readonly db: AnyDatabase;
  /** Adds rows encoded by `encodeRow`, within the open transaction if there is one. */
  readonly copy: ((schema: string, table: Table, rows: readonly Buffer[]) => Promise<void>) | undefined;
  close(): Promise<void>;
}

/**
 * @param dataDir directory of the embedded database
 * @param name shown in pg_stat_activity
 */
export async function openBulkSession(database: Database, dataDir: string, name: string): Promise<BulkSession> {
  const client = database.kind === 'server' ? await database.connect(name) : await connectEmbedded(database);
  const db = kyselyOn(client);
  let copy: BulkSession['copy'];
  let cleanUp = async () => {};
  if (database.kind === 'server') {
    // Safe, because a crash loses rows together with their checkpoint.
    await client.query("SET synchronous_commit = off; SET maintenance_work_mem = '128MB'");
    copy = (schema, table, rows) => copyIn(client, schema, table, rows);
  } else {
    const files = await openFiles(client, dataDir);
    cleanUp = async () => files?.remove();
    copy = files?.copy;
  }
  return {
    db,
    copy,
    async close() {
      await cleanUp();
      // Kysely, if it has run no statement, would leave the connection open, and with it the process.
      await endInTime(client);
    },
  };
}

async function connectEmbedded(database: Database): Promise<pg.Client> {
  const { host, port, user, database: name } = database.pool.options;
  const client = new Client({ host, port, user, database: name, connectionTimeoutMillis: 5_000 });
  await client.connect();
  return client;
}

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const TO_ESCAPE = /[\\\n\r\t]/;
const escaped = (text: string): string =>
  TO_ESCAPE.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPED[character] as string) : text;

/** Names of a table's columns, and whether they hold JSON. */
const columnsOf = (table: Table): readonly (readonly [name: string, json: boolean])[] => {
  const known = columns.get(table);
  if (known) return known;
  const fresh = Object.entries(table.columns).map(([name, type]) => [name, type.startsWith('jsonb')] as const);
  columns.set(table, fresh);
  return fresh;
};
const columns = new WeakMap<Table, readonly (readonly [name: string, json: boolean])[]>();

/** A row in COPY's text format, with its newline. Values are stored as `JSON.stringify(row)` would give them. */
export function encodeRow(table: Table, row: Readonly<Record<string, unknown>>, position: number): string {
  let text = '';
  for (const [name, json] of columnsOf(table)) {
    const value = row[name];
    if (typeof value === 'string' && !json) text += escaped(value);
    else if (typeof value === 'number' || typeof value === 'boolean') text += value;
    else if (value === null || value === undefined) text += '\\N';
    else text += escaped(JSON.stringify(value));
    text += '\t';
  }
  return `${text}${position}\n`;
}

const columnList = (table: Table): string =>
  [...Object.keys(table.columns), 'position'].map((name) => `"${name}"`).join(', ');

/** Sends the rows as fast as the server accepts them. @throws the error of the database, with its SQLSTATE as `code` */
function copyIn(client: pg.Client, schema: string, table: Table, rows: readonly Buffer[]): Promise<void> {
  const statement = `COPY "${schema}"."${table.name}" (${columnList(table)}) FROM STDIN`;
  return pipeline(Readable.from(rows), client.query(copyFrom(statement)));
}

/** The directory of PostgreSQL's own temporary files, and the prefix of those that it removes at startup. */
const TEMPORARY = ['base', 'pgsql_tmp'] as const;
const PREFIX = 'pgsql_tmp_rebuild_';
let filesOpened = 0;

/** Undefined if the database cannot see files that this process writes. */
async function openFiles(
  client: pg.Client,
  dataDir: string,
): Promise<
  { copy(schema: string, table: Table, rows: readonly Buffer[]): Promise<void>; remove(): Promise<void> } | undefined
> {
  const directory = join(dataDir, 'pg', ...TEMPORARY);
  const file = `${PREFIX}${process.pid}_${++filesOpened}`;
  const path = join(directory, file);
  const write = (pieces: readonly Uint8Array[]) => writeFile(path, pieces, { mode: 0o600 });
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await removeAbandoned(directory);
    await write([Buffer.from(file)]);
    const inside = [...TEMPORARY, file].join('/');
    const { rows } = await client.query(
      "SELECT pg_read_file($1, true) AS text, current_setting('data_directory') AS root",
      [inside],
    );
    const { text, root } = rows[0] as { text: string | null; root: string };
    if (text !== file) return undefined;
    return {
      async copy(schema, table, pieces) {
        await write(pieces);
        await client.query(`COPY "${schema}"."${table.name}" (${columnList(table)}) FROM '${root}/${inside}'`);
      },
      remove: () => rm(path, { force: true }),
    };
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
    await rm(path, { force: true });
    return undefined;
  }
}

/** Removes files of killed processes. */
async function removeAbandoned(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)_`).exec(name)?.[1] ?? 0);
    if (pid > 0 && pid !== process.pid && !isRunning(pid)) await rm(join(directory, name), { force: true });
  }
}

/** Whether a process with this id runs on this machine. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}
