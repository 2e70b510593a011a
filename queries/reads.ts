/** How queries access read models: a database and, for each projection, the schema of its tables. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type Projection, type Row, schemaOf, type Table } from '../projections/projection.ts';
import { PREPARED } from '../shared/prepared.ts';

export type { Row };

/** Begins a statement that PGlite plans once per connection (see `PREPARED`). */
export const prepared: RawBuilder<unknown> = sql.raw(PREPARED);

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** How current rows from memory have to be. */
export interface KeptFor {
  /** Position of an event whose change the rows must have, as for the answer to the command that appended it. */
  readonly since?: number | undefined;
  /** Types of events whose changes they may lack, because they change nothing of what is asked for. */
  readonly despite?: ReadonlySet<string>;
}

/**
 * The current rows of some tables under one key, from the memory of this process: the one that writes them. Undefined when it
 * does not have them all, or cannot tell that they are current; the database then knows.
 */
export type KeptRows = (
  projection: Pick<Projection, 'name' | 'version'>,
  tables: readonly Pick<Table, 'name' | 'key'>[],
  key: Readonly<Record<string, string | number>>,
  current?: KeptFor,
) => readonly Readonly<Record<string, unknown>>[] | undefined;

export interface Reads {
  // biome-ignore lint/suspicious/noExplicitAny: `tables` narrows it to the projection's tables.
  readonly db: Kysely<any>;
  /** The live tables by default; elsewhere those of a rebuild or of an earlier point in time. */
  schema(projection: Pick<Projection, 'name' | 'version'>): string;
  readonly kept: KeptRows;
  /**
   * Resolves when a read model shows everything that was promised (`ReadModels.promise`), so that its rows may be in
   * memory. Undefined: it does. Statements need not be preceded by this, they wait themselves.
   */
  settled(projection: Pick<Projection, 'name' | 'version'>): Promise<void> | undefined;
  /**
   * Resolves when requests that are being answered at this moment have told what they have appended, so that rows may be in
   * memory that were not known to be current before. Undefined: there is nothing to wait for.
   */
  told(projection: Pick<Projection, 'name' | 'version'>): Promise<void> | undefined;
}

/**
 * @param kept rows in memory; by default none, so that everything comes from the database
 * @param settled by default writes wait for read models, so reads need not
 */
export const liveReads = (
  db: Reads['db'],
  kept: KeptRows = () => undefined,
  settled: Reads['settled'] = () => undefined,
  told: Reads['told'] = () => undefined,
): Reads => ({ db, schema: schemaOf, kept, settled, told });

/** Rows from memory, typed (see `KeptRows`). */
export const keptRows = <const T extends readonly AnyTable[]>(
  reads: Reads,
  projection: Pick<Projection, 'name' | 'version'>,
  wanted: T,
  key: Readonly<Record<string, string | number>>,
  current?: KeptFor,
): { readonly [K in keyof T]: Row<T[K]> } | undefined =>
  reads.kept(projection, wanted, key, current) as { readonly [K in keyof T]: Row<T[K]> } | undefined;

/** Kysely over a projection's tables, typed so that unknown tables and columns do not compile. */
export function tables<T extends AnyTable>(
  reads: Reads,
  projection: Projection<T>,
): Kysely<{ [K in T as K['name']]: Row<K> }> {
  return reads.db.withSchema(reads.schema(projection)) as Kysely<{ [K in T as K['name']]: Row<K> }>;
}

/** From this offset on, the total is read first, so that the page can be read from the nearer end. */
const DEEP = 1_000;

/** Where to read a page of a list whose total is cheap to know. */
export interface PagePlace {
  /** The total, if it was read. */
  readonly known: number | undefined;
  readonly size: number;
  /** Rows to skip: from the beginning of the list, or from its end. */
  readonly skip: number;
  readonly fromEnd: boolean;
}

export async function placeOfPage(
  { limit, offset }: { readonly limit: number; readonly offset: number },
  total: () => Promise<{ readonly total: number } | undefined>,
): Promise<PagePlace> {
  if (offset < DEEP) return { known: undefined, size: limit, skip: offset, fromEnd: false };
  const known = Number((await total())?.total ?? 0);
  const size = Math.min(limit, Math.max(0, known - offset));
  const fromEnd = offset > known / 2;
  return { known, size, skip: fromEnd ? Math.max(0, known - offset - size) : offset, fromEnd };
}
