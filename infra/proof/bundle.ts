/**
 * Signed bundles: a folder with the events up to a checkpoint, the tree's leaves, the checkpoints and the key. It can be
 * verified without the service and its stores. Signed exports are such folders; backups contain one, which may also have
 * events that no checkpoint covers yet. An archived part of a log is one that does not begin with the first event: the
 * file `before` has the hashes of the trees over the events before it.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { EventLog, LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { EVENTS_FILE, leafHash, leafText } from '../event-log/leaf.ts';
import { allNotes } from './checkpoints.ts';
import { type Beginning, HASH_BYTES, hashesIn, NOTHING, treesIn } from './hashing.ts';
import { knownKeys } from './keys.ts';
import {
  type Note,
  NoteError,
  notesOf,
  parseNote,
  parseVerifierKey,
  signerOf,
  type VerifierKey,
  verifierKeyText,
} from './notes.ts';
import { beginningOf, leavesOf } from './tree.ts';
import { type Pair, type Verified, verifyTree } from './verification.ts';

export const FILES = {
  events: EVENTS_FILE,
  leaves: 'leaves',
  checkpoint: 'checkpoint',
  checkpoints: 'checkpoints',
  key: 'key.pub',
} as const;

/** Only in a bundle of a later part of a log: the number of its first event, and the hashes of the trees before it. */
const BEFORE = 'before';

/** Bytes of events per read. */
const PAGE_BYTES = 1_000_000;
/** Maximum number of bytes in a line; no event is as large. */
const MAX_LINE = 16_000_000;
const PAGE = 1_000;

// --- Writing ----------------------------------------------------------------------------------------------------------

interface Written {
  readonly events: number;
  /** Over the file of events. */
  readonly sha256: string;
  /** Number of the first event that does not match its leaf. */
  readonly different: number | undefined;
}

interface WriteOptions {
  /** The number of the first event that is written; by default, 0. Later ones need a log whose positions have no gaps. */
  readonly first?: number;
  /** Events beyond the checkpoint are written up to this position; by default, none. */
  readonly until?: Position;
  /** Called after each event. */
  readonly onEvent?: (events: number, position: Position) => void;
}

/**
 * Writes a folder, which appears when it is complete.
 *
 * @param note the checkpoint up to which events are written
 * @throws Error when the folder exists and is not empty
 */
export async function writeBundle(
  { pool }: Pick<Database, 'pool'>,
  eventLog: EventLog,
  note: Note,
  folder: string,
  options: WriteOptions = {},
): Promise<Written> {
  const there = await readdir(folder).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return [];
    throw error;
  });
  if (there.length > 0) throw new Error(`${folder} is not empty. Choose another folder for --output.`);
  const { first = 0 } = options;
  const partial = `${folder.replace(/\/+$/, '')}.partial`;
  await rm(partial, { recursive: true, force: true });
  // Not a folder or a link that another user has just put there.
  await mkdir(dirname(partial), { recursive: true, mode: 0o700 });
  await mkdir(partial, { mode: 0o700 });
  const write = (name: string, contents: AsyncIterable<string | Buffer>) =>
    pipeline(Readable.from(contents), createWriteStream(join(partial, name), { mode: 0o600, flush: true }));
  try {
    const keys = await knownKeys(pool);
    const own = signerOf(note, keys);
    if (!own) throw new Error('the checkpoint is not signed by a known key. Run: signalbox verify');
    const others = keys.filter((key) => key !== own);
    await write(FILES.key, Readable.from([[own, ...others].map(verifierKeyText).join('\n')]));
    await write(FILES.checkpoint, Readable.from([note.text]));
    await write(FILES.checkpoints, textsOf(allNotes(pool), note, first));
    if (first > 0) await write(BEFORE, Readable.from([beforeText(await beginningOf(pool, first))]));
    const written = { events: 0, sha256: '', different: undefined as number | undefined };
    await write(FILES.leaves, leavesOf(pool, note.size, first));
    const stored = chunksOf(partial, FILES.leaves, HASH_BYTES * PAGE);
    await write(FILES.events, linesOf(eventLog, note.size - first, hashesIn(stored), written, options));
    await syncFolder(partial);
    await rename(partial, folder);
    await syncFolder(dirname(partial));
    return written;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** After this, a crash cannot lose the names in a folder. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Without checkpoints that were signed later, or before the first event. */
async function* textsOf(notes: AsyncIterable<Note>, { origin, size }: Note, first: number): AsyncGenerator<string> {
  for await (const note of notes)
    if (note.size >= first && (note.origin !== origin || note.size <= size)) yield note.text;
}

const beforeText = ({ size, trees }: Beginning): string =>
  [size, ...trees.map((hash) => hash.toString('base64'))].map((line) => `${line}\n`).join('');

async function* linesOf(
  eventLog: EventLog,
  size: number,
  leaves: AsyncGenerator<Buffer>,
  written: { -readonly [field in keyof Written]: Written[field] },
  { first = 0, until = 0, onEvent }: WriteOptions,
): AsyncGenerator<string> {
  const hash = createHash('sha256');
  const isWanted = (position: Position) => written.events < size || position <= until;
  reading: for await (const page of eventLog.readAll({ from: first, maxBytes: PAGE_BYTES })) {
    let text = '';
    for (const event of page) {
      if (!isWanted(event.position)) {
        hash.update(text);
        yield text;
        break reading;
      }
      const line = leafText(event);
      if (written.events < size && !leafHash(line).equals((await leaves.next()).value as Buffer))
        written.different ??= written.events;
      text += `${line}\n`;
      onEvent?.(++written.events, event.position);
    }
    hash.update(text);
    yield text;
  }
  if (written.events < size) written.different ??= written.events;
  if (written.different !== undefined) written.different += first;
  written.sha256 = hash.digest('hex');
  await leaves.return(undefined);
}

/** A file's bytes. An error is reported when they are read; until then, it must not end the process. */
const chunksOf = (folder: string, name: string, highWaterMark = 1 << 17): AsyncIterable<Buffer> =>
  createReadStream(join(folder, name), { highWaterMark }).on('error', () => undefined);

// --- Reading ----------------------------------------------------------------------------------------------------------

/** Lines as they are, without their line feeds; a last line without a line feed is undefined. */
async function* rawLinesIn(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const part = chunk.subarray(from, end);
      yield parts.length === 0 ? part : Buffer.concat([...parts, part]);
      parts = [];
      length = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > MAX_LINE) return yield undefined;
  }
  if (parts.length > 0) yield undefined;
}

/** The lines of events paired with the leaves, until both end; leaves beyond the checkpoint's size are only counted. */
async function* pairsIn(
  folder: string,
  size: number,
  counted: { lines: number; leaves: number },
): AsyncGenerator<readonly Pair[]> {
  const lines = rawLinesIn(chunksOf(folder, FILES.events));
  const leaves = hashesIn(chunksOf(folder, FILES.leaves));
  for (let page: Pair[] = []; ; ) {
    const [line, leaf] = [await lines.next(), await leaves.next()];
    if (line.done && leaf.done) {
      yield page;
      return;
    }
    if (!line.done) counted.lines++;
    if (!leaf.done) counted.leaves++;
    if (line.done && counted.leaves > size) continue;
    page.push({
      // A truncated line counts as different.
      hash: line.done ? undefined : line.value ? leafHash(line.value) : Buffer.alloc(HASH_BYTES),
      leaf: leaf.done ? undefined : leaf.value,
    });
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
}

/** The checkpoints of a bundle, with its own one inserted in the order of sizes. */
async function* notesIn(folder: string, own: Note, broken: string[]): AsyncGenerator<Note> {
  let isShown = false;
  try {
    for await (const note of notesOf(rawLinesIn(chunksOf(folder, FILES.checkpoints)))) {
      if (!isShown && note.size >= own.size) {
        isShown = true;
        if (note.text !== own.text) yield own;
      }
      yield note;
    }
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    broken.push(`The file ${FILES.checkpoints} was altered: ${error.message}.`);
  }
  if (!isShown) yield own;
}

/** The events of a bundle, by page; positions count from 1. */
export async function* eventsOfBundle(folder: string): AsyncGenerator<readonly LoggedEvent[]> {
  let position = 0;
  let page: LoggedEvent[] = [];
  for await (const line of rawLinesIn(chunksOf(folder, FILES.events))) {
    page.push({ ...(JSON.parse(String(line)) as Omit<LoggedEvent, 'position'>), position: ++position });
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

export interface VerifiedBundle extends Verified {
  readonly origin: string;
  /** The number of its first event. */
  readonly first: number;
  /** How many events the checkpoint covers. */
  readonly signed: number;
  /** The key in the bundle. */
  readonly ownKey: string;
}

interface VerifyOptions {
  /** Whether events may follow those of the checkpoint, as in a backup. */
  readonly mayContinue?: boolean;
  readonly onProgress?: ((events: number) => void) | undefined;
}

/**
 * Verifies a bundle.
 *
 * @param trusted the content of a file with a verifier key; undefined: the key of the bundle is trusted
 * @throws Error when a file is missing or cannot be read, or when `trusted` is not a key
 */
export async function verifyBundle(
  folder: string,
  trusted: string | undefined,
  options: VerifyOptions = {},
): Promise<VerifiedBundle> {
  try {
    return await verifyFiles(folder, trusted, options);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || path === undefined) throw error;
    throw new Error(
      `${folder} has no file ${basename(path)}. Pass a complete folder that export-events --signed has written.`,
      { cause: error },
    );
  }
}

async function verifyFiles(
  folder: string,
  trusted: string | undefined,
  { mayContinue = false, onProgress }: VerifyOptions,
): Promise<VerifiedBundle> {
  const textOf = (name: string) => readFile(join(folder, name), 'utf8');
  const [keyText, noteText] = [await textOf(FILES.key), await textOf(FILES.checkpoint)];
  const broken: string[] = [];
  const own = keysIn(keyText, (why) => broken.push(`The file ${FILES.key} was altered: ${why}.`));
  if (keyText.trim() === '') broken.push(`The file ${FILES.key} was altered: it is empty.`);
  const given = trusted === undefined ? undefined : keysIn(trusted, (why) => refuseKey(why));
  if (given?.length === 0) refuseKey('it is empty');
  const note = noteIn(noteText, broken);
  const before = await beginningIn(folder, broken);
  const first = before.size;
  if (!note) {
    return {
      size: 0,
      root: Buffer.alloc(0),
      checkpoints: 0,
      findings: broken,
      remarks: [],
      signed: 0,
      first,
      origin: '',
      ownKey: keyText,
    };
  }
  if (given && !signerOf(note, given)) {
    broken.push(
      `The checkpoint is not signed by the given key: its signature is wrong, or the key is another one (${note.origin}).`,
    );
  }
  const counted = { lines: 0, leaves: 0 };
  const verified = await verifyTree({
    before,
    pairs: pairsIn(folder, note.size - first, counted),
    notes: notesIn(folder, note, broken),
    // Earlier checkpoints may have been signed with earlier keys. The checkpoint signed with the given key covers them.
    keys: [...(given ?? []), ...own],
    origin: note.origin,
    ...(onProgress && { onProgress }),
  });
  const { size } = note;
  const events = size - first;
  if (counted.lines > events && !mayContinue)
    broken.push(`Event ${size} was put in after the end: the checkpoint has ${size} events.`);
  if (counted.leaves > events)
    broken.push(`The file ${FILES.leaves} has more leaves than the ${events} of the checkpoint.`);
  if (counted.leaves < events)
    broken.push(`The leaf of event ${first + counted.leaves} is missing in the file ${FILES.leaves}.`);
  const findings = [...broken, ...verified.findings];
  return { ...verified, findings, signed: size, first, origin: note.origin, ownKey: keyText.trim() };
}

const refuseKey = (why: string): never => {
  throw new Error(`The file given with --key holds no verifier key: ${why}.`);
};

function keysIn(text: string, broken: (why: string) => void): VerifierKey[] {
  const keys: VerifierKey[] = [];
  for (const line of text.split(/\r?\n/).filter((one) => one.trim() !== '')) {
    try {
      keys.push(parseVerifierKey(line.trim()));
    } catch (error) {
      broken((error as Error).message);
    }
  }
  return keys;
}

function noteIn(text: string, broken: string[]): Note | undefined {
  try {
    return parseNote(text);
  } catch (error) {
    broken.push(`The file ${FILES.checkpoint} was altered: ${(error as Error).message}.`);
    return undefined;
  }
}

/** What the tree has before the first event of a bundle. */
async function beginningIn(folder: string, broken: string[]): Promise<Beginning> {
  const text = await readFile(join(folder, BEFORE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return NOTHING;
  const [size = '', ...lines] = text.split('\n').slice(0, -1);
  const trees = lines.map((line) => Buffer.from(line, 'base64'));
  const before = { size: Number(size), trees };
  if (Number.isSafeInteger(before.size) && trees.length === treesIn(before.size) && beforeText(before) === text)
    if (trees.every(({ length }) => length === HASH_BYTES)) return before;
  broken.push(`The file ${BEFORE} was altered: it is not a number and the hashes of the trees before that event.`);
  return NOTHING;
}
