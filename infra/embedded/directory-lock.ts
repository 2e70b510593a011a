/**
 * The lock on a data directory: at most one process at a time, released by the kernel when its holder dies.
 *
 * Two processes on one PGlite directory lose rows, and Node has no `flock`. What the kernel does give back at once when
 * a process dies, however it dies, is a listening Unix socket: a connection to it is refused from then on. This needs
 * no process id, so it also works in containers, where every process is number 1; and the kernel knows, so a holder
 * that is busy or stopped still counts as alive.
 *
 * That leaves a race between two starters that both find a dead holder. Removing the dead holder's files and then
 * reusing their name could remove the files of a rival that did the same a moment earlier. So names are never reused;
 * locks have generations:
 *
 * - `<run>/lock.<n>/` holds `sock` and `owner.json`. The holder is the one whose generation is the highest.
 * - A starter checks the highest lock. If its holder is alive, the starter is refused. If it is dead, the starter
 *   prepares a directory with its own listening socket and `owner.json`, and renames it to `lock.<n+1>`. A directory
 *   cannot be renamed over one that is not empty, so only one starter succeeds, and what appears is complete from the
 *   start. The others check again.
 * - The winner checks once more. It holds the lock only if its generation is the highest; a starter that was
 *   suspended after its check may have won a number that was used and swept long ago.
 * - Only then does it sweep lower generations and what dead starters left behind. The highest generation is never
 *   removed, not even on release, so the highest number never decreases and no number can be held twice.
 *
 * Not covered: two machines on one network file system, because only a socket's own kernel knows its listener.
 */
import { randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** The holder's description of itself; written before it holds the lock, never changed. */
export interface LockOwner {
  readonly pid: number;
  /** ISO 8601, the holder's clock. */
  readonly startedAt: string;
  readonly token: string;
  /** Directory of the socket that the holder serves: absolute, or relative to the data directory. */
  readonly socketDir: string;
}

export interface DirectoryLock {
  readonly owner: LockOwner;
  /**
   * Earlier holders that died or released the lock, newest first: their remains outside the directory may be removed.
   */
  readonly predecessors: readonly LockOwner[];
  /** Idempotent. */
  release(): Promise<void>;
}

/** A living process uses the directory. */
export class DirectoryLockedError extends Error {
  readonly code = 'DIRECTORY_LOCKED';
  readonly directory: string;
  readonly pid: number | undefined;
  constructor(directory: string, pid: number | undefined) {
    super(
      `data directory ${directory} is in use by process ${pid ?? '(unknown)'}` +
        `${pid === process.pid ? ', this one' : ''}. ` +
        'Stop that process first, or start with another data directory; two processes on one directory would lose data.',
    );
    this.name = 'DirectoryLockedError';
    this.directory = directory;
    this.pid = pid;
  }
}

/** Longest path of a Unix socket in bytes: 107 on Linux, 103 on macOS and the BSDs. */
const SOCKET_PATH_BYTES = 103;
/** Prefix of every directory that is created in the system's temporary directory. */
export const TEMPORARY_PREFIX = 'signalbox-';
const ABANDONED_MS = 60_000;
/** A round is lost only to a starter that won, so there are no more rounds than simultaneous starters. */
const ROUNDS = 1000;

export const socketPathFits = (path: string): boolean => Buffer.byteLength(path) <= SOCKET_PATH_BYTES;

/** The directory with the lock and sockets of a data directory. */
export const runDirectory = (dataDir: string): string => join(dataDir, 'run');

/**
 * Takes the lock of `dataDir`.
 * @throws DirectoryLockedError when a living process holds it
 */
export async function lockDirectory(dataDir: string, socketDir: string): Promise<DirectoryLock> {
  const run = runDirectory(dataDir);
  await mkdir(run, { recursive: true, mode: 0o700 });
  // A restored backup may have given it another mode, and it protects the sockets inside.
  await chmod(run, 0o700);
  const token = randomBytes(8).toString('hex');
  const owner: LockOwner = { pid: process.pid, startedAt: new Date().toISOString(), token, socketDir };
  for (let round = 0; round < ROUNDS; round++) {
    const highest = (await generations(run))[0] ?? 0;
    if (highest > 0 && (await isAlive(join(run, `lock.${highest}`)))) {
      throw new DirectoryLockedError(dataDir, (await readOwner(join(run, `lock.${highest}`)))?.pid);
    }
    const listener = await enter(run, owner, highest + 1);
    if (listener === undefined) continue;
    if ((await holds(run, highest + 1)) === false) {
      await close(listener);
      continue;
    }
    const predecessors = await sweep(run, highest + 1);
    let released: Promise<void> | undefined;
    return {
      owner,
      predecessors,
      release: () => {
        released ??= close(listener);
        return released;
      },
    };
  }
  throw new Error(
    `data directory ${dataDir}: the lock changed hands ${ROUNDS} times while waiting for it; start again`,
  );
}

/** The living holder of the lock of `dataDir`; undefined if there is none. */
export async function lockHolder(dataDir: string): Promise<LockOwner | undefined> {
  const run = runDirectory(dataDir);
  const highest = (await generations(run))[0];
  if (highest === undefined) return undefined;
  const lock = join(run, `lock.${highest}`);
  return (await isAlive(lock)) ? readOwner(lock) : undefined;
}

/**
 * Creates a listener in a directory of its own and renames that to the generation's name; undefined when a rival was
 * faster.
 */
async function enter(run: string, owner: LockOwner, generation: number): Promise<Server | undefined> {
  const starter = join(run, `starter-${owner.token}`);
  await rm(starter, { recursive: true, force: true });
  await mkdir(starter, { mode: 0o700 });
  await writeFile(join(starter, 'owner.json'), JSON.stringify(owner), { mode: 0o600 });
  const listener = await withShortPath(starter, (path) => listen(join(path, 'sock')));
  try {
    await rename(starter, join(run, `lock.${generation}`));
    return listener;
  } catch (error) {
    await close(listener);
    await rm(starter, { recursive: true, force: true });
    // ENOENT: the rival has already swept this starter's directory.
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Whether the generation just won is the highest and complete. A rival may have removed its socket while this starter
 * was suspended. That rival has died since (otherwise this generation would not have been free), so it cannot happen
 * again.
 */
async function holds(run: string, generation: number): Promise<boolean> {
  if ((await generations(run))[0] !== generation) return false;
  try {
    await access(join(run, `lock.${generation}`, 'sock'));
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/**
 * Removes lower generations and remains of abandoned starters.
 *
 * @returns the owners of those generations, newest first
 */
async function sweep(run: string, generation: number): Promise<LockOwner[]> {
  const owners: LockOwner[] = [];
  for (const lower of await generations(run)) {
    if (lower >= generation) continue;
    const path = join(run, `lock.${lower}`);
    const owner = await readOwner(path);
    if (owner !== undefined) owners.push(owner);
    await remove(path);
  }
  for (const name of await readdir(run)) {
    if (name.startsWith('starter-') && (await isAbandoned(join(run, name)))) await remove(join(run, name));
  }
  return owners;
}

/** A starter needs only milliseconds to prepare its directory, so one this old is abandoned. */
async function isAbandoned(starter: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(starter)).mtimeMs > ABANDONED_MS;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

async function remove(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch (error) {
    // A starter that was suspended has just taken the emptied name. It will see that it is not the highest; the next
    // sweep removes it.
    if (!hasCode(error, 'ENOTEMPTY')) throw error;
  }
}

/** The existing generations, highest first. */
async function generations(run: string): Promise<number[]> {
  let names: string[];
  try {
    names = await readdir(run);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
  return names
    .map((name) => /^lock\.([1-9][0-9]*)$/.exec(name)?.[1])
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => b - a);
}

/**
 * Undefined when another starter has swept the lock, or when the machine lost power before the file reached the disk.
 */
async function readOwner(lock: string): Promise<LockOwner | undefined> {
  try {
    return JSON.parse(await readFile(join(lock, 'owner.json'), 'utf8')) as LockOwner;
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Whether a process listens on the lock's socket. Only "refused" and "absent" mean no. */
function isAlive(lock: string): Promise<boolean> {
  return withShortPath(lock, (path) => canConnect(join(path, 'sock')));
}

/** Whether something listens on this Unix socket. */
export function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      socket.destroy();
      if (hasCode(error, 'ECONNREFUSED', 'ENOENT')) resolve(false);
      // The queue of connections not yet accepted is full, so there is a listener.
      else if (hasCode(error, 'EAGAIN')) resolve(true);
      // The listener closed just now, with this connection in its queue.
      else if (hasCode(error, 'ECONNRESET')) resolve(canConnect(path));
      else reject(error);
    });
  });
}

async function listen(path: string): Promise<Server> {
  // A successful connection is the whole response, and the kernel gives it.
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    // The handler stays after the server listens: failing to accept a connection must not end the process.
    server.on('error', (error) =>
      reject(
        new Error(
          `cannot create a Unix socket at ${path} (${error.message}); put the data directory on a local file system that supports them`,
          { cause: error },
        ),
      ),
    );
    server.listen(path, resolve);
  });
  server.unref();
  return server;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/**
 * Calls `use` with a path to `directory` that is short enough for a Unix socket: the limit applies to the path as
 * given, not to what it resolves to, so a symbolic link below the temporary directory shortens any path.
 */
async function withShortPath<T>(directory: string, use: (path: string) => Promise<T>): Promise<T> {
  if (socketPathFits(join(directory, 'sock'))) return use(directory);
  const temporary = await mkdtemp(join(tmpdir(), TEMPORARY_PREFIX));
  try {
    const link = join(temporary, 'd');
    await symlink(resolve(directory), link);
    if (!socketPathFits(join(link, 'sock'))) {
      throw new Error(
        `the path of the temporary directory ${tmpdir()} is too long for a Unix socket; set TMPDIR to a shorter one`,
      );
    }
    return await use(link);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
}
