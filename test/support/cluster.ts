/**
 * The layout of `docker-compose.yml` in processes: PostgreSQL, an event store and Redis, each behind a proxy of its own,
 * and processes of Signalbox started through the command line. For fault tests.
 *
 * PostgreSQL and Redis are servers of the test's own where their programs are found, so that they can really crash;
 * otherwise TEST_DATABASE_URL and TEST_REDIS_URL are used, and only their connections break. The event store is the
 * stand-in, unless TEST_EVENTSTORE_URL names a server that has no events yet.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ProcessRole } from '../../infra/config.ts';
import { openEventStoreLog } from '../../infra/eventstore/event-log.ts';
import { createLogger } from '../../infra/logging.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';
import { ended, found, ownPostgres, ownRedis, type Server } from './own-servers.ts';
import { startProxy, type TcpProxy } from './proxy.ts';
import { freshDatabase } from './service.ts';
import { commandLine, freePort, KEY } from './service-process.ts';

/** Short, so that time-outs pass within the time limit of a test; milliseconds. */
export const LIMITS = { append: 3_000, visible: 3_000, statement: 2_000, shutdown: 2_000 };
/** How long a connection to PostgreSQL may take (`infra/database/database.ts`), milliseconds. */
const CONNECT_MS = 5_000;

export interface Store {
  readonly proxy: TcpProxy;
  /** Ends the server as a crash does and starts it again; without a server of the test's own, its connections break. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export interface Stores {
  readonly postgres: Store;
  readonly events: Store;
  readonly redis: Store;
  /** What stands behind the proxies, for the test's title. */
  readonly described: string;
  /** The environment of a process on these stores. */
  readonly env: Readonly<Record<string, string>>;
  /** The database itself, without the proxy. */
  readonly databaseUrl: string;
  /** Everything in the log, read without the proxy. */
  readLog(): Promise<LoggedEvent[]>;
  close(): Promise<void>;
}

/** A line of a process's log. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface Node {
  readonly name: string;
  readonly role: ProcessRole;
  /** Address of the API; other roles do not listen there. */
  readonly url: string;
  readonly pid: number;
  /** Resolves with its first `ready`. */
  readonly ready: Promise<void>;
  /** Resolves with exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  readonly running: boolean;
  readonly lines: readonly LogLine[];
  /** Warnings and worse, the newest last. */
  complaints(): string[];
  kill(signal: NodeJS.Signals): void;
  /** Stops gracefully; gives the exit code. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** The server that a variable names; closing it is not ours. */
function given(name: string): Server | undefined {
  const url = process.env[name];
  return url ? { url: new URL(url), crash: undefined, close: () => Promise.resolve() } : undefined;
}

async function standIn(): Promise<Server> {
  const main = fileURLToPath(new URL('./eventstore-stand-in-main.js', import.meta.url));
  const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).once('line', resolve);
  });
  return {
    url: new URL(url),
    crash: undefined,
    async close() {
      child.kill('SIGTERM');
      await ended(child);
    },
  };
}

/** The server of TEST_EVENTSTORE_URL if it has no events; otherwise the processes of a test would read all of them. */
async function emptyEventStore(): Promise<Server | undefined> {
  const server = given('TEST_EVENTSTORE_URL');
  if (!server) return undefined;
  const log = await openEventStoreLog({ url: server.url.href, log: createLogger('silent') });
  const head = await log.head();
  await log.close();
  if (head === 0) return server;
  console.log('      the server of TEST_EVENTSTORE_URL holds events already: the stand-in is used');
  return undefined;
}

async function behindProxy(server: Server): Promise<{ store: Store; url: string }> {
  const proxy = await startProxy({ host: server.url.hostname, port: Number(server.url.port) });
  const url = new URL(server.url.href);
  url.hostname = '127.0.0.1';
  url.port = String(proxy.port);
  return {
    url: url.href,
    store: {
      proxy,
      async crash() {
        if (server.crash) await server.crash();
        else proxy.cut();
      },
      async close() {
        await proxy.close();
        await server.close();
      },
    },
  };
}

/** The stores that are missing for these tests; undefined when they can run. */
export function missingStores(): string | undefined {
  if (!process.env.TEST_DATABASE_URL) return 'TEST_DATABASE_URL';
  if (!process.env.TEST_REDIS_URL && !found('redis-server')) return 'redis-server or TEST_REDIS_URL';
  return undefined;
}

export async function startStores(): Promise<Stores> {
  const own = await ownPostgres();
  const fresh = own ? undefined : await freshDatabase();
  const database: Server = own ?? {
    url: new URL(fresh?.url ?? ''),
    crash: undefined,
    close: async () => fresh?.drop(),
  };
  const cache = (await ownRedis()) ?? given('TEST_REDIS_URL');
  if (!cache) throw new Error('there is no Redis');
  const real = await emptyEventStore();
  const eventStore = real ?? (await standIn());
  const [postgres, events, redis] = [
    await behindProxy(database),
    await behindProxy(eventStore),
    await behindProxy(cache),
  ];
  return {
    postgres: postgres.store,
    events: events.store,
    redis: redis.store,
    described: `${own ? 'a PostgreSQL of its own' : 'PostgreSQL'}, ${real ? 'EventStoreDB' : 'the stand-in of EventStoreDB'}, Redis`,
    databaseUrl: database.url.href,
    async readLog() {
      const log = await openEventStoreLog({ url: eventStore.url.href, log: createLogger('silent') });
      const all: LoggedEvent[] = [];
      for await (const batch of log.readAll()) all.push(...batch);
      await log.close();
      return all;
    },
    env: { DATABASE_URL: postgres.url, EVENTSTORE_URL: events.url, REDIS_URL: redis.url },
    async close() {
      for (const { store } of [postgres, events, redis]) await store.close();
    },
  };
}

/** Starts one process; does not wait for it. `ready` rejects when it ends first. */
export async function startNode(
  stores: Pick<Stores, 'env'>,
  name: string,
  role: ProcessRole,
  env: Readonly<Record<string, string>> = {},
): Promise<Node> {
  const port = await freePort();
  const child = spawn(process.execPath, commandLine('start', '--role', role), {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: String(port),
      LOG_LEVEL: 'info',
      API_KEY: KEY,
      AUTH_PASS: 'correct horse battery',
      MC_DISABLE_RATE_LIMIT: '1',
      APPEND_TIMEOUT_MS: String(LIMITS.append),
      VISIBLE_TIMEOUT_MS: String(LIMITS.visible),
      DATABASE_TIMEOUT_MS: String(LIMITS.statement),
      SHUTDOWN_TIMEOUT_MS: String(LIMITS.shutdown),
      ...stores.env,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: LogLine[] = [];
  const keep = (line: string) => {
    const entry: LogLine = line.startsWith('{') ? JSON.parse(line) : { level: 40, msg: line };
    // Lines for requests would only fill the memory.
    if (entry.msg !== 'request') lines.push(entry);
    return entry;
  };
  const over = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 0));
  });
  const complaints = () =>
    lines
      .filter(({ level }) => level >= 40)
      .map(({ time, msg, err, reason }) =>
        `${time} ${msg}: ${(err as { message?: string })?.message ?? reason}`.slice(0, 250),
      );
  const ready = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (keep(line).msg === 'ready') resolve();
    });
    createInterface({ input: child.stderr }).on('line', keep);
    over.then(
      (how) => reject(new Error(`${name} ended with ${how} before it was ready:\n${complaints().join('\n')}`)),
      reject,
    );
  });
  // Tests that do not wait for it notice its end elsewhere.
  ready.catch(() => undefined);
  return {
    name,
    role,
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    ready,
    ended: over,
    get running() {
      return child.exitCode === null && child.signalCode === null;
    },
    lines,
    complaints,
    kill: (signal) => {
      child.kill(signal);
    },
    async stop() {
      child.kill('SIGTERM');
      return over;
    },
  };
}

export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the command line on the stores. */
export async function runCli(stores: Pick<Stores, 'env'>, ...args: string[]): Promise<CliRun> {
  const child = spawn(process.execPath, commandLine(...args), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...stores.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (bytes) => {
    stdout += bytes;
  });
  child.stderr.on('data', (bytes) => {
    stderr += bytes;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}

/** How long a request may take until its 503: everything that it waits for has its own limit. */
export const LONGEST_MS = {
  /** The log is unavailable: the stream is read, then there is an append. */
  log: 2 * LIMITS.append,
  /** PostgreSQL does not answer: a connection, a statement and the client's own second. */
  database: CONNECT_MS + LIMITS.statement + 1_000,
  /** The log works, the read models do not move. */
  visible: LIMITS.visible,
};
