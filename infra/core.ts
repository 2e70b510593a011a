/**
 * Puts the stores behind their ports: the only place that knows which store implements which port. The service and
 * every command-line tool start from here.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Commands, createCommands } from '../commands/handler.ts';
import { agentsProjection } from '../projections/agents/agents.ts';
import { projections } from '../projections/index.ts';
import { schemaOf } from '../projections/projection.ts';
import { liveReads, type Reads } from '../queries/reads.ts';
import { createEventStore, type EventStore } from '../shared/event-store.ts';
import { catalogue } from '../shared/events/catalogue.ts';
import type { Counters } from '../shared/ports/counters.ts';
import type { EventLog } from '../shared/ports/event-log.ts';
import { nextTurn } from '../shared/waiting.ts';
import type { Config } from './config.ts';
import { createCredentials } from './credentials/credentials.ts';
import { createPersonKeys } from './credentials/person-keys.ts';
import { createCounters } from './database/counters.ts';
import { type Database, openConfigured } from './database/database.ts';
import { migrate } from './database/migrations.ts';
import { createSnapshots } from './database/snapshots.ts';
import { waitForStore } from './database/wait.ts';
import { Following } from './following/following.ts';
import type { Logger } from './logging.ts';
import { openPostgresLog } from './postgres/event-log.ts';
import type { RowWrites } from './read-models/batch-writer.ts';
import { Positions } from './read-models/positions.ts';
import { readMark, settlePrepared } from './read-models/prepared.ts';
import { ensureTables } from './read-models/projector.ts';
import { RowCaches } from './read-models/row-cache.ts';
import { unindexedTexts } from './read-models/tables.ts';

export interface Core {
  readonly config: Config;
  readonly log: Logger;
  /** Name of this process: host, pid and a random part. */
  readonly process: string;
  readonly database: Database;
  readonly eventLog: EventLog;
  readonly store: EventStore;
  readonly counters: Counters;
  readonly credentials: ReturnType<typeof createCredentials>;
  readonly personKeys: ReturnType<typeof createPersonKeys>;
  readonly positions: Positions;
  /** Rows of the read models that this process leads. */
  readonly rows: RowCaches;
  /** Rows that this process is writing to them. */
  readonly rowWrites: RowWrites;
  readonly following: Following;
  readonly commands: Commands;
  readonly reads: Reads;
  close(): Promise<void>;
}

/**
 * Opens the stores, migrates their tables and creates the parts that use them. Waits up to `config.startTimeoutMs` for
 * stores that are not available yet.
 *
 * @param options.attach use the embedded database of a running service, if one uses the data directory
 * @param options.database a database that is already being opened
 */
export async function openCore(
  config: Config,
  log: Logger,
  options: { attach?: boolean; database?: Promise<Database> | undefined } = {},
): Promise<Core> {
  const deadline = Date.now() + config.startTimeoutMs;
  const database = await (options.database ?? openConfigured(config, log, { attach: options.attach ?? false }));
  try {
    let mark: string | undefined;
    const readPrepared = async () => {
      mark = await readMark(database.db);
    };
    await waitForStore('the database', readPrepared, deadline, log);
    // A tool that is attached leaves this to the service, which has just begun it.
    if (mark !== undefined && database.kind === 'embedded' && !database.attached) {
      const outcome = await settlePrepared(database.db, mark, projections);
      if (outcome === 'dropped')
        log.info('the database of the build has the tables of another version; new ones are made');
    }
    await migrate(database.db);
    await ensureTables(database, projections);
    await warnOfSlowSearch(database, log);
    const rowWrites: RowWrites = { inFlight: undefined };
    const eventLog = await openLog(config, { database, rowWrites, log }, deadline);
    const counters = createCounters(database.pool, {
      prepared: database.kind === 'embedded',
      withLog: !config.eventStoreUrl,
    });
    const personKeys = createPersonKeys(database);
    const credentials = createCredentials(database, log);
    const store = createEventStore({ log: eventLog, catalogue, counters, keys: personKeys });
    const snapshots = createSnapshots(database.pool, log);
    const rows = new RowCaches();
    const following = new Following({ database, eventLog, log });
    const { visibleTimeoutMs } = config;
    // Elsewhere writes wait for rows.
    const foreseen = isAlone(database) ? [agentsProjection] : [];
    const positions = new Positions({ database, projections, foreseen, log, visibleTimeoutMs });
    return {
      config,
      log,
      process: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
      database,
      eventLog,
      store,
      counters,
      credentials,
      personKeys,
      positions,
      following,
      commands: createCommands({ store, counters, readModels: positions, snapshots }),
      rows,
      rowWrites,
      reads: readsOf({ database, rows, positions }),
      async close() {
        await following.close();
        await eventLog.close();
        await positions.close();
        await credentials.close();
        await snapshots.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** No other process writes rows. */
export const isAlone = (database: Database): boolean => database.kind === 'embedded' && !database.attached;

/** Reads that show everything that was promised. */
function readsOf({ database, rows, positions }: Pick<Core, 'database' | 'rows' | 'positions'>): Reads {
  const alone = isAlone(database);
  const kept = rows.keptRows(alone);
  if (!alone) return liveReads(database.db, kept);
  const foreseen = rows.keptRows(alone, (schema) => positions.pending(schema));
  return liveReads(
    database.waiting((statement) => positions.settledFor(statement)),
    (projection, tables, key, current) => {
      const schema = schemaOf(projection);
      if (!positions.isBehind(schema, current?.despite)) return kept(projection, tables, key, current);
      return positions.pending(schema) && foreseen(projection, tables, key, current);
    },
    (projection) => positions.settled([schemaOf(projection)]),
    // Appends of several requests are answered together, and each request goes on by itself.
    (projection) => (positions.pending(schemaOf(projection))?.lacksSome ? nextTurn() : undefined),
  );
}

/** Without the extension pg_trgm searches give the same answers, but look at every text. */
async function warnOfSlowSearch(database: Database, log: Logger): Promise<void> {
  const missing = await unindexedTexts(database.db, projections);
  if (missing.length === 0) return;
  log.warn(
    { missing },
    'searches are slow: PostgreSQL lacks the extension pg_trgm. Install it (package postgresql-contrib), run CREATE EXTENSION pg_trgm in the database as an administrator, then run: signalbox rebuild search',
  );
}

async function openLog(
  config: Config,
  { database, rowWrites, log }: Pick<Core, 'database' | 'rowWrites' | 'log'>,
  deadline: number,
): Promise<EventLog> {
  const { eventStoreUrl, eventStorePrefix, appendTimeoutMs } = config;
  // The embedded database runs one statement at a time.
  const rowsInFlight = database.kind === 'embedded' ? () => rowWrites.inFlight : undefined;
  if (!eventStoreUrl) return openPostgresLog({ database, log, appendTimeoutMs, rowsInFlight });
  // Loaded only when needed, because its client is large.
  const { openEventStoreLog } = await import('./eventstore/event-log.ts');
  const eventLog = await openEventStoreLog({
    url: eventStoreUrl,
    prefix: eventStorePrefix,
    log,
    appendTimeoutMs,
    readTimeoutMs: appendTimeoutMs,
  });
  await waitForStore('the event store', () => eventLog.head(), deadline, log);
  return eventLog;
}
