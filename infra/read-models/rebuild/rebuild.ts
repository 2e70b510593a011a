/**
 * Rebuilds read models from the whole log next to the live ones, then replaces these.
 *
 * Several are built from one read of the log: reading, decoding and writing run concurrently, and each event is decoded
 * once. The live tables stay in use meanwhile; the steps for each read model are in `building.ts`, `comparing.ts` and
 * `switching.ts`. An interrupted rebuild continues where it stopped if the code has not changed.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Projection } from '../../../projections/projection.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { BEGINNING, type LoggedEvent, type Position } from '../../../shared/ports/event-log.ts';
import { CODE } from '../../version.ts';
import { charactersOf } from '../row-cache.ts';
import { Building } from './building.ts';
import { compare } from './comparing.ts';
import {
  type Build,
  type Fed,
  openSessions,
  type RebuildOptions,
  type RebuildReport,
  type RebuildStores,
  type Sessions,
  standings,
  type TableReport,
} from './plan.ts';
import { dropBuilt, dropOld, settle } from './switching.ts';
import { WrittenKeys } from './written-keys.ts';

/** Pages of the log read ahead. More would only be promoted to the old generation of the heap. */
const READ_AHEAD = 3;
/** Number of connections that write, on a server. */
const WRITERS = 4;
/** A round this short means that the rebuilt read models have caught up with the live ones. */
const SHORT_ROUND_MS = 300;

/** @throws errors of the projection or the log; the signal's reason. The live tables are then unchanged. */
export async function rebuildProjections(
  stores: RebuildStores,
  projections: readonly Projection[],
  options: RebuildOptions = {},
): Promise<RebuildReport[]> {
  const { database } = stores;
  const writers = database.kind === 'server' ? Math.min(WRITERS, projections.length) : 1;
  const sessions = await openSessions(stores, writers);
  try {
    const build = await planBuild(stores, sessions, projections.length, options);
    const buildings: Building[] = [];
    for (const projection of projections) {
      const building = await Building.open(build, projection);
      await dropOld(building);
      buildings.push(building);
    }
    // The live read models advance while the log is read, so there are several rounds, until little is left.
    for (let last = Number.POSITIVE_INFINITY; ; ) {
      const begun = performance.now();
      for (const building of buildings) await building.aim();
      await build.feed(buildings);
      const took = performance.now() - begun;
      // The round was short, or not much shorter than the previous one: each read model now reads the rest by itself.
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

/** @param count of the read models */
export async function planBuild(
  stores: RebuildStores,
  sessions: Sessions,
  count: number,
  options: RebuildOptions,
): Promise<Build> {
  const { farBehind = 10_000, onProgress } = options;
  const { log } = stores.store;
  const head = await log.head();
  const build: Build = {
    stores,
    sessions,
    room: { characters: 0, written: new WrittenKeys() },
    share: 1 / (4 * count),
    copies: await sessions.use(async ({ copy }) => copy !== undefined),
    code: codeFingerprint(),
    check: options.check ?? false,
    fresh: options.fresh ?? false,
    history: options.history ?? false,
    historyFrom: options.historyFrom ?? BEGINNING,
    replay: options.replay ?? false,
    batchSize: options.batchSize ?? 50_000,
    lockMs: options.lockMs ?? 5_000,
    signal: options.signal ?? new AbortController().signal,
    standing: standings(log, head, farBehind),
    head,
    tell: progressTeller(onProgress),
    feed: (buildings) => feed(build, buildings),
  };
  return build;
}

async function feed(build: Build, buildings: readonly Fed[]): Promise<void> {
  const from = Math.min(...buildings.map((building) => building.position));
  const target = Math.max(...buildings.map((building) => building.target));
  const behind = buildings.filter((building) => building.position < building.target);
  const takers = new Map<string, number[]>();
  for (const [index, { projection }] of behind.entries()) {
    for (const type of projection.handles) {
      const known = takers.get(type);
      if (known) known.push(index);
      else takers.set(type, [index]);
    }
  }
  try {
    if (behind.length > 0) {
      for await (const page of readAhead(build.stores.store.log.readAll({ from }))) {
        build.signal.throwIfAborted();
        const end = Math.min(page.at(-1)?.position ?? from, target);
        const { events, characters } = await decodePage(build, page, takers, target);
        const shares: DomainEvent[][] = behind.map(() => []);
        for (const event of events) for (const index of takers.get(event.type) ?? []) shares[index]?.push(event);
        for (const [index, building] of behind.entries()) {
          const share = shares[index] ?? [];
          await building.take(share, end, share.length === 0 ? 0 : characters);
          if (share.length > 0) await yieldToOthers();
        }
        build.tell({ phase: 'reading the log', position: end, target }, page.length);
        if (end >= target) break;
      }
    }
  } catch (error) {
    // Store the progress for the next run.
    await Promise.allSettled(behind.map((building) => building.flush()));
    throw error;
  }
  for (const building of behind) await building.flush();
}

async function decodePage(
  build: Build,
  page: readonly LoggedEvent[],
  types: { has(type: string): boolean },
  target: Position,
): Promise<{ events: readonly DomainEvent[]; characters: number }> {
  const decoded: (DomainEvent | Promise<DomainEvent>)[] = [];
  let characters = 0;
  for (const event of page) {
    if (event.position > target || !types.has(event.type)) continue;
    // Not awaited one by one: keys that are not in memory are then read together.
    decoded.push(build.stores.store.decode(event, true));
    characters += charactersOf(event.data);
  }
  return { events: await Promise.all(decoded), characters };
}

/** Yields to the event loop, so that the database does not have to wait while we compute. */
const yieldToOthers = () => new Promise((resolve) => setImmediate(resolve));

/** The same pages, but the next ones are read ahead. */
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
  let reportedAt = 0;
  let phase = '';
  return (progress, more = 0) => {
    events += more;
    if (!onProgress || (performance.now() - reportedAt < 100 && progress.phase === phase)) return;
    reportedAt = performance.now();
    phase = progress.phase;
    onProgress({ ...progress, events });
  };
}

/** Identifies the code that turns events into rows: a rebuild must not be continued by different code. */
function codeFingerprint(): string {
  const hash = createHash('sha256');
  for (const room of ['projections', 'shared']) {
    const root = fileURLToPath(new URL(`${room}/`, CODE));
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
