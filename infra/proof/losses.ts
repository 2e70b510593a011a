/** Logs that may have lost events: restored from a backup, or an event store that was restored to an earlier state. */
import { sql } from 'kysely';
import { BEGINNING, type EventLog } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { leafHash, leafText } from '../event-log/leaf.ts';
import { largestSize } from './checkpoints.ts';
import { GrowingRoot } from './hashing.ts';
import { type KnownKey, knownKeys, retireOrigin } from './keys.ts';
import { type Note, signerOf } from './notes.ts';
import { entryAt, isInLog, TREE, treeSize, WIDTH } from './tree.ts';

/** Bytes of events per read. */
const PAGE_BYTES = 1_000_000;
/** An upper bound: no tree has as many levels. */
const LEVELS = 13;

/** The keys of names that are in use. */
const liveKeys = async (pool: Database['pool']): Promise<readonly KnownKey[]> =>
  (await knownKeys(pool)).filter(({ kept }) => kept === null);

/**
 * Removes from the tree the events that the log no longer has: its follower then continues from there. The signed
 * checkpoints are kept, and the log gets another origin.
 *
 * @returns how many events the tree has now, and how many were removed
 */
export async function repairTree(
  { db, pool }: Pick<Database, 'db' | 'pool'>,
  eventLog: EventLog,
): Promise<{ readonly size: number; readonly removed: number }> {
  const isThere = async (number: number): Promise<boolean> => {
    const entry = await entryAt(pool, number);
    return entry !== undefined && (await isInLog(eventLog, entry));
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
  const position = kept === 0 ? BEGINNING : ((await entryAt(pool, kept - 1))?.position ?? BEGINNING);
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
    for (const origin of new Set((await liveKeys(pool)).map(({ name }) => name)))
      await retireOrigin(pool, origin, kept);
  }
  return { size: kept, removed: before - kept };
}

/**
 * Settles the origin of a restored log. A backup does not contain checkpoints that were signed after it, and one origin
 * must never stand for two logs. So the log continues under another origin, unless the newest checkpoint shows that
 * nothing was lost.
 *
 * @param events number of events in the log
 * @param newest the last signed checkpoint, if it is available
 * @returns whether the log keeps its origin; undefined if it has none yet
 */
export async function settleOrigin(
  { pool }: Pick<Database, 'pool'>,
  eventLog: EventLog,
  events: number,
  newest: Note | undefined,
): Promise<boolean | undefined> {
  const live = await liveKeys(pool);
  if (live.length === 0) return undefined;
  const shown =
    newest !== undefined &&
    signerOf(newest, live) !== undefined &&
    newest.size <= events &&
    (await largestSize(pool)) <= newest.size &&
    (await rootOf(eventLog, newest.size)).equals(newest.root);
  for (const origin of new Set(live.map(({ name }) => name))) {
    if (!shown || origin !== newest.origin) await retireOrigin(pool, origin, events);
  }
  return shown;
}

/** The root of the tree over the first events of a log. */
async function rootOf(eventLog: EventLog, size: number): Promise<Buffer> {
  const tree = new GrowingRoot();
  for await (const page of eventLog.readAll({ maxBytes: PAGE_BYTES })) {
    for (const event of page.slice(0, size - tree.size)) tree.add(leafHash(leafText(event)));
    if (tree.size === size) break;
  }
  return tree.root;
}
