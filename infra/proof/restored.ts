/**
 * The origin of a restored log. A backup does not contain checkpoints that were signed after it, and one origin must
 * never stand for two logs. So the log continues under another origin, unless the newest checkpoint shows that nothing
 * was lost.
 */
import type { EventLog } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { largestSize } from './checkpoints.ts';
import { GrowingRoot, leafHash, leafText } from './hashing.ts';
import { knownKeys, retireOrigin } from './keys.ts';
import { type Note, signerOf } from './notes.ts';

const PAGE_BYTES = 1_000_000;

/**
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
  const keys = await knownKeys(pool);
  const live = keys.filter(({ kept }) => kept === null);
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
