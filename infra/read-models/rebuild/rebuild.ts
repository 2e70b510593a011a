/**
 * Builds read models anew from the whole log, beside the live ones, and puts them in their place.
 *
 * Several are built from one read of the log: reading, decoding and writing go on at the same time, and each event is
 * decoded once. The live tables are read and written all the while; what each read model goes through is in
 * `building.ts`, `comparing.ts` and `switching.ts`. A rebuild that was cut off goes on where it stopped, if the code is still the same.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Projection } from '../../../projections/projection.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import { Building } from './building.ts';
import { compare } from './comparing.ts';
import {
  type Build,
  type Fed,
  openSessions,
  type RebuildOptions,
  type RebuildReport,
  type RebuildStores,
  type TableReport,
} from './plan.ts';
import { dropBuilt, dropOld, settle } from './switching.ts';

const BATCH = 5_000;
const FAR_BEHIND = 10_000;
/** Pages of the log read ahead. More would only outlive the young generation of the heap. */
const READ_AHEAD = 3;
/** Events decoded before others get their turn. */
const TURN = 100;
/** Connections that write, on a server. */
const WRITERS = 4;
/** A last round this short means that the read models have been reached. */
const SHORT_ROUND_MS = 300;

export async function rebuildProjection(
  stores: RebuildStores,
  projection: Projection,
  options: RebuildOptions = {},
): Promise<RebuildReport> {
  const [report] = await rebuildProjections(stores, [projection], options);
  return report as RebuildReport;
}

/** @throws what the projection or the log throws; the signal's reason. The live tables are then as they were. */
export async function rebuildProjections(
  stores: RebuildStores,
  projections: readonly Projection[],
  options: RebuildOptions = {},
): Promise<RebuildReport[]> {
  const { database, store } = stores;
  const tell = progressTeller(options.onProgress);
  const writers = database.kind === 'server' ? Math.min(WRITERS, projections.length) : 1;
  const sessions = await openSessions(stores, writers);
  try {
    const build: Build = {
      stores,
      sessions,
      copies: await sessions.use(async ({ copy }) => copy !== undefined),
      code: codeFingerprint(),
      check: options.check ?? false,
      fresh: options.fresh ?? false,
      batchSize: options.batchSize ?? BATCH,
      farBehind: options.farBehind ?? FAR_BEHIND,
      signal: options.signal ?? new AbortController().signal,
      head: await store.log.head(),
      tell,
      feed: (buildings) => feed(build, buildings),
    };
    const buildings: Building[] = [];
    for (const projection of projections) {
      const building = await Building.open(build, projection);
      await dropOld(building);
      buildings.push(building);
    }
    // The read models move on while the log is read: round after round, until there is little left.
    for (let last = Number.POSITIVE_INFINITY; ; ) {
      const begun = performance.now();
      for (const building of buildings) await building.aim();
      await build.feed(buildings);
      const took = performance.now() - begun;
      // Short, or no shorter than the one before: the rest is caught up with by each for itself.
      if (took < SHORT_ROUND_MS || took > last / 2) break;
      last = took;
    }
    const waiting = [...buildings];
    const reports = new Map<Building, RebuildReport>();
    await Promise.all(
      Array.from({ length: writers }, async () => {
        for (let building = waiting.shift(); building; building = waiting.shift())
          reports.set(building, await finish(building));
      }),
    );
    return buildings.map((building) => reports.get(building) as RebuildReport);
  } finally {
    await sessions.close();
  }
}

async function feed(build: Build, buildings: readonly Fed[]): Promise<void> {
  const from = Math.min(...buildings.map((building) => building.position));
  const target = Math.max(...buildings.map((building) => building.target));
  const behind = buildings.filter((building) => building.position < building.target);
  const types = new Set(behind.flatMap((building) => [...building.projection.handles]));
  try {
    if (behind.length > 0) {
      for await (const page of readAhead(build.stores.store.log.readAll({ from }))) {
        build.signal.throwIfAborted();
        const end = Math.min(page.at(-1)?.position ?? from, target);
        const events = await decodePage(build, page, types, target);
        for (const building of behind) {
          await building.take(events, end);
          await othersTurn();
        }
        build.tell({ phase: 'reading the log', position: end, target }, page.length);
        if (end >= target) break;
      }
    }
  } catch (error) {
    // What was taken is kept for the next run.
    await Promise.allSettled(behind.map((building) => building.flush()));
    throw error;
  }
  for (const building of behind) await building.flush();
}

async function decodePage(
  build: Build,
  page: readonly LoggedEvent[],
  types: ReadonlySet<string>,
  target: Position,
): Promise<DomainEvent[]> {
  const events: DomainEvent[] = [];
  for (const event of page) {
    if (event.position > target || !types.has(event.type)) continue;
    const decoded = build.stores.store.decode(event);
    events.push(decoded instanceof Promise ? await decoded : decoded);
    if (events.length % TURN === 0) await othersTurn();
  }
  return events;
}

/** Lets sockets be served: the database shall never wait for us while we compute. */
const othersTurn = () => new Promise((resolve) => setImmediate(resolve));

/** The same pages, the next ones asked for before they are needed. */
async function* readAhead<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  const coming: Promise<IteratorResult<T>>[] = [];
  const ask = () => {
    const next = iterator.next();
    next.catch(() => undefined);
    coming.push(next);
  };
  try {
    for (let n = 0; n < READ_AHEAD; n++) ask();
    for (;;) {
      const next = await (coming.shift() as Promise<IteratorResult<T>>);
      if (next.done) return;
      ask();
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}

function progressTeller(onProgress: RebuildOptions['onProgress']): Build['tell'] {
  let events = 0;
  let told = 0;
  let phase = '';
  return (progress, more = 0) => {
    events += more;
    if (!onProgress || (performance.now() - told < 100 && progress.phase === phase)) return;
    told = performance.now();
    phase = progress.phase;
    onProgress({ ...progress, events });
  };
}

/** Names the code that turns events into rows: what other code began must not be finished by this one. */
function codeFingerprint(): string {
  const hash = createHash('sha256');
  for (const room of ['projections', 'shared']) {
    const root = fileURLToPath(new URL(`../../../${room}/`, import.meta.url));
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(js|ts)$/.test(name));
    for (const name of files.sort()) hash.update(name).update(readFileSync(join(root, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

async function finish(built: Building): Promise<RebuildReport> {
  const { check, signal } = built.build;
  const rows = performance.now() - built.begun;
  built.tell('indexing');
  await built.index();
  const indexes = performance.now() - built.begun;
  await built.catchUp();
  built.tell('comparing');
  const comparison = built.toHead ? undefined : await compare(built);
  signal.throwIfAborted();
  const uncertain = [...(comparison?.values() ?? [])].some((table) => !table.certain);
  if (!check || uncertain) await settle(built, comparison);
  if (check) await dropBuilt(built);
  else await dropOld(built);

  const tables = [...(comparison ?? [])].map(
    ([table, { live, rebuilt }]): TableReport => ({
      table,
      live,
      rebuilt,
      equal: live?.hash === rebuilt.hash && live.rows === rebuilt.rows,
    }),
  );
  return {
    projection: built.projection.name,
    schema: built.live,
    position: built.position,
    events: built.events,
    tables,
    compared: comparison !== undefined,
    equal: tables.every((table) => table.equal),
    switched: !check,
    ms: { rows, indexes, total: performance.now() - built.begun },
  };
}
