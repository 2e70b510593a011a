/**
 * The tree over the log: how many events a second are added to it and verified, how many proofs a second it gives, and what
 * it takes of the disk. `BENCH_PROOF_EVENTS`: how many events.
 */
import { createPersonKeys } from '../../infra/credentials/person-keys.ts';
import { type Database, openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { Following } from '../../infra/following/following.ts';
import { createLogIndex } from '../../infra/log-index/log-index.ts';
import { createLogger } from '../../infra/logging.ts';
import { openPostgresLog } from '../../infra/postgres/event-log.ts';
import { startKeeper } from '../../infra/proof/keeper.ts';
import { createProofs } from '../../infra/proof/proofs.ts';
import { treeSize } from '../../infra/proof/tree.ts';
import { verifyLog } from '../../infra/proof/verify-log.ts';
import { createCounters } from '../../infra/stores/counters.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventLog } from '../../shared/ports/event-log.ts';
import { writeHistory } from '../support/history.ts';
import { inFreshPlace, table, timed } from './report.ts';

const EVENTS = Number(process.env.BENCH_PROOF_EVENTS ?? 100_000);
const SETTINGS = { logSigningKey: undefined, logOrigin: undefined };
const log = createLogger('silent');

const perSecond = (count: number, ms: number) => Math.round((count * 1_000) / ms).toLocaleString('en');

/** Runs many at a time, for three seconds. */
async function rateOf(callers: number, work: () => Promise<unknown>): Promise<string> {
  const end = performance.now() + 3_000;
  let done = 0;
  const [ms] = await timed(() =>
    Promise.all(
      Array.from({ length: callers }, async () => {
        for (; performance.now() < end; done++) await work();
      }),
    ),
  );
  return perSecond(done, ms);
}

async function grow(database: Database, eventLog: EventLog): Promise<void> {
  const following = new Following({ database, eventLog, log });
  const config = { ...SETTINGS, eventStoreUrl: undefined };
  const keeper = startKeeper({ database, eventLog, following, config, log, process: 'bench', signs: false });
  await createLogIndex({ database, eventLog, timeoutMs: 3_600_000, hurry: keeper.hurry }).settled();
  await keeper.close();
  await following.close();
}

async function measure(name: string, database: Database): Promise<readonly string[]> {
  const { pool } = database;
  await migrate(database.db);
  const eventLog = openPostgresLog({ database, log });
  const counters = createCounters(pool);
  const store = createEventStore({ log: eventLog, catalogue, counters, keys: createPersonKeys(database) });
  await writeHistory(store, { events: EVENTS });
  const [grown] = await timed(() => grow(database, eventLog));
  const size = await treeSize(pool);
  const [verified, { findings }] = await timed(() => verifyLog(database, eventLog, SETTINGS));
  if (findings.length > 0) throw new Error(findings.join('\n'));
  const proofs = createProofs(database, SETTINGS);
  const anywhere = () => Math.floor(Math.random() * size);
  const inclusion = await rateOf(8, () => proofs.inclusion(anywhere(), size));
  const consistency = await rateOf(8, () => proofs.consistency(1 + anywhere(), size));
  const { rows } = await pool.query(
    `SELECT (pg_total_relation_size('log.entries') + pg_total_relation_size('log.nodes'))::float8 AS tree,
       pg_total_relation_size('log.events')::float8 AS events`,
  );
  const { tree, events } = rows[0] as { tree: number; events: number };
  await eventLog.close();
  return [
    ...[name, size.toLocaleString('en'), perSecond(size, grown), perSecond(size, verified), inclusion, consistency],
    `${Math.round(tree / size)} (log: ${Math.round(events / size)})`,
  ];
}

export async function benchProof(): Promise<void> {
  const rows: (readonly string[])[] = [];
  const { BENCH_DATABASE_URL } = process.env;
  for (const base of [undefined, ...(BENCH_DATABASE_URL ? [BENCH_DATABASE_URL] : [])])
    await inFreshPlace(base, async (place) => {
      const database = await openDatabase({ ...place, poolSize: 10, statementTimeoutMs: 600_000, log });
      rows.push(await measure(base ? 'PostgreSQL' : 'PGlite', database));
      await database.close();
    });
  console.log('\n## Tree over the log\n');
  console.log(
    table(
      ['Store', 'Events', 'Added/s', 'Verified/s', 'Inclusion proofs/s', 'Consistency proofs/s', 'Bytes an event'],
      rows,
    ),
  );
}
