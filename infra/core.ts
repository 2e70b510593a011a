/**
 * Puts the stores behind their ports: the only file that knows which store implements which port. The service and every
 * command-line tool start from here.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Commands, createCommands, type Executed } from '../commands/handler.ts';
import { agentKeysProjection } from '../projections/agents/keys.ts';
import { usersProjection } from '../projections/auth/users.ts';
import { projections } from '../projections/index.ts';
import type { Projection } from '../projections/projection.ts';
import { displayedUsers } from '../queries/names.ts';
import type { Reads } from '../queries/reads.ts';
import { fieldKeyName } from '../shared/event-store/sealed-values.ts';
import { createEventStore, type EventStore } from '../shared/event-store.ts';
import {
  auditEntriesErased,
  fieldRedacted,
  type PersonRecord,
  personErased,
  personOf,
} from '../shared/events/auth/people.ts';
import { catalogue } from '../shared/events/catalogue.ts';
import type { DomainEvent } from '../shared/events/define.ts';
import type { PersonRecords } from '../shared/ports/auth/people.ts';
import type { Counters } from '../shared/ports/counters.ts';
import { BEGINNING, type EventLog, type LoggedEvent } from '../shared/ports/event-log.ts';
import type { Snapshots } from '../shared/ports/snapshots.ts';
import { askedSince } from '../shared/waiting.ts';
import { archiveDirOf, type Config } from './config.ts';
import { createCredentials } from './credentials/credentials.ts';
import { createPersonRecords } from './credentials/people.ts';
import { createPersonKeys } from './credentials/person-keys.ts';
import { type Database, openConfigured } from './database/database.ts';
import { createLocks, type OpenLocks } from './database/locks.ts';
import { makingTables } from './database/making.ts';
import { isUpToDate, migrate, requireMigrated } from './database/migrations.ts';
import { waitForStore } from './database/wait.ts';
import { createDiskCheck } from './embedded/disk.ts';
import { Following } from './following/following.ts';
import type { Logger } from './logging.ts';
import { openPostgresLog } from './postgres/event-log.ts';
import type { RowWrites } from './read-models/batch-writer.ts';
import { type ChangeTracker, createChangeTracker } from './read-models/change-tracker.ts';
import { Positions } from './read-models/positions.ts';
import { readMark, settlePrepared } from './read-models/prepared.ts';
import { ensureTables, withoutTables } from './read-models/projector.ts';
import { createReads } from './read-models/reads.ts';
import { RowCaches } from './read-models/row-cache.ts';
import { refuseOtherTables, unindexedTexts } from './read-models/tables.ts';
import { createPause, type OpenPause } from './stores/admin/pause.ts';
import { createLeases, type OpenLeases } from './stores/agents/leases.ts';
import { createCounters } from './stores/counters.ts';
import { createSnapshots } from './stores/snapshots.ts';

export interface Core {
  readonly config: Config;
  readonly log: Logger;
  /** Name of this process: host, pid and a random part. */
  readonly process: string;
  readonly database: Database;
  readonly eventLog: EventLog;
  readonly store: EventStore;
  readonly counters: Counters;
  readonly leases: OpenLeases;
  readonly credentials: ReturnType<typeof createCredentials>;
  readonly personKeys: ReturnType<typeof createPersonKeys>;
  readonly personRecords: PersonRecords;
  readonly snapshots: Pick<Snapshots, 'find'>;
  readonly positions: Positions;
  /** Changes that this process makes to read models. */
  readonly changes: ChangeTracker;
  /** Cached rows of the read models that this process leads. */
  readonly rows: RowCaches;
  /** Row writes of this process in flight. */
  readonly rowWrites: RowWrites;
  readonly following: Following;
  readonly locks: OpenLocks;
  readonly pause: OpenPause;
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
 * @param options.asIs does not migrate the database: for a tool that inspects a database of another program version
 * @throws Error with `asIs`, when the tables of the service are not those of this program
 */
export async function openCore(
  config: Config,
  log: Logger,
  options: { attach?: boolean; asIs?: boolean; database?: Promise<Database> | undefined } = {},
): Promise<Core> {
  const deadline = Date.now() + config.startTimeoutMs;
  const database = await (options.database ?? openConfigured(config, log, { attach: options.attach ?? false }));
  try {
    const mark = await waitForStore('the database', () => readMark(database.db), deadline, log);
    // An attached tool leaves this to the service, which has just started it.
    if (mark !== undefined && database.kind === 'embedded' && !database.attached && !options.asIs) {
      const outcome = await settlePrepared(database.db, mark, projections);
      if (outcome === 'dropped')
        log.info('the database of the build has the tables of another version; new ones are made');
    }
    if (options.asIs) await requireMigrated(database.db);
    else await ensureMade(database, deadline, log);
    await database.watchLosses();
    if (!options.asIs) await warnOfSlowSearch(database, log);
    const rowWrites: RowWrites = { inFlight: undefined };
    const eventLog = await openLog(config, { database, rowWrites, log }, deadline);
    if (config.eventStoreUrl) await refuseForeignLog(database, eventLog);
    const counters = createCounters(database.pool, {
      prepared: database.kind === 'embedded',
      endsWithUs: isAlone(database) && !config.eventStoreUrl,
    });
    const personKeys = createPersonKeys(database);
    const credentials = createCredentials(database, log);
    const store = createEventStore({ log: eventLog, catalogue, counters, keys: personKeys });
    const snapshots = createSnapshots(database.pool, log);
    const rows = new RowCaches();
    const following = new Following({ database, eventLog, log });
    const locks = createLocks(database);
    const { visibleTimeoutMs } = config;
    const head = headOf(eventLog, { database, config });
    const changes = createChangeTracker();
    const leases = createLeases(database.pool, {
      seesLog: !config.eventStoreUrl,
      prepared: database.kind === 'embedded',
    });
    const own = isAlone(database)
      ? { changes, leases: leases.moves, credentials: () => credentials.changes() }
      : undefined;
    const positions = new Positions({ database, projections, log, visibleTimeoutMs, head, own });
    // Processes that share a database look up the current identity of credentials in it, not in the log.
    const beforeAcknowledged = ({ events, position }: Executed) =>
      database.kind === 'server' && events.some(changesCredentials) ? credentials.changedAt(position) : undefined;
    const reads = createReads({ database, projections, positions, changes: own && changes });
    const displayed = displayedUsers(reads, positions);
    const seen = (since: number) => positions.seen(since);
    const commands = createCommands({ store, counters, snapshots, displayed, seen, beforeAcknowledged });
    following.reader.watch((position, events) => {
      for (const event of events) {
        const name = deletedKeyIn(event);
        if (name === undefined) continue;
        personKeys.forget(name);
        store.forget();
        commands.forget(event.stream);
      }
      // Before the positions, which end the waits for them.
      commands.saw(position, events);
      positions.saw(position, events);
    });
    return {
      config,
      log,
      process: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
      database,
      eventLog,
      store,
      counters,
      leases,
      credentials,
      personKeys,
      personRecords: createPersonRecords({ database, store, keys: personKeys }),
      snapshots,
      positions,
      changes,
      following,
      locks,
      pause: createPause(database.pool),
      commands,
      rows,
      rowWrites,
      // A command-line tool does not follow the log, and reads the current state of the tables.
      reads: options.attach ? reads.at({}) : reads,
      async close() {
        await following.close();
        await locks.close();
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

/** Updates the tables of the service and of its read models to this program. */
async function ensureMade(database: Database, deadline: number, log: Logger): Promise<void> {
  const { db } = database;
  if (await isUpToDate(db)) {
    await refuseOtherTables(db, projections);
    if ((await withoutTables(db, projections)).length === 0) return;
  }
  await makingTables(database, { deadline, log }, async (alone) => {
    await migrate(alone);
    await ensureTables({ db: alone }, projections);
  });
}

/**
 * An event store server holds only events. Without the counters and keys of their database, ids would be assigned twice
 * and no sealed field could be read. The database also has the mark of the format (`migrations.ts`).
 */
export async function refuseForeignLog({ pool }: Pick<Database, 'pool'>, eventLog: EventLog): Promise<void> {
  if ((await eventLog.head()) === BEGINNING) return;
  const { rows } = await pool.query("SELECT FROM service.counters WHERE name = 'event'");
  if (rows.length > 0) return;
  throw new Error(
    'the event store holds events of another database, or of a version of Signalbox before 1.0.0: set DATABASE_URL to their database, or EVENTSTORE_STREAM_PREFIX to a new prefix.',
  );
}

/** Whether no other process writes rows. */
export const isAlone = (database: Database): boolean => database.kind === 'embedded' && !database.attached;

/** Read models that decide what a credential stands for. */
const CREDENTIAL_PROJECTIONS: readonly Projection[] = [usersProjection, agentKeysProjection];

/** The name of a key that was deleted before this event, by any process; undefined for other events. */
function deletedKeyIn({ type, data }: Pick<LoggedEvent, 'type' | 'data'>): string | undefined {
  if (type === fieldRedacted.type) return fieldKeyName(`${data.event}/${data.field}`);
  return ERASURES.has(type) ? personOf({ kind: data.kind, id: data.id } as PersonRecord) : undefined;
}
const ERASURES: ReadonlySet<string> = new Set([personErased.type, auditEntriesErased.type]);

const changesCredentials = (event: DomainEvent): boolean =>
  CREDENTIAL_PROJECTIONS.some(({ handles, wants }) => handles.has(event.type) && wants?.(event) !== false);

/** The source of the head of the log; undefined: the database that is queried anyway (`positions.ts`). */
function headOf(eventLog: EventLog, { database, config }: Pick<Core, 'database' | 'config'>) {
  if (config.eventStoreUrl) return askedSince(() => eventLog.head(), { failsAll: true });
  // Only this process appends.
  return isAlone(database) ? () => eventLog.headKnown?.() ?? eventLog.head() : undefined;
}

/** Without the extension pg_trgm searches give the same results, but scan every text. */
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
  if (!eventStoreUrl) {
    const checkWritable = isAlone(database) ? createDiskCheck(config.dataDir) : undefined;
    const archiveDir = archiveDirOf(config);
    return openPostgresLog({ database, log, archiveDir, appendTimeoutMs, rowsInFlight, checkWritable });
  }
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
