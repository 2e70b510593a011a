/**
 * Log lines in PostgreSQL (`shared/ports/monitoring/logs.ts`), and how the service's own lines are stored: held in
 * memory, written once a second. While the database is unavailable, as many lines as fit are held, and nothing is
 * logged about that, because it would be one more line to store.
 */
import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { counted, EVERY_TEN_MINUTES_MS, type Schedule, type Setting } from '../../../commands/schedules/schedule.ts';
import { MAX_LINE, OWN_SOURCE } from '../../../shared/contract/monitoring/logs.ts';
import { DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import type { LogEntries, LogEntry, NewLogEntry } from '../../../shared/ports/monitoring/logs.ts';
import { maskedText } from '../../../shared/secret-texts.ts';
import { masked } from '../../../shared/secrets.ts';
import { frontOf, storableText } from '../../../shared/storable.ts';
import { DAY } from '../../../shared/time.ts';
import { settledWithin } from '../../../shared/waiting.ts';
import type { TakenLines } from '../../logging.ts';
import { deleteOld } from '../pieces.ts';

/** Limits per workspace: the newest lines, up to a number and a size in bytes. */
const KEPT = { lines: 10_000, bytes: 8_000_000 };
/** After this many lines, a process checks whether a workspace has too many. */
const TRIM_EVERY = 20;
/** Maximum number of the newest lines of each source that `tail` considers. */
const TAIL = 50;
const MAX_SOURCES = 1_000;
const FLUSH_MS = 1_000;
const BATCH = 200;
/** Maximum number of characters in the data of a line, as JSON. */
const MAX_DATA = 4_000;
/** Time limit for the last lines at shutdown, milliseconds. */
const END_MS = 2_000;

const LINES = 'service.log_entries';
const COLUMNS = 'id, at, level, source, session, message, data';

const BASE36 = 36;
const SUFFIX = 6;
const idOf = (prefix: string, at: number): string =>
  `${prefix}-${at}-${randomInt(BASE36 ** SUFFIX)
    .toString(BASE36)
    .padStart(SUFFIX, '0')}`;

/** The next workspace with lines after `$1`; null: there is none. */
const NEXT_WORKSPACE =
  'SELECT min(workspace) AS workspace FROM service.log_entries WHERE $1::int IS NULL OR workspace > $1';

/** The newest line of workspace `$1` beyond `$2` lines or `$3` bytes; null: there is none. */
const BEYOND = `SELECT max(seq) AS seq FROM (
  SELECT seq, row_number() OVER newest AS place, sum(bytes) OVER newest AS bytes FROM (
    SELECT seq, bytes FROM service.log_entries WHERE workspace = $1 ORDER BY seq DESC LIMIT $2::int + 1
  ) few WINDOW newest AS (ORDER BY seq DESC)
) counted WHERE place > $2 OR bytes > $3`;

/** A text with the special characters of `LIKE` taken literally. */
const literally = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

export interface LogEntryStore extends LogEntries {
  /** Adds lines of the service. */
  addOwn(entries: readonly NewLogEntry[]): Promise<void>;
  /** Deletes lines older than this many days (0: no limit of age), and lines beyond the limits. */
  purge(days: number, now: number, signal?: AbortSignal): Promise<number>;
}

export function createLogEntries(pool: pg.Pool, kept: typeof KEPT = KEPT): LogEntryStore {
  const sinceTrim = new Map<number, number>();

  async function insert(workspace: number, entries: readonly LogEntry[]): Promise<void> {
    const column = <K extends keyof LogEntry>(name: K) => entries.map((entry) => entry[name]);
    await pool.query(
      `INSERT INTO service.log_entries (workspace, id, at, level, source, session, message, data, bytes)
       SELECT $1, id, at, level, source, session, message, data::json,
         octet_length(message) + coalesce(octet_length(data), 0) + 200
       FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
         AS line (id, at, level, source, session, message, data)`,
      [
        workspace,
        column('id'),
        column('at'),
        column('level'),
        column('source'),
        column('session'),
        column('message'),
        entries.map(({ data }) => (data === null ? null : JSON.stringify(data))),
      ],
    );
    const count = (sinceTrim.get(workspace) ?? 0) + entries.length;
    sinceTrim.set(workspace, count % TRIM_EVERY);
    if (count >= TRIM_EVERY) await trim(workspace);
  }

  /** Deletes the oldest lines of a workspace that exceed the limits. */
  async function trim(workspace: number, signal?: AbortSignal): Promise<number> {
    const { rows } = await pool.query(BEYOND, [workspace, kept.lines, kept.bytes]);
    const { seq } = rows[0] as { seq: number | null };
    if (seq === null) return 0;
    return deleteOld(pool, { table: LINES, by: 'seq', before: seq + 1, workspace }, { signal });
  }

  return {
    async add(workspace, entry) {
      const stored = { ...entry, id: idOf('custom', entry.at) };
      await insert(workspace, [stored]);
      return stored;
    },
    addOwn: (entries) =>
      insert(
        DEFAULT_WORKSPACE,
        entries.map((entry) => ({ ...entry, id: idOf(entry.source, entry.at) })),
      ),
    async recent(workspace, { limit, level, session, search, source }) {
      const { rows } = await pool.query(
        `SELECT ${COLUMNS} FROM service.log_entries
         WHERE workspace = $1 AND ($2::text IS NULL OR level = $2) AND ($3::text IS NULL OR session LIKE $3)
           AND ($4::text IS NULL OR message ILIKE $4 OR source ILIKE $4) AND ($5::text IS NULL OR source = $5)
         ORDER BY seq DESC LIMIT $6`,
        [
          workspace,
          level ?? null,
          session === undefined ? null : literally(session),
          search === undefined ? null : literally(search),
          source ?? null,
          limit,
        ],
      );
      return rows as LogEntry[];
    },
    async sources(workspace) {
      const { rows } = await pool.query(
        'SELECT DISTINCT source FROM service.log_entries WHERE workspace = $1 ORDER BY source LIMIT $2',
        [workspace, MAX_SOURCES],
      );
      return (rows as LogEntry[]).map(({ source }) => source);
    },
    async tail(workspace, { since, source, limit }) {
      const { rows } = await pool.query(
        `SELECT ${COLUMNS} FROM (
           SELECT *, row_number() OVER (PARTITION BY source ORDER BY seq DESC) AS place FROM service.log_entries
           WHERE workspace = $1 AND ($2::text IS NULL OR source = $2)
         ) newest WHERE place <= ${TAIL} AND at > $3 ORDER BY seq DESC LIMIT $4`,
        [workspace, source ?? null, since, limit],
      );
      return rows as LogEntry[];
    },
    async purge(days, now, signal) {
      const before = now - days * DAY * 1_000;
      // First, so that fewer lines have to be counted.
      let deleted = days > 0 ? await deleteOld(pool, { table: LINES, by: 'at', before }, { signal }) : 0;
      for (let after: number | null = null; !signal?.aborted; ) {
        const { rows } = await pool.query(NEXT_WORKSPACE, [after]);
        ({ workspace: after } = rows[0] as { workspace: number | null });
        if (after === null) break;
        deleted += await trim(after, signal);
      }
      return deleted;
    },
  };
}

/** Levels of pino. */
const ERROR = 50;

/** The part of a text that PostgreSQL can store. */
const front = (text: string, max: number): string => frontOf(storableText(text), max);

/** The entry of a line that pino wrote. Stack traces are left out: they are on stdout. */
export function entryOf(line: string, process: string): NewLogEntry {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const { type, message, code } = (err ?? {}) as Record<string, unknown>;
  const about = { ...rest, ...(err !== undefined && { err: { type, message, code } }), process };
  const text = JSON.stringify(masked(about), (_key, value) =>
    typeof value === 'string' ? front(maskedText(value), MAX_DATA) : value,
  );
  return {
    at: Date.parse(String(time)),
    level: Number(level) >= ERROR ? 'error' : 'warn',
    source: OWN_SOURCE,
    session: null,
    message: front(String(msg ?? message ?? ''), MAX_LINE),
    data: text.length > MAX_DATA ? { shortened: frontOf(text, MAX_DATA) } : JSON.parse(text),
  };
}

/** Stores the lines of this process at intervals. @returns a function that stores the last ones and stops */
export function keepLines(
  store: Pick<LogEntryStore, 'addOwn'>,
  taken: TakenLines,
  process: string,
): () => Promise<void> {
  async function flush(): Promise<void> {
    for (;;) {
      const lines = taken.first(BATCH);
      const lost = taken.lost();
      const entries = lines.map((line) => entryOf(line, process));
      if (lost > 0) {
        const message = `${lost} lines of the log were not kept, because too many came at once or the database was away`;
        entries.push({ at: Date.now(), level: 'warn', source: OWN_SOURCE, session: null, message, data: { process } });
      }
      if (entries.length === 0) return;
      await store.addOwn(entries);
      taken.drop(lines.length);
    }
  }
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    // Lines that could not be stored are retried in the next turn.
    running ??= flush()
      .catch(() => undefined)
      .finally(() => {
        running = undefined;
      });
  }, FLUSH_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    const last = (async () => {
      await running;
      await flush();
    })().catch(() => undefined);
    await settledWithin(END_MS, last);
  };
}

/** @param now Unix ms */
export const logLinesSchedule = (pool: pg.Pool, setting: Setting, now: () => number): Schedule => ({
  id: 'purge_logs',
  kind: 'purge-logs',
  name: 'Delete old log lines',
  everyMs: EVERY_TEN_MINUTES_MS,
  async run(_asked, signal) {
    const days = Number(await setting('retention.logs_days'));
    return `${counted(await createLogEntries(pool).purge(days, now(), signal), 'line was', 'lines were')} deleted.`;
  },
});
