/**
 * The container of a log outside its stores: a signed bundle (`infra/proof/bundle.ts`) and the data that belongs to its
 * events, as tar, gzip and age. Other programs open it as well: `age -d -i KEY FILE | tar xz`.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { createGunzip, createGzip } from 'node:zlib';
import { z } from 'zod';
import { unixSeconds } from '../../shared/contract/common.ts';
import { BEGINNING, type EventLog } from '../../shared/ports/event-log.ts';
import { eventsOfBundle, FILES, type VerifiedBundle, verifyBundle } from '../proof/bundle.ts';
import { CopyError, type CopySide } from './copy-log.ts';
import { RELATED, type RelatedRows } from './related.ts';

/** Changes when this version cannot restore files of others, or they not its own. */
const FORMAT = 3;
/** Name of the file with the data that belongs to the events. */
const CREDENTIALS = 'credentials.json';
const NAMES: readonly string[] = Object.values(FILES);
/** The first bytes of every file that age writes. */
const HEADER = 'age-encryption.org/v1\n';

const belongingsSchema = z.object({
  /** Of the program. */
  version: z.string(),
  created_at: unixSeconds,
  events: z.int(),
  sha256: z.string().describe('over the file of events'),
  rows: z
    .object({
      counts: z.record(z.string(), z.int()),
      pages: z.array(z.tuple([z.enum(RELATED), z.array(z.string())])).transform((pages) => new Map(pages)),
      counters: z.array(z.object({ name: z.string(), value: z.int() })),
    })
    .transform((rows): RelatedRows => rows),
  policies: z
    .array(z.object({ schema_name: z.string(), projection: z.string(), version: z.int(), position: z.int() }))
    .describe('with the number of events that each has processed as its position'),
});
/** What a backup has besides the bundle. */
export type Belongings = z.infer<typeof belongingsSchema>;

const formatSchema = z.object({ signalbox_backup: z.int(), version: z.string() });

const textOf = ({ rows, ...belongings }: Belongings): string =>
  JSON.stringify({ signalbox_backup: FORMAT, ...belongings, rows: { ...rows, pages: [...rows.pages] } });

// --- Writing ----------------------------------------------------------------------------------------------------------

/** @param recipients public keys, each of which can open the file */
export async function packContainer(
  folder: string,
  belongings: Belongings,
  recipients: readonly string[],
  file: FileHandle,
): Promise<void> {
  const [{ Encrypter }, { packTar }] = await Promise.all([import('age-encryption'), import('modern-tar/fs')]);
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  const zip = createGzip();
  const packing = pipeline(
    packTar([
      ...NAMES.map((name) => ({ type: 'file' as const, source: join(folder, name), target: name, mode: 0o600 })),
      { type: 'content', content: textOf(belongings), target: CREDENTIALS, mode: 0o600 },
    ]),
    zip,
  );
  const encrypted = await encrypter.encrypt(Readable.toWeb(zip) as globalThis.ReadableStream<Uint8Array>);
  const writing = pipeline(Readable.fromWeb(encrypted as ReadableStream), file.createWriteStream({ flush: true }));
  // A failure of one ends both. Neither may be left running: the folder is removed.
  const ended = await Promise.allSettled([writing, packing]);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}

// --- Reading ----------------------------------------------------------------------------------------------------------

const broken = (path: string, why: string, cause?: unknown) =>
  new CopyError(`${path} is not a complete backup: ${why}. Use another file.`, { cause });

async function requireHeader(path: string): Promise<void> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new CopyError(`There is no file ${path}.`) : error;
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER.length), 0, HEADER.length, 0);
    if (buffer.toString('utf8', 0, bytesRead) !== HEADER) throw broken(path, 'the header is missing');
  } finally {
    await file.close();
  }
}

/** Writes the files of the bundle to a folder. @returns the text of the belongings, which are secret */
async function unpack(path: string, identities: readonly string[], folder: string): Promise<string> {
  const [{ Decrypter }, { createTarDecoder }] = await Promise.all([import('age-encryption'), import('modern-tar')]);
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  const source = createReadStream(path);
  const decrypted = await decrypter.decrypt(Readable.toWeb(source) as globalThis.ReadableStream<Uint8Array>);
  const unzip = createGunzip();
  const reading = pipeline(Readable.fromWeb(decrypted as ReadableStream), unzip);
  let text = '';
  const writing = (async () => {
    const entries = (Readable.toWeb(unzip) as globalThis.ReadableStream<Uint8Array>).pipeThrough(
      createTarDecoder({ strict: true }),
    );
    for await (const { header, body } of entries as ReadableStream as unknown as AsyncIterable<Entry>) {
      const bytes = Readable.fromWeb(body);
      if (header.name === CREDENTIALS) for await (const part of bytes.setEncoding('utf8')) text += part;
      else if (NAMES.includes(header.name)) await pipeline(bytes, createWriteStream(join(folder, header.name)));
      else throw new Error(`it has an unknown file ${header.name}`);
    }
  })();
  const ended = await Promise.allSettled([reading, writing]);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return text;
}

interface Entry {
  readonly header: { readonly name: string };
  readonly body: ReadableStream;
}

function belongingsIn(path: string, text: string): Belongings {
  const value: unknown = JSON.parse(text);
  const { signalbox_backup: format, version } = formatSchema.parse(value);
  if (format === FORMAT) return belongingsSchema.parse(value);
  throw new CopyError(
    `${path} is a backup of format ${format}, and this version restores format ${FORMAT}. Restore it with the version that wrote it, ${version}.`,
  );
}

/** An open backup: a bundle in a temporary folder, which `close` removes. */
export interface Container extends Belongings {
  readonly path: string;
  readonly verified: VerifiedBundle;
  readonly source: CopySide;
  close(): Promise<void>;
}

/**
 * Opens and verifies a backup: it is complete and unaltered, and its checkpoint is signed and covers its events.
 *
 * @param identities secret keys, one of which must open it
 * @param trusted content of a file with the verifier key of the log; undefined: the key in the backup is trusted
 * @throws CopyError
 */
export async function openContainer(
  path: string,
  identities: readonly string[],
  trusted?: string,
  onProgress?: (events: number) => void,
): Promise<Container> {
  await requireHeader(path);
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-backup-'));
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const text = await unpack(path, identities, folder);
    const belongings = belongingsIn(path, text);
    const verified = await verifyBundle(folder, trusted, { mayContinue: true, onProgress });
    if (verified.size !== belongings.events)
      throw new Error(`it has ${verified.size} events, and ${belongings.events} were written`);
    const log = logOf(folder, belongings.events);
    const related = { rows: async () => belongings.rows, policies: async () => belongings.policies };
    return { ...belongings, path, verified, source: { name: path, log, database: undefined, related }, close };
  } catch (error) {
    await close();
    if (error instanceof CopyError) throw error;
    const { message } = error as Error;
    if (message.startsWith('no identity matched'))
      throw new CopyError(
        `None of the given keys opens ${path}. Pass the key file of the deployment that wrote it as --identity FILE.`,
      );
    if (message.startsWith('The file given with --key')) throw error;
    if (/invalid tag|final chunk is empty|stream ended|too small/.test(message))
      throw broken(path, 'it was altered, is cut off, or has data after its end', error);
    throw broken(path, error instanceof z.ZodError ? 'its credentials have another format' : message, error);
  }
}

/** The events of a bundle as a log that can only be read from its beginning. */
function logOf(folder: string, events: number): EventLog {
  const cannot = () => Promise.reject(new Error('a backup can only be read from its beginning'));
  const none = (): never => {
    throw new Error('a backup can only be read from its beginning');
  };
  return {
    stride: 1,
    append: cannot,
    readStream: none,
    follow: none,
    head: () => Promise.resolve(events),
    close: () => Promise.resolve(),
    readAll: ({ from = BEGINNING } = {}) => (from === BEGINNING ? eventsOfBundle(folder) : none()),
  };
}
