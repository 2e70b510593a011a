/** What the parts of a rebuild share: what is asked for, what is reported, and the connections. */
import type { Projection } from '../../../projections/projection.ts';
import type { EventStore } from '../../../shared/event-store.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { Database } from '../../database/database.ts';
import type { Logger } from '../../logging.ts';
import type { Fingerprint } from '../tables.ts';
import { type BulkSession, openBulkSession } from './bulk.ts';

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

/** A read model that is being filled, as the reading of the log sees it. */
export interface Fed {
  readonly projection: Projection;
  /** Everything up to here was taken. */
  readonly position: Position;
  /** Where reading stops. */
  readonly target: Position;
  take(events: readonly DomainEvent[], end: Position): Promise<void>;
  flush(): Promise<void>;
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
  readonly feed: (lanes: readonly Fed[]) => Promise<void>;
}

/** Connections that take turns. */
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
