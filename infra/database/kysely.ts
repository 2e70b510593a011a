/** Kysely over a pool, on one connection, and over a function that runs single statements. */
import { type CompiledQuery, DummyDriver, Kysely, PostgresDialect, type QueryResult } from 'kysely';
import type pg from 'pg';

/** Tables are addressed with an explicit schema everywhere, so the database type is left open here. */
// biome-ignore lint/suspicious/noExplicitAny: each query states its own tables; there is no single database type.
export type AnyDatabase = Kysely<any>;

/** The part of a pool that Kysely needs. */
export type Connections = Pick<pg.Pool, 'connect' | 'end'>;

export const kyselyOver = (pool: Connections): AnyDatabase =>
  new Kysely({ dialect: new PostgresDialect({ pool: pool as pg.Pool }) });

/** Its transactions are the connection's transactions; the connection is ended by its owner. */
export function kyselyOn(client: pg.Client): AnyDatabase {
  const connection = { query: client.query.bind(client), release: () => undefined };
  return kyselyOver({ connect: async () => connection, end: async () => undefined } as Connections);
}

/** Passes every statement, compiled for PostgreSQL, to `run`. Transactions and streamed results are errors. */
export function kyselyRunBy(run: (query: CompiledQuery) => Promise<QueryResult<unknown>>): AnyDatabase {
  const refuse = () => {
    throw new Error('only single statements can be run here: no transactions, no streamed results');
  };
  const acquireConnection = async () => ({ executeQuery: run, streamQuery: refuse });
  const driver = Object.assign(new DummyDriver(), { acquireConnection, beginTransaction: refuse });
  return new Kysely({ dialect: Object.assign(new PostgresDialect({ pool: refuse }), { createDriver: () => driver }) });
}
