/**
 * Removal of many rows in pieces, each a statement of its own: requests use the database in between, and the embedded
 * one runs a single statement at a time. A piece does not grow with the number of old rows.
 */
import type pg from 'pg';
import { nextTurn } from '../../shared/waiting.ts';

/** Maximum number of rows in one statement. */
export const PIECE = 200;

/** Old rows of a table. */
interface Old {
  /** With its schema. */
  readonly table: string;
  /** A column with an index, in whose order rows are removed. */
  readonly by: string;
  /** Rows with smaller values are removed. */
  readonly before: number;
  /** Only rows of this workspace; the index begins with it. */
  readonly workspace?: number;
}

/**
 * Deletes old rows, the oldest first.
 *
 * @param options.piece maximum number of rows in one statement
 * @param options.signal after an abort, the rest stays
 * @returns the number of deleted rows
 */
export async function deleteOld(
  pool: Pick<pg.Pool, 'query'>,
  { table, by, before, workspace }: Old,
  { piece = PIECE, signal }: { readonly piece?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<number> {
  // Each statement begins where the last one ended: entries of deleted rows stay in the index until a vacuum.
  const text = `WITH gone AS (
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE ${workspace === undefined ? '' : 'workspace = $3 AND '}${by} >= $2 AND ${by} < $1
        ORDER BY ${by} LIMIT ${piece}))
      RETURNING ${by} AS value)
    SELECT count(*)::int AS count, max(value) AS last FROM gone`;
  let deleted = 0;
  for (let from = 0; !signal?.aborted; ) {
    const { rows } = await pool.query(text, workspace === undefined ? [before, from] : [before, from, workspace]);
    const { count, last } = rows[0] as { count: number; last: number | null };
    deleted += count;
    if (count < piece || last === null) break;
    from = last;
    await nextTurn();
  }
  return deleted;
}
