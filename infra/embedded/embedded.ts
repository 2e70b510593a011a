/**
 * PGlite as an embedded PostgreSQL: one data directory, one process that owns it, and a Unix socket on which that
 * process's own pools, and command line tools of the same user on the same machine, speak to it as to PostgreSQL.
 *
 * ```
 * <dataDir>/pg/                 PostgreSQL's data directory
 * <dataDir>/run/lock.<n>/       the lock, see directory-lock.ts
 * <dataDir>/run/.s.PGSQL.5432   the socket; below the system's temporary directory when that path is too long for one
 * ```
 *
 * What differs from PostgreSQL because there is one session behind all connections, and how it is dealt with, is at the
 * top of `session.ts`; what was done for durability is at the top of `worker.ts`. In short, for whoever
 * writes queries: a transaction makes all others wait, so it must not wait for another connection of the same process;
 * a statement cannot be interrupted, so `statement_timeout` has no effect; LISTEN, COPY FROM STDIN and session-level
 * advisory locks are not to be used, and `SET` is everybody's.
 */
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
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
  /** For `pg`: `host`. */
  readonly socketDir: string;
  readonly port: number;
  /**
   * Lets transactions under way finish, for at most 10 s, then makes a checkpoint, stops and gives the lock back.
   * Connections that are still open are told 57P01, as PostgreSQL does: end pools first. Idempotent; never rejects.
   */
  close(): Promise<void>;
  /** Resolves when the database stopped without having been asked to. Everything acknowledged is on the disk. */
  readonly failed: Promise<Error>;
}

/** The part of a pino logger that is used. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface EmbeddedOptions {
  /** Made with mode 0700 when it does not exist. */
  readonly dataDir: string;
  readonly log: Log;
  /** A transaction idle for this long is rolled back if others wait for it, milliseconds; default 30,000. */
  readonly idleInTransactionMs?: number;
  /** How often tables are looked through for dead rows and stale statistics, milliseconds; default 60,000. */
  readonly vacuumLookMs?: number;
  /** Called when all that is left is to wait for the thread that opens it. */
  readonly launched?: (() => void) | undefined;
}

/** PostgreSQL derives the socket's file name from a port; which one is of no importance. */
const PORT = 5432;
const MAX_CONNECTIONS = 200;
const DRAIN_MS = 10_000;
/** Checkpoint and shutdown after that, on a slow disk; a statement that runs longer is cut off and recovered from the log. */
const STOP_MS = 20_000;
/** PGlite's recursion is the thread's; with Node's 4 MB a deep query broke the engine before PostgreSQL's limit did. */
const STACK_MB = 32;
/** A command line tool waits this long for a service that is just starting. */
const STARTING_MS = 15_000;

const socketPath = (socketDir: string): string => join(socketDir, `.s.PGSQL.${PORT}`);

/**
 * Starts the database of `dataDir`, making it when there is none (about 3.5 s, later starts 0.5 s).
 * @throws DirectoryLockedError when a living process has it open
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const begin = performance.now();
  const dataDir = resolve(options.dataDir);
  await makeDirectory(dataDir);
  const socketDir = await chooseSocketDir(dataDir);
  try {
    // Relative, so that it is right for a tool that sees the directory under another name, outside of a container.
    const lock = await lockDirectory(dataDir, socketDir.startsWith(dataDir) ? relative(dataDir, socketDir) : socketDir);
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
 * Settings for `pg` when a service has `dataDir` open, undefined when none has. Waits for one that is just starting.
 * @throws Error when it does not get ready within 15 s
 */
export async function runningEmbedded(dataDir: string): Promise<{ host: string; port: number } | undefined> {
  const directory = resolve(dataDir);
  const giveUp = performance.now() + STARTING_MS;
  for (;;) {
    const owner = await lockHolder(directory);
    if (owner === undefined) return undefined;
    const host = resolve(directory, owner.socketDir);
    if (await canConnect(socketPath(host))) return { host, port: PORT };
    if (performance.now() > giveUp) {
      throw new Error(`process ${owner.pid} has ${dataDir} open and does not serve it; look at its log`);
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
    directory: join(dataDir, 'pg'),
    socketPath: socketPath(socketDir),
    maxConnections: MAX_CONNECTIONS,
    idleInTransactionMs: options.idleInTransactionMs ?? 30_000,
    vacuumLookMs: options.vacuumLookMs ?? 60_000,
    drainMs: DRAIN_MS,
    engine: await engineCode(),
  };
  let thread = startThread(workerOptions, dataDir, log);
  options.launched?.();
  const created = (await thread.started) === 'created';
  if (created) {
    await thread.ended;
    thread = startThread(workerOptions, dataDir, log);
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
      log.warn({ dataDir }, 'embedded database did not stop in time and was cut off; the next start recovers it');
      worker.terminate().catch((error: unknown) => {
        log.error({ err: error, dataDir }, 'embedded database: its thread could not be ended');
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
  /** Rejects when the thread ends before. */
  readonly started: Promise<'created' | 'ready'>;
  /** The reason when the thread broke. */
  readonly ended: Promise<Error | undefined>;
}

declare global {
  /** What is used of it here: Node has it, its type definitions leave it to those of browsers. */
  namespace WebAssembly {
    type Module = object;
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

let compiled: Promise<WebAssembly.Module> | undefined;

/**
 * The engine's code, compiled once per process: a first start runs it in two threads one after the other, and code that
 * is shared keeps what the compiler has improved meanwhile.
 */
function engineCode(): Promise<WebAssembly.Module> {
  compiled ??= readFile(new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))).then((bytes) =>
    WebAssembly.compile(bytes),
  );
  return compiled;
}

function startThread(workerData: WorkerOptions, dataDir: string, log: Log): Thread {
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
      else if (message.kind === 'failed') broken = new Error(`embedded database: ${message.message}`);
      else resolve(message.kind);
    });
    ended.then(
      (error) => reject(error ?? new Error('embedded database: the worker thread ended while starting')),
      reject,
    );
  });
  return { worker, started, ended };
}

/** Like `mkdir -p`, and the new names survive a power failure. */
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
  throw new Error(`neither ${dataDir} nor ${tmpdir()} is short enough for a Unix socket; set TMPDIR to a shorter path`);
}

/** Removes a socket directory if it is one that `chooseSocketDir` made outside of the data directory. */
async function removeTemporary(socketDir: string): Promise<void> {
  if (!basename(socketDir).startsWith(TEMPORARY_PREFIX) || dirname(socketDir) !== tmpdir()) return;
  await rm(socketDir, { recursive: true, force: true });
}
