/** The real service on a store of its own, for tests through HTTP. */
import { rm } from 'node:fs/promises';
import pg from 'pg';
import { type Config, readConfig } from '../../infra/config.ts';
import { createLogger } from '../../infra/logging.ts';
import { type Service, startService } from '../../infra/main.ts';
import { startEventStoreStandIn } from './eventstore-stand-in.ts';
import { dataDirectory } from './template.ts';

export const TEST_KEY = 'test-key-0123456789abcdef';
export const TEST_ADMIN = { username: 'admin', password: 'correct horse battery' };

export interface TestService {
  readonly url: string;
  /** The global API key. */
  readonly adminKey: string;
  readonly service: Service;
  readonly config: Config;
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
 * otherwise or TEST_STACK is set. TEST_STACK=postgres: PostgreSQL alone. TEST_STACK=cluster: PostgreSQL, the event
 * store's stand-in, and Redis when TEST_REDIS_URL is set. Both need TEST_DATABASE_URL.
 */
export async function startTestService(overrides: Record<string, string> = {}): Promise<TestService> {
  const dataDir = await dataDirectory();
  const stack = overrides.DATABASE_URL === undefined ? await openStack() : { env: {}, close: () => Promise.resolve() };
  const config = testConfig(dataDir, { ...stack.env, ...overrides });
  const service = await startService(config, createLogger(config.logLevel));
  return {
    url: service.url as string,
    adminKey: TEST_KEY,
    service,
    config,
    async close() {
      await service.close();
      await stack.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function openStack(): Promise<{ env: Record<string, string>; close(): Promise<void> }> {
  const { TEST_STACK, TEST_REDIS_URL } = process.env;
  if (TEST_STACK !== 'postgres' && TEST_STACK !== 'cluster') return { env: {}, close: () => Promise.resolve() };
  const database = await freshDatabase();
  if (TEST_STACK === 'postgres') return { env: { DATABASE_URL: database.url }, close: () => database.drop() };
  const events = await startEventStoreStandIn();
  return {
    env: {
      DATABASE_URL: database.url,
      EVENTSTORE_URL: events.url,
      ...(TEST_REDIS_URL && { REDIS_URL: TEST_REDIS_URL }),
    },
    async close() {
      await events.stop();
      await database.drop();
    },
  };
}

/** Makes an empty database on the server of TEST_DATABASE_URL. Gives its URL and the function that drops it. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const base = process.env.TEST_DATABASE_URL;
  if (!base) throw new Error('TEST_DATABASE_URL is not set');
  const name = `signalbox_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const admin = async (statement: string) => {
    const client = new pg.Client({ connectionString: base });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await admin(`CREATE DATABASE ${name}`);
  const url = new URL(base);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely; their shape is what the test checks.
  readonly body: any;
  readonly headers: Headers;
}

/** One request with the global key unless `headers` says otherwise (`{ 'x-api-key': '' }` for none). */
export async function call(
  base: Pick<TestService, 'url'>,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const all: Record<string, string> = { 'x-api-key': TEST_KEY, 'content-type': 'application/json', ...headers };
  for (const [name, value] of Object.entries(all)) if (value === '') delete all[name];
  const response = await fetch(`${base.url}${path}`, {
    method,
    headers: all,
    redirect: 'manual',
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = (response.headers.get('content-type') ?? '').includes('json');
  return { status: response.status, body: json && text !== '' ? JSON.parse(text) : text, headers: response.headers };
}
