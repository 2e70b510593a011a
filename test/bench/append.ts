/** Appends alone, durable: how many events a second the log takes from a number of writers. */
import { randomUUID } from 'node:crypto';
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openEventStoreLog } from '../../infra/eventstore/event-log.ts';
import { createLogger } from '../../infra/logging.ts';
import { openPostgresLog } from '../../infra/postgres/event-log.ts';
import type { EventLog, NewEvent } from '../../shared/ports/event-log.ts';
import { freshPrefix } from './deployment.ts';
import { inFreshPlace, quantile, table } from './report.ts';

const SECONDS = 5;
const data = { agent_id: 1, name: 'agent-1', last_activity: 'Heartbeat', work_items_count: 0, work_item_types: [] };
const meta = {
  version: 1,
  number: 1,
  at: 1,
  tenant: 1,
  workspace: 1,
  actor: { type: 'api', id: 0, name: 'api' },
  ip: null,
};

type Append = (stream: string, event: NewEvent, revision: number) => Promise<unknown>;

/** Each writer appends to a stream of its own, one event after the other. */
async function drive(writers: number, append: Append): Promise<string[]> {
  const latencies: number[] = [];
  const end = performance.now() + SECONDS * 1_000;
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const stream = `bench-${randomUUID()}-${writer}`;
      for (let revision = -1; performance.now() < end; revision++) {
        const begun = performance.now();
        await append(stream, { id: randomUUID(), type: 'Measured', data, meta }, revision);
        latencies.push(performance.now() - begun);
      }
    }),
  );
  const at = (share: number) => quantile(latencies, share).toFixed(2);
  return [String(writers), (latencies.length / SECONDS).toFixed(0), at(0.5), at(0.99)];
}

const through =
  (events: EventLog): Append =>
  (stream, event, revision) =>
    events.append(stream, [event], revision < 0 ? 'none' : revision);

async function measure(place: { url?: string; dataDir: string }, writers: number): Promise<string[]> {
  const log = createLogger('silent');
  const database = await openDatabase({ ...place, poolSize: 4, statementTimeoutMs: 30_000, log });
  await migrate(database.db);
  const events = openPostgresLog({ database, log });
  const row = await drive(writers, through(events));
  await events.close();
  await database.close();
  return row;
}

/** Our adapter and the client it stands on, in turns. */
async function measureEventStore(url: string): Promise<string[][]> {
  const prefix = freshPrefix();
  const events = await openEventStoreLog({ url, prefix, log: createLogger('silent') });
  const client = EventStoreDBClient.connectionString(url);
  const bare: Append = (stream, { id, type }, revision) =>
    client.appendToStream(prefix + stream, jsonEvent({ id, type, data, metadata: meta }), {
      expectedRevision: revision < 0 ? NO_STREAM : BigInt(revision),
    });
  const rows: string[][] = [];
  for (const writers of [1, 32, 32]) {
    rows.push(['adapter', ...(await drive(writers, through(events)))]);
    rows.push(['bare client', ...(await drive(writers, bare))]);
  }
  await events.close();
  await client.dispose();
  return rows;
}

export async function benchAppend(): Promise<void> {
  const head = ['writers', 'events/s', 'p50 ms', 'p99 ms'];
  const { BENCH_DATABASE_URL } = process.env;
  for (const base of [undefined, ...(BENCH_DATABASE_URL ? [BENCH_DATABASE_URL] : [])]) {
    const rows: string[][] = [];
    for (const writers of [1, 16, 128]) rows.push(await inFreshPlace(base, (place) => measure(place, writers)));
    console.log(`\n### Append alone, ${base ? 'PostgreSQL' : 'PGlite'}, one event each\n\n${table(head, rows)}`);
  }
}

export async function benchAppendEventStore(): Promise<void> {
  if (!process.env.BENCH_EVENTSTORE_URL) return;
  const rows = await measureEventStore(process.env.BENCH_EVENTSTORE_URL);
  const head = ['', 'callers', 'events/s', 'p50 ms', 'p99 ms'];
  console.log(`\n### Append alone, event store server, one event each\n\n${table(head, rows)}`);
}
