/**
 * Removes from the tree the events that the log no longer has, after an event store was restored to an earlier state:
 * its follower then continues from there. The signed checkpoints are kept, and the log gets another origin.
 */
import { sql } from 'kysely';
import { BEGINNING, type EventLog, type LoggedEvent } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { largestSize } from './checkpoints.ts';
import { knownKeys, retireOrigin } from './keys.ts';
import { TREE, treeSize, WIDTH } from './tree.ts';

/** An upper bound: no tree has as many levels. */
const LEVELS = 13;

type Entry = Pick<LoggedEvent, 'id' | 'stream' | 'revision' | 'position'>;

/** @returns how many events the tree has now, and how many were removed */
export async function repairTree(
  { db, pool }: Pick<Database, 'db' | 'pool'>,
  eventLog: EventLog,
): Promise<{ readonly size: number; readonly removed: number }> {
  const entryAt = async (number: number): Promise<Entry | undefined> => {
    const { rows } = await pool.query('SELECT id, stream, revision, position FROM log.entries WHERE number = $1', [
      number,
    ]);
    return rows[0] as Entry | undefined;
  };
  const isThere = async (number: number): Promise<boolean> => {
    const entry = await entryAt(number);
    if (!entry) return false;
    for await (const [event] of eventLog.readStream(entry.stream, { from: entry.revision, limit: 1 }))
      return event?.id === entry.id && event.position === entry.position;
    return false;
  };
  const before = await treeSize(pool);
  // Binary search, because events are lost only from the end.
  let [kept, end] = [0, before];
  if (before > 0 && (await isThere(before - 1))) kept = before;
  while (kept < end && kept < before) {
    const middle = kept + Math.floor((end - kept) / 2);
    if (await isThere(middle)) kept = middle + 1;
    else end = middle;
  }
  if (kept === before) return { size: before, removed: 0 };
  const position = kept === 0 ? BEGINNING : ((await entryAt(kept - 1))?.position ?? BEGINNING);
  await db.transaction().execute(async (trx) => {
    // A follower that is about to add events waits for this lock, and is then fenced.
    await sql`UPDATE service.checkpoints SET position = ${position}, generation = generation + 1, stuck_at = NULL,
      stuck_reason = NULL WHERE schema_name = ${TREE}`.execute(trx);
    await sql`DELETE FROM log.entries WHERE number >= ${kept}`.execute(trx);
    for (let level = 1; level <= LEVELS; level++)
      await sql`DELETE FROM log.nodes WHERE level = ${level} AND index >= ${Math.floor(kept / WIDTH ** level)}`.execute(
        trx,
      );
  });
  if ((await largestSize(pool)) > kept) {
    const live = (await knownKeys(pool)).filter((key) => key.kept === null);
    for (const origin of new Set(live.map(({ name }) => name))) await retireOrigin(pool, origin, kept);
  }
  return { size: kept, removed: before - kept };
}
