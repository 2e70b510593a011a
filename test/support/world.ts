/** Stores without HTTP, for tests of the log, the runner and the commands on any catalogue and projections. */
import { createCommands } from '../../commands/handler.ts';
import { createPersonKeys } from '../../infra/credentials/person-keys.ts';
import { type Database, openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openEventStoreLog } from '../../infra/eventstore/event-log.ts';
import { Following } from '../../infra/following/following.ts';
import { createLogger } from '../../infra/logging.ts';
import { openPostgresLog } from '../../infra/postgres/event-log.ts';
import { createChangeTracker } from '../../infra/read-models/change-tracker.ts';
import { Positions, type PositionsOptions } from '../../infra/read-models/positions.ts';
import { ensureTables, startProjector } from '../../infra/read-models/projector.ts';
import { createReads } from '../../infra/read-models/reads.ts';
import { RowCaches } from '../../infra/read-models/row-cache.ts';
import { createCounters } from '../../infra/stores/counters.ts';
import type { Projection } from '../../projections/projection.ts';
import { createEventStore } from '../../shared/event-store.ts';
import type { EventDefinition } from '../../shared/events/define.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE, type Origin } from '../../shared/events/metadata.ts';
import type { EventLog } from '../../shared/ports/event-log.ts';
import { freshDatabase, SERVERS } from './databases.ts';
import { startEventStoreStandIn } from './eventstore-stand-in.ts';
import { fixture } from './fixture.ts';
import { keptDatabase } from './kept-databases.ts';
import { describeWith } from './needs.ts';

export const testOrigin: Origin = {
  tenant: DEFAULT_TENANT,
  workspace: DEFAULT_WORKSPACE,
  actor: { type: 'user', id: 1, name: 'tester' },
  ip: '192.0.2.1',
  userAgent: null,
  requestId: 'request-1',
  correlationId: 'request-1',
  causationId: 'request-1',
};

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');

/** One process's view of a store: log (in the database unless given), event store, commands, runners. */
export async function openView(
  database: Database,
  definitions: readonly unknown[],
  projections: readonly Projection[],
  eventLog: EventLog = openPostgresLog({ database, log }),
  own?: PositionsOptions['own'],
) {
  const events = definitions as readonly EventDefinition[];
  const counters = createCounters(database.pool);
  const store = createEventStore({
    log: eventLog,
    catalogue: new Map(events.map((one) => [one.type, one])),
    counters,
    keys: createPersonKeys(database),
  });
  const following = new Following({ database, eventLog, log });
  const positions = new Positions({
    database,
    projections,
    log,
    visibleTimeoutMs: 10_000,
    head: () => eventLog.head(),
    own,
  });
  const commands = createCommands({ store, counters, seen: (since) => positions.seen(since) });
  following.reader.watch((position, events) => {
    commands.saw(position, events);
    positions.saw(position, events);
  });
  const changes = createChangeTracker();
  const project = (name: string) =>
    startProjector(projections, {
      database,
      store,
      following,
      positions,
      changes,
      rows: new RowCaches(),
      log,
      process: name,
    });
  return {
    database,
    eventLog,
    store,
    counters,
    positions,
    following,
    commands,
    reads: createReads({ database, projections, positions }),
    project,
    async close() {
      await following.close();
      await eventLog.close();
      await positions.close();
    },
  };
}

/** A database of its own, migrated, for the tests of one suite. */
export interface TestDatabase {
  readonly database: Database;
  /** Of a server. */
  readonly url: string | undefined;
  /** Of PGlite; empty for a server. */
  readonly dataDir: string;
  /** Another process's connections, on a server. */
  other?(): Promise<Database>;
  /** The log, if it is not in the database. */
  openLog?(): Promise<EventLog>;
  close(): Promise<void>;
}

/** A PGlite database. */
export async function embeddedDatabase(): Promise<TestDatabase> {
  const { database, dataDir, giveBack } = await keptDatabase('migrated', {
    poolSize: 10,
    statementTimeoutMs: 15_000,
    log,
  });
  return { database, url: undefined, dataDir, close: giveBack };
}

const openServer = (url: string) => openDatabase({ url, dataDir: '', poolSize: 10, statementTimeoutMs: 15_000, log });

export async function serverDatabase(url: string): Promise<Database> {
  const database = await openServer(url);
  await migrate(database.db);
  await database.watchLosses();
  return database;
}

/** An empty database: of PGlite, or of the server with TEST_STACK=postgres or TEST_STACK=cluster, which is quicker. */
export const testDatabase = (): Promise<TestDatabase> => (SERVERS ? databaseOnServer() : embeddedDatabase());

/** A database with the tables of these projections, and without rows. */
export async function databaseWithTables(
  projections: readonly Projection[],
): Promise<Pick<TestDatabase, 'database' | 'close'>> {
  const place = await testDatabase();
  await ensureTables(place.database, projections);
  return place;
}

/** An empty database on the server of TEST_DATABASE_URL. */
export async function databaseOnServer(): Promise<TestDatabase> {
  const { url, drop } = await freshDatabase();
  const database = await serverDatabase(url);
  return {
    database,
    url,
    dataDir: '',
    other: () => openServer(url),
    async close() {
      await database.close();
      await drop();
    },
  };
}

/** The same, with the log on an event store. */
export async function databaseWithEventStore(): Promise<TestDatabase> {
  const place = await databaseOnServer();
  const standIn = await startEventStoreStandIn();
  return {
    ...place,
    openLog: () => openEventStoreLog({ url: standIn.url, log }),
    async close() {
      await standIn.stop();
      await place.close();
    },
  };
}

/** A suite's database with the tables of these projections, and one process's view of it. */
export function viewOn(
  open: () => Promise<TestDatabase>,
  definitions: readonly unknown[],
  projections: readonly Projection[],
) {
  const place = fixture(open);
  before(() => ensureTables(place.database, projections));
  const view = fixture(async () => openView(place.database, definitions, projections, await place.openLog?.()));
  return { place, view };
}

/** Calls `suite` for each kind of database, and of log beside it; servers only where there are some. */
export function onEveryDatabase(what: string, suite: (name: string, open: () => Promise<TestDatabase>) => void): void {
  suite('PGlite', embeddedDatabase);
  describeWith('TEST_DATABASE_URL', `${what} on a server`, () => {
    suite('PostgreSQL', databaseOnServer);
    suite('PostgreSQL, with the log on an event store', databaseWithEventStore);
  });
}

export { ensureTables };
