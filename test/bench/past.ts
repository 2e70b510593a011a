/**
 * The past: the same queries live and as of moments all over the log, and what versions cost to build and to keep.
 *
 * `BENCH_PAST_EVENTS` sets the sizes (default `12000,100000`), `BENCH_PAST_STORES` the stores (default `pglite,postgres`, as
 * far as there is a server), `BENCH_PAST_CALLS` the calls of each query (default 20). `BENCH_PAST_DATABASE` is a PostgreSQL
 * database that is filled and has its read models with their past: only queries are measured, there. Queries run in this
 * process against the tables, without HTTP and without the cache of responses. Each call as of a moment has one of its own.
 */
import { createReads } from '../../infra/read-models/reads.ts';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import { agentRecord, listAgents } from '../../queries/agents/agents.ts';
import { diagnosticsOf } from '../../queries/agents/diagnostics.ts';
import { listComms } from '../../queries/agents/messages.ts';
import { listUsers } from '../../queries/auth/users.ts';
import { activityStats, listActivities } from '../../queries/monitoring/activities.ts';
import { listAudit } from '../../queries/monitoring/audit.ts';
import type { Reads } from '../../queries/reads.ts';
import { taskOutcomes } from '../../queries/tasks/outcomes.ts';
import { listTasks, taskById } from '../../queries/tasks/tasks.ts';
import { tokensByAgent } from '../../queries/tokens/agent-costs.ts';
import { listTokens } from '../../queries/tokens/reports.ts';
import { tokenStats } from '../../queries/tokens/stats.ts';
import { agentsQuery } from '../../shared/contract/agents/agents.ts';
import { DIAGNOSTICS_SECTIONS } from '../../shared/contract/agents/diagnostics.ts';
import { commsQuery } from '../../shared/contract/agents/messages.ts';
import { windowOf } from '../../shared/contract/agents/scope.ts';
import { activitiesQuery } from '../../shared/contract/monitoring/activities.ts';
import { auditQuery } from '../../shared/contract/monitoring/audit.ts';
import { tasksQuery } from '../../shared/contract/tasks/tasks.ts';
import { taskStatusChanged } from '../../shared/events/tasks/changes.ts';
import { placeOf, taskCreated, taskStream } from '../../shared/events/tasks/tasks.ts';
import { allTasks } from '../../shared/identity.ts';
import { seconds } from '../../shared/time.ts';
import { writeHistory } from '../support/history.ts';
import { TASK } from '../support/tasks.ts';
import { testOrigin } from '../support/world.ts';
import { openPlace } from './rebuild.ts';
import { inFreshPlace, median, type Place, table, timed } from './report.ts';

/** The history covers 90 days, whatever its length. */
const HISTORY_MS = 90 * 86_400_000;
/** One task for so many events; each changes its status four times. */
const EVENTS_PER_TASK = 20;
const STATUSES = ['inbox', 'assigned', 'in_progress', 'review', 'done'];
const WORKSPACE = 1;
const AGENTS = 200;

type Opened = Awaited<ReturnType<typeof openPlace>>;
type Asked = (reads: Reads, now: number) => Promise<unknown>;

const QUERIES: Readonly<Record<string, Asked>> = {
  'agents, 50': (reads) => listAgents(reads, WORKSPACE, agentsQuery.parse({ limit: '50' })),
  'agents, busy': (reads) => listAgents(reads, WORKSPACE, agentsQuery.parse({ status: 'busy' })),
  'tasks, 50': (reads) => listTasks(reads, allTasks(WORKSPACE), tasksQuery.parse({ limit: '50' })),
  'tasks, of an agent': (reads) => listTasks(reads, allTasks(WORKSPACE), tasksQuery.parse({ assigned_to: 'agent-7' })),
  'tasks, by change': (reads) => listTasks(reads, allTasks(WORKSPACE), tasksQuery.parse({ sort: 'updated_at' })),
  'tasks, by priority': (reads) => listTasks(reads, allTasks(WORKSPACE), tasksQuery.parse({ sort: 'priority' })),
  'activities, 50': (reads) => listActivities(reads, allTasks(WORKSPACE), activitiesQuery.parse({ limit: '50' })),
  'audit, 100': (reads) => listAudit(reads, WORKSPACE, auditQuery.parse({ limit: '100' })),
  'comms, 50': (reads) => listComms(reads, allTasks(WORKSPACE), commsQuery.parse({ limit: '50' })),
  users: (reads) => listUsers(reads, WORKSPACE),
  'token reports, 100': (reads, now) => listTokens(reads, WORKSPACE, 'month', now),
  'one agent': (reads) => agentRecord(reads, WORKSPACE, { id: 7 }),
  'one task': (reads) => taskById(reads, allTasks(WORKSPACE), 7),
  'token statistics': (reads, now) => tokenStats(reads, WORKSPACE, 'month', now),
  'tokens by agent': (reads, now) => tokensByAgent(reads, WORKSPACE, 30, now),
  'activity statistics': (reads, now) => activityStats(reads, allTasks(WORKSPACE), 24, seconds(now)),
  'task outcomes': (reads, now) => taskOutcomes(reads, allTasks(WORKSPACE), 'week', seconds(now)),
  diagnostics: (reads, now) =>
    diagnosticsOf(
      reads,
      allTasks(WORKSPACE),
      { id: 7, name: 'agent-7', role: 'coder', status: 'idle' },
      windowOf('24', now),
      new Set(DIAGNOSTICS_SECTIONS),
    ),
};

/** Tasks that are written at the same time. */
const WRITERS = 200;

async function writeTasks(store: Opened['store'], tasks: number): Promise<void> {
  let next = 1;
  const write = async () => {
    for (let id = next++; id <= tasks; id = next++) await writeTask(store, id);
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
}

async function writeTask(store: Opened['store'], id: number): Promise<void> {
  const agent = `agent-${1 + (id % 100)}`;
  const place = { ...placeOf(TASK), assigned_to: agent };
  const task = {
    ...TASK,
    ...place,
    project_ticket_no: id,
    title: `Task ${id}`,
    priority: ['low', 'medium', 'high'][id % 3] as string,
  };
  const drafts = [
    taskCreated.draft({ task_id: id, task, source: 'api' }),
    ...STATUSES.slice(1).map((status, n) =>
      taskStatusChanged.draft({
        task_id: id,
        title: task.title,
        before: { ...placeOf(task), status: STATUSES[n] as string },
        after: { ...placeOf(task), status },
        cause: 'bulk',
        completed_at: null,
      }),
    ),
  ];
  for (const [n, draft] of drafts.entries()) {
    const events = await store.prepare([draft], testOrigin);
    await store.append(taskStream(WORKSPACE, id), events, n === 0 ? 'none' : n - 1);
  }
}

/** Writes a log of so many events over 90 days into an empty place. */
export async function fill(
  place: Place,
  events: number,
  tasks: number = Math.floor(events / EVENTS_PER_TASK),
): Promise<void> {
  let at = Date.now() - HISTORY_MS;
  const opened = await openPlace(place, () => Math.floor(at));
  try {
    const rest = events - tasks * STATUSES.length;
    await Promise.all([
      writeTasks(opened.store, tasks),
      writeHistory(opened.store, {
        events: rest,
        agents: AGENTS,
        tick: () => {
          at += HISTORY_MS / rest;
        },
      }),
    ]);
    if (opened.database.kind === 'server') await opened.database.pool.query('VACUUM (ANALYZE) log.events');
  } finally {
    await opened.close();
  }
}

/** The time of the event after a position, Unix milliseconds. */
async function timeAt(log: Opened['store']['log'], position: number): Promise<number> {
  for await (const [event] of log.readAll({ from: position })) if (event) return Number(event.meta.at);
  throw new Error(`there is no event after ${position}`);
}

/** Medians of calls live and as of moments, in turn, in milliseconds. */
async function measureQuery(
  reads: Reads,
  log: Opened['store']['log'],
  head: number,
  calls: number,
  ask: Asked,
): Promise<[live: number, past: number]> {
  const live: number[] = [];
  const past: number[] = [];
  for (let n = 0; n < calls + 3; n++) {
    const position = Math.floor((head * (n + 0.5)) / (calls + 3));
    const now = await timeAt(log, position);
    const [one] = await timed(() => ask(reads, Date.now()));
    const [other] = await timed(() => ask(reads.asOf(position, now), now));
    // Connections plan their statements first.
    if (n < 3) continue;
    live.push(one);
    past.push(other);
  }
  return [median(live), median(past)];
}

/** Bytes of tables with their indexes, and rows, of the schemas of a kind. */
async function sizeOf({ database }: Opened, schemas: readonly string[]): Promise<{ bytes: number; rows: number }> {
  const { rows } = await database.pool.query(
    `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 AS bytes, coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 AS rows
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = ANY($1)`,
    [schemas],
  );
  return rows[0] as { bytes: number; rows: number };
}

async function measureQueries(opened: Opened): Promise<void> {
  const calls = Number(process.env.BENCH_PAST_CALLS ?? 20);
  const head = await opened.store.log.head();
  const positions = { reachSchemas: async () => head, shown: () => head };
  const reads = createReads({ database: opened.database, projections, positions });
  const rows: string[][] = [];
  for (const [query, ask] of Object.entries(QUERIES)) {
    const [one, other] = await measureQuery(reads, opened.store.log, head, calls, ask);
    rows.push([query, one.toFixed(1), other.toFixed(1), (other / one).toFixed(1)]);
  }
  console.log(table(['query, median of calls', 'live, ms', 'as of, ms', 'times'], rows));
}

async function measurePast(place: Place, events: number, name: string): Promise<void> {
  await fill(place, events);
  const opened = await openPlace(place);
  try {
    const [built] = await timed(() => rebuildProjections(opened, projections, { farBehind: 0, history: true }));
    const live = await sizeOf(opened, projections.map(schemaOf));
    const kept = await sizeOf(
      opened,
      projections.map((one) => `${schemaOf(one)}_history`),
    );
    const mb = (bytes: number) => (bytes / 2 ** 20).toFixed(0);
    console.log(`\n### The past of ${events.toLocaleString('en')} events, ${name}\n`);
    console.log(
      `Read models with their past were built in ${(built / 1_000).toFixed(1)} s, ${Math.round(kept.rows / (built / 1_000))} versions/s. Read models ${mb(live.bytes)} MB; ${Math.round(kept.rows).toLocaleString('en')} versions ${mb(kept.bytes)} MB.\n`,
    );
    await measureQueries(opened);
  } finally {
    await opened.close();
  }
}

export async function benchPast(): Promise<void> {
  const { BENCH_DATABASE_URL, BENCH_PAST_DATABASE } = process.env;
  if (BENCH_PAST_DATABASE) {
    const opened = await openPlace({ url: BENCH_PAST_DATABASE, dataDir: '' });
    try {
      console.log(`\n### The past of ${(await opened.store.log.head()).toLocaleString('en')} events, PostgreSQL\n`);
      await measureQueries(opened);
    } finally {
      await opened.close();
    }
    return;
  }
  const sizes = (process.env.BENCH_PAST_EVENTS ?? '12000,100000').split(',').map(Number);
  const stores = (process.env.BENCH_PAST_STORES ?? 'pglite,postgres').split(',');
  for (const size of sizes) {
    if (stores.includes('pglite')) await inFreshPlace(undefined, (place) => measurePast(place, size, 'embedded'));
    if (stores.includes('postgres') && BENCH_DATABASE_URL)
      await inFreshPlace(BENCH_DATABASE_URL, (place) => measurePast(place, size, 'PostgreSQL'));
  }
}
