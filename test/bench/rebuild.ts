/**
 * Rebuilding every read model from a log of realistic events: events per second until rows, keys and indexes are there,
 * and with the comparison and the switch. `BENCH_REBUILD_EVENTS` sets the sizes (default `100000,1000000`).
 */

import { createPersonKeys } from '../../infra/credentials/person-keys.ts';
import { createCounters } from '../../infra/database/counters.ts';
import { type Database, openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openEventStoreLog } from '../../infra/eventstore/event-log.ts';
import { createLogger } from '../../infra/logging.ts';
import { openPostgresLog } from '../../infra/postgres/event-log.ts';
import { ensureTables } from '../../infra/read-models/projector.ts';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { projections } from '../../projections/index.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { writeHistory } from '../support/history.ts';
import { temporaryDirectory } from '../support/service-process.ts';
import { freshPrefix } from './deployment.ts';
import { freshBenchDatabase, table } from './report.ts';

const log = createLogger('silent');
/** The history covers 90 days, whatever its length. */
const HISTORY_MS = 90 * 86_400_000;

interface Place {
  /** PostgreSQL; unset: PGlite in `dataDir`. */
  readonly url?: string;
  readonly dataDir: string;
  /** The log lies on an event store server. */
  readonly events?: { readonly url: string; readonly prefix: string };
}

export interface RebuildMeasure {
  readonly events: number;
  /** Events of the log per second until the tables can be used, and until they are compared and live. */
  readonly built: number;
  readonly live: number;
  readonly memoryMb: number;
  readonly cpuSeconds: number;
}

/** Opens the stores of a place, as the service would. */
export async function openPlace(place: Place, now: () => number = Date.now) {
  const database: Database = await openDatabase({ ...place, poolSize: 10, statementTimeoutMs: 60_000, log });
  await migrate(database.db);
  await ensureTables(database, projections);
  const eventLog = place.events
    ? await openEventStoreLog({ ...place.events, log })
    : openPostgresLog({ database, log });
  const counters = createCounters(database.pool);
  const keys = createPersonKeys(database);
  const store = createEventStore({ log: eventLog, catalogue, counters, keys, now });
  return {
    database,
    store,
    log,
    config: { dataDir: place.dataDir },
    async close() {
      await eventLog.close();
      await database.close();
    },
  };
}

/** Fills an empty place. */
export async function fillPlace(place: Place, events: number): Promise<void> {
  let at = Date.now() - HISTORY_MS;
  const opened = await openPlace(place, () => Math.floor(at));
  try {
    await writeHistory(opened.store, {
      events,
      tick: () => {
        at += HISTORY_MS / events;
      },
    });
    if (opened.database.kind === 'server' && !place.events)
      await opened.database.pool.query('VACUUM (ANALYZE) log.events');
  } finally {
    await opened.close();
  }
}

/** Rebuilds every read model of a place. */
export async function measureRebuild(place: Place): Promise<RebuildMeasure> {
  const opened = await openPlace(place);
  try {
    let events = 0;
    for await (const batch of opened.store.log.readAll()) events += batch.length;
    let memory = 0;
    const watch = setInterval(() => {
      memory = Math.max(memory, process.memoryUsage.rss());
    }, 50);
    const cpu = process.cpuUsage();
    const begun = performance.now();
    const reports = await rebuildProjections(opened, projections);
    const seconds = (performance.now() - begun) / 1_000;
    clearInterval(watch);
    const { user, system } = process.cpuUsage(cpu);
    const built = Math.max(...reports.map((report) => report.ms.indexes)) / 1_000;
    if (process.env.BENCH_VERBOSE) {
      for (const { projection, events: own, ms } of reports) {
        console.log(`${projection}: ${own} events, ${Object.values(ms).map(Math.round).join(' / ')} ms`);
      }
    }
    return {
      events,
      built: Math.round(events / built),
      live: Math.round(events / seconds),
      memoryMb: Math.round(memory / 2 ** 20),
      cpuSeconds: (user + system) / 1e6,
    };
  } finally {
    await opened.close();
  }
}

export async function benchRebuild(): Promise<void> {
  const sizes = (process.env.BENCH_REBUILD_EVENTS ?? '100000,1000000').split(',').map(Number);
  const rows: string[][] = [];
  const measure = async (name: string, place: Place, size: number) => {
    await fillPlace(place, size);
    const one = await measureRebuild(place);
    rows.push([
      name,
      ...[one.events, one.built, one.live, one.memoryMb].map((n) => n.toLocaleString('en')),
      ((one.cpuSeconds * 1e6) / one.events).toFixed(1),
    ]);
  };
  for (const size of sizes) {
    const directory = await temporaryDirectory();
    await measure('PGlite', { dataDir: directory.path }, size);
    await directory.remove();
    if (!process.env.BENCH_DATABASE_URL) continue;
    const fresh = await freshBenchDatabase(process.env.BENCH_DATABASE_URL);
    await measure('PostgreSQL', { url: fresh.url, dataDir: '' }, size);
    await fresh.drop();
    if (!process.env.BENCH_EVENTSTORE_URL) continue;
    const besides = await freshBenchDatabase(process.env.BENCH_DATABASE_URL);
    const events = { url: process.env.BENCH_EVENTSTORE_URL, prefix: freshPrefix() };
    await measure('event store server and PostgreSQL', { url: besides.url, dataDir: '', events }, size);
    await besides.drop();
  }
  console.log(`\n## Rebuild of all ${projections.length} read models\n`);
  console.log(
    table(
      ['', 'events', 'built, events/s', 'compared and live, events/s', 'peak MB', 'CPU µs/event (this process)'],
      rows,
    ),
  );
}
