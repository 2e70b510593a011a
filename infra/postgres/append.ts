/**
 * Appending to the event log on PostgreSQL.
 *
 * Appends of concurrent callers are grouped: a group has the appends requested in the same turn of the event loop, and
 * while its statement is in flight, the next group gathers; no append waits for a group to fill. The row `log.head`
 * queues the writers of all processes: it stays locked until the commit, so positions are assigned in commit order and
 * no reader can miss a slow writer. Usually a group is one statement: a short one if this process was the last writer
 * and knows the streams, otherwise one that looks them up. Appends that this statement does not accept (a conflict, a
 * known id) are retried alone, in a transaction that sees everything, unless it is certain that they conflict.
 */
import type pg from 'pg';
import { ConflictError, LogUnavailableError } from '../../shared/errors.ts';
import type { Appended, Expectation, LoggedEvent, NewEvent, Position } from '../../shared/ports/event-log.ts';
import { isStoreFault } from '../../shared/store-faults.ts';
import { createBackOff, nextTurn, pause, settledWithin } from '../../shared/waiting.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { type PreparedEvent, prepareAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';
import { planGroup } from './group.ts';
import { HeadCache } from './head-cache.ts';
import { packed } from './metadata.ts';
import {
  APPEND_AT_HEAD,
  GROUP_APPEND,
  type Prepared,
  STREAM_STATE,
  valuesAnywhere,
  valuesAtHead,
} from './statements.ts';
import type { Tail } from './tail.ts';

/** Maximum number of appends, events and bytes in one statement. */
const GROUP = { appends: 256, events: 2_000, bytes: 4_000_000 };
/** Maximum number of waiting appends; further ones are refused. */
const MAX_WAITING = { appends: 10_000, bytes: 64_000_000 };

interface Pending extends Prepared {
  readonly bytes: number;
  readonly deadline: number;
  /** Once aborted, nothing more is sent. */
  readonly unless: AbortSignal | undefined;
  resolve(result: Appended): void;
  reject(error: Error): void;
}

export const closedError = () => new LogUnavailableError('the event log is closed');

export interface AppenderOptions {
  readonly pool: pg.Pool;
  /** Notified of written events, or to read the log when the outcome is unknown. */
  readonly tail: Pick<Tail, 'wrote' | 'look'>;
  /** SQL expression that notifies other processes of an append and its writer. Undefined on the embedded database. */
  readonly notify: string | undefined;
  /** How long an append is retried while the database is unavailable, milliseconds. */
  readonly timeoutMs: number;
  /**
   * For a database that writes appends and rows of read models one after the other: the write of rows in flight. A
   * group sent after it would only wait there, and a group sent before it would delay the responses to the appends
   * whose rows are being written. Until then, the next group grows instead.
   */
  readonly rowsInFlight?: (() => Promise<void> | undefined) | undefined;
  /** Throws while nothing may be written; called before each group. */
  readonly checkWritable?: (() => Promise<void>) | undefined;
  /** Longest time that an append waits for these rows, milliseconds. */
  readonly rowsFirstMs?: number | undefined;
}

export class Appender {
  readonly #options: AppenderOptions;
  readonly #headCache = new HeadCache();
  readonly #waiting: Pending[] = [];
  /** Size of all unsettled appends. */
  #waitingBytes = 0;
  #pumping: Promise<void> | undefined;
  #closed = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** Accepts no more appends, stops retrying, and resolves when those in progress are settled. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#pumping;
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: Expectation,
    unless?: AbortSignal,
  ): Promise<Appended> {
    const { events: texts, bytes } = prepareAppend(stream, events, expected);
    if (this.#closed) throw closedError();
    if (this.#waiting.length >= MAX_WAITING.appends || this.#waitingBytes + bytes > MAX_WAITING.bytes) {
      throw new LogUnavailableError('too many appends are waiting');
    }
    this.#waitingBytes += bytes;
    return new Promise<Appended>((resolve, reject) => {
      const deadline = Date.now() + this.#options.timeoutMs;
      const prepared = texts.map(({ event }) => event);
      const metas = prepared.map(({ meta }) => packed(meta));
      this.#waiting.push({
        stream,
        events: prepared,
        expected,
        texts,
        metas,
        bytes,
        deadline,
        unless,
        resolve,
        reject,
      });
      this.#pumping ??= this.#pump();
    }).finally(() => {
      this.#waitingBytes -= bytes;
    });
  }

  async #pump(): Promise<void> {
    const { rowsInFlight, rowsFirstMs = 20 } = this.#options;
    while (this.#waiting.length > 0) {
      // Appends of the same turn share a statement; followers of the last group can write their rows first.
      await nextTurn();
      const rows = rowsInFlight?.();
      if (rows) await settledWithin(rowsFirstMs, rows);
      const { members, rest } = planGroup(this.#takeGroup());
      // Appends that cannot share the statement come first in the next group, which keeps the order per stream.
      this.#waiting.unshift(...rest);
      await this.#writeGroup(members);
    }
    // In the same turn as the check above, so that a later append starts a new pump.
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

  /**
   * Writes a group in one statement; members that prevent this are written alone. Settles every member; never throws.
   */
  async #writeGroup(group: Pending[]): Promise<void> {
    let members = group.filter((member) => !isOver(member));
    try {
      await this.#options.checkWritable?.();
    } catch (error) {
      for (const member of members) member.reject(error as Error);
      return;
    }
    try {
      while (members.length > 0) {
        const bad = await this.#tryGroup(members);
        if (bad === undefined) return;
        for (const member of members.filter((one) => bad.has(one.stream))) await this.#writeAlone(member);
        members = members.filter((one) => !bad.has(one.stream));
      }
    } catch {
      // A taken revision, a known id, or the database became unavailable: writing one by one shows which.
      for (const member of members) await this.#writeAlone(member);
    }
  }

  /** Undefined when written and settled; otherwise nothing was written, and these streams' expectations failed. */
  async #tryGroup(members: readonly Pending[]): Promise<Set<string> | undefined> {
    const known = this.#headCache.startOf(members);
    if (known) {
      const { values, revisions } = valuesAtHead(members, known);
      const moved = await this.#queryKeepingClient('append_at_head', this.#notifying(APPEND_AT_HEAD), values);
      if (moved.rows[0].head !== null) {
        this.#settle(members, known.head, revisions);
        return undefined;
      }
      this.#headCache.missed();
    }
    const row = (await this.#queryKeepingClient('append_group', this.#notifying(GROUP_APPEND), valuesAnywhere(members)))
      .rows[0] as {
      base: number | null;
      bad: string[] | null;
      revisions: number[] | null;
    };
    if (row.base === null) return new Set(row.bad ?? []);
    this.#settle(members, row.base, row.revisions ?? []);
    return undefined;
  }

  /** Members were written after `base`, their events at these revisions. */
  #settle(members: readonly Pending[], base: Position, revisions: readonly number[]): void {
    const logged: LoggedEvent[] = [];
    const ends: Appended[] = [];
    for (const { stream, events, texts } of members) {
      for (const [index, event] of events.entries()) {
        const revision = revisions[logged.length] ?? 0;
        const { id, type, data, meta } = event;
        const one: LoggedEvent = { stream, revision, position: base + logged.length + 1, id, type, data, meta };
        rememberSize(one, (texts[index] as PreparedEvent).data.length);
        logged.push(one);
      }
      const { revision, position } = logged.at(-1) as LoggedEvent;
      ends.push({ revision, position });
    }
    this.#headCache.wrote(base, logged);
    this.#options.tail.wrote(logged);
    for (const [index, member] of members.entries()) member.resolve(ends[index] as Appended);
  }

  /** The statement, which also notifies other processes. */
  #notifying(text: string): string {
    return this.#options.notify ? `${text}, ${this.#options.notify}` : text;
  }

  /** `pool.query` would close the connection after every rejected statement. */
  async #queryKeepingClient(name: string, text: string, values: unknown[]): Promise<pg.QueryResult> {
    const client = await this.#options.pool.connect();
    let broken: Error | undefined;
    try {
      // See `PREPARED`: only the embedded database prepares.
      return await client.query(this.#options.notify ? { text, values } : { name, text, values });
    } catch (error) {
      // Also after a failover, when the connection leads to a standby.
      if (isStoreFault(error)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /**
   * Writes one append in a transaction that sees everything before it; retried while the database is unavailable. Never
   * throws.
   */
  async #writeAlone(member: Pending): Promise<void> {
    const backOff = createBackOff({ firstMs: 50, lastMs: 1_000 });
    while (!isOver(member)) {
      try {
        const conflict = await this.#certainConflict(member);
        if (conflict) member.reject(conflict);
        else member.resolve(await this.#appendInTransaction(member));
        return;
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        if (!isConnectionFailure(failure)) {
          member.reject(failure);
          return;
        }
        // It may have been written nevertheless, and its notification would be ignored as our own.
        this.#options.tail.look();
        const waitMs = backOff.next();
        if (this.#closed || Date.now() + waitMs > member.deadline) {
          member.reject(new LogUnavailableError('the event log could not be reached in time', { cause: failure }));
          return;
        }
        await pause(waitMs, undefined, { ref: true });
      }
    }
  }

  /**
   * The conflict of an append whose stream has passed the expected revision without its events. That cannot change,
   * because revisions only grow: refusing it takes one statement, while a transaction takes five and blocks all
   * writers.
   */
  async #certainConflict({ stream, events, expected }: Pending): Promise<ConflictError | undefined> {
    if (expected === 'any') return undefined;
    const values = [stream, events.map(({ id }) => id)];
    const { actual, known } = (await this.#queryKeepingClient('stream_state', STREAM_STATE, values)).rows[0] as {
      actual: number;
      known: boolean;
    };
    const isBehind = actual > (expected === 'none' ? -1 : expected);
    return isBehind && !known ? new ConflictError(stream, expected, actual) : undefined;
  }

  async #appendInTransaction(member: Pending): Promise<Appended> {
    const { stream, events, expected } = member;
    const client = await this.#options.pool.connect();
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      // Queues with the other writers. Every later statement sees all that was committed before.
      const base = (await client.query('SELECT position FROM log.head FOR UPDATE')).rows[0].position as number;
      const ids = events.map((event) => event.id);
      const known = (
        await client.query(
          'SELECT id, stream, revision, position FROM log.events WHERE id = ANY($1::uuid[]) ORDER BY position',
          [ids],
        )
      ).rows as Known[];
      if (known.length > 0) {
        await client.query('ROLLBACK');
        this.#options.tail.look();
        return answerAgain(stream, ids, expected, known);
      }
      const actual = (
        await client.query('SELECT coalesce(max(revision), -1) AS revision FROM log.events WHERE stream = $1', [stream])
      ).rows[0].revision as number;
      if (expected !== 'any' && actual !== (expected === 'none' ? -1 : expected)) {
        await client.query('ROLLBACK');
        throw new ConflictError(stream, expected, actual);
      }
      const logged = events.map(({ id, type, data, meta }, index) => ({
        stream,
        revision: actual + 1 + index,
        position: base + 1 + index,
        id,
        type,
        data,
        meta,
      }));
      const { values } = valuesAtHead([member], { head: base, revisions: new Map([[stream, actual]]) });
      await client.query(this.#notifying(APPEND_AT_HEAD), values);
      await client.query('COMMIT');
      this.#headCache.wrote(base, logged);
      this.#options.tail.wrote(logged);
      return { revision: actual + events.length, position: base + events.length };
    } catch (error) {
      // A client with an open transaction must not be returned to the pool.
      if (!(error instanceof ConflictError)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }
}

/** Whether an append must not be sent any more; if so, it is settled. */
function isOver({ unless, reject }: Pending): boolean {
  if (!unless?.aborted) return false;
  reject(new LogUnavailableError('the append was given up'));
  return true;
}

/** An event with one of the ids of an append. */
interface Known {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
}

/**
 * The response to an append whose ids are already in the log: the first response again, or a conflict if only some
 * match, or if they are in another stream.
 */
function answerAgain(stream: string, ids: readonly string[], expected: Expectation, known: readonly Known[]): Appended {
  const last = known.at(-1);
  const same =
    known.length === ids.length && known.every((row, index) => row.id === ids[index] && row.stream === stream);
  if (!same || !last) throw new ConflictError(stream, expected);
  return { revision: last.revision, position: last.position };
}
