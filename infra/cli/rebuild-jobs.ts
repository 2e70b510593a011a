/**
 * A rebuild by processes of its own, each of some of the read models. Each process reads and decodes the log for itself: a
 * rebuild computes on one thread, so several use more cores.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { historyOf, type Projection, schemaOf } from '../../projections/projection.ts';
import type { Core } from '../core.ts';
import type { RebuildReport } from '../read-models/rebuild/plan.ts';
import type { Progress, Watched } from './progress.ts';

/** Most processes of a rebuild. */
export const MOST_JOBS = 32;

/** What a process of a rebuild sends to the command that started it. */
export type PartMessage =
  | { readonly progress: Progress }
  | { readonly reports: readonly RebuildReport[] }
  | { readonly failure: string };

/**
 * Options of Node for a process of a rebuild. Most objects live as long as a batch, which does not fit in V8's default
 * young generation: with 64 MB, events take a sixth to a third less CPU, and the peak of memory is the same
 * (docs/benchmarks.md). V8 obeys this only from the start of a process.
 */
export const REBUILD_EXEC_ARGV: readonly string[] = ['--max-semi-space-size=64'];

/** What the command sends to its processes: stop. */
export const STOP = 'stop';

/**
 * Divides read models into groups that take about as long as each other.
 *
 * @param jobs how many groups; there are no empty ones
 * @param weights by schema
 */
export function divided(
  projections: readonly Projection[],
  jobs: number,
  weights: ReadonlyMap<string, number>,
): readonly (readonly Projection[])[] {
  const weightOf = (one: Projection) => (weights.get(schemaOf(one)) ?? 0) + one.handles.size;
  const groups = Array.from({ length: Math.min(jobs, projections.length) }, () => ({
    weight: 0,
    projections: [] as Projection[],
  }));
  // The heaviest first, each into the lightest group so far.
  for (const one of projections.toSorted((a, b) => weightOf(b) - weightOf(a))) {
    const lightest = groups.reduce((least, group) => (group.weight < least.weight ? group : least));
    lightest.projections.push(one);
    lightest.weight += weightOf(one);
  }
  return groups.map((group) => group.projections);
}

/** Rows and versions of the live tables, by schema: how much a rebuild writes. Estimates of the database. */
export async function weightsOf(
  { database }: Pick<Core, 'database'>,
  projections: readonly Projection[],
): Promise<ReadonlyMap<string, number>> {
  const schemas = projections.map(schemaOf);
  const { rows } = await database.pool.query(
    `SELECT n.nspname AS schema, sum(greatest(c.reltuples, 0))::float8 AS rows
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = ANY ($1::text[]) AND c.relkind = 'r' GROUP BY 1`,
    [[...schemas, ...schemas.map(historyOf)]],
  );
  const counts = new Map((rows as { schema: string; rows: number }[]).map((row) => [row.schema, row.rows]));
  return new Map(schemas.map((schema) => [schema, (counts.get(schema) ?? 0) + (counts.get(historyOf(schema)) ?? 0)]));
}

/**
 * Runs `signalbox <command> <read models>` in a process for each group, and collects their reports.
 *
 * @param flags options that the processes get as well
 * @throws Error of the first process that fails; the others are then stopped, and keep their progress
 */
export async function rebuildInProcesses(
  groups: readonly (readonly Projection[])[],
  flags: readonly string[],
  { signal, onProgress }: Watched,
): Promise<readonly RebuildReport[]> {
  const states = groups.map((): Progress | undefined => undefined);
  const show = (n: number, progress: Progress) => {
    states[n] = progress;
    const known = states.filter((state) => state !== undefined);
    const slowest = known.reduce((least, state) => (state.position < least.position ? state : least));
    // Each process reads the whole log, so their events are the same ones.
    onProgress({ ...slowest, target: Math.max(...known.map(({ target }) => target)) });
  };
  signal.throwIfAborted();
  const children = groups.map((group) => startPart(group, flags));
  const stopAll = () => {
    for (const child of children) if (child.connected) child.send(STOP, () => undefined);
  };
  let failure: unknown;
  signal.addEventListener('abort', stopAll, { once: true });
  const parts = await Promise.all(
    children.map((child, n) =>
      reportsOf(child, (progress) => show(n, progress)).catch((error) => {
        // The others then fail because they are stopped.
        failure ??= error;
        stopAll();
        return [];
      }),
    ),
  );
  signal.removeEventListener('abort', stopAll);
  signal.throwIfAborted();
  if (failure !== undefined) throw failure;
  return parts.flat();
}

function startPart(group: readonly Projection[], flags: readonly string[]): ChildProcess {
  const names = group.map(({ name }) => name);
  return fork(process.argv[1] as string, ['rebuild', ...names, '--part', ...flags], {
    execArgv: [...process.execArgv, ...REBUILD_EXEC_ARGV],
    // A terminal's interrupt goes to all processes of its group; these are stopped by a message instead.
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
}

/** @throws Error if the process fails, or ends without a report */
async function reportsOf(
  child: ChildProcess,
  onProgress: (progress: Progress) => void,
): Promise<readonly RebuildReport[]> {
  let result: PartMessage | undefined;
  child.on('message', (message: PartMessage) => {
    if ('progress' in message) onProgress(message.progress);
    else result = message;
  });
  const [code, signal] = await once(child, 'close');
  if (result && 'reports' in result) return result.reports;
  const reason =
    result && 'failure' in result ? result.failure : `a process of the rebuild ended with ${signal ?? code}`;
  throw new Error(reason);
}

/** Runs `work` in a process of a rebuild, and sends what it does. */
export async function asPart(work: (watched: Watched) => Promise<readonly RebuildReport[]>): Promise<void> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(new Error('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  process.on('message', interrupt).on('disconnect', interrupt);
  const send = (message: PartMessage): Promise<void> =>
    new Promise((resolve) => {
      if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
      else resolve();
    });
  const report = (progress: Progress) => {
    if (process.connected) process.send?.({ progress } satisfies PartMessage, undefined, undefined, () => undefined);
  };
  try {
    const reports = await work({ signal: stop.signal, onProgress: report });
    await send({ reports });
  } catch (error) {
    await send({ failure: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
  } finally {
    process.off('message', interrupt).off('disconnect', interrupt);
    if (process.connected) process.disconnect();
  }
}
