/** The index over the log (`shared/ports/history/events.ts`), on the rows that the tree's follower writes. */
import { unavailable } from '../../shared/errors.ts';
import { BEGINNING, type EventLog, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';
import type { EntryFilter, LogEntry, LogIndex, Moment } from '../../shared/ports/history/events.ts';
import { pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { sizeOf } from '../event-log/size.ts';
import { indexedId, TREE, UUID } from './tree.ts';

/** Interval between checks whether the index has caught up, milliseconds. */
const LOOK_MS = 10;
/** Maximum number of bytes of events per read. */
const MAX_BYTES = 4_000_000;
/** Maximum number of concurrent reads of streams. */
const READS = 8;
/** Clocks of processes may differ by less than this, milliseconds: `until` is exact within this limit. */
const SKEW_MS = 3_600_000;

export interface LogIndexOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly eventLog: EventLog;
  /** How long to wait for the index, milliseconds. */
  readonly timeoutMs: number;
  /** Called while a caller waits. */
  readonly hurry?: (() => void) | undefined;
}

const COLUMNS = 'number, position, id, stream, revision, type, at, actor, actor_name, causation';

interface Row extends Omit<LogEntry, 'actor'> {
  readonly actor: string;
  readonly actor_name: string;
}

function entryOf({ actor, actor_name: name, ...row }: Row): LogEntry {
  const [type = '', id] = actor.split(':');
  return { ...row, actor: { type, id: Number(id), name } };
}

const ACTOR_KEY = /^[a-z]+:-?\d+$/;

/** The progress of the index, and why it is stuck. */
async function progressOf(
  pool: Database['pool'],
): Promise<{ readonly position: Position; readonly stuck: string | null }> {
  const { rows } = await pool.query(
    'SELECT position, stuck_reason AS stuck FROM service.checkpoints WHERE schema_name = $1',
    [TREE],
  );
  return (rows[0] as { position: Position; stuck: string | null } | undefined) ?? { position: BEGINNING, stuck: null };
}

export function createLogIndex({ database, eventLog, timeoutMs, hurry }: LogIndexOptions): LogIndex {
  const { pool } = database;
  const query = async (text: string, values: unknown[]) =>
    ((await pool.query(`SELECT ${COLUMNS} FROM log.entries ${text}`, values)).rows as Row[]).map(entryOf);

  async function read(entries: readonly LogEntry[]): Promise<readonly LoggedEvent[]> {
    const [first] = entries;
    if (!first) return [];
    const events = entries.every(({ number }, n) => number === first.number + n)
      ? await readInOrder(first, entries.length)
      : await readEach(entries);
    return withinBytes(events);
  }

  /** Consecutive events of the log. */
  async function readInOrder({ number }: LogEntry, count: number): Promise<LoggedEvent[]> {
    const [before] = number === 0 ? [] : await query('WHERE number = $1', [number - 1]);
    const events: LoggedEvent[] = [];
    const from = before?.position ?? BEGINNING;
    let bytes = 0;
    for await (const page of eventLog.readAll({ from, limit: count, maxBytes: MAX_BYTES })) {
      events.push(...page);
      bytes += page.reduce((sum, event) => sum + sizeOf(event), 0);
      if (bytes > MAX_BYTES) break;
    }
    return events;
  }

  async function readEach(entries: readonly LogEntry[]): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for (let n = 0; n < entries.length && bytes <= MAX_BYTES; n += READS) {
      const part = await Promise.all(entries.slice(n, n + READS).map(readOne));
      events.push(...part);
      bytes += part.reduce((sum, event) => sum + sizeOf(event), 0);
    }
    return events;
  }

  async function readOne({ stream, revision, id }: LogEntry): Promise<LoggedEvent> {
    for await (const [event] of eventLog.readStream(stream, { from: revision, limit: 1 })) {
      if (event?.id === id) return event;
    }
    throw new Error(`event ${id} is in the index, and is not in the stream ${stream} at revision ${revision}`);
  }

  async function firstNumber(column: 'position' | 'latest', value: number): Promise<number> {
    const { rows } = await pool.query(firstBeyond(column), [value]);
    return (rows[0] as { number: number }).number;
  }

  /** The event numbers to which a filter is limited. Times limit them only as far as the clocks of processes agree. */
  async function boundsOf({ after, since, until }: EntryFilter): Promise<Bounds> {
    const from = [
      ...(after === undefined ? [] : [await firstNumber('position', after)]),
      ...(since === undefined ? [] : [await firstNumber('latest', since - 1)]),
    ];
    return {
      ...(from.length > 0 && { from: Math.max(...from) }),
      ...(until !== undefined && { to: await firstNumber('latest', until + SKEW_MS) }),
    };
  }

  async function moments(where: string, values: unknown[]): Promise<readonly Moment[]> {
    const { rows } = await pool.query(
      `SELECT position, latest AS at FROM log.entries ${where} ORDER BY number`,
      values,
    );
    return rows as Moment[];
  }

  const ends = async () => {
    const [first, last = first] = await moments(
      'WHERE number = 0 OR number = (SELECT max(number) FROM log.entries)',
      [],
    );
    return first && last && { first, last };
  };

  async function settled(): Promise<void> {
    const head = await eventLog.head();
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const { position, stuck } = await progressOf(pool);
      if (position >= head) return;
      if (stuck !== null)
        throw behind(`The index of the log is stuck at position ${position}: ${stuck}. Run: signalbox verify`);
      if (Date.now() > deadline) {
        throw behind(
          `The index of the log is behind: it has reached position ${position} of ${head}. Try again; if that goes on, see whether a process with the role projector is running.`,
        );
      }
      hurry?.();
      await pause(LOOK_MS, undefined, { ref: true });
    }
  }

  return {
    settled,
    async ends() {
      await settled();
      return ends();
    },
    async idsAt(positions) {
      const { rows } = await pool.query(
        `SELECT e.position, e.id FROM unnest($1::bigint[]) p (position)
         CROSS JOIN LATERAL (${firstBeyond('position', 'p.position')}) found
         JOIN log.entries e ON e.number = found.number - 1 AND e.position = p.position`,
        [positions],
      );
      return new Map((rows as { position: Position; id: string }[]).map(({ position, id }) => [position, id]));
    },
    async momentAt(at) {
      const isKnown = (last: Moment | undefined) =>
        last !== undefined && ('position' in at ? at.position <= last.position : at.time < last.at);
      if (!isKnown((await ends())?.last)) await settled();
      const beyond = await ('position' in at ? firstNumber('position', at.position) : firstNumber('latest', at.time));
      const [moment] = await moments('WHERE number = $1', [beyond - 1]);
      return moment;
    },
    async countsUpTo(times) {
      await settled();
      const { rows } = await pool.query(
        `SELECT found.number AS count, coalesce(e.position, 0) AS position
         FROM unnest($1::bigint[]) WITH ORDINALITY t (time, place)
         CROSS JOIN LATERAL (${firstBeyond('latest', 't.time')}) found
         LEFT JOIN log.entries e ON e.number = found.number - 1 ORDER BY t.place`,
        [times],
      );
      return rows as { count: number; position: Position }[];
    },
    async find(id) {
      if (!UUID.test(id)) return undefined;
      const [entry] = await query('WHERE id = $1 ORDER BY number LIMIT 1', [id]);
      return entry;
    },
    async list(filter, limit) {
      const bounds = await boundsOf(filter);
      return query(...listing(filter, bounds, limit));
    },
    causedBy: (ids, limit) =>
      query('WHERE causation = ANY($1::uuid[]) AND causation <> correlation ORDER BY number LIMIT $2', [
        [...ids],
        limit,
      ]),
    read,
  };
}

const behind = (message: string) => unavailable(message, { code: 'LOG_INDEX_BEHIND' });

/** The longest beginning of the list that is within the limit; at least one event. */
function withinBytes(events: readonly LoggedEvent[]): readonly LoggedEvent[] {
  let bytes = 0;
  const end = events.findIndex((event, n) => {
    bytes += sizeOf(event);
    return n > 0 && bytes > MAX_BYTES;
  });
  return end < 0 ? events : events.slice(0, end);
}

interface Bounds {
  /** The first number, and the one after the last; undefined: of the log. */
  readonly from?: number;
  readonly to?: number;
}

function listing(filter: EntryFilter, { from, to }: Bounds, limit: number): [text: string, values: unknown[]] {
  const values: unknown[] = [];
  const param = (value: unknown) => `$${values.push(value)}`;
  const { stream, type, actor, correlation, causation, since, until } = filter;
  const conditions: string[] = ['true'];
  const is = (column: string, text: string | undefined) => {
    if (text === undefined) return;
    const value = `${param(text)}::text`;
    conditions.push(`hashtext(${column}) = hashtext(${value}) AND ${column} = ${value}`);
  };
  is('stream', stream);
  is('type', type);
  is(actor !== undefined && ACTOR_KEY.test(actor) ? 'actor' : 'actor_name', actor);
  if (correlation !== undefined) conditions.push(`correlation = ${param(indexedId(correlation))}::uuid`);
  if (causation !== undefined) {
    const cause = `${param(indexedId(causation))}::uuid`;
    conditions.push(
      `(causation = ${cause} AND causation <> correlation OR correlation = ${cause} AND causation = ${cause})`,
    );
  }
  if (since !== undefined) conditions.push(`at >= ${param(since)}::bigint`);
  if (until !== undefined) conditions.push(`at <= ${param(until)}::bigint`);
  if (from !== undefined) conditions.push(`number >= ${param(from)}::bigint`);
  if (to !== undefined) conditions.push(`number < ${param(to)}::bigint`);
  return [`WHERE ${conditions.join(' AND ')} ORDER BY number LIMIT ${param(limit)}`, values];
}

/**
 * The number of the first event with a larger value; the number of events if there is none. Binary search: the value of
 * a column never decreases from one event to the next.
 */
const firstBeyond = (column: 'position' | 'latest', value = '$1::bigint'): string => `
  WITH RECURSIVE search AS (
    SELECT 0::bigint AS low, (SELECT coalesce(max(number) + 1, 0) FROM log.entries) AS high
    UNION ALL
    SELECT CASE WHEN e.${column} > ${value} THEN low ELSE e.number + 1 END,
      CASE WHEN e.${column} > ${value} THEN e.number ELSE high END
    FROM search CROSS JOIN LATERAL (
      SELECT number, ${column} FROM log.entries WHERE number = (low + high) / 2 AND low < high) e
  )
  SELECT low AS number FROM search WHERE low = high`;
