/**
 * Records in responses of writes: a write does not wait for the read model that shows its record, so the rows are worked
 * out from what the read model has and the events of the record's own stream since. Only for records that depend on no
 * other stream.
 */
import { sql } from 'kysely';
import { type AnyStoredRow, keyText, MemoryTables } from '../projections/apply.ts';
import type { Projection, Row, Table } from '../projections/projection.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent } from '../shared/events/define.ts';
import { createKept } from './kept.ts';
import { type Reads, tableOf } from './reads.ts';

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** What a command has appended, and where its stream is then. */
interface Executed {
  readonly stream: string;
  readonly events: readonly DomainEvent[];
  readonly position: number;
}

export interface Records {
  /**
   * The rows under `key` as they are after a command on the record's stream: those of a deleted record are undefined.
   */
  after<P extends AnyTable, const T extends readonly P[]>(
    projection: Projection<P>,
    wanted: T,
    key: Readonly<Record<string, number>>,
    executed: Executed,
  ): Promise<{ readonly [K in keyof T]: Row<T[K]> | undefined }>;
}

interface Kept {
  readonly rows: MemoryTables;
  /** Of the stream: the last event that the rows show. */
  readonly revision: number;
  readonly position: number;
  readonly size: number;
}

/** Characters that all kept rows of a process may have together. */
const KEPT_CHARACTERS = 16_000_000;
/** Events that are read at a time, the newest first. */
const PAGE = 50;

/** One per process: it keeps the rows of records that were written lately. */
export function createRecords({ reads, store }: { readonly reads: Reads; readonly store: EventStore }): Records {
  // What is there; the rest is in the stream.
  const there = reads.at({});
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

  return {
    async after(projection, wanted, key, { stream, events, position }) {
      const own = kept.of(key.workspace_id ?? 'deployment');
      const name = `${projection.name} ${stream}`;
      const first = events[0]?.revision;
      const known = own.get(name);
      const rows = new MemoryTables();
      const texts = wanted.map((table) => keyText(table, key));
      const copy = (row: AnyStoredRow | undefined, at: number) =>
        rows.set(wanted[at] as Table, texts[at] as string, row);
      const get = (from: MemoryTables) => wanted.map((table, at) => from.get(table, texts[at] as string));
      if (known && (first === undefined ? known.position >= position : known.revision === first - 1)) {
        for (const [at, row] of get(known.rows).entries()) copy(row, at);
        rows.apply(projection, inOrder(events, position));
      } else {
        const stored = await storedRows(there, projection, wanted, key);
        for (const [at, row] of stored.entries()) copy(row, at);
        const shown = Math.max(0, ...stored.map((row) => row?.position ?? 0));
        // Without a row it is not there yet, or was deleted meanwhile: the stream knows how it was.
        rows.apply(projection, await eventsBetween(stream, shown, position));
      }
      const found = get(rows);
      const revision = events.at(-1)?.revision;
      if (revision !== undefined) own.set(name, { rows, revision, position, size: sizeOf(found) });
      return found as never;
    },
  };
}

/** The events of one append, of which only the last position is known: a row takes each of them that is newer than itself. */
const inOrder = (events: readonly DomainEvent[], last: number): DomainEvent[] =>
  events.map((event, index) => ({ ...event, position: last - (events.length - 1 - index) }));

/** In one statement, so that all rows are as of one moment. */
async function storedRows(
  reads: Reads,
  projection: Projection,
  wanted: readonly AnyTable[],
  key: Readonly<Record<string, number>>,
): Promise<readonly (AnyStoredRow | undefined)[]> {
  const isIt = sql.join(
    Object.entries(key).map(([column, value]) => sql`${sql.ref(`r.${column}`)} = ${value}`),
    sql` AND `,
  );
  const { rows } = await sql<{ found: readonly (AnyStoredRow | null)[] }>`SELECT json_build_array(${sql.join(
    wanted.map(({ name }) => sql`(SELECT row_to_json(r) FROM ${tableOf(reads, projection, name)} r WHERE ${isIt})`),
  )}) AS found`.execute(reads.db);
  return wanted.map((_, at) => rows[0]?.found[at] ?? undefined);
}

/** Characters of the rows, about. */
const sizeOf = (rows: readonly (AnyStoredRow | undefined)[]): number => 200 + JSON.stringify(rows).length;
