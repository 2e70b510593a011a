/** The real service on a store of its own, for tests through HTTP. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { expect } from 'chai';
import { type Config, type ProcessRole, readConfig } from '../../infra/config.ts';
import type { Database } from '../../infra/database/database.ts';
import { createLogger, holdLines } from '../../infra/logging.ts';
import { type Service, startService } from '../../infra/main.ts';
import { freshDatabase, SERVERS } from './databases.ts';
import { startEventStoreStandIn } from './eventstore-stand-in.ts';
import { keptDatabase } from './kept-databases.ts';

export { freshDatabase };

export const TEST_KEY = 'test-key-0123456789abcdef';
export const TEST_ADMIN = { username: 'admin', password: 'correct horse battery' };

export interface TestService {
  readonly url: string;
  /** The global API key. */
  readonly adminKey: string;
  readonly service: Service;
  readonly config: Config;
  /** Lines with credentials generated at the first start, as the command line shows them. */
  readonly shownCredentials: readonly string[];
  close(): Promise<void>;
}

/** Configuration of a test service; `overrides` are environment variables. */
export function testConfig(dataDir: string, overrides: Record<string, string> = {}): Config {
  return readConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    API_KEY: TEST_KEY,
    AUTH_USER: TEST_ADMIN.username,
    AUTH_PASS: TEST_ADMIN.password,
    MC_DISABLE_RATE_LIMIT: '1',
    ...overrides,
  });
}

/**
 * Starts the service in this process, on stores of its own: embedded in a temporary directory, unless `overrides` says
 * otherwise or TEST_STACK is set (see `serverStores`).
 */
export async function startTestService(
  overrides: Record<string, string> = {},
  role: ProcessRole = 'all',
): Promise<TestService> {
  const stores = overrides.DATABASE_URL === undefined && SERVERS ? await serverStores() : undefined;
  const env = { ...stores?.env, ...overrides };
  const place = await placeFor(env);
  const config = testConfig(place.dataDir, env);
  const taken = holdLines();
  const shownCredentials: string[] = [];
  const starting = startService(config, createLogger(config.logLevel, 'stdout', taken), role, {
    ...(place.database && { database: Promise.resolve(place.database) }),
    taken,
    showCredentials: (lines) => shownCredentials.push(...lines),
  });
  const service = await starting.catch(async (error: unknown) => {
    await place.end();
    throw error;
  });
  return {
    shownCredentials,
    url: service.url as string,
    adminKey: TEST_KEY,
    service,
    config,
    async close() {
      await service.close();
      await stores?.close();
      await place.end();
    },
  };
}

/** The data directory of a service, and its database if it is a kept one. */
async function placeFor(
  env: Record<string, string>,
): Promise<{ readonly dataDir: string; readonly database?: Database; end(): Promise<void> }> {
  const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
  if (env.DATABASE_URL === undefined && env.DATA_DIR === undefined) {
    const { poolSize, statementTimeoutMs } = testConfig('unused', env);
    const { dataDir, database, giveBack } = await keptDatabase('service', { poolSize, statementTimeoutMs, log });
    return { dataDir, database, end: giveBack };
  }
  // With a server, or with a directory of the test, it stays empty.
  const dataDir = await mkdtemp(join(tmpdir(), 'sbx-'));
  return { dataDir, end: () => rm(dataDir, { recursive: true, force: true }) };
}

/** Empty stores on servers, which any number of processes may share. */
export interface ServerStores {
  /** Settings that name them. */
  readonly env: Readonly<Record<string, string>> & { readonly DATABASE_URL: string };
  close(): Promise<void>;
}

/** Stores that processes may share. */
export type ServerStack = 'postgres' | 'cluster';
const STACK: ServerStack = process.env.TEST_STACK === 'cluster' ? 'cluster' : 'postgres';

/** The roles of a deployment with two API processes on what `serverStores` gives. */
export const twoApiProcesses = (stack: ServerStack = STACK): readonly ProcessRole[] =>
  stack === 'cluster' ? ['api', 'api', 'projector', 'worker'] : ['all', 'all'];

/**
 * PostgreSQL; on the cluster (default: with TEST_STACK=cluster) an event store and Redis beside it: the server of TEST_EVENTSTORE_URL, where the
 * log has a prefix of its own, or the stand-in. Needs TEST_DATABASE_URL; Redis only with TEST_REDIS_URL.
 */
export async function serverStores(stack: ServerStack = STACK): Promise<ServerStores> {
  const { TEST_REDIS_URL, TEST_EVENTSTORE_URL } = process.env;
  const database = await freshDatabase();
  if (stack !== 'cluster') return { env: { DATABASE_URL: database.url }, close: database.drop };
  const standIn = TEST_EVENTSTORE_URL ? undefined : await startEventStoreStandIn();
  return {
    env: {
      DATABASE_URL: database.url,
      ...(standIn
        ? { EVENTSTORE_URL: standIn.url }
        : { EVENTSTORE_URL: TEST_EVENTSTORE_URL as string, EVENTSTORE_STREAM_PREFIX: freshPrefix() }),
      ...(TEST_REDIS_URL && { REDIS_URL: await ownRedisDatabase(TEST_REDIS_URL) }),
    },
    async close() {
      await standIn?.stop();
      await database.drop();
    },
  };
}

let redisDatabases = 0;
/** Of Redis' sixteen numbered databases for each of two test processes; 0 stays for tests that name none. */
const REDIS_DATABASES = 7;

/**
 * One of Redis' numbered databases, emptied: the rate limits of this service must not count requests to another one.
 * A URL that names a database keeps it.
 */
async function ownRedisDatabase(base: string): Promise<string> {
  const url = new URL(base);
  if (url.pathname.length > 1) return base;
  const worker = Number(process.env.MOCHA_WORKER_ID ?? 0) % 2;
  url.pathname = `/${1 + worker * REDIS_DATABASES + (redisDatabases++ % REDIS_DATABASES)}`;
  const { Redis } = await import('ioredis');
  const redis = new Redis(url.href, { lazyConnect: true, commandTimeout: 5_000 });
  redis.on('error', () => {});
  await redis.connect();
  await redis.flushdb();
  redis.disconnect();
  return url.href;
}

/** Two processes on one PostgreSQL. Needs TEST_DATABASE_URL. */
export async function startTwo(env: Record<string, string> = {}) {
  const stores = await serverStores('postgres');
  const start = () => startTestService({ ...stores.env, ...env });
  const services = [await start(), await start()] as const;
  return {
    services,
    async close() {
      await Promise.all(services.map((service) => service.close()));
      await stores.close();
    },
  };
}

/** A prefix that no stream of a shared event store has. */
export const freshPrefix = (): string => `test_${randomUUID().replaceAll('-', '')}.`;

export interface Reply {
  /** Method and path. */
  readonly request?: string;
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely; their shape is what the test checks.
  readonly body: any;
  readonly headers: Headers;
}

/** The body of a response, whose status must be one of these. */
export function bodyOf({ request, status, body }: Reply, ...statuses: readonly number[]): Reply['body'] {
  expect(status, `${request}: ${JSON.stringify(body)}`).to.be.oneOf(statuses.length > 0 ? statuses : [200]);
  return body;
}

// A third of what `fetch` costs, and tests send some ten thousand requests.
const agent = new Agent({ keepAlive: true });

/** One request with exactly these headers. Resolves at the head of the answer, whose body the caller takes or leaves. */
export function send(
  base: Pick<TestService, 'url'>,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<IncomingMessage> {
  const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    request(`${base.url}${path}`, { method, headers: { ...headers, ...length }, agent }, resolve)
      .on('error', reject)
      .end(body);
  });
}

/** Half of what `text` of `node:stream/consumers` costs, which goes through an iterator. */
const textOf = (stream: Readable): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', reject)
      .on('close', () =>
        stream.readableEnded ? resolve(Buffer.concat(chunks).toString()) : reject(new Error('the answer was cut off')),
      );
  });

/** One request with the global key unless `headers` says otherwise (`{ 'x-api-key': '' }` for none). */
export async function call(
  base: Pick<TestService, 'url'>,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const all: Record<string, string> = {
    accept: '*/*',
    'user-agent': 'node',
    'x-api-key': TEST_KEY,
    'content-type': 'application/json',
    ...headers,
  };
  for (const [name, value] of Object.entries(all)) if (value === '') delete all[name];
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const response = await send(base, method, path, all, sent);
  const packed = response.headers['content-encoding'] === 'gzip';
  const received = await textOf(packed ? response.pipe(createGunzip()) : response);
  const given = new Headers();
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) given.append(name, value);
  }
  const json = (given.get('content-type') ?? '').includes('json');
  return {
    request: `${method} ${path}`,
    status: response.statusCode as number,
    body: json && received !== '' ? JSON.parse(received) : received,
    headers: given,
  };
}
