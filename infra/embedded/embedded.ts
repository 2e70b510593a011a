/**
 * PGlite as an embedded PostgreSQL: one data directory, one process that owns it, and a Unix socket through which that
 * process's own pools, and command-line tools of the same user on the same machine, use it like PostgreSQL.
 *
 * ```
 * <dataDir>/pg/                 PostgreSQL's data directory
 * <dataDir>/run/lock.<n>/       the lock, see directory-lock.ts
 * <dataDir>/run/.s.PGSQL.5432   the socket; below the system's temporary directory when that path is too long for one
 * ```
 *
 * All connections share one session: `session.ts` describes the differences from PostgreSQL and how they are handled.
 * `worker.ts` describes how it is made durable. In short, for authors of queries: a transaction makes all others wait,
 * so it must not wait for another connection of the same process; a statement cannot be interrupted, so
 * `statement_timeout` has no effect; do not use LISTEN, COPY FROM STDIN or session-level advisory locks; `SET` affects
 * all connections.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { pause, settledWithin } from '../../shared/waiting.ts';
import {
  canConnect,
  lockDirectory,
  lockHolder,
  runDirectory,
  socketPathFits,
  TEMPORARY_PREFIX,
} from './directory-lock.ts';
import type { FromWorker, ToWorker, WorkerOptions } from './worker.ts';

export interface Embedded {
  /** `host` for `pg`. */
  readonly socketDir: string;
  readonly port: number;
  /**
   * Lets open transactions finish, for at most 10 s, then makes a checkpoint, stops and releases the lock. Connections
   * that are still open get error 57P01, as from PostgreSQL, so end pools first. Idempotent; never rejects.
   */
  close(): Promise<void>;
  /**
   * Calls back whenever a rebuild, of any process, has swapped the tables of a schema, before that process receives its
   * response.
   *
   * @returns a function that ends this
   */
  onSwap(heard: (schema: string) => void): () => void;
  /** Resolves when the database has stopped unexpectedly. Everything acknowledged is on disk. */
  readonly failed: Promise<Error>;
}

/** The part of a pino logger that is used here. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface EmbeddedOptions {
  /** Created with mode 0700 if it does not exist. */
  readonly dataDir: string;
  readonly log: Log;
  /** A transaction idle for this long is rolled back if others wait for it, milliseconds; default 30,000. */
  readonly idleInTransactionMs?: number;
  /** How often tables are checked for dead rows and stale statistics, milliseconds; default 60,000. */
  readonly vacuumLookMs?: number;
  /** Called as soon as the only remaining work is waiting for the thread that opens the database. */
  readonly launched?: (() => void) | undefined;
}

/** PostgreSQL derives the socket's file name from a port; any number will do. */
const PORT = 5432;
const MAX_CONNECTIONS = 200;
const DRAIN_MS = 10_000;
/**
 * Time limit for the final checkpoint and shutdown, on a slow disk, milliseconds; then the thread is terminated and the
 * next start recovers from the write-ahead log.
 */
const STOP_MS = 20_000;
/**
 * PGlite recurses on the thread's stack; with Node's default of 4 MB, a deep query crashed the engine before it reached
 * PostgreSQL's own limit.
 */
const STACK_MB = 32;
/** How long a command-line tool waits for a service that is just starting, milliseconds. */
const STARTING_MS = 15_000;

const socketPath = (socketDir: string): string => join(socketDir, `.s.PGSQL.${PORT}`);

/**
 * Starts the database of `dataDir`, creating it if there is none (about 1 s, or 3.5 s without the database from the
 * build; later starts take 0.5 s).
 * @throws DirectoryLockedError when a running process has it open
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const begin = performance.now();
  const dataDir = resolve(options.dataDir);
  await usable(dataDir, makeDirectory(dataDir));
  const socketDir = await chooseSocketDir(dataDir);
  try {
    // Relative, so that it is also correct for a tool outside a container, which sees the directory under another path.
    const named = socketDir.startsWith(dataDir) ? relative(dataDir, socketDir) : socketDir;
    const lock = await usable(dataDir, lockDirectory(dataDir, named));
    try {
      for (const { socketDir: left } of lock.predecessors) await removeTemporary(left);
      await rm(socketPath(socketDir), { force: true });
      return await start({ ...options, dataDir }, socketDir, begin, lock.release);
    } catch (error) {
      await lock.release();
      throw error;
    }
  } catch (error) {
    await removeTemporary(socketDir);
    throw error;
  }
}

/**
 * Connection settings for `pg` if a service has `dataDir` open, otherwise undefined. Waits for a service that is just
 * starting.
 * @throws Error when it is not ready within 15 s
 */
export async function runningEmbedded(dataDir: string): Promise<{ host: string; port: number } | undefined> {
  const directory = resolve(dataDir);
  const giveUp = performance.now() + STARTING_MS;
  for (;;) {
    const owner = await usable(directory, lockHolder(directory));
    if (owner === undefined) return undefined;
    const host = resolve(directory, owner.socketDir);
    if (await canConnect(socketPath(host))) return { host, port: PORT };
    if (performance.now() > giveUp) {
      throw new Error(`process ${owner.pid} has ${dataDir} open but does not accept connections; see its log`);
    }
    await pause(50, undefined, { ref: true });
  }
}

async function start(
  options: EmbeddedOptions,
  socketDir: string,
  begin: number,
  release: () => Promise<void>,
): Promise<Embedded> {
  const { dataDir, log } = options;
  const workerOptions: WorkerOptions = {
    directory: databaseDirectory(dataDir),
    socketPath: socketPath(socketDir),
    maxConnections: MAX_CONNECTIONS,
    idleInTransactionMs: options.idleInTransactionMs ?? 30_000,
    vacuumLookMs: options.vacuumLookMs ?? 60_000,
    drainMs: DRAIN_MS,
    engine: await engineCode(),
  };
  const created = !existsSync(workerOptions.directory);
  const hearing = new Set<(schema: string) => void>();
  const swapped = (schema: string) => {
    for (const heard of hearing) heard(schema);
  };
  let thread = startThread(workerOptions, dataDir, log, swapped);
  options.launched?.();
  if ((await thread.started) === 'created') {
    await thread.ended;
    thread = startThread(workerOptions, dataDir, log, swapped);
    await thread.started;
  }
  log.info({ dataDir, created, ms: Math.round(performance.now() - begin) }, 'embedded database ready');

  const { worker, ended } = thread;
  let closing: Promise<void> | undefined;
  const failed = new Promise<Error>((resolve, reject) => {
    ended.then((error) => {
      const unexpected = closing === undefined ? (error ?? new Error('the worker thread ended')) : error;
      if (unexpected === undefined) return;
      log.error({ err: unexpected, dataDir }, 'embedded database stopped unexpectedly');
      resolve(unexpected);
    }, reject);
  });

  async function stop(): Promise<void> {
    worker.postMessage({ kind: 'close' } satisfies ToWorker);
    if (!(await settledWithin(DRAIN_MS + STOP_MS, ended))) {
      log.warn({ dataDir }, 'embedded database did not stop in time and was terminated; the next start recovers it');
      worker.terminate().catch((error: unknown) => {
        log.error({ err: error, dataDir }, 'embedded database: the worker thread could not be terminated');
      });
      await ended;
    }
    await rm(socketPath(socketDir), { force: true });
    await removeTemporary(socketDir);
    await release();
  }
  return {
    socketDir,
    port: PORT,
    failed,
    onSwap(heard) {
      hearing.add(heard);
      return () => hearing.delete(heard);
    },
    close: () => {
      closing ??= stop().catch((error: unknown) => {
        log.error({ err: error, dataDir }, 'embedded database: closing failed');
      });
      return closing;
    },
  };
}

interface Thread {
  readonly worker: Worker;
  /** Rejects when the thread ends first. */
  readonly started: Promise<'created' | 'ready'>;
  /** Resolves when the thread has ended, with the reason if it crashed. */
  readonly ended: Promise<Error | undefined>;
}

declare global {
  /** The part used here: Node has it, but only the browser's type definitions declare it. */
  namespace WebAssembly {
    type Module = object;
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

/**
 * How much a function of the engine runs before V8 optimises it, in bytes of executed code. Node 20's default is
 * 1.8 MB: a start then optimises many functions that it hardly uses, and statements do not become fast any sooner
 * (docs/benchmarks.md).
 */
const OPTIMISE_AFTER = 100_000_000;

let compiled: Promise<WebAssembly.Module> | undefined;

/**
 * The engine's code, compiled once per process: a first start with initdb runs it in two threads, one after the other, and shared
 * code keeps the optimisations made so far.
 */
function engineCode(): Promise<WebAssembly.Module> {
  if (compiled === undefined) {
    setFlagsFromString(`--wasm-tiering-budget=${OPTIMISE_AFTER}`);
    // Each function is validated at its first call, when it is compiled anyway; most are never called.
    setFlagsFromString('--wasm-lazy-validation');
  }
  compiled ??= readFile(new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))).then((bytes) =>
    WebAssembly.compile(bytes),
  );
  return compiled;
}

function startThread(workerData: WorkerOptions, dataDir: string, log: Log, swapped: (schema: string) => void): Thread {
  const worker = new Worker(new URL('./worker.js', import.meta.url), {
    workerData,
    name: 'embedded database',
    resourceLimits: { stackSizeMb: STACK_MB },
  });
  let broken: Error | undefined;
  const ended = new Promise<Error | undefined>((resolve) => {
    worker.on('error', (error) => {
      broken ??= new Error(`embedded database: ${String(error)}`, { cause: error });
    });
    worker.on('exit', () => resolve(broken));
  });
  const started = new Promise<'created' | 'ready'>((resolve, reject) => {
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'log') log[message.level]({ dataDir }, `embedded database: ${message.message}`);
      else if (message.kind === 'failed') broken = brokenBy(message.message, dataDir);
      else if (message.kind === 'swapped') swapped(message.schema);
      else resolve(message.kind);
    });
    ended.then(
      (error) => reject(error ?? new Error('embedded database: the worker thread ended while starting')),
      reject,
    );
  });
  return { worker, started, ended };
}

/** PostgreSQL ends when it cannot write its own log; the next start needs room first. */
function brokenBy(message: string, dataDir: string): Error {
  const remedy = /No space left on device|Disk quota exceeded|File too large/.test(message)
    ? `. The disk of ${dataDir} is full, or a limit of the user is reached: free space on it, then start again. Everything acknowledged is stored.`
    : '';
  return new Error(`embedded database: ${message}${remedy}`);
}

/** Whether there is a database in `dataDir`. */
export const holdsDatabase = (dataDir: string): boolean => existsSync(databaseDirectory(dataDir));

const databaseDirectory = (dataDir: string): string => join(dataDir, 'pg');

/** Explanations of errors of the data directory, for the user who configured it. */
const UNUSABLE: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write to it',
  EPERM: 'it belongs to another user',
  EROFS: 'its file system is read-only',
  EEXIST: 'it is a file',
  ENOTDIR: 'a part of its path is a file',
  ENOSPC: 'its file system is full',
};

/** @throws Error that says why `dataDir` cannot be used and which setting to change, if that made `work` fail */
async function usable<T>(dataDir: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const reason = UNUSABLE[(error as NodeJS.ErrnoException).code ?? ''];
    if (reason === undefined) throw error;
    throw new Error(
      `data directory ${dataDir} cannot be used: ${reason}. Correct that, or set DATA_DIR to another directory.`,
      { cause: error },
    );
  }
}

/** Like `mkdir -p`, but the new directories survive a power failure. */
async function makeDirectory(directory: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let path = directory; path.length >= first.length; path = dirname(path)) {
    const parent = await open(dirname(path), 'r');
    try {
      await parent.sync();
    } finally {
      await parent.close();
    }
  }
}

async function chooseSocketDir(dataDir: string): Promise<string> {
  const inside = runDirectory(dataDir);
  if (socketPathFits(socketPath(inside))) return inside;
  const outside = await mkdtemp(join(tmpdir(), TEMPORARY_PREFIX));
  if (socketPathFits(socketPath(outside))) return outside;
  await removeTemporary(outside);
  throw new Error(
    `the paths ${dataDir} and ${tmpdir()} are both too long for a Unix socket; set TMPDIR to a shorter path`,
  );
}

/** Removes a socket directory if it is one that `chooseSocketDir` created outside the data directory. */
async function removeTemporary(socketDir: string): Promise<void> {
  if (!basename(socketDir).startsWith(TEMPORARY_PREFIX) || dirname(socketDir) !== tmpdir()) return;
  await rm(socketDir, { recursive: true, force: true });
}
