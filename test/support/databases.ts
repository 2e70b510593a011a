/** Which stores the tests run on, and databases of their own on a server. */
import pg from 'pg';
import { closing } from './fixture.ts';

/** TEST_STACK=postgres or TEST_STACK=cluster: tests run on servers instead of the embedded database. */
export const SERVERS = process.env.TEST_STACK === 'postgres' || process.env.TEST_STACK === 'cluster';

/** Ends every other connection to the database. */
export const CUT_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`;

/** A connection, which tests may cut: errors of queries are checked where these are awaited. */
export async function connected(config: pg.ClientConfig): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  await client.connect();
  return closing(client);
}

/** Makes an empty database on the server of TEST_DATABASE_URL. Gives its URL and the function that drops it. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const base = process.env.TEST_DATABASE_URL;
  if (!base) throw new Error('TEST_DATABASE_URL is not set');
  const name = `signalbox_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const admin = async (statement: string) => {
    await using client = await connected({ connectionString: base });
    await client.query(statement);
  };
  await admin(`CREATE DATABASE ${name}`);
  const url = new URL(base);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}
