/** The index over the log (`shared/ports/history/events.ts`), on the rows that the tree's follower writes. */
import { unavailable } from '../../shared/errors.ts';
import { BEGINNING, type EventLog, type Position } from '../../shared/ports/event-log.ts';
import type { EntryFilter, LogIndex, Moment } from '../../shared/ports/history/events.ts';
import { pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import { TREE, UUID } from '../proof/tree.ts';
import { type Bounds, COLUMNS, countUpTo, entryOf, firstBeyond, listing, type Row } from './listing.ts';
import { readerOfEntries } from './reading.ts';

/** Interval between checks whether the index has caught up, milliseconds. */
const LOOK_MS = 10;

export interface LogIndexOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly eventLog: EventLog;
  /** How long to wait for the index, milliseconds. */
  readonly timeoutMs: number;
  /** Called while a caller waits. */
  readonly hurry?: (() => void) | undefined;
}

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

  async function firstNumber(column: 'position' | 'latest', value: number): Promise<number> {
    const { rows } = await pool.query(firstBeyond(column), [value]);
    return (rows[0] as { number: number }).number;
  }

  async function numberUpTo(time: number): Promise<number> {
    const { rows } = await pool.query(countUpTo(), [time]);
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
      ...(until !== undefined && { to: await numberUpTo(until) }),
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
      // An event that is not in the index yet may be of an earlier time, if a clock was set back.
      const isKnown = (last: Moment | undefined) =>
        last !== undefined && 'position' in at && at.position <= last.position;
      if (!isKnown((await ends())?.last)) await settled();
      const beyond = await ('position' in at ? firstNumber('position', at.position) : numberUpTo(at.time));
      const [moment] = await moments('WHERE number = $1', [beyond - 1]);
      return moment;
    },
    async countsUpTo(times) {
      await settled();
      const { rows } = await pool.query(
        `SELECT found.number AS count, coalesce(e.position, 0) AS position
         FROM unnest($1::bigint[]) WITH ORDINALITY t (time, place)
         CROSS JOIN LATERAL (${countUpTo('t.time')}) found
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
    async positionOf(number) {
      const known = async () => (await query('WHERE number = $1', [number]))[0]?.position;
      const there = await known();
      if (there !== undefined) return there;
      await settled();
      return known();
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
    read: readerOfEntries(eventLog, async (number) => (await query('WHERE number = $1', [number - 1]))[0]?.position),
  };
}

const behind = (message: string) => unavailable(message, { code: 'LOG_INDEX_BEHIND' });
