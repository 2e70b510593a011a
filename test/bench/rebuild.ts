/**
 * Rebuilding every read model from a log of realistic events: events per second until rows, keys and indexes are there,
 * and with the switch. Each rebuild runs in a process of its own, so that its memory and CPU are not those of filling the
 * log.
 *
 * `BENCH_REBUILD_EVENTS` sets the sizes (default `100000,1000000`), `BENCH_REBUILD_STORES` the stores (default
 * `pglite,postgres,eventstore`, as far as there are servers), `BENCH_REBUILD_MINUTES` the most time for one log in one
 * store (default 30). Filling stops after half of it, and what is there by then is rebuilt; a rebuild that takes longer is
 * stopped, and its rate is that of the events that it has read.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { REBUILD_EXEC_ARGV } from '../../infra/cli/rebuild-jobs.ts';
import { createPersonKeys } from '../../infra/credentials/person-keys.ts';
import { type Database, openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openEventStoreLog } from '../../infra/eventstore/event-log.ts';
import { createLogger } from '../../infra/logging.ts';
import { openPostgresLog } from '../../infra/postgres/event-log.ts';
import { ensureTables } from '../../infra/read-models/projector.ts';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { createCounters } from '../../infra/stores/counters.ts';
import { projections } from '../../projections/index.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { writeHistory } from '../support/history.ts';
import { freshPrefix } from './deployment.ts';
import { inFreshPlace, type Place, table, tableLine, timed } from './report.ts';

const log = createLogger('silent');
/** The history covers 90 days, whatever its length. */
const HISTORY_MS = 90 * 86_400_000;

export interface RebuildMeasure {
  /** Events of the log that were read. */
  readonly events: number;
  /** False when the time was up. */
  readonly finished: boolean;
  /** Seconds until the tables can be used, and until they are live. */
  readonly built: number;
  readonly live: number;
  /** At the peak. */
  readonly memoryMb: number;
  readonly cpuSeconds: number;
}

/** Thrown out of filling when its time is up. */
class TimeUp extends Error {}

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

/** Fills an empty place, for `ms` at most. */
export async function fillPlace(place: Place, events: number, ms: number): Promise<void> {
  const begun = performance.now();
  let at = Date.now() - HISTORY_MS;
  const opened = await openPlace(place, () => Math.floor(at));
  try {
    await writeHistory(opened.store, {
      events,
      tick: () => {
        at += HISTORY_MS / events;
        if (performance.now() - begun > ms) throw new TimeUp();
      },
    }).catch((error) => {
      if (!(error instanceof TimeUp)) throw error;
    });
    if (opened.database.kind === 'server' && !place.events)
      await opened.database.pool.query('VACUUM (ANALYZE) log.events');
  } finally {
    await opened.close();
  }
}

/** Rebuilds every read model of a place, for `ms` at most. To be called once in a process. */
export async function measureRebuild(place: Place, ms: number): Promise<RebuildMeasure> {
  const opened = await openPlace(place);
  try {
    let events = 0;
    const cpu = process.cpuUsage();
    const begun = performance.now();
    const seconds = () => (performance.now() - begun) / 1_000;
    const signal = AbortSignal.timeout(Math.max(1, Math.floor(ms)));
    const reports = await rebuildProjections(opened, projections, {
      signal,
      // The live tables are empty. A short log would otherwise count as one that they have nearly caught up with.
      farBehind: 0,
      onProgress: (progress) => {
        events = Math.max(events, progress.events);
      },
    }).catch((error) => {
      if (!signal.aborted) throw error;
      return undefined;
    });
    const live = seconds();
    const { user, system } = process.cpuUsage(cpu);
    return {
      events,
      finished: reports !== undefined,
      built: reports ? Math.max(...reports.map((report) => report.ms.indexes)) / 1_000 : live,
      live,
      memoryMb: Math.round(process.resourceUsage().maxRSS / 1_024),
      cpuSeconds: (user + system) / 1e6,
    };
  } finally {
    await opened.close();
  }
}

/** The same in a process of its own. @throws if that ends without an answer */
export async function measuredApart(place: Place, ms: number): Promise<RebuildMeasure> {
  const script = fileURLToPath(new URL('./rebuild-child.js', import.meta.url));
  // As the command line does.
  const execArgv = place.url === undefined ? process.execArgv : [...process.execArgv, ...REBUILD_EXEC_ARGV];
  const child = fork(script, [JSON.stringify({ place, ms })], { execArgv });
  let measure: RebuildMeasure | undefined;
  child.on('message', (message) => {
    measure = message as RebuildMeasure;
  });
  await once(child, 'exit');
  if (!measure) throw new Error('the process that rebuilds has ended without a result');
  return measure;
}

const COLUMNS = [
  '',
  'events',
  'built, events/s',
  'live, events/s',
  'CPU s per 100,000 events (this process)',
  'peak MB',
] as const;

export async function benchRebuild(): Promise<void> {
  const { BENCH_DATABASE_URL, BENCH_EVENTSTORE_URL } = process.env;
  const sizes = (process.env.BENCH_REBUILD_EVENTS ?? '100000,1000000').split(',').map(Number);
  const stores = (process.env.BENCH_REBUILD_STORES ?? 'pglite,postgres,eventstore').split(',');
  const ms = Number(process.env.BENCH_REBUILD_MINUTES ?? 30) * 60_000;
  const rows: string[][] = [];
  const measure = (name: string, size: number, base?: string, events?: Place['events']) =>
    inFreshPlace(base, async (fresh) => {
      const place = { ...fresh, ...(events && { events }) };
      const [filled] = await timed(() => fillPlace(place, size, ms / 2));
      console.log(`${name}: the log was filled in ${Math.round(filled / 1_000)} s`);
      const one = await measuredApart(place, ms - filled);
      const row = [
        `${name}${one.finished ? '' : ' (stopped: the time was up)'}`,
        one.events.toLocaleString('en'),
        ...[one.built, one.live].map((seconds) => Math.round(one.events / seconds).toLocaleString('en')),
        ((one.cpuSeconds * 1e5) / one.events).toFixed(1),
        one.memoryMb.toLocaleString('en'),
      ];
      rows.push(row);
      console.log(tableLine(row));
    });
  for (const size of sizes) {
    if (stores.includes('pglite')) await measure('PGlite', size);
    if (!BENCH_DATABASE_URL) continue;
    if (stores.includes('postgres')) await measure('PostgreSQL', size, BENCH_DATABASE_URL);
    if (stores.includes('eventstore') && BENCH_EVENTSTORE_URL) {
      const events = { url: BENCH_EVENTSTORE_URL, prefix: freshPrefix() };
      await measure('event store server and PostgreSQL', size, BENCH_DATABASE_URL, events);
    }
  }
  console.log(`\n## Rebuild of all ${projections.length} read models\n`);
  console.log(table(COLUMNS, rows));
}
