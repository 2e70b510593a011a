/**
 * Signed checkpoints, in `credentials.log_checkpoints`. For a log with one origin, no size is ever signed twice, and
 * every larger checkpoint continues the smaller ones.
 */
import type { Database } from '../database/database.ts';
import { type KeySettings, openSigner, retireOrigin, type Signer } from './keys.ts';
import { type Note, parseNote, signNote } from './notes.ts';
import { rootAt, treeSize } from './tree.ts';

type Pool = Pick<Database['pool'], 'query'>;

const PAGE = 500;

/** The first note with these conditions, in this order. */
async function findNote(pool: Pool, text: string, values: readonly unknown[] = []): Promise<Note | undefined> {
  const { rows } = await pool.query(`SELECT note FROM credentials.log_checkpoints ${text} LIMIT 1`, [...values]);
  const [row] = rows as { note: string }[];
  return row && parseNote(row.note);
}

/** The newest note of the log with this origin. */
export const latestNote = (pool: Pool, origin: string): Promise<Note | undefined> =>
  findNote(pool, 'WHERE origin = $1 ORDER BY size DESC', [origin]);

/** The note that was signed last, under any origin. */
export const newestNote = (pool: Pool): Promise<Note | undefined> =>
  findNote(pool, 'ORDER BY signed_at DESC, size DESC');

/** The note of a size; if several origins have one, that of the newest. */
export const noteOfSize = (pool: Pool, size: number): Promise<Note | undefined> =>
  findNote(pool, 'WHERE size = $1 ORDER BY signed_at DESC', [size]);

/** The largest note of the stored tree with at most `size` events and more than `after`. @throws AlteredLogError */
export async function noteUpTo(pool: Pool, size: number, after: number): Promise<Note | undefined> {
  let found: Note | undefined;
  for (let from = size + 1; ; from = found.size) {
    // Of an origin that was retired, the newest notes may be of events that were lost.
    found = await findNote(pool, 'WHERE size < $1 AND size > $2 ORDER BY size DESC, signed_at DESC', [from, after]);
    if (!found) return undefined;
    if ((await rootAt(pool, found.size)).equals(found.root)) return found;
    if (found.origin === (await newestNote(pool))?.origin)
      throw new AlteredLogError(
        `the tree over the log is not the one of the checkpoint with size ${found.size}. Run: signalbox verify`,
      );
  }
}

/** The nearest smaller and larger sizes of one that was not signed. */
export async function sizesAround(pool: Pool, size: number): Promise<readonly number[]> {
  const { rows } = await pool.query(
    `SELECT max(size) FILTER (WHERE size < $1) AS before, min(size) FILTER (WHERE size > $1) AS after
     FROM credentials.log_checkpoints`,
    [size],
  );
  const { before, after } = rows[0] as { before: number | null; after: number | null };
  return [before, after].filter((one) => one !== null);
}

/** The largest number of events for which a checkpoint was signed, 0 if there is none. */
export async function largestSize(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SELECT coalesce(max(size), 0) AS size FROM credentials.log_checkpoints');
  return (rows[0] as { size: number }).size;
}

/** All notes, by size. */
export async function* allNotes(pool: Pool): AsyncGenerator<Note> {
  for (let [size, origin] = [-1, '']; ; ) {
    const { rows } = await pool.query(
      `SELECT origin, size, note FROM credentials.log_checkpoints WHERE (size, origin) > ($1, $2)
       ORDER BY size, origin LIMIT ${PAGE}`,
      [size, origin],
    );
    const page = rows as { origin: string; size: number; note: string }[];
    for (const { note } of page) yield parseNote(note);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    ({ size, origin } = last);
  }
}

/** The log differs from the one for which a checkpoint was signed. */
export class AlteredLogError extends Error {}

/**
 * Signs the stored tree, unless that is done. If checkpoints of more events were signed, these events were lost, and
 * the log first gets another origin. So the tree must have reached the end of the log before.
 *
 * @returns the size of the signed tree
 * @throws AlteredLogError when the tree does not continue the last signed one
 */
export async function signTree(pool: Pool, settings: KeySettings, signer: Signer): Promise<number> {
  const { origin, privateKey } = signer;
  const last = await latestNote(pool, origin);
  const size = await treeSize(pool);
  if (size === 0 || last?.size === size) return size;
  if (last && last.size > size) {
    await retireOrigin(pool, origin, size);
    return signTree(pool, settings, (await openSigner(pool, settings, true)) as Signer);
  }
  if (last && !(await rootAt(pool, last.size)).equals(last.root)) {
    throw new AlteredLogError(
      `the tree over the log is not the one of the checkpoint with size ${last.size}, so no further one is signed. Run: signalbox verify`,
    );
  }
  const note = signNote({ origin, size, root: await rootAt(pool, size) }, privateKey);
  await pool.query(
    `INSERT INTO credentials.log_checkpoints (origin, size, note, signed_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (origin, size) DO NOTHING`,
    [origin, size, note, Date.now()],
  );
  return size;
}
