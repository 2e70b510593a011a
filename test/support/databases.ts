/** Which stores the tests run on, and databases of their own on a server. */
import pg from 'pg';

/** TEST_STACK=postgres or TEST_STACK=cluster: tests run on servers instead of the embedded database. */
export const SERVERS = process.env.TEST_STACK === 'postgres' || process.env.TEST_STACK === 'cluster';

/** Makes an empty database on the server of TEST_DATABASE_URL. Gives its URL and the function that drops it. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const base = process.env.TEST_DATABASE_URL;
  if (!base) throw new Error('TEST_DATABASE_URL is not set');
  const name = `signalbox_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const admin = async (statement: string) => {
    const client = new pg.Client({ connectionString: base });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await admin(`CREATE DATABASE ${name}`);
  const url = new URL(base);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}
