/** The shared parts of a rebuild: options, reports and connections. */
import type { Projection } from '../../../projections/projection.ts';
import { UnknownPositionError } from '../../../shared/errors.ts';
import type { EventStore } from '../../../shared/event-store.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { Database } from '../../database/database.ts';
import type { Logger } from '../../logging.ts';
import type { Fingerprint } from '../tables.ts';
import { type BulkSession, openBulkSession } from './bulk.ts';
import type { Room } from './rows.ts';

/** The parts of a `Core` that a rebuild needs. */
export interface RebuildStores {
  readonly database: Database;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly log: Logger;
  readonly config: { readonly dataDir: string };
}

export interface RebuildOptions {
  /** Called at most ten times a second. */
  readonly onProgress?: (progress: RebuildProgress) => void;
  /** After an abort, the next rebuild continues from the stored progress. */
  readonly signal?: AbortSignal;
  /** Only compares; the live tables stay as they are. */
  readonly check?: boolean;
  /** Discards the progress of an interrupted rebuild. */
  readonly fresh?: boolean;
  /** Also fills the history of the read models from the beginning of the log. */
  readonly history?: boolean;
  /** Start of the history for reads; default: the beginning of the log. Older versions are removed on a schedule. */
  readonly historyFrom?: Position;
  /** The tables are only for inspection (`replay/replay.ts`), independent of live tables of the same version. */
  readonly replay?: boolean;
  /** Maximum number of events per transaction; default 50,000. */
  readonly batchSize?: number;
  /**
   * Live tables that are behind by more events than this (and a twentieth of the log) are not compared; default 10,000.
   */
  readonly farBehind?: number;
  /** How long a statement waits for a lock before it lets others proceed and retries, milliseconds; default 5,000. */
  readonly lockMs?: number;
}

export interface RebuildProgress {
  readonly phase: 'reading the log' | 'indexing' | 'comparing' | 'switching';
  /** Set when the phase concerns a single read model. */
  readonly projection?: string;
  readonly position: Position;
  readonly target: Position;
  /** Events read by this run. */
  readonly events: number;
}

export interface TableReport {
  readonly table: string;
  /** Undefined if it could not be read. */
  readonly live: Fingerprint | undefined;
  readonly rebuilt: Fingerprint;
  readonly equal: boolean;
}

export interface RebuildReport {
  readonly projection: string;
  readonly schema: string;
  /** Position of the rebuilt tables. */
  readonly position: Position;
  /** Events read for this read model in this run. */
  readonly events: number;
  /** Empty when `compared` is false. */
  readonly tables: readonly TableReport[];
  /** False when no comparison was possible: the live tables were far behind the log, or built from another log. */
  readonly compared: boolean;
  /** True when all tables were equal, or nothing was compared. */
  readonly equal: boolean;
  readonly switched: boolean;
  /** Milliseconds of this run until all rows were written, for adding keys and indexes, and in total. */
  readonly ms: { readonly rows: number; readonly indexes: number; readonly total: number };
}

/** A read model that is being built, from the point of view of the log reader. */
export interface Fed {
  readonly projection: Projection;
  /** Position up to which everything was applied. */
  readonly position: Position;
  /** Where reading stops. */
  readonly target: Position;
  take(events: readonly DomainEvent[], end: Position, characters: number): Promise<void>;
  flush(): Promise<void>;
}

/** The common part of all read models of one rebuild. */
export interface Build
  extends Required<
    Pick<RebuildOptions, 'check' | 'fresh' | 'history' | 'historyFrom' | 'replay' | 'batchSize' | 'lockMs' | 'signal'>
  > {
  readonly stores: RebuildStores;
  readonly sessions: Sessions;
  /** The memory for rows, and the share of it that a read model may always use. */
  readonly room: Room;
  readonly share: number;
  /** Whether the sessions can COPY. */
  readonly copies: boolean;
  readonly code: string;
  readonly standing: (position: Position) => Promise<Standing>;
  /** Head of the log at the beginning. */
  readonly head: Position;
  readonly tell: (progress: Omit<RebuildProgress, 'events'>, events?: number) => void;
  /** Reads the log from the positions of the read models to their targets. */
  readonly feed: (buildings: readonly Fed[]) => Promise<void>;
}

/** Relation of live tables at a position to the log. `foreign`: the log does not have that position. */
export type Standing = 'near' | 'far behind' | 'foreign';

/**
 * Determines the relation of positions to the log. Far behind means more than `limit` events and a twentieth of the
 * log, because a distance of positions is meaningful only relative to the log. Many read models share a position; their
 * events are counted once.
 */
export function standings(
  log: Pick<EventStore['log'], 'readAll'>,
  head: Position,
  limit: number,
): (position: Position) => Promise<Standing> {
  const known = new Map<Position, Promise<Standing>>();
  const count = async (from: Position): Promise<Standing> => {
    let events = 0;
    try {
      const most = head - from > head / 20 ? limit + 1 : 1;
      for await (const page of log.readAll({ from, limit: most })) events += page.length;
    } catch (error) {
      if (!(error instanceof UnknownPositionError)) throw error;
      return 'foreign';
    }
    return events > limit ? 'far behind' : 'near';
  };
  return (position) => {
    const standing = known.get(position) ?? count(position);
    known.set(position, standing);
    return standing;
  };
}

/** A pool of connections for bulk work. */
export interface Sessions {
  use<T>(work: (session: BulkSession) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export async function openSessions(stores: RebuildStores, count: number): Promise<Sessions> {
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
