/**
 * The limit of the history (`MC_RETAIN_HISTORY_DAYS`): versions of rows that ended before a given time are removed.
 *
 * Each read model first moves the start of its history to that time, and then deletes versions, in batches. A read that
 * saw the earlier start checks again after reading (`reads.ts`), so no response is based on an incomplete history. If a
 * process is killed in between, versions before the new start are left; the next run removes them.
 */
import { sql } from 'kysely';
import { counted, EVERY_TEN_MINUTES_MS, type Schedule } from '../../commands/schedules/schedule.ts';
import { historyOf, type Projection, schemaOf, type Table } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { LogIndex } from '../../shared/ports/history/events.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { DAY } from '../../shared/time.ts';
import { nextTurn } from '../../shared/waiting.ts';
import type { AnyDatabase } from '../database/database.ts';
import { PIECE } from '../stores/pieces.ts';
import { blocksBefore } from './history.ts';
import { qualified } from './tables.ts';

/**
 * The position at which the history begins if it is kept for this many days; 0: at the first event.
 *
 * @param days 0: for ever
 * @param now Unix ms
 */
export async function beginningOfPast(
  index: Pick<LogIndex, 'momentAt'>,
  days: number,
  now: number = Date.now(),
): Promise<Position> {
  if (days === 0) return 0;
  return (await index.momentAt({ time: now - days * DAY * 1_000 }))?.position ?? 0;
}

/**
 * Moves the start of the history of read models to a position, unless it is later already.
 *
 * @param options.signal after an abort, the rest is left to the next call
 * @param options.batch maximum number of versions per statement
 * @returns how many versions were removed
 */
export async function beginPastAt(
  db: AnyDatabase,
  projections: readonly Projection[],
  position: Position,
  { signal, batch = PIECE }: { readonly signal?: AbortSignal; readonly batch?: number } = {},
): Promise<number> {
  let removed = 0;
  for (const projection of projections) {
    const schema = schemaOf(projection);
    await sql`UPDATE service.checkpoints SET history_from = ${position}
      WHERE schema_name = ${schema} AND history_from < ${position}`.execute(db);
    for (const table of projection.tables) removed += await removeVersions(db, schema, table, position, batch, signal);
  }
  return removed;
}

/** Removes versions that ended up to a position. */
async function removeVersions(
  db: AnyDatabase,
  schema: string,
  table: Table,
  position: Position,
  batch: number,
  signal?: AbortSignal,
): Promise<number> {
  const versions = qualified(historyOf(schema), table);
  let removed = 0;
  for (let block = 0; !signal?.aborted; ) {
    const { rows } = await sql<{ count: number; last: number | null }>`
      WITH gone AS (
        DELETE FROM ${versions} WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${versions}
          WHERE block >= ${block} AND block < ${blocksBefore(position)} AND until <= ${position}
          ORDER BY block LIMIT ${batch}))
        RETURNING block)
      SELECT count(*)::int AS count, max(block) AS last FROM gone`.execute(db);
    const { count = 0, last = null } = rows[0] ?? {};
    removed += count;
    if (count < batch || last === null) break;
    block = last;
    await nextTurn();
  }
  return removed;
}

/** @param parts.days 0: the history is kept for ever */
export function historySchedule(parts: {
  readonly index: Pick<LogIndex, 'momentAt'>;
  readonly db: AnyDatabase;
  readonly projections: readonly Projection[];
  readonly locks: Locks;
  readonly days: number;
  /** Unix ms. */
  readonly now: () => number;
}): Schedule {
  const { index, db, projections, locks, days, now } = parts;
  return {
    id: 'purge_history',
    kind: 'purge-history',
    name: 'Remove old versions of read model rows',
    everyMs: EVERY_TEN_MINUTES_MS,
    enabled: async () => days > 0,
    async run(_asked, signal) {
      if (days === 0) return 'The past is kept for ever: MC_RETAIN_HISTORY_DAYS is 0.';
      const from = await beginningOfPast(index, days, now());
      const removed = await locks.holding('history', () => beginPastAt(db, projections, from, { signal }));
      return `${counted(removed, 'version was', 'versions were')} removed; the past begins at position ${from}.`;
    },
  };
}
