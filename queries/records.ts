/**
 * Records in responses of writes. A write does not wait for the read model that shows its record, so the rows are
 * computed from the read model's rows and the later events of the record's own stream. Changes by other streams are as
 * the read model has them.
 */
import { sql } from 'kysely';
import { type AnyStoredRow, keyText, MemoryTables } from '../projections/apply.ts';
import type { Projection, Row, Table } from '../projections/projection.ts';
import { notFound } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent } from '../shared/events/define.ts';
import { createKept } from './kept.ts';
import { type Reads, tableOf } from './reads.ts';

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** The events that a command has appended, and the position of its stream after them. */
export interface Executed {
  readonly stream: string;
  readonly events: readonly DomainEvent[];
  readonly position: number;
}

/** The current state of the stream, for callers that wait for changes by others. */
export const latest = (stream: string): Executed => ({ stream, events: [], position: Number.MAX_SAFE_INTEGER });

/** Values of key columns. */
type Key = Readonly<Record<string, string | number>>;

export interface Options {
  /** Set if other streams change the rows, too: then no rows are cached. */
  readonly mixed?: boolean;
}

export interface Records {
  /** The rows under `key` after a command on the record's stream: those of a deleted record are undefined. */
  after<P extends AnyTable, const T extends readonly P[]>(
    projection: Projection<P>,
    wanted: T,
    key: Key,
    executed: Executed,
    options?: Options,
  ): Promise<{ readonly [K in keyof T]: Row<T[K]> | undefined }>;
  /** The rows with these values, for tables of which a record has several rows, all from its own stream. */
  all<P extends AnyTable, T extends P>(
    projection: Projection<P>,
    table: T,
    values: Key,
    executed: Executed,
  ): Promise<readonly Row<T>[]>;
}

/** The row of a record after a command. @param kind for the message @throws AppError 404 when it has been deleted */
export async function rowAfter<P extends AnyTable, T extends P>(
  records: Records,
  kind: string,
  [projection, table]: readonly [Projection<P>, T],
  key: Key,
  executed: Executed,
  options?: Options,
): Promise<Row<T>> {
  const [row] = await records.after(projection, [table], key, executed, options);
  if (!row) throw notFound(kind);
  return row as Row<T>;
}

/** Columns of a row, as a query selects them. */
export const columnsOf = <R extends object, const C extends keyof R>(row: R, columns: readonly C[]): Pick<R, C> =>
  Object.fromEntries(columns.map((column) => [column, row[column]])) as Pick<R, C>;

/**
 * Creates the function that reads a record of a workspace after a command.
 *
 * @param kind for the message
 * @param columns columns of the row in the record
 */
export const recordAfter =
  <P extends AnyTable, T extends P, const C extends keyof Row<T>>(
    kind: string,
    source: readonly [Projection<P>, T],
    columns: readonly C[],
    options?: Options,
  ) =>
  /** @throws AppError 404 when it has been deleted */
  async (records: Records, workspace: number, id: number, executed: Executed): Promise<Pick<Row<T>, C>> =>
    columnsOf(await rowAfter(records, kind, source, { workspace_id: workspace, id }, executed, options), columns);

interface Kept {
  readonly rows: MemoryTables;
  /** Revision of the last event that the rows show. */
  readonly revision: number;
  readonly position: number;
  readonly size: number;
}

/** Maximum number of characters in all cached rows of a process together. */
const KEPT_CHARACTERS = 16_000_000;
/** Events per page, newest first. */
const PAGE = 50;
/** Maximum number of rows of one record in one table: those changed last. */
const MOST = 1_000;
/** Maximum number of events of a stream that is read from its beginning because the read model cannot be read. */
const MOST_EVENTS = 5_000;

/** One per process: it caches the rows of recently written records. */
export function createRecords({ reads, store }: { readonly reads: Reads; readonly store: EventStore }): Records {
  const kept = createKept<Kept>({ characters: KEPT_CHARACTERS, size: ({ size }) => size });

  /** The events of a stream after a position, up to another one. */
  async function eventsBetween(stream: string, after: number, upTo: number): Promise<DomainEvent[]> {
    const events: DomainEvent[] = [];
    for (let from: number | undefined; ; ) {
      let read = 0;
      for await (const page of store.log.readStream(stream, {
        direction: 'backwards',
        limit: PAGE,
        ...(from !== undefined && { from }),
      })) {
        read += page.length;
        for (const event of page) {
          if (event.position <= after) return events.reverse();
          if (event.position <= upTo) events.push(await store.decode(event));
          from = event.revision - 1;
        }
      }
      if (read < PAGE || from === undefined || from < 0) return events.reverse();
    }
  }

  /**
   * The rows of the read model, and the later events of the stream that it does not show yet. If the read model cannot
   * be read, the record is still returned: then there are no rows, and all events of the stream.
   *
   * @throws the error of the read model, if the stream alone does not give the rows
   */
  async function base(
    { stream, events, position }: Executed,
    read: (there: Reads) => Promise<readonly (AnyStoredRow | undefined)[]>,
    mixed = false,
  ): Promise<{ readonly stored: readonly (AnyStoredRow | undefined)[]; readonly since: DomainEvent[] }> {
    // Reads without waiting; the stream has the rest.
    const there = reads.at({});
    const last = events.at(-1)?.revision ?? Number.POSITIVE_INFINITY;
    const suffices = (!mixed || events[0]?.revision === 0) && last < MOST_EVENTS;
    const stored = await read(there).catch((error) => {
      if (!suffices) throw error;
    });
    if (!stored) return { stored: [], since: await eventsBetween(stream, 0, position) };
    const reached = there.position ?? 0;
    const isBefore = reached <= position - Math.max(events.length, 1);
    // A missing row is not there yet, or was deleted since: then the stream is read.
    const hasRows = stored.some((row) => row !== undefined);
    const shown = Math.max(hasRows || isBefore ? reached : 0, ...stored.map((row) => row?.position ?? 0));
    return { stored, since: shown >= position ? [] : await eventsBetween(stream, shown, position) };
  }

  return {
    async after(projection, wanted, key, executed, { mixed = false } = {}) {
      const { stream, events, position } = executed;
      const own = kept.of(typeof key.workspace_id === 'number' ? key.workspace_id : 'deployment');
      const first = events[0]?.revision;
      const rows = new MemoryTables();
      const texts = wanted.map((table) => keyText(table, key));
      const name = `${projection.name} ${stream} ${texts[0]}`;
      const known = mixed ? undefined : own.get(name);
      const copy = (row: AnyStoredRow | undefined, at: number) =>
        rows.set(wanted[at] as Table, texts[at] as string, row);
      const get = (from: MemoryTables) => wanted.map((table, at) => from.get(table, texts[at] as string));
      if (known && (first === undefined ? known.position >= position : known.revision === first - 1)) {
        for (const [at, row] of get(known.rows).entries()) copy(row, at);
        rows.apply(projection, inOrder(events, position));
      } else if (first === 0 && !mixed) {
        // These are all events of the stream.
        rows.apply(projection, inOrder(events, position));
      } else {
        const { stored, since } = await base(executed, (there) => storedRows(there, projection, wanted, key), mixed);
        for (const [at, row] of stored.entries()) copy(row, at);
        rows.apply(projection, since);
      }
      const found = get(rows);
      const revision = events.at(-1)?.revision;
      if (revision !== undefined && !mixed) own.set(name, { rows, revision, position, size: sizeOf(found) });
      return found as never;
    },
    async all(projection, table, values, executed) {
      const { stored, since } = await base(executed, (there) => storedList(there, projection, table, values));
      const rows = new MemoryTables();
      for (const row of stored) if (row) rows.set(table as Table, keyText(table, row), row);
      rows.apply(projection, since);
      const isOne = (row: AnyStoredRow) => Object.entries(values).every(([column, value]) => row[column] === value);
      return rows.rows(table).filter(isOne) as never;
    },
  };
}

/** The events of one append, of which only the last position is known: a row takes those that are newer than itself. */
const inOrder = (events: readonly DomainEvent[], last: number): DomainEvent[] =>
  events.map((event, index) => ({ ...event, position: last - (events.length - 1 - index) }));

/** In one statement, so that all rows show one moment. */
async function storedRows(
  reads: Reads,
  projection: Projection,
  wanted: readonly AnyTable[],
  key: Key,
): Promise<readonly (AnyStoredRow | undefined)[]> {
  const { rows } = await sql<{ found: readonly (AnyStoredRow | null)[] }>`SELECT json_build_array(${sql.join(
    wanted.map(
      ({ name }) => sql`(SELECT row_to_json(r) FROM ${tableOf(reads, projection, name)} r WHERE ${having(key)})`,
    ),
  )}) AS found`.execute(reads.db);
  return wanted.map((_, at) => rows[0]?.found[at] ?? undefined);
}

async function storedList(reads: Reads, projection: Projection, { name }: AnyTable, values: Key) {
  const { rows } = await sql<{ row: AnyStoredRow }>`
    SELECT row_to_json(r) AS row FROM ${tableOf(reads, projection, name)} r
    WHERE ${having(values)} ORDER BY r.position DESC LIMIT ${MOST}`.execute(reads.db);
  return rows.map(({ row }) => row);
}

/** Picks rows `r` with these values. */
const having = (values: Key) =>
  sql.join(
    Object.entries(values).map(([column, value]) => sql`${sql.ref(`r.${column}`)} = ${value}`),
    sql` AND `,
  );

/** Approximate number of characters in the rows. */
const sizeOf = (rows: readonly (AnyStoredRow | undefined)[]): number => 200 + JSON.stringify(rows).length;
