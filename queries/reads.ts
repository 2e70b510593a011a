/** How queries reach read models: a database and, per projection, the schema its tables are in. */
import type { Kysely } from 'kysely';
import { type Projection, type Row, schemaOf, type Table } from '../projections/projection.ts';

export interface Reads {
  // biome-ignore lint/suspicious/noExplicitAny: `tables` narrows it to the projection's tables.
  readonly db: Kysely<any>;
  /** Live tables by default; a rebuild or an earlier moment elsewhere. */
  schema(projection: Pick<Projection, 'name' | 'version'>): string;
}

export const liveReads = (db: Reads['db']): Reads => ({ db, schema: schemaOf });

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** Kysely over a projection's tables. A table or column that the projection does not have does not compile. */
export function tables<T extends AnyTable>(
  reads: Reads,
  projection: Projection<T>,
): Kysely<{ [K in T as K['name']]: Row<K> }> {
  return reads.db.withSchema(reads.schema(projection)) as Kysely<{ [K in T as K['name']]: Row<K> }>;
}
