/**
 * The worker thread that runs PGlite: makes it durable, serves it on a Unix socket, keeps its write-ahead log and
 * tables small, and exits at once when the engine can no longer be trusted.
 *
 * Durability. PGlite as shipped never flushes anything to disk: it starts with `-F` (no fsync), its Node file system
 * has no fsync operation, its `fdatasync`, PostgreSQL's default on Linux, does nothing, and its rename removes the
 * target before moving the file. Here it starts without `-F`, with `wal_sync_method=fsync`, with an fsync operation
 * that reaches the disk (for directories, too), and with an atomic rename. A new database is made in a directory that
 * gets its final name only after every file and directory in it has been synced, so a crash meanwhile leaves no broken
 * database behind.
 *
 * Trust. PGlite's JavaScript swallows every exception of the engine, even an abort after a failed write to the
 * write-ahead log, and carries on with whatever is in memory. So any exception other than the one that PostgreSQL uses
 * for ordinary errors, any abort and any failed fsync end this thread before another statement runs; the next start
 * recovers from the write-ahead log.
 *
 * Timers. In PGlite, a PostgreSQL timer can only fire between statements, where it hits whichever client is next: a
 * client's `SET idle_in_transaction_session_timeout` shut the engine down. So timers are disabled, and
 * `statement_timeout` and similar settings have no effect.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import { type LogLevel, maintain } from './maintenance.ts';
import { unpack } from './prepared.ts';
import { LISTEN_MESSAGE, startupMessage } from './protocol.ts';
import { createSession, type Engine } from './session.ts';

export interface WorkerOptions {
  /** PGlite's code, a `WebAssembly.Module`. */
  readonly engine: object;
  /** Data directory of PostgreSQL; created if it does not exist. */
  readonly directory: string;
  /** Path for the Unix socket; no file may exist there. */
  readonly socketPath: string;
  readonly maxConnections: number;
  readonly idleInTransactionMs: number;
  readonly vacuumLookMs: number;
  /** How long `close` waits for transactions to finish, milliseconds. */
  readonly drainMs: number;
}

export type FromWorker =
  | { readonly kind: 'log'; readonly level: LogLevel; readonly message: string }
  /** There was no database; initdb has created one, and this thread ends. */
  | { readonly kind: 'created' }
  | { readonly kind: 'ready' }
  /** A rebuild has swapped the tables of this schema. */
  | { readonly kind: 'swapped'; readonly schema: string }
  | { readonly kind: 'failed'; readonly message: string };

export type ToWorker = { readonly kind: 'close' };

const parent = parentPort;
if (parent === null) throw new Error('worker.ts runs in a worker thread only');
const options = workerData as WorkerOptions;
const tell = (message: FromWorker): void => parent.postMessage(message);
const note = (level: LogLevel, message: string): void => tell({ kind: 'log', level, message });

/** Ends this thread, and with it the engine, before it can acknowledge anything more. */
function fail(reason: string): never {
  tell({ kind: 'failed', message: reason });
  process.exit(1);
}

/* ---- the engine ---- */

interface FileNode {
  name: string;
  readonly mode: number;
}
/** The part of Emscripten's file system that is used here. */
interface EmscriptenFiles {
  lookupNode(directory: FileNode, name: string): FileNode;
  destroyNode(node: FileNode): void;
  readonly filesystems: {
    readonly NODEFS: {
      realPath(node: FileNode): string;
      tryFSOperation<T>(operation: () => T): T;
      readonly stream_ops: { fsync?: (stream: { readonly nfd: number; readonly node: FileNode }) => number };
      readonly node_ops: { rename: (node: FileNode, directory: FileNode, name: string) => void };
    };
  };
}

const MODE_TYPE = 0o170000;
const MODE_DIRECTORY = 0o040000;
/** How PGlite reports that PostgreSQL has jumped to its error handler. */
const ORDINARY_ERROR = 100;

function makeDurable(files: EmscriptenFiles): void {
  const nodefs = files.filesystems.NODEFS;
  nodefs.stream_ops.fsync = (stream) => {
    try {
      // fdatasync need not flush new entries of a directory, so directories get a full fsync.
      if ((stream.node.mode & MODE_TYPE) === MODE_DIRECTORY) fsyncSync(stream.nfd);
      else fdatasyncSync(stream.nfd);
      return 0;
    } catch (error) {
      // The kernel drops what it could not write and reports that only once, so nothing may be acknowledged after this.
      fail(`fsync failed: ${String(error)}`);
    }
  };
  nodefs.node_ops.rename = (node, directory, name) => {
    let replaced: FileNode | undefined;
    try {
      replaced = files.lookupNode(directory, name);
    } catch {
      // Usually there is no such file.
      replaced = undefined;
    }
    nodefs.tryFSOperation(() => renameSync(nodefs.realPath(node), join(nodefs.realPath(directory), name)));
    if (replaced !== undefined) files.destroyNode(replaced);
    node.name = name;
  };
}

type Imports = { readonly env: Record<string, unknown> };
type ModuleOptions = Parameters<NodeFS['init']>[1];

class DurableNodeFS extends NodeFS {
  override async init(pglite: PGlite, given: ModuleOptions): Promise<{ emscriptenOpts: ModuleOptions }> {
    const { emscriptenOpts } = await super.init(pglite, given);
    const { instantiateWasm } = emscriptenOpts;
    return {
      emscriptenOpts: {
        ...emscriptenOpts,
        onAbort: (what: unknown) => fail(`the database engine aborted: ${String(what)} ${lastWords}`),
        preRun: [...(emscriptenOpts.preRun ?? []), (module) => makeDurable(module.FS as EmscriptenFiles)],
        ...(instantiateWasm && {
          instantiateWasm: (imports: Imports, done: unknown) => {
            imports.env._setitimer_js = () => 0;
            return instantiateWasm(imports, done);
          },
        }),
      },
    };
  }
}

let lastWords = '';

async function openEngine(directory: string): Promise<PGlite> {
  const settings = {
    // fdatasync, the default, does nothing in PGlite.
    wal_sync_method: 'fsync',
    // Errors go to the client that caused them; logging them would only copy user data.
    log_min_messages: 'log',
    log_line_prefix: '',
    // WAL segments kept for reuse; the default would only take up disk space.
    min_wal_size: '32MB',
    max_wal_size: '48MB',
    // A quarter of the default. All of it is resident from the start; other pages come from the system's file cache
    // (docs/benchmarks.md).
    shared_buffers: '32MB',
    wal_buffers: '4MB',
  };
  const given: PGliteOptions = {
    pgliteWasmModule: options.engine,
    fs: new DurableNodeFS(directory),
    relaxedDurability: false,
    extensions: { pg_trgm },
    startParams: [
      ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    onStderr: (line) => {
      if (/^(PANIC|FATAL|WARNING): /.test(line)) {
        lastWords = line;
        note('warn', line);
      } else if (/automatic recovery|redo (starts|done)/.test(line)) {
        note('info', line);
      }
      return false;
    },
  };
  return PGlite.create(given);
}

/** Ends the thread on any exception other than PostgreSQL's own. */
function distrust(pglite: PGlite): void {
  const module = pglite.Module;
  for (const entry of ['_PostgresMainLoopOnce', '_PostgresMainLongJmp'] as const) {
    const original = module[entry];
    module[entry] = () => {
      try {
        original();
      } catch (error) {
        const ordinary =
          typeof error === 'object' && error !== null && 'status' in error && error.status === ORDINARY_ERROR;
        if (!ordinary) fail(`the database engine broke: ${String(error)} ${lastWords}`);
        throw error;
      }
    };
  }
}

function engineOf(pglite: PGlite): Engine {
  return {
    run(messages, receive) {
      // Completes synchronously, because without `syncToFs` there is nothing to wait for.
      pglite.execProtocolRawStream(messages, { syncToFs: false, onRawData: receive }).catch((error: unknown) => {
        fail(`the database engine broke: ${String(error)} ${lastWords}`);
      });
    },
    inTransaction: () => pglite.isInTransaction(),
  };
}

/* ---- the files ---- */

/**
 * Creates a database in `<directory>.new`, which is renamed once it is complete and on disk: unpacks the database from
 * the build, or else runs initdb.
 * @returns whether initdb has run
 */
async function createCluster(directory: string): Promise<boolean> {
  const unfinished = `${directory}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  const unpacked = unpack(unfinished);
  if (!unpacked) await initialize(unfinished);
  syncTree(unfinished);
  renameSync(unfinished, directory);
  syncEntry(join(directory, '..'), true);
  return !unpacked;
}

async function initialize(directory: string): Promise<void> {
  mkdirSync(directory, { mode: 0o700 });
  const pglite = await openEngine(directory);
  // No connection to the template databases is possible here, so their rows would never be frozen, and the oldest
  // database determines when transaction ids run out.
  await pglite.exec(`UPDATE pg_database SET datistemplate = false WHERE datname LIKE 'template_'`);
  await pglite.exec('DROP DATABASE template0');
  await pglite.exec('DROP DATABASE template1');
  await pglite.close();
}

function syncTree(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) syncTree(path);
    else if (entry.isFile()) syncEntry(path, false);
  }
  syncEntry(directory, true);
}

function syncEntry(path: string, isDirectory: boolean): void {
  const descriptor = openSync(path, isDirectory ? 'r' : 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/* ---- start to end ---- */

async function serve(): Promise<void> {
  if (!existsSync(options.directory) && (await createCluster(options.directory))) {
    // Ending the thread releases some 200 MB that initdb used.
    tell({ kind: 'created' });
    process.exit(0);
  }
  if (!existsSync(join(options.directory, 'PG_VERSION'))) {
    throw new Error(`${options.directory} exists but is not a database; move it away or choose another data directory`);
  }
  const pglite = await openEngine(options.directory);
  distrust(pglite);
  const engine = engineOf(pglite);
  const greeting: Buffer[] = [];
  engine.run(startupMessage({ user: 'postgres', database: 'postgres' }), (part) => greeting.push(Buffer.from(part)));
  engine.run(LISTEN_MESSAGE, () => undefined);
  const session = createSession(engine, {
    greeting: Buffer.concat(greeting),
    maxConnections: options.maxConnections,
    idleInTransactionMs: options.idleInTransactionMs,
    warn: (message) => note('warn', message),
    swapped: (schema) => tell({ kind: 'swapped', schema }),
  });
  const server = createServer((socket) => session.accept(socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.socketPath, resolve);
  });
  server.on('error', (error) => note('error', `the socket: ${error.message}`));
  const maintenance = await session.exclusive(() => maintain(pglite, session, options.vacuumLookMs, note));

  parent?.on('message', (_message: ToWorker) => {
    const close = async (): Promise<void> => {
      server.close();
      maintenance.stop();
      await session.drain(options.drainMs);
      await session.exclusive(async () => {
        await pglite.exec('CHECKPOINT');
        await pglite.close();
      });
      process.exit(0);
    };
    close().catch((error: unknown) => fail(`closing failed: ${String(error)}`));
  });
  tell({ kind: 'ready' });
}

serve().catch((error: unknown) =>
  fail(`${error instanceof Error ? error.message : String(error)} ${lastWords}`.trim()),
);
