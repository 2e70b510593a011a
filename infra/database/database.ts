/**
 * PostgreSQL, in one of two places: a server (`DATABASE_URL`) or PGlite in the data directory. Everything above
 * this file sees a `pg.Pool` and a Kysely instance and does not know which it is.
 */
import { createHash } from 'node:crypto';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Config } from '../config.ts';
import { openEmbedded, runningEmbedded } from '../embedded/embedded.ts';
import type { Logger } from '../logging.ts';
import { Client } from './client.ts';
import { createListener, type Listener } from './listener.ts';
import { inTime } from './session.ts';

// Positions, counts and Unix times are safe integers by design: read them as numbers, not as strings.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** Tables are addressed with an explicit schema everywhere, so the database type stays open here. */
// biome-ignore lint/suspicious/noExplicitAny: each query states its own tables; there is no single database type.
export type AnyDatabase = Kysely<any>;

export interface Database {
  /** `embedded`: one shared session (no LISTEN, no session locks, no second process); `server`: PostgreSQL. */
  readonly kind: 'embedded' | 'server';
  /** The embedded database of a service that runs in another process, used through its socket. */
  readonly attached: boolean;
  /** For requests: reads, appends, credentials. */
  readonly pool: pg.Pool;
  readonly db: AnyDatabase;
  /** A connection of its own, outside the pool, for LISTEN and session locks. Only on `server`. */
  connect(name: string): Promise<pg.Client>;
  /** Notifications of the server; the embedded database has none. */
  readonly listener: Listener | undefined;
  /** Resolves when the store under us is gone for good and the process should end. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** PostgreSQL; unset: PGlite in `dataDir`. */
  readonly url?: string | undefined;
  readonly dataDir: string;
  readonly poolSize: number;
  /** Limit for one statement, milliseconds. */
  readonly statementTimeoutMs: number;
  /** `attach`: use the embedded database of the service that runs on `dataDir`, when one does (command line tools). */
  readonly attach?: boolean;
  /** Called when all that is left is to wait for another thread or a server. */
  readonly launched?: (() => void) | undefined;
  readonly log: Logger;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return options.url ? openServer(options.url, options) : openInDirectory(options);
}

/** As the configuration says. */
export function openConfigured(
  config: Config,
  log: Logger,
  options: Pick<DatabaseOptions, 'attach' | 'launched'> = {},
): Promise<Database> {
  const { databaseUrl: url, dataDir, poolSize, statementTimeoutMs } = config;
  return openDatabase({ url, dataDir, poolSize, statementTimeoutMs, log, ...options });
}

function makePool(config: pg.PoolConfig, options: DatabaseOptions): pg.Pool {
  const pool = new pg.Pool({
    Client,
    max: options.poolSize,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    // The client's own limit: a frozen server is noticed too. Slightly above the server's, which gives the better message.
    query_timeout: options.statementTimeoutMs + 1_000,
    application_name: 'signalbox',
    ...config,
  });
  // An idle connection that breaks is replaced on the next use; it must not end the process.
  pool.on('error', (error: Error & { client?: unknown }) => {
    // The pool adds the whole connection.
    delete error.client;
    if (!pool.ending) options.log.warn({ err: error }, 'an idle database connection broke');
  });
  // One that breaks while it is in use fails its query; the event of its own must not end the process either.
  pool.on('connect', (client) => {
    client.on('error', (error) => options.log.debug({ err: error }, 'a database connection broke'));
  });
  return pool;
}

/**
 * First words of a statement that is prepared once per connection on PGlite, where planning is a large part of the cost
 * of what runs with every write. Only for texts of which there are few, and whose plan does not depend on how full
 * the tables are: on a server, a plan made for an empty table was kept and cost 10 times the planning it saved.
 */
export const PREPARED = '/* prepared */';

/** A prepared statement stays for as long as its session: later texts go unprepared. */
const MAX_PREPARED = 500;
const names = new Map<string, string>();
function nameOf(text: string): string | undefined {
  let name = names.get(text);
  if (!name && names.size < MAX_PREPARED) {
    name = `s${createHash('sha1').update(text).digest('base64url')}`;
    names.set(text, name);
  }
  return name;
}

function kyselyOver(pool: pg.Pool, prepares: boolean): AnyDatabase {
  if (!prepares) return new Kysely({ dialect: new PostgresDialect({ pool }) });
  const named = new WeakSet<pg.PoolClient>();
  // Kysely does not name statements; its connections do it here.
  async function connect(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    if (named.has(client)) return client;
    named.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>;
    const prepare = (text: unknown, ...rest: unknown[]) =>
      typeof text === 'string' && text.startsWith(PREPARED)
        ? query({ name: nameOf(text), text, values: rest[0] })
        : query(text, ...rest);
    client.query = prepare as typeof client.query;
    return client;
  }
  const namingPool = { connect, end: () => pool.end() };
  return new Kysely({ dialect: new PostgresDialect({ pool: namingPool as unknown as pg.Pool }) });
}

/**
 * A machine that is gone closes no connection. The server keeps its session, locks included, until TCP finds out, which
 * takes two hours by default; with these, 25 s.
 */
const NOTICE_THE_DEAD = `SELECT set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`;

function openServer(url: string, options: DatabaseOptions): Database {
  options.launched?.();
  const session = { connectionString: url, statement_timeout: options.statementTimeoutMs };
  const pool = makePool(session, options);
  const connect: Database['connect'] = async (name) => {
    const client = new Client({
      connectionString: url,
      application_name: `signalbox ${name}`,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    await client.connect();
    try {
      await client.query(inTime(NOTICE_THE_DEAD));
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    return client;
  };
  const listener = createListener(connect, options.log);
  return {
    kind: 'server',
    attached: false,
    pool,
    db: kyselyOver(pool, false),
    connect,
    listener,
    failed: new Promise(() => {}),
    async close() {
      await listener.close();
      await pool.end();
    },
  };
}

async function openInDirectory(options: DatabaseOptions): Promise<Database> {
  const running = options.attach ? await runningEmbedded(options.dataDir) : undefined;
  const embedded = running
    ? undefined
    : await openEmbedded({ dataDir: options.dataDir, log: options.log, launched: options.launched });
  const place = running ?? { host: embedded?.socketDir ?? '', port: embedded?.port ?? 0 };
  const pool = makePool({ ...place, database: 'postgres', user: 'postgres' }, options);
  return {
    kind: 'embedded',
    attached: running !== undefined,
    pool,
    db: kyselyOver(pool, true),
    connect: () => Promise.reject(new Error('the embedded database has one session: no connection of its own')),
    listener: undefined,
    failed: embedded?.failed ?? new Promise(() => {}),
    async close() {
      await pool.end();
      await embedded?.close();
    },
  };
}
