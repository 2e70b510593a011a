/**
 * The event log on PostgreSQL (a server or PGlite): one table, one total order without gaps.
 *
 * This file reads it. `append.ts` writes it and explains the order, `tail.ts` follows it.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { LogUnavailableError, UnknownPositionError } from '../../shared/errors.ts';
import {
  type Appended,
  BEGINNING,
  type EventLog,
  type Expectation,
  type Followed,
  type FollowOptions,
  type LoggedEvent,
  type NewEvent,
  type Position,
  type ReadAllOptions,
  type ReadStreamOptions,
} from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { sizeOf } from '../event-log/size.ts';
import type { Logger } from '../logging.ts';
import { Appender, type AppenderOptions, closedError } from './append.ts';
import { ArchivedEvents } from './archived.ts';
import { Origins, type StoredEvent } from './metadata.ts';
import { EVENT_COLUMNS } from './statements.ts';
import { Tail } from './tail.ts';

const READ_BATCH = 1_000;
/** Approximate size of the metadata that is stored elsewhere, bytes. */
const RESTORED_BYTES = 300;

/**
 * Up to $2 events after the position $1, with at most $3 bytes in total, but at least one event. Works row by row:
 * measuring events that are then left out would be expensive for large ones.
 */
const boundedPage = (forwards: boolean) => {
  const next = (position: string) =>
    `SELECT ${EVENT_COLUMNS} FROM log.events WHERE position ${forwards ? '>' : '<'} ${position}
     ORDER BY position ${forwards ? 'ASC' : 'DESC'} LIMIT 1`;
  // Archived events are measured when they have been read.
  const size = `coalesce(octet_length(e.data::text) + octet_length(e.meta::text), 0) + CASE WHEN e.origin IS NULL THEN 0 ELSE ${RESTORED_BYTES} END`;
  return `
  WITH RECURSIVE page AS (
    (SELECT e.*, ${size} AS bytes, 1 AS count FROM (${next('$1::bigint')}) e WHERE $2::int > 0)
    UNION ALL
    SELECT e.*, page.bytes + ${size}, page.count + 1
    FROM page, LATERAL (${next('page.position')}) e
    WHERE page.count < $2::int AND page.bytes + ${size} <= $3::int
  )
  SELECT ${EVENT_COLUMNS} FROM page ORDER BY count`;
};
const PAGE_FORWARDS = boundedPage(true);
const PAGE_BACKWARDS = boundedPage(false);

export interface PostgresLogOptions extends Pick<AppenderOptions, 'rowsInFlight' | 'rowsFirstMs' | 'checkWritable'> {
  readonly database: Database;
  readonly log: Logger;
  /** The directory with the bundles of archived events; undefined: there is none. */
  readonly archiveDir?: string | undefined;
  /** How long an append is retried while the database is unavailable, milliseconds. */
  readonly appendTimeoutMs?: number;
  /** How often a follower polls for events of other processes without a notification, milliseconds. */
  readonly pollMs?: number;
}

export function openPostgresLog(options: PostgresLogOptions): EventLog {
  return new PostgresLog(options);
}

class PostgresLog implements EventLog {
  readonly stride = 1;
  readonly checkWritable: (() => Promise<void>) | undefined;
  readonly #pool: pg.Pool;
  readonly #archived: ArchivedEvents;
  /** See `PREPARED`: only the embedded database prepares. */
  readonly #prepares: boolean;
  readonly #origins: Origins;
  readonly #tail: Tail;
  readonly #appender: Appender;
  #closed = false;

  constructor({ database, log, archiveDir, appendTimeoutMs = 10_000, pollMs = 500, ...rest }: PostgresLogOptions) {
    this.#pool = database.pool;
    this.#archived = new ArchivedEvents(database.pool, archiveDir);
    this.#prepares = database.kind === 'embedded';
    this.#origins = new Origins((text, values) => database.pool.query(text, values));
    const writer = randomUUID();
    this.#tail = new Tail({
      read: (after, limit) => this.#readBatch(after, limit),
      head: () => this.head(),
      listener: database.listener,
      writer,
      pollMs,
      log,
    });
    this.#appender = new Appender({
      pool: database.pool,
      tail: this.#tail,
      notify: database.kind === 'server' ? `pg_notify('signalbox_log', '${writer}')` : undefined,
      timeoutMs: appendTimeoutMs,
      rowsInFlight: rest.rowsInFlight,
      rowsFirstMs: rest.rowsFirstMs,
      checkWritable: rest.checkWritable,
    });
    this.checkWritable = rest.checkWritable;
  }

  append(stream: string, events: readonly NewEvent[], expected: Expectation, unless?: AbortSignal): Promise<Appended> {
    return this.#appender.append(stream, events, expected, unless);
  }

  async *readStream(stream: string, options: ReadStreamOptions = {}): AsyncIterable<readonly LoggedEvent[]> {
    const { direction = 'forwards', limit = Number.MAX_SAFE_INTEGER } = options;
    const forwards = direction === 'forwards';
    let next = options.from ?? (forwards ? 0 : 2_147_483_647);
    for (let left = limit; left > 0; ) {
      const batch = await this.#query(
        `SELECT ${EVENT_COLUMNS} FROM log.events WHERE stream = $1 AND revision ${forwards ? '>=' : '<='} $2
         ORDER BY revision ${forwards ? 'ASC' : 'DESC'} LIMIT $3`,
        [stream, next, Math.min(left, READ_BATCH)],
        `read_stream_${direction}`,
      );
      if (batch.length > 0) yield batch;
      if (batch.length < Math.min(left, READ_BATCH)) return;
      left -= batch.length;
      next = (batch.at(-1) as LoggedEvent).revision + (forwards ? 1 : -1);
    }
  }

  async *readAll(options: ReadAllOptions = {}): AsyncIterable<readonly LoggedEvent[]> {
    const { direction = 'forwards', limit = Number.MAX_SAFE_INTEGER, maxBytes } = options;
    const forwards = direction === 'forwards';
    let from = options.from ?? (forwards ? 0 : Number.MAX_SAFE_INTEGER);
    if (options.from !== undefined && options.from > BEGINNING && options.from > (await this.head())) {
      throw new UnknownPositionError(options.from);
    }
    for (let left = limit; left > 0; ) {
      const size = Math.min(left, READ_BATCH);
      const batch =
        maxBytes !== undefined
          ? await this.#query(forwards ? PAGE_FORWARDS : PAGE_BACKWARDS, [from, size, maxBytes], undefined, maxBytes)
          : forwards
            ? await this.#readBatch(from, size)
            : await this.#query(
                `SELECT ${EVENT_COLUMNS} FROM log.events WHERE position < $1 ORDER BY position DESC LIMIT $2`,
                [from, size],
              );
      if (batch.length > 0) yield batch;
      // If batches are limited in bytes, only an empty batch means the end.
      if (maxBytes === undefined ? batch.length < size : batch.length === 0) return;
      left -= batch.length;
      from = (batch.at(-1) as LoggedEvent).position;
    }
  }

  follow(options: FollowOptions): AsyncIterable<Followed> {
    if (this.#closed) throw closedError();
    return this.#tail.follow(options);
  }

  async head(): Promise<Position> {
    if (this.#closed) throw closedError();
    try {
      return (await this.#pool.query('SELECT position FROM log.head')).rows[0].position as number;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  headKnown(): Position | undefined {
    return this.#tail.head;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const settled = this.#appender.close();
    await this.#tail.close();
    await settled;
  }

  #readBatch(after: Position, limit: number): Promise<LoggedEvent[]> {
    return this.#query(`SELECT ${EVENT_COLUMNS} FROM log.events WHERE position > $1 ORDER BY position LIMIT $2`, [
      after,
      limit,
    ]);
  }

  /**
   * @param name of a repeated statement, for connections that prepare it
   * @param maxBytes limits events that were archived, which the statement cannot measure
   */
  async #query(text: string, values: unknown[], name?: string, maxBytes?: number): Promise<LoggedEvent[]> {
    if (this.#closed) throw closedError();
    try {
      const { rows } = await (name !== undefined && this.#prepares
        ? this.#pool.query({ name, text, values })
        : this.#pool.query(text, values));
      const restored = await this.#origins.restore(rows as StoredEvent[]);
      const events = await this.#archived.complete(restored);
      return maxBytes === undefined || events === restored ? events : withinBytes(events, maxBytes);
    } catch (error) {
      throw asUnavailable(error);
    }
  }
}

function asUnavailable(error: unknown): unknown {
  return error instanceof Error && isConnectionFailure(error)
    ? new LogUnavailableError('the event log could not be reached', { cause: error })
    : error;
}

/** The longest beginning of a page that is within the limit; at least one event. */
function withinBytes(events: LoggedEvent[], maxBytes: number): LoggedEvent[] {
  let bytes = 0;
  const end = events.findIndex((event, n) => {
    bytes += sizeOf(event);
    return n > 0 && bytes > maxBytes;
  });
  return end < 0 ? events : events.slice(0, end);
}
