/**
 * Backup files: compressed JSON lines. First the events in log order, then the data that belongs to the log but is not
 * in it, read after the events, so that there is a key and a counter for each of them, with the passwords and keys that
 * were replaced meanwhile; last a line with the number of events and the SHA-256 of their lines. A file without that
 * line is incomplete.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { z } from 'zod';
import { BACKUP_NAME } from '../../shared/contract/admin/backup.ts';
import type { BackupFile, BackupProgress, Backups, WrittenBackup } from '../../shared/ports/admin/backup.ts';
import { BEGINNING, type EventLog, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';
import { seconds } from '../../shared/time.ts';
import { pause } from '../../shared/waiting.ts';
import type { Core } from '../core.ts';
import { forgetOlderNames } from '../database/older-names.ts';
import { settleOrigin } from '../proof/losses.ts';
import type { Note } from '../proof/notes.ts';
import { VERSION } from '../version.ts';
import { CopyError, type CopyOptions, copyLog, policyCheckpoints, storePolicies } from './copy-log.ts';
import { RELATED, type RelatedRows, readRelated, readReplaced, withReplaced, writeRelated } from './related.ts';

/** Changes when this version cannot restore files of others, or they not its own. */
const FORMAT = 2;
/** Bytes of events per read. */
const PAGE_BYTES = 1_000_000;

const json = z.record(z.string(), z.unknown());
const LINE = z.union([
  z.object({ signalbox_backup: z.int(), version: z.string(), created_at: z.int() }),
  z.object({ event: z.tuple([z.string(), z.int(), z.string(), z.string(), json, json]) }),
  z.object({ rows: z.object({ table: z.enum(RELATED), count: z.int(), json: z.string() }) }),
  z.object({ counters: z.array(z.object({ name: z.string(), value: z.int() })) }),
  z.object({
    /** `after`: how many events the policy has processed. */
    policies: z.array(z.object({ schema_name: z.string(), projection: z.string(), version: z.int(), after: z.int() })),
  }),
  z.object({ end: z.object({ events: z.int(), sha256: z.string() }) }),
]);

// --- Writing ----------------------------------------------------------------------------------------------------------

interface Written {
  events: number;
  sha256: string;
}

/** Updated while a backup is written. */
type Progress = { -readonly [field in keyof BackupProgress]: BackupProgress[field] };

async function* linesOf(core: Pick<Core, 'database' | 'eventLog'>, at: number, written: Written, progress: Progress) {
  const line = (value: z.input<typeof LINE>) => `${JSON.stringify(value)}\n`;
  yield line({ signalbox_backup: FORMAT, version: VERSION, created_at: seconds(at) });
  // Read first: a policy that has advanced since repeats some of its work, and misses nothing.
  const policies = (await policyCheckpoints(core.database.db)).map((one) => ({ ...one, after: 0 }));
  // The events up to the head refer to these rows, although later events may replace them before they are read again.
  const replaced = await readReplaced(core.database.db);
  const head = await core.eventLog.head();
  progress.head = head;
  const hash = createHash('sha256');
  reading: for await (const page of core.eventLog.readAll({ maxBytes: PAGE_BYTES })) {
    let text = '';
    for (const { stream, revision, id, type, data, meta, position } of page) {
      if (position > head) {
        if (text !== '') yield text;
        break reading;
      }
      const event = line({ event: [stream, revision, id, type, data, meta] });
      hash.update(event);
      text += event;
      written.events++;
      progress.position = position;
      for (const policy of policies) if (position <= policy.position) policy.after = written.events;
    }
    yield text;
  }
  const { counts, pages, counters } = withReplaced(await readRelated(core.database.db), replaced);
  for (const [table, texts] of pages) {
    for (const text of texts) yield line({ rows: { table, count: counts[table] ?? 0, json: text } });
  }
  yield line({ counters: [...counters] });
  yield line({
    policies: policies.map(({ schema_name, projection, version, after }) => ({
      schema_name,
      projection,
      version,
      after,
    })),
  });
  written.sha256 = hash.digest('hex');
  yield line({ end: { ...written } });
}

const nameAt = (at: number): string =>
  `mc-backup-${new Date(at).toISOString().slice(0, 19).replace('T', '_').replaceAll(':', '-')}.db`;

/** Unix seconds. */
function createdAt(name: string): number {
  const [day = '', time = ''] = name.slice('mc-backup-'.length, -'.db'.length).split('_');
  return seconds(Date.parse(`${day}T${time.replaceAll('-', ':')}Z`));
}

/** Undefined: there is no such file. */
const unlessGone = <T>(file: Promise<T>): Promise<T | undefined> =>
  file.catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  });

/** Backups in a folder of the data directory. */
export function createBackups(core: Pick<Core, 'database' | 'eventLog' | 'config'>): Backups {
  const folder = resolve(core.config.dataDir, 'backups');
  let last: Promise<unknown> = Promise.resolve();
  let progress: Progress | undefined;

  async function list(): Promise<readonly BackupFile[]> {
    const names = (await unlessGone(readdir(folder))) ?? [];
    const files: BackupFile[] = [];
    for (const name of names
      .filter((one) => BACKUP_NAME.test(one))
      .sort()
      .reverse()) {
      // Another process may have deleted it.
      const file = await unlessGone(stat(join(folder, name)));
      if (file) files.push({ name, size: file.size, createdAt: createdAt(name) });
    }
    return files;
  }

  /** Names have a resolution of one second, and other processes write to the folder as well. */
  async function openNew() {
    for (;;) {
      const at = Date.now();
      const path = join(folder, nameAt(at));
      const partial = `${path}.partial`;
      const file = await open(partial, 'wx', 0o600).catch((error: unknown) => {
        if ((error as { code?: unknown }).code === 'EEXIST') return undefined;
        throw error;
      });
      if (file && !existsSync(path)) return { at, path, partial, file };
      await file?.close();
      if (file) await rm(partial);
      await pause(200, undefined, { ref: true });
    }
  }

  async function write(keep: number): Promise<WrittenBackup> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { at, path, partial, file } = await openNew();
    const written: Written = { events: 0, sha256: '' };
    progress = { startedAt: seconds(at), position: BEGINNING, head: undefined };
    try {
      await piped(linesOf(core, at, written, progress), createGzip(), file.createWriteStream({ flush: true }));
      await rename(partial, path);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    } finally {
      progress = undefined;
    }
    const name = nameAt(at);
    const { size } = await stat(path);
    // Backups that another process began later may have been written sooner: neither they nor this one are surplus.
    const surplus = (await list()).slice(keep).filter((one) => one.name < name);
    for (const one of surplus) await rm(join(folder, one.name), { force: true });
    return { ...written, name, path, size, createdAt: seconds(at) };
  }

  return {
    list,
    progress: () => progress,
    create(keep) {
      const mine = last.then(() => write(keep));
      last = mine.catch(() => undefined);
      return mine;
    },
    async remove(name) {
      const path = join(folder, name);
      if (!BACKUP_NAME.test(name)) return false;
      return (await unlessGone(rm(path).then(() => true))) ?? false;
    },
  };
}

// --- Reading ----------------------------------------------------------------------------------------------------------

const broken = (path: string, why: string, cause?: unknown) =>
  new CopyError(`${path} is not a whole backup: ${why}. Use another file.`, { cause });

/** Lines of a file, parsed. @throws CopyError when it cannot be read to its end */
async function* parsedLines(
  path: string,
): AsyncGenerator<{ readonly text: string; readonly line: z.infer<typeof LINE> }> {
  const source = pipeline(createReadStream(path), createGunzip(), () => undefined);
  source.setEncoding('utf8');
  let rest = '';
  try {
    for await (const chunk of source) {
      const texts = (rest + chunk).split('\n');
      rest = texts.pop() ?? '';
      for (const text of texts) yield { text: `${text}\n`, line: LINE.parse(JSON.parse(text)) };
    }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') throw new CopyError(`There is no file ${path}.`);
    const reason = error instanceof Error ? error.message : String(error);
    throw broken(path, error instanceof z.ZodError ? 'it has a line of another format' : reason, error);
  }
  if (rest !== '') throw broken(path, 'its last line breaks off');
}

/** The contents of a file, without its events. */
export interface Contents extends RelatedRows {
  readonly path: string;
  readonly events: number;
  readonly sha256: string;
  readonly policies: readonly {
    readonly schema_name: string;
    readonly projection: string;
    readonly version: number;
    readonly after: number;
  }[];
}

/** Reads and checks a whole file, and returns everything but its events. @throws CopyError */
export async function readBackup(path: string): Promise<Contents> {
  const hash = createHash('sha256');
  const pages = new Map<string, string[]>(RELATED.map((table) => [table, []]));
  const counts: Record<string, number> = Object.fromEntries(RELATED.map((table) => [table, 0]));
  let counters: Contents['counters'] = [];
  let policies: Contents['policies'] = [];
  let events = 0;
  let nth = 0;
  let end: Written | undefined;
  for await (const { text, line } of parsedLines(path)) {
    if (nth++ === 0 && !('signalbox_backup' in line)) throw broken(path, 'it does not begin like one');
    if ('signalbox_backup' in line && line.signalbox_backup !== FORMAT) {
      const { signalbox_backup: format, version } = line;
      throw new CopyError(
        `${path} is a backup of format ${format}, and this version restores format ${FORMAT}. Restore it with the version that wrote it, ${version}.`,
      );
    }
    if (end) throw broken(path, 'it goes on behind its end');
    if ('event' in line) {
      hash.update(text);
      events++;
    } else if ('rows' in line) {
      pages.get(line.rows.table)?.push(line.rows.json);
      counts[line.rows.table] = line.rows.count;
    } else if ('counters' in line) ({ counters } = line);
    else if ('policies' in line) ({ policies } = line);
    else if ('end' in line) ({ end } = line);
  }
  const sha256 = hash.digest('hex');
  if (!end) throw broken(path, 'its end is missing');
  if (end.events !== events || end.sha256 !== sha256) throw broken(path, 'its events are not those that were written');
  return { path, events, sha256, pages, counts, counters, policies };
}

/** The events of a file as a log that can only be read from its beginning; positions count from 1. */
function fileLog(path: string, events: number): EventLog {
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
    async *readAll({ from = BEGINNING } = {}) {
      let position = 0;
      let page: LoggedEvent[] = [];
      let bytes = 0;
      for await (const { text, line } of parsedLines(path)) {
        if (!('event' in line)) continue;
        position++;
        if (position <= from) continue;
        const [stream, revision, id, type, data, meta] = line.event;
        page.push({ stream, revision, id, type, data, meta, position });
        bytes += text.length;
        if (bytes < PAGE_BYTES) continue;
        yield page;
        page = [];
        bytes = 0;
      }
      if (page.length > 0) yield page;
    },
  };
}

export interface RestoreReport {
  readonly events: number;
  /** Hash of the lines of the events in the file. */
  readonly sha256: string;
  readonly rows: Readonly<Record<string, number>>;
  /** Whether checkpoints continue under the same origin; undefined: none were signed. */
  readonly keepsOrigin: boolean | undefined;
}

/** Tables that are empty before the first start. */
const EMPTY = ['credentials.person_keys', 'credentials.passwords', 'credentials.keys'];

/**
 * Writes a backup into empty stores. Read models are built at the first start.
 *
 * @param contents result of `readBackup`, so that a file is checked before stores are opened or created
 * @param options.newest the last signed checkpoint: see `settleOrigin`
 * @throws CopyError when the stores are not empty
 */
export async function restoreBackup(
  contents: Contents,
  { database, eventLog }: Pick<Core, 'database' | 'eventLog'>,
  options: CopyOptions & { readonly newest?: Note | undefined } = {},
): Promise<RestoreReport> {
  if ((await eventLog.head()) !== BEGINNING)
    throw new CopyError('The log holds events already. Restore into empty stores.');
  for (const table of EMPTY) {
    const { rows } = await database.pool.query(`SELECT 1 FROM ${table} LIMIT 1`);
    if (rows.length > 0) throw new CopyError(`The database has rows in ${table} already. Restore into empty stores.`);
  }
  // Before the events, so that no event ever exists without its key.
  const rows = await writeRelated(database.db, contents);
  const source = { name: contents.path, log: fileLog(contents.path, contents.events), database: undefined };
  await copyLog(source, { name: 'the log', log: eventLog, database: undefined }, options);
  await forgetOlderNames(database);
  const positions = await positionsOf(eventLog, contents.policies);
  await storePolicies(
    database.db,
    contents.policies.map((one) => ({ ...one, position: one.after })),
    positions,
  );
  const keepsOrigin = await settleOrigin(database, eventLog, contents.events, options.newest);
  return { events: contents.events, sha256: contents.sha256, rows, keepsOrigin };
}

/** The position in the log after `after` events, for each policy. */
async function positionsOf(log: EventLog, policies: Contents['policies']): Promise<Map<string, Position>> {
  const positions = new Map<string, Position>(policies.map(({ schema_name }) => [schema_name, BEGINNING]));
  let count = 0;
  for await (const page of log.readAll({ maxBytes: PAGE_BYTES })) {
    for (const { position } of page) {
      count++;
      for (const { schema_name, after } of policies) if (after === count) positions.set(schema_name, position);
    }
  }
  return positions;
}
