/**
 * PostgreSQL, in one of two places: a server (`DATABASE_URL`) or PGlite in the data directory. Everything above
 * this file sees a `pg.Pool` and a Kysely instance and does not know which it is.
 */
import type { CompiledQuery } from 'kysely';
import pg from 'pg';
import { PREPARED } from '../../shared/prepared.ts';
import type { Config } from '../config.ts';
import { openEmbedded, runningEmbedded } from '../embedded/embedded.ts';
import type { Logger } from '../logging.ts';
import { type AnyDatabase, type Connections, kyselyOver } from './kysely.ts';
import { createListener, type Listener } from './listener.ts';
import { createMarkWatch } from './mark.ts';
import { Client, inTime } from './session.ts';
import { createStatements } from './statements.ts';
import { runAtOneMoment, runTogether } from './together.ts';

// Positions, counts and Unix times are safe integers by design: read them as numbers, not as strings.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

export type { AnyDatabase };

export interface Database {
  /** `embedded`: one shared session (no LISTEN, no session locks, no second process); `server`: PostgreSQL. */
  readonly kind: 'embedded' | 'server';
  /** True when the embedded database belongs to a service in another process and is used through its socket. */
  readonly attached: boolean;
  /** For requests: reads, appends, credentials. */
  readonly pool: pg.Pool;
  readonly db: AnyDatabase;
  /**
   * Runs statements in one round trip, as one transaction (`together.ts`). At most one has a name, under which a server
   * keeps its plan. @returns their rows, in order
   */
  together(
    statements: readonly (Pick<CompiledQuery, 'sql' | 'parameters'> & { readonly name?: string })[],
  ): Promise<readonly unknown[][]>;
  /** The same for statements that only read: all of them see the database at one moment. */
  atOneMoment: Database['together'];
  /** Call this after the migrations: from then on, losses are detected. */
  watchLosses(): Promise<void>;
  /**
   * How often it may have lost rows that did not wait for the disk (`mark.ts`): earlier knowledge of rows is then
   * invalid.
   */
  readonly losses: number;
  /** @param listener is called whenever `losses` grows @returns a function that ends this */
  onLoss(listener: () => void): () => void;
  /** Opens a dedicated connection, outside the pool, for LISTEN and session locks. Only on `server`. */
  connect(name: string): Promise<pg.Client>;
  /** Notifications of the server; the embedded database has none. */
  readonly listener: Listener | undefined;
  /**
   * Calls back whenever a rebuild, in this process or a command-line tool, has swapped the tables of a schema. Only on
   * `embedded`, in the process that owns it: other processes read checkpoints for each request.
   *
   * @returns a function that ends this
   */
  readonly onSwap: ((heard: (schema: string) => void) => () => void) | undefined;
  /** Resolves when the database has failed for good and the process should exit. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** URL of PostgreSQL; unset: PGlite in `dataDir`. */
  readonly url?: string | undefined;
  readonly dataDir: string;
  readonly poolSize: number;
  /** Time limit for one statement, milliseconds. */
  readonly statementTimeoutMs: number;
  /** If a service is running on `dataDir`, use its embedded database (for command-line tools). */
  readonly attach?: boolean;
  /** Called as soon as the only remaining work is waiting for another thread or a server. */
  readonly launched?: (() => void) | undefined;
  readonly log: Logger;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return options.url ? openServer(options.url, options) : openInDirectory(options);
}

/** Opens the configured database. */
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
    // The client's own limit, which also catches a frozen server. Slightly above the server's, whose message is better.
    query_timeout: options.statementTimeoutMs + 1_000,
    application_name: 'signalbox',
    ...config,
  });
  // An idle connection that breaks is replaced on the next use; it must not end the process.
  pool.on('error', (error: Error & { client?: unknown }) => {
    // The pool attaches the whole connection, which would end up in the log.
    delete error.client;
    if (!pool.ending) options.log.warn({ err: error }, 'an idle database connection broke');
  });
  // A connection that breaks while in use rejects its query and also emits `error`, which must not end the process.
  pool.on('connect', (client) => {
    client.on('error', (error) => options.log.debug({ err: error }, 'a database connection broke'));
  });
  return pool;
}

type NameOn = (client: pg.PoolClient, text: string) => Promise<string | undefined>;

/** Connections that prepare statements, and the names of these statements. */
function preparing(pool: pg.Pool): { readonly connections: Connections; readonly nameOn: NameOn } {
  const statements = createStatements();
  const equipped = new WeakSet<pg.PoolClient>();
  // Kysely does not name statements, so its connections do.
  async function connect(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    if (!equipped.has(client)) {
      equipped.add(client);
      statements.equip(client, (text) => text.startsWith(PREPARED));
    }
    return client;
  }
  return { connections: { connect: connect as pg.Pool['connect'], end: () => pool.end() }, nameOn: statements.nameOn };
}

const textsOf = (statements: Parameters<Database['together']>[0]) =>
  statements.map(({ name, sql: text, parameters: values }) => ({ name, text, values }));

const togetherOn =
  (pool: Connections, nameOn?: NameOn): Database['together'] =>
  (statements) =>
    runTogether(pool, textsOf(statements), nameOn);

/**
 * A machine that loses power does not close its connections. The server keeps their sessions, and their locks, until
 * TCP notices: after two hours by default, after 25 s with these settings.
 */
const DETECT_DEAD_CLIENTS = `SELECT set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`;

/**
 * Statements of requests take milliseconds: starting parallel workers or JIT compilation took longer than the whole
 * statement, and there are as many connections as the server has spare cores. Large reads, such as the comparison after
 * a rebuild, still get parallel workers. The URL can override this: `?options=-c%20jit%3Don`.
 */
const PLANNING = '-c jit=off -c parallel_setup_cost=100000';

function openServer(url: string, options: DatabaseOptions): Database {
  options.launched?.();
  const session = { connectionString: url, statement_timeout: options.statementTimeoutMs, options: PLANNING };
  const marks = createMarkWatch();
  // Before a new connection is used.
  const verify: pg.PoolConfig['verify'] = (client, done) => {
    marks.check(client).then(() => done(), done);
  };
  const pool = makePool({ ...session, verify }, options);
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
      await client.query(inTime(DETECT_DEAD_CLIENTS));
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
    db: kyselyOver(pool),
    together: togetherOn(pool),
    atOneMoment: (statements) => runAtOneMoment(pool, textsOf(statements)),
    async watchLosses() {
      const client = await pool.connect();
      try {
        await marks.check(client);
      } finally {
        client.release();
      }
    },
    get losses() {
      return marks.losses;
    },
    onLoss: marks.onLoss,
    connect,
    listener,
    onSwap: undefined,
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
  const { connections, nameOn } = preparing(pool);
  const together = togetherOn(connections, nameOn);
  return {
    kind: 'embedded',
    attached: running !== undefined,
    pool,
    db: kyselyOver(connections),
    together,
    // No other statement runs between statements that are sent together (`embedded/session.ts`).
    atOneMoment: together,
    // The embedded database ends together with its process, so the process cannot have seen lost rows.
    watchLosses: async () => undefined,
    losses: 0,
    onLoss: () => () => undefined,
    connect: () =>
      Promise.reject(new Error('the embedded database has a single session, so there are no dedicated connections')),
    listener: undefined,
    onSwap: embedded?.onSwap,
    failed: embedded?.failed ?? new Promise(() => {}),
    async close() {
      await pool.end();
      await embedded?.close();
    },
  };
}
