/**
 * Backups: files in a folder of the data directory, each a container (`container.ts`) with the whole log and the data that
 * belongs to it. That data is read after the events, so that there is a key and a counter for each of them, with the
 * passwords and keys that were replaced meanwhile.
 */
import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BACKUP_NAME } from '../../shared/contract/admin/backup.ts';
import { AppError } from '../../shared/errors.ts';
import type { BackupFile, BackupProgress, Backups, WrittenBackup } from '../../shared/ports/admin/backup.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import { DAY, seconds } from '../../shared/time.ts';
import { pause } from '../../shared/waiting.ts';
import type { Core } from '../core.ts';
import { backupRecipients } from '../credentials/backup-key.ts';
import { createLogIndex } from '../log-index/log-index.ts';
import { writeBundle } from '../proof/bundle.ts';
import { AlteredLogError, latestNote, signTree } from '../proof/checkpoints.ts';
import { EMPTY_ROOT } from '../proof/hashing.ts';
import { openSigner, type Signer } from '../proof/keys.ts';
import { settleOrigin } from '../proof/losses.ts';
import { type Note, parseNote, signNote } from '../proof/notes.ts';
import { VERSION } from '../version.ts';
import { type Container, packContainer } from './container.ts';
import { CopyError, type CopyOptions, copyLog, policyCheckpoints } from './copy-log.ts';
import { writeLeases } from './leases.ts';
import { readRelated, readReplaced, withReplaced } from './related.ts';

type Parts = Pick<Core, 'database' | 'eventLog' | 'config'>;

/** Updated while a backup is written. */
type Progress = { -readonly [field in keyof BackupProgress]: BackupProgress[field] };

/**
 * The checkpoint of a backup: a new one if the tree has all events, otherwise the last. The backup then has events that
 * are not signed yet: a tree that is stuck or behind is no reason to have no backup.
 */
async function checkpointOf({ database, eventLog, config }: Parts): Promise<Note> {
  const { pool } = database;
  const signerNow = async () => (await openSigner(pool, config, true)) as Signer;
  const signer = await signerNow();
  try {
    await createLogIndex({ database, eventLog, timeoutMs: config.visibleTimeoutMs }).settled();
    await signTree(pool, config, signer);
  } catch (error) {
    if (!(error instanceof AppError || error instanceof AlteredLogError)) throw error;
  }
  const { origin, privateKey } = await signerNow();
  const none = { origin, size: 0, root: EMPTY_ROOT };
  return (await latestNote(pool, origin)) ?? parseNote(signNote(none, privateKey));
}

/** @param folder for the bundle; it is removed by the caller */
async function writeContainer(parts: Parts, at: number, folder: string, file: FileHandle, progress: Progress) {
  const { database, eventLog, config } = parts;
  // Read first: a policy that has advanced since repeats some of its work, and misses nothing.
  const policies = (await policyCheckpoints(database.db)).map((one) => ({ ...one, after: 0 }));
  // The events up to the head refer to these rows, although later events may replace them before they are read again.
  const replaced = await readReplaced(database.db);
  const note = await checkpointOf(parts);
  const head = await eventLog.head();
  progress.head = head;
  const { events, sha256 } = await writeBundle(database, eventLog, note, folder, {
    until: head,
    onEvent(count, position) {
      progress.position = position;
      for (const policy of policies) if (position <= policy.position) policy.after = count;
    },
  });
  const rows = withReplaced(await readRelated(database.db), replaced);
  const processed = policies.map(({ after, ...policy }) => ({ ...policy, position: after }));
  const belongings = { version: VERSION, created_at: seconds(at), events, sha256, rows, policies: processed };
  const recipients = await backupRecipients(database.pool, config);
  await packContainer(folder, belongings, recipients, file);
  return { events, sha256, recipients };
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

  /** Removes what processes that were killed have left here. */
  async function removeLeftovers(): Promise<void> {
    for (const name of await readdir(folder)) {
      if (!/\.(partial|bundle)$/.test(name)) continue;
      const left = await unlessGone(stat(join(folder, name)));
      if (left && left.mtimeMs < Date.now() - DAY * 1_000)
        await rm(join(folder, name), { recursive: true, force: true });
    }
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
    await removeLeftovers();
    const { at, path, partial, file } = await openNew();
    const bundle = `${path}.bundle`;
    progress = { startedAt: seconds(at), position: BEGINNING, head: undefined };
    let written: Pick<WrittenBackup, 'events' | 'sha256' | 'recipients'>;
    try {
      await writeLeases(core);
      written = await writeContainer(core, at, bundle, file, progress);
      await rename(partial, path);
    } catch (error) {
      await file.close();
      await rm(partial, { force: true });
      throw error;
    } finally {
      progress = undefined;
      await rm(bundle, { recursive: true, force: true });
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

export interface RestoreReport {
  readonly events: number;
  readonly rows: Readonly<Record<string, number>> | undefined;
  /** Whether checkpoints continue under the same origin; undefined: none were signed. */
  readonly keepsOrigin: boolean | undefined;
}

/**
 * Copies a backup into empty stores. Read models are built at the first start.
 *
 * @param container opened, and so verified, before stores are opened or created
 * @param options.newest the last signed checkpoint: see `settleOrigin`
 * @throws CopyError when the stores are not empty
 */
export async function restoreBackup(
  { source, events }: Pick<Container, 'source' | 'events'>,
  { database, eventLog }: Pick<Core, 'database' | 'eventLog'>,
  options: CopyOptions & { readonly newest?: Note | undefined } = {},
): Promise<RestoreReport> {
  if ((await eventLog.head()) !== BEGINNING)
    throw new CopyError('The log holds events already. Restore into empty stores.');
  const { rows } = await copyLog(source, { name: 'the configured stores', log: eventLog, database }, options);
  const keepsOrigin = await settleOrigin(database, eventLog, events, options.newest);
  return { events, rows, keepsOrigin };
}
