/** Verifies the configured log: every event against its leaf, the tree against every checkpoint. */
import type { EventLog, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { leafHash, leafText } from '../event-log/leaf.ts';
import { allNotes, largestSize } from './checkpoints.ts';
import { hashesIn } from './hashing.ts';
import { type KeySettings, knownKeys, openSigner } from './keys.ts';
import type { Note } from './notes.ts';
import { leavesOf, treeSize } from './tree.ts';
import { type Pair, type Verified, verifyTree } from './verification.ts';

/** Bytes of events per read. */
const PAGE_BYTES = 2_000_000;
/** Most ids that are named. */
const MAX_TWINS = 10;

export interface VerifiedLog extends Verified {
  readonly origin: string | undefined;
}

/** Writes nothing, so it may run while the service runs. */
export async function verifyLog(
  { pool }: Pick<Database, 'pool'>,
  eventLog: EventLog,
  settings: KeySettings,
  onProgress?: (events: number, total: number) => void,
): Promise<VerifiedLog> {
  const keys = await knownKeys(pool);
  const origin = (await openSigner(pool, settings, false))?.origin;
  // In this order: events added in the meantime are left to the next run.
  const signed = await largestSize(pool);
  const leaves = await treeSize(pool);
  const head = await eventLog.head();
  const verified = await verifyTree({
    pairs: pairsOf(hashesIn(leavesOf(pool, leaves)), eventsUpTo(eventLog, head)),
    notes: notesUpTo(pool, signed),
    keys,
    origin,
    keptOf: (name) => keys.find((key) => key.name === name)?.kept ?? undefined,
    ...(onProgress && { onProgress: (events: number) => onProgress(events, Math.max(leaves, events)) }),
  });
  return { ...verified, remarks: [...verified.remarks, ...(await twins(pool))], origin };
}

async function* notesUpTo(pool: Database['pool'], size: number): AsyncGenerator<Note> {
  for await (const note of allNotes(pool)) {
    if (note.size > size) return;
    yield note;
  }
}

async function* eventsUpTo(eventLog: EventLog, head: Position): AsyncGenerator<readonly LoggedEvent[]> {
  for await (const page of eventLog.readAll({ maxBytes: PAGE_BYTES })) {
    const events = page.filter(({ position }) => position <= head);
    yield events;
    if (events.length < page.length) return;
  }
}

/** Each event with its leaf, until both end. */
async function* pairsOf(
  leaves: AsyncGenerator<Buffer, undefined>,
  pages: AsyncGenerator<readonly LoggedEvent[]>,
): AsyncGenerator<readonly Pair[]> {
  for await (const events of pages) {
    const page: Pair[] = [];
    for (const event of events) page.push({ hash: leafHash(leafText(event)), leaf: (await leaves.next()).value });
    yield page;
  }
  for await (const leaf of leaves) yield [{ hash: undefined, leaf }];
}

/** An event store server accepts the same id in two streams. */
async function twins(pool: Database['pool']): Promise<readonly string[]> {
  const { rows } = await pool.query(
    `SELECT id, array_agg(number ORDER BY number) AS numbers FROM log.entries GROUP BY id HAVING count(*) > 1
     LIMIT ${MAX_TWINS}`,
  );
  return (rows as { id: string; numbers: number[] }[]).map(
    ({ id, numbers }) => `Events ${numbers.join(' and ')} have the same id, ${id}: a program has used it twice.`,
  );
}
