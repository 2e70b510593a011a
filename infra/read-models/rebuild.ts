/**
 * Builds read models anew from the whole log, beside the live ones, and puts them in their place.
 *
 * Several are built from one read of the log: reading, decoding and writing go on at the same time, and each event is
 * decoded once. The live tables are read and written all the while; what each read model goes through is in
 * `rebuild-lane.ts`. A rebuild that was cut off goes on where it stopped, if the code is still the same.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Projection } from '../../projections/projection.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import { type BulkSession, openBulkSession } from './bulk.ts';
import { Lane } from './rebuild-lane.ts';
import type { Fingerprint } from './tables.ts';

/** What a rebuild needs of a `Core`. */
export interface RebuildStores {
  readonly database: Database;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly log: Logger;
  readonly config: { readonly dataDir: string };
}

export interface RebuildOptions {
  /** Called at most ten times a second. */
  readonly onProgress?: (progress: RebuildProgress) => void;
  /** Aborting leaves what has been built for the next rebuild to go on with. */
  readonly signal?: AbortSignal;
  /** Only compares: the live tables stay. */
  readonly check?: boolean;
  /** Forgets what an interrupted rebuild has built. */
  readonly fresh?: boolean;
  /** Events per transaction; default 5,000. */
  readonly batchSize?: number;
  /** Live tables that lack more events than this (and a twentieth of the log) are not compared with; default 10,000. */
  readonly farBehind?: number;
}

export interface RebuildProgress {
  readonly phase: 'reading the log' | 'indexing' | 'comparing' | 'switching';
  /** Set when the phase is about one read model. */
  readonly projection?: string;
  readonly position: Position;
  readonly target: Position;
  /** Events read by this run. */
  readonly events: number;
}

export interface TableReport {
  readonly table: string;
  /** Undefined: it could not be read. */
  readonly live: Fingerprint | undefined;
  readonly rebuilt: Fingerprint;
  readonly equal: boolean;
}

export interface RebuildReport {
  readonly projection: string;
  readonly schema: string;
  /** What the rebuilt tables show. */
  readonly position: Position;
  /** Of this read model, by this run. */
  readonly events: number;
  /** Empty when `compared` is false. */
  readonly tables: readonly TableReport[];
  /** False when the live tables were far behind the log, or from another one: there was nothing to compare with. */
  readonly compared: boolean;
  /** True when every table was equal, or nothing was compared. */
  readonly equal: boolean;
  readonly switched: boolean;
  /** Milliseconds of this run until the rows, and until keys and indexes were there, and from first to last. */
  readonly ms: { readonly rows: number; readonly indexes: number; readonly total: number };
}

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
      feed: (lanes) => feed(build, lanes),
    };
    const lanes: Lane[] = [];
    for (const projection of projections) lanes.push(await Lane.open(build, projection));
    // The read models move on while the log is read: round after round, until there is little left.
    for (let last = Number.POSITIVE_INFINITY; ; ) {
      const begun = performance.now();
      for (const lane of lanes) await lane.aim();
      await build.feed(lanes);
      const took = performance.now() - begun;
      // Short, or no shorter than the one before: the rest is caught up with by each for itself.
      if (took < SHORT_ROUND_MS || took > last / 2) break;
      last = took;
    }
    const waiting = [...lanes];
    const reports = new Map<Lane, RebuildReport>();
    await Promise.all(
      Array.from({ length: writers }, async () => {
        for (let lane = waiting.shift(); lane; lane = waiting.shift()) reports.set(lane, await lane.finish());
      }),
    );
    return lanes.map((lane) => reports.get(lane) as RebuildReport);
  } finally {
    await sessions.close();
  }
}

/** What the lanes of one rebuild share. */
export interface Build {
  readonly stores: RebuildStores;
  readonly sessions: Sessions;
  /** Whether the sessions can COPY. */
  readonly copies: boolean;
  readonly code: string;
  readonly check: boolean;
  readonly fresh: boolean;
  readonly batchSize: number;
  readonly farBehind: number;
  readonly signal: AbortSignal;
  /** Of the log, at the beginning. */
  readonly head: Position;
  readonly tell: (progress: Omit<RebuildProgress, 'events'>, events?: number) => void;
  /** Reads the log from where the lanes are to where they want to be. */
  readonly feed: (lanes: readonly Lane[]) => Promise<void>;
}

/** Connections that take turns. */
export interface Sessions {
  use<T>(work: (session: BulkSession) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

async function openSessions(stores: RebuildStores, count: number): Promise<Sessions> {
  const opened: BulkSession[] = [];
  const close = async () => {
    for (const session of opened) await session.close();
  };
  try {
    for (let n = 0; n < count; n++) {
      opened.push(await openBulkSession(stores.database, stores.config.dataDir, 'rebuild'));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const free = [...opened];
  const waiting: ((session: BulkSession) => void)[] = [];
  return {
    async use(work) {
      const session = free.pop() ?? (await new Promise<BulkSession>((resolve) => waiting.push(resolve)));
      try {
        return await work(session);
      } finally {
        const next = waiting.shift();
        if (next) next(session);
        else free.push(session);
      }
    },
    close,
  };
}

async function feed(build: Build, lanes: readonly Lane[]): Promise<void> {
  const from = Math.min(...lanes.map((lane) => lane.position));
  const target = Math.max(...lanes.map((lane) => lane.target));
  const behind = lanes.filter((lane) => lane.position < lane.target);
  const types = new Set(behind.flatMap((lane) => [...lane.projection.handles]));
  try {
    if (behind.length > 0) {
      for await (const page of readAhead(build.stores.store.log.readAll({ from }))) {
        build.signal.throwIfAborted();
        const end = Math.min(page.at(-1)?.position ?? from, target);
        const events = await decodePage(build, page, types, target);
        for (const lane of behind) {
          await lane.take(events, end);
          await othersTurn();
        }
        build.tell({ phase: 'reading the log', position: end, target }, page.length);
        if (end >= target) break;
      }
    }
  } catch (error) {
    // What was taken is kept for the next run.
    await Promise.allSettled(behind.map((lane) => lane.flush()));
    throw error;
  }
  for (const lane of behind) await lane.flush();
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
    const root = fileURLToPath(new URL(`../../${room}/`, import.meta.url));
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(js|ts)$/.test(name));
    for (const name of files.sort()) hash.update(name).update(readFileSync(join(root, name)));
  }
  return hash.digest('hex').slice(0, 16);
}
