/** How queries access read models: a database and, for each projection, the schema of its tables. */
import { type Expression, type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import { historyOf, type Projection, type Row, schemaOf, type Table } from '../projections/projection.ts';
import { PAGE_BYTES } from '../shared/contract/common.ts';
import { AppError, HISTORY_NOT_KEPT } from '../shared/errors.ts';
import type { Position } from '../shared/ports/event-log.ts';
import type { ReadAt } from '../shared/ports/read-models.ts';
import { PREPARED } from '../shared/prepared.ts';

export type { Row };

/** Begins a statement that PGlite plans once per connection (see `PREPARED`). */
export const prepared: RawBuilder<unknown> = sql.raw(PREPARED);

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

export interface Reads {
  /**
   * Runs statements once the read models from whose tables they were built (`tables`, `tableOf`) show the required
   * position. A statement waits without a connection, so that the writers it waits for get one. No transactions.
   */
  // biome-ignore lint/suspicious/noExplicitAny: `tables` narrows it to the projection's tables.
  readonly db: Kysely<any>;
  /** The schema of the live tables by default; otherwise of a rebuild or of a moment of the past. */
  schema(projection: Pick<Projection, 'name' | 'version'>): string;
  /** The minimum position that the statements so far have shown; undefined: there were none. */
  readonly position: Position | undefined;
  /** Whether all of them have shown exactly that position. */
  readonly isExact: boolean;
  /** The same tables at another moment. Default: each statement reads at the head of the log at the time it is run. */
  at(at: ReadAt): Reads;
  /**
   * The reads of one response: all statements show the same position, which is that of `at` or a later one. Only `{}`,
   * which waits for nothing, lets them show different ones.
   */
  response(at: ReadAt): Reads;
  /**
   * The same tables as they were at a position of the log.
   *
   * @param at Unix milliseconds; no event up to the position is newer. It makes lists faster, and changes no result.
   * @param deleted default: rows that were deleted since are shown, as they were then
   */
  asOf(position: Position, at?: number, deleted?: boolean): Reads;
  /** The position of `asOf`; undefined: current tables. */
  readonly past?: Position;
}

/**
 * Thrown by a statement of a response that has to read the past at the response's position, on a table that `hasGaps`: it
 * was built for the live table.
 */
export class NeedsPast extends Error {
  readonly position: Position;
  /** Notes that the response will have rows of later positions. */
  readonly readsLater: () => void;
  constructor(position: Position, readsLater: () => void) {
    super(`the statement was built for live tables, and has to be built for position ${position}`);
    this.position = position;
    this.readsLater = readsLater;
  }
}

/**
 * Runs a query on tables that have gaps, in a response of several statements too: it is repeated as of the position of
 * the response when its live rows have changed since.
 *
 * @param query builds its statements from the reads that it gets
 */
export async function inPastToo<T>(reads: Reads, query: (reads: Reads) => Promise<T>): Promise<T> {
  try {
    return await query(reads);
  } catch (error) {
    if (!(error instanceof NeedsPast)) throw error;
    try {
      return await query(reads.asOf(error.position));
    } catch (refused) {
      if (!(refused instanceof AppError && refused.extras.code === HISTORY_NOT_KEPT)) throw refused;
      error.readsLater();
      return query(reads.at({}));
    }
  }
}

/** A table, for a statement written as SQL text. */
export const tableOf = <T extends AnyTable>(
  reads: Reads,
  projection: Projection<T>,
  name: T['name'],
): RawBuilder<unknown> => sql.table(`${reads.schema(projection)}.${name}`);

/** A table of versions of rows: each was valid from `position` up to `until`. */
export const versionsOf = <T extends AnyTable>(projection: Projection<T>, name: T['name']): RawBuilder<unknown> =>
  sql.table(`${historyOf(schemaOf(projection))}.${name}`);

/** Columns of a row as arguments of `json_build_object`, each under its own name. A function takes 100 arguments at most. */
export const jsonFields = (row: string, columns: readonly string[]): string =>
  columns.map((column) => `'${column}', ${row}.${column}`).join(', ');

/** Kysely over a projection's tables, typed so that unknown tables and columns do not compile. */
export function tables<T extends AnyTable>(
  reads: Reads,
  projection: Projection<T>,
): Kysely<{ [K in T as K['name']]: Row<K> }> {
  return reads.db.withSchema(reads.schema(projection)) as Kysely<{ [K in T as K['name']]: Row<K> }>;
}

/** The rows of one workspace in a table of a projection. */
export const inWorkspace = <T extends AnyTable, const N extends T['name']>(
  reads: Reads,
  projection: Projection<T>,
  table: N,
  workspace: number,
) =>
  reads.db
    .withSchema(reads.schema(projection))
    .selectFrom(table as string)
    .where('workspace_id', '=', workspace) as SelectQueryBuilder<{ [K in T as K['name']]: Row<K> }, N, object>;

/**
 * Whether a text column that is indexed by its hash has a value.
 *
 * As a function, the comparison is not taken for a second condition that few of the rows with this hash meet: the
 * planner would then read all of them, and sort.
 */
export const isText = (column: string, value: string): RawBuilder<boolean> =>
  sql`hashtext(${sql.ref(column)}) = hashtext(${value}) AND texteq(${sql.ref(column)}, ${value})`;

/**
 * The rows of `page` that begin a page: up to its size, at least one. Rows beyond are not even read from the disk.
 *
 * @param page rows with a column `bytes`, such as all columns of a table that is `sized`
 * @param order of the page, as in its ORDER BY
 */
export const upToSize = (
  page: Expression<unknown>,
  order: RawBuilder<unknown>,
  bytes = PAGE_BYTES,
): RawBuilder<unknown> => sql`
  SELECT * FROM (
    SELECT *, sum(bytes) OVER newest AS upto FROM (${page}) page
    WINDOW newest AS (ORDER BY ${order} ROWS UNBOUNDED PRECEDING)
  ) page WHERE upto <= ${sql.lit(bytes)} OR upto = bytes`;

/** Number of rows that a query matches. */
export async function countOf<DB, TB extends keyof DB>(rows: SelectQueryBuilder<DB, TB, object>): Promise<number> {
  const counted = await rows.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirst();
  return Number((counted as { readonly count: number } | undefined)?.count ?? 0);
}

/** From this offset on, the total is read first, so that the page can be read from the nearer end. */
const DEEP = 1_000;

/** Where to read a page of a list whose total is cheap to read. */
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
