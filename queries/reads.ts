/** How queries access read models: a database and, for each projection, the schema of its tables. */
import type { Kysely } from 'kysely';
import { type Projection, type Row, schemaOf, type Table } from '../projections/projection.ts';

export interface Reads {
  // biome-ignore lint/suspicious/noExplicitAny: `tables` narrows it to the projection's tables.
  readonly db: Kysely<any>;
  /** The live tables by default; elsewhere those of a rebuild or of an earlier point in time. */
  schema(projection: Pick<Projection, 'name' | 'version'>): string;
}

export const liveReads = (db: Reads['db']): Reads => ({ db, schema: schemaOf });

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** Kysely over a projection's tables, typed so that unknown tables and columns do not compile. */
export function tables<T extends AnyTable>(
  reads: Reads,
  projection: Projection<T>,
): Kysely<{ [K in T as K['name']]: Row<K> }> {
  return reads.db.withSchema(reads.schema(projection)) as Kysely<{ [K in T as K['name']]: Row<K> }>;
}
