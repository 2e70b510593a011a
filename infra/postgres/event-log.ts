/**
 * The event log on PostgreSQL (a server or PGlite): one table, one total order without gaps.
 *
 * Appends of concurrent callers are grouped: while one statement is in flight the next group gathers, nothing
 * lingers. The row `log.head` is the writers' queue across processes: it is locked until the commit, so positions
 * are taken in commit order and no reader can step over a slow writer. The hot path is one statement: the short
 * one when this process wrote last and knows the streams, else one that looks at them. Whatever does not go through
 * (a conflict, a known id) goes alone through a transaction that sees everything.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { ConflictError, LogUnavailableError, UnknownPositionError } from '../../shared/errors.ts';
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
import { createBackOff, pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { type PreparedEvent, prepareAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';
import type { Logger } from '../logging.ts';
import { type GroupMember, planGroup } from './group.ts';
import { HeadCache, type Start } from './head-cache.ts';
import { Tail } from './tail.ts';

/** One statement carries at most this many appends, events and bytes. */
const GROUP = { appends: 256, events: 2_000, bytes: 4_000_000 };
/** Appends that may wait at once; more are refused, not queued without end. */
const MAX_WAITING = { appends: 10_000, bytes: 64_000_000 };
const READ_BATCH = 1_000;

interface Pending extends GroupMember {
  readonly texts: readonly PreparedEvent[];
  readonly bytes: number;
  readonly deadline: number;
  resolve(result: Appended): void;
  reject(error: Error): void;
}

const GROUP_APPEND = `
  WITH expectation AS (SELECT * FROM unnest($1::text[], $2::int[]) AS e(stream, revision)),
  bad AS (
    SELECT e.stream FROM expectation e
    WHERE e.revision <> coalesce((SELECT max(x.revision) FROM log.events x WHERE x.stream = e.stream), -1)
  ),
  head AS (
    UPDATE log.head SET position = position + $3::int WHERE NOT EXISTS (SELECT FROM bad) RETURNING position - $3::int AS base
  ),
  input AS (
    SELECT * FROM unnest($4::uuid[], $5::text[], $6::int[], $7::boolean[], $8::text[], $9::json[], $10::json[])
      WITH ORDINALITY AS i(id, stream, revision, relative, type, data, meta, ord)
  ),
  written AS (
    INSERT INTO log.events (position, id, stream, revision, type, data, meta)
    SELECT head.base + i.ord, i.id, i.stream,
      CASE WHEN i.relative
        THEN coalesce((SELECT max(x.revision) FROM log.events x WHERE x.stream = i.stream), -1) + 1 + i.revision
        ELSE i.revision END,
      i.type, i.data, i.meta
    FROM head, input i
    RETURNING position, revision
  )
  SELECT (SELECT base FROM head) AS base,
    (SELECT array_agg(stream) FROM bad) AS bad,
    (SELECT array_agg(revision ORDER BY position) FROM written) AS revisions`;

/** For streams whose revisions are known as of a head: written when the head is still that one. */
const APPEND_AT_HEAD = `
  WITH head AS (UPDATE log.head SET position = $2::bigint WHERE position = $1::bigint RETURNING position),
  written AS (
    INSERT INTO log.events (position, id, stream, revision, type, data, meta)
    SELECT * FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::int[], $7::text[], $8::json[], $9::json[])
    WHERE EXISTS (SELECT FROM head)
  )
  SELECT (SELECT position FROM head) AS head`;

/** Parameters of APPEND_AT_HEAD, and the revisions that the events get. */
function valuesAtHead(
  members: readonly Pending[],
  { head, revisions: starts }: Start,
): { values: unknown[]; revisions: number[] } {
  const ends = new Map(starts);
  const positions: Position[] = [];
  const ids: string[] = [];
  const streams: string[] = [];
  const revisions: number[] = [];
  const types: string[] = [];
  const data: string[] = [];
  const meta: string[] = [];
  for (const { stream, events, texts } of members) {
    let revision = ends.get(stream) ?? -1;
    for (const [index, event] of events.entries()) {
      const text = texts[index] as PreparedEvent;
      positions.push(head + positions.length + 1);
      ids.push(event.id);
      streams.push(stream);
      revisions.push(++revision);
      types.push(event.type);
      data.push(text.data);
      meta.push(text.meta);
    }
    ends.set(stream, revision);
  }
  return { values: [head, head + ids.length, positions, ids, streams, revisions, types, data, meta], revisions };
}

/** Parameters of GROUP_APPEND. */
function valuesAnywhere(members: readonly Pending[]): unknown[] {
  const expectations = new Map<string, number>();
  const lastOf = new Map<string, { readonly relative: boolean; readonly revision: number }>();
  const ids: string[] = [];
  const streams: string[] = [];
  const revisions: number[] = [];
  const relatives: boolean[] = [];
  const types: string[] = [];
  const data: string[] = [];
  const meta: string[] = [];
  for (const { stream, events, expected, texts } of members) {
    const known = lastOf.get(stream);
    const relative = known ? known.relative : expected === 'any';
    let revision = known ? known.revision : expected === 'any' || expected === 'none' ? -1 : expected;
    if (!known && !relative) expectations.set(stream, revision);
    for (const [index, event] of events.entries()) {
      const text = texts[index] as PreparedEvent;
      ids.push(event.id);
      streams.push(stream);
      revisions.push(++revision);
      relatives.push(relative);
      types.push(event.type);
      data.push(text.data);
      meta.push(text.meta);
    }
    lastOf.set(stream, { relative, revision });
  }
  const count = ids.length;
  return [
    [...expectations.keys()],
    [...expectations.values()],
    count,
    ids,
    streams,
    revisions,
    relatives,
    types,
    data,
    meta,
  ];
}

const EVENT_COLUMNS = 'position, id, stream, revision, type, data, meta';

/**
 * Up to $2 events behind the position $1, together of at most $3 bytes, but at least one. Row by row, so that nothing
 * behind the last one is read: a large event costs the most to be measured.
 */
const boundedPage = (forwards: boolean) => {
  const next = (position: string) =>
    `SELECT ${EVENT_COLUMNS} FROM log.events WHERE position ${forwards ? '>' : '<'} ${position}
     ORDER BY position ${forwards ? 'ASC' : 'DESC'} LIMIT 1`;
  const size = 'octet_length(e.data::text) + octet_length(e.meta::text)';
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

export interface PostgresLogOptions {
  readonly database: Database;
  readonly log: Logger;
  /** How long an append is retried while the database is away, milliseconds. */
  readonly appendTimeoutMs?: number;
  /** How often a follower looks for events of other processes when nothing wakes it, milliseconds. */
  readonly pollMs?: number;
}

export function openPostgresLog(options: PostgresLogOptions): EventLog {
  return new PostgresLog(options);
}

class PostgresLog implements EventLog {
  readonly #pool: pg.Pool;
  /** Tells other processes of an append; the payload says whose it is. Undefined on the embedded database. */
  readonly #notify: string | undefined;
  readonly #timeoutMs: number;
  readonly #tail: Tail;
  readonly #headCache = new HeadCache();
  readonly #waiting: Pending[] = [];
  /** Of all appends that are not settled. */
  #waitingBytes = 0;
  #pumping: Promise<void> | undefined;
  #closed = false;

  constructor({ database, log, appendTimeoutMs = 10_000, pollMs = 500 }: PostgresLogOptions) {
    this.#pool = database.pool;
    const writer = randomUUID();
    this.#notify = database.kind === 'server' ? `pg_notify('signalbox_log', '${writer}')` : undefined;
    this.#timeoutMs = appendTimeoutMs;
    this.#tail = new Tail({
      read: (after, limit) => this.#readBatch(after, limit),
      head: () => this.head(),
      listener: database.listener,
      writer,
      pollMs,
      log,
    });
  }

  async append(stream: string, events: readonly NewEvent[], expected: Expectation): Promise<Appended> {
    const { events: texts, bytes } = prepareAppend(stream, events, expected);
    if (this.#closed) throw new LogUnavailableError('the event log is closed');
    if (this.#waiting.length >= MAX_WAITING.appends || this.#waitingBytes + bytes > MAX_WAITING.bytes) {
      throw new LogUnavailableError('too many appends are waiting');
    }
    this.#waitingBytes += bytes;
    return new Promise<Appended>((resolve, reject) => {
      const deadline = Date.now() + this.#timeoutMs;
      const prepared = texts.map(({ event }) => event);
      this.#waiting.push({ stream, events: prepared, expected, texts, bytes, deadline, resolve, reject });
      this.#pumping ??= this.#pump();
    }).finally(() => {
      this.#waitingBytes -= bytes;
    });
  }

  async #pump(): Promise<void> {
    while (this.#waiting.length > 0) {
      const { members, rest } = planGroup(this.#takeGroup());
      // What cannot share a statement with its forerunner goes first in the next one: order per stream is kept.
      this.#waiting.unshift(...rest);
      await this.#writeGroup(members);
    }
    // In the same turn as the check above: an append that comes later starts a new pump.
    this.#pumping = undefined;
  }

  #takeGroup(): Pending[] {
    let count = 0;
    let events = 0;
    let bytes = 0;
    for (const pending of this.#waiting) {
      if (count > 0 && (events + pending.events.length > GROUP.events || bytes + pending.bytes > GROUP.bytes)) break;
      count++;
      events += pending.events.length;
      bytes += pending.bytes;
      if (count === GROUP.appends) break;
    }
    return this.#waiting.splice(0, count);
  }

  /** Writes a group in one statement; members that stand in its way go alone. Settles every member; never throws. */
  async #writeGroup(group: Pending[]): Promise<void> {
    let members = group;
    try {
      while (members.length > 0) {
        const bad = await this.#tryGroup(members);
        if (bad === undefined) return;
        for (const member of members.filter((one) => bad.has(one.stream))) await this.#writeAlone(member);
        members = members.filter((one) => !bad.has(one.stream));
      }
    } catch {
      // A taken revision, a known id, or the database went away in between: one by one tells which and why.
      for (const member of members) await this.#writeAlone(member);
    }
  }

  /** Undefined: written and settled. Else the streams whose expectation failed: nothing was written. */
  async #tryGroup(members: readonly Pending[]): Promise<Set<string> | undefined> {
    const known = this.#headCache.startOf(members);
    if (known) {
      const { values, revisions } = valuesAtHead(members, known);
      const moved = await this.#queryKeepingClient('append_at_head', APPEND_AT_HEAD, values);
      if (moved.rows[0].head !== null) {
        this.#settle(members, known.head, revisions);
        return undefined;
      }
      this.#headCache.missed();
    }
    const row = (await this.#queryKeepingClient('append_group', GROUP_APPEND, valuesAnywhere(members))).rows[0] as {
      base: number | null;
      bad: string[] | null;
      revisions: number[] | null;
    };
    if (row.base === null) return new Set(row.bad ?? []);
    this.#settle(members, row.base, row.revisions ?? []);
    return undefined;
  }

  /** Members were written behind `base`, their events at these revisions. */
  #settle(members: readonly Pending[], base: Position, revisions: readonly number[]): void {
    const logged: LoggedEvent[] = [];
    const ends: Appended[] = [];
    for (const { stream, events, texts } of members) {
      for (const [index, event] of events.entries()) {
        const revision = revisions[logged.length] ?? 0;
        const one: LoggedEvent = { ...event, stream, revision, position: base + logged.length + 1 };
        rememberSize(one, (texts[index] as PreparedEvent).data.length);
        logged.push(one);
      }
      const { revision, position } = logged.at(-1) as LoggedEvent;
      ends.push({ revision, position });
    }
    this.#headCache.wrote(base, logged);
    this.#tail.wrote(logged);
    for (const [index, member] of members.entries()) member.resolve(ends[index] as Appended);
  }

  /** `pool.query` would throw the connection away with every refused statement. */
  async #queryKeepingClient(name: string, text: string, values: unknown[]): Promise<pg.QueryResult> {
    const client = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      // See PREPARED in database.ts: only the embedded database prepares.
      return await client.query(this.#notify ? { text: `${text}, ${this.#notify}`, values } : { name, text, values });
    } catch (error) {
      if (isConnectionFailure(error as Error)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** One append in a transaction that sees everything before it; retried while the database is away. Never throws. */
  async #writeAlone(member: Pending): Promise<void> {
    const backOff = createBackOff({ firstMs: 50, lastMs: 1_000 });
    for (;;) {
      try {
        member.resolve(await this.#appendInTransaction(member));
        return;
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        if (!isConnectionFailure(failure)) {
          member.reject(failure);
          return;
        }
        // It may be written all the same, and nobody here listens to a notification of our own.
        this.#tail.look();
        const waitMs = backOff.next();
        if (this.#closed || Date.now() + waitMs > member.deadline) {
          member.reject(new LogUnavailableError('the event log could not be reached in time', { cause: failure }));
          return;
        }
        await pause(waitMs, undefined, { ref: true });
      }
    }
  }

  async #appendInTransaction({ stream, events, expected, texts }: Pending): Promise<Appended> {
    const client = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      // The writers' queue. Every statement after it sees all that was committed before.
      const base = (await client.query('SELECT position FROM log.head FOR UPDATE')).rows[0].position as number;
      const ids = events.map((event) => event.id);
      const known = (
        await client.query(
          'SELECT id, revision, position FROM log.events WHERE id = ANY($1::uuid[]) AND stream = $2 ORDER BY position',
          [ids, stream],
        )
      ).rows as { id: string; revision: number; position: number }[];
      if (known.length > 0) {
        await client.query('ROLLBACK');
        this.#tail.look();
        return answerAgain(stream, ids, expected, known);
      }
      const actual = (
        await client.query('SELECT coalesce(max(revision), -1) AS revision FROM log.events WHERE stream = $1', [stream])
      ).rows[0].revision as number;
      if (expected !== 'any' && actual !== (expected === 'none' ? -1 : expected)) {
        await client.query('ROLLBACK');
        throw new ConflictError(stream, expected, actual);
      }
      const logged = events.map((event, index) => ({
        ...event,
        stream,
        revision: actual + 1 + index,
        position: base + 1 + index,
      }));
      await client.query(
        `INSERT INTO log.events (${EVENT_COLUMNS})
         SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::int[], $5::text[], $6::json[], $7::json[])`,
        [
          logged.map((event) => event.position),
          ids,
          logged.map(() => stream),
          logged.map((event) => event.revision),
          logged.map((event) => event.type),
          texts.map(({ data }) => data),
          texts.map(({ meta }) => meta),
        ],
      );
      await client.query('UPDATE log.head SET position = $1', [base + events.length]);
      if (this.#notify) await client.query(`SELECT ${this.#notify}`);
      await client.query('COMMIT');
      this.#headCache.wrote(base, logged);
      this.#tail.wrote(logged);
      return { revision: actual + events.length, position: base + events.length };
    } catch (error) {
      // A client in an open transaction must not go back to the pool.
      if (!(error instanceof ConflictError)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
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
          ? await this.#query(forwards ? PAGE_FORWARDS : PAGE_BACKWARDS, [from, size, maxBytes])
          : forwards
            ? await this.#readBatch(from, size)
            : await this.#query(
                `SELECT ${EVENT_COLUMNS} FROM log.events WHERE position < $1 ORDER BY position DESC LIMIT $2`,
                [from, size],
              );
      if (batch.length > 0) yield batch;
      // Bounded in bytes, only an empty batch says that nothing follows.
      if (maxBytes === undefined ? batch.length < size : batch.length === 0) return;
      left -= batch.length;
      from = (batch.at(-1) as LoggedEvent).position;
    }
  }

  follow(options: FollowOptions): AsyncIterable<Followed> {
    if (this.#closed) throw new LogUnavailableError('the event log is closed');
    return this.#tail.follow(options);
  }

  async head(): Promise<Position> {
    if (this.#closed) throw new LogUnavailableError('the event log is closed');
    try {
      return (await this.#pool.query('SELECT position FROM log.head')).rows[0].position as number;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#tail.close();
    await this.#pumping;
  }

  #readBatch(after: Position, limit: number): Promise<LoggedEvent[]> {
    return this.#query(`SELECT ${EVENT_COLUMNS} FROM log.events WHERE position > $1 ORDER BY position LIMIT $2`, [
      after,
      limit,
    ]);
  }

  async #query(text: string, values: unknown[]): Promise<LoggedEvent[]> {
    if (this.#closed) throw new LogUnavailableError('the event log is closed');
    try {
      return (await this.#pool.query(text, values)).rows as LoggedEvent[];
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

/** The answer to an append whose ids the log has already: the first answer, or a conflict when only a part matches. */
function answerAgain(
  stream: string,
  ids: readonly string[],
  expected: Expectation,
  known: readonly { id: string; revision: number; position: number }[],
): Appended {
  const last = known.at(-1);
  const same = known.length === ids.length && known.every((row, index) => row.id === ids[index]);
  if (!same || !last) throw new ConflictError(stream, expected);
  return { revision: last.revision, position: last.position };
}
