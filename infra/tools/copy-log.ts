/**
 * Copies an event log from one store to another, event by event in log order, with ids, streams and revisions; then the
 * data that belongs to the log but is not in it: counters, persons' keys, credentials, checkpoints of policies.
 *
 * It can be interrupted at any point and run again: after checking that the target has the beginning of the source, it
 * continues after the target's last event. At the end, both sides are read and compared from the first event to the
 * last. Read models are not copied, because the service builds them.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { canonicalJson } from '../../shared/canonical-json.ts';
import { ConflictError } from '../../shared/errors.ts';
import {
  type Appended,
  BEGINNING,
  type EventLog,
  type LoggedEvent,
  MAX_APPEND_BYTES,
  MAX_APPEND_EVENTS,
  type Position,
} from '../../shared/ports/event-log.ts';
import type { AnyDatabase, Database } from '../database/database.ts';
import { writeLeases } from './leases.ts';
import { type RelatedRows, readRelated, writeRelated } from './related.ts';

/** One side of a copy. */
export interface CopySide {
  /** For messages, without passwords. */
  readonly name: string;
  readonly log: EventLog;
  /** The database with counters, credentials and leases; without it, only the log is copied. */
  readonly database: Database | undefined;
  /** What belongs to a source that is not in a database. */
  readonly related?: Related;
}

interface Related {
  readonly rows: () => Promise<RelatedRows>;
  readonly policies: () => Promise<readonly PolicyCheckpoint[]>;
}

const relatedOf = ({ db }: Database): Related => ({
  rows: () => readRelated(db),
  policies: () => policyCheckpoints(db),
});

export interface CopyOptions {
  /** Without the data that belongs to the log. */
  readonly logOnly?: boolean;
  /** Called at intervals; `phase` changes once. `events` counts those of this run. */
  readonly onProgress?: (progress: {
    readonly phase: 'copying' | 'comparing';
    readonly events: number;
    readonly position: Position;
    readonly target: Position;
  }) => void;
  /** After an abort, the copy can be resumed. */
  readonly signal?: AbortSignal;
}

export interface CopyReport {
  /** Events appended by this run. */
  readonly copied: number;
  /** Events that the target holds. */
  readonly events: number;
  /** SHA-256 over every event of the target; each was compared with the source's. */
  readonly sha256: string;
  /** Rows copied per table; undefined when only the log was copied. */
  readonly rows: Readonly<Record<string, number>> | undefined;
}

/** The copy is not possible, or differs from the source; the message says why and what to do. */
export class CopyError extends Error {}

/** Maximum number of appends in flight, and of their bytes: below the adapters' limits, but enough for full groups. */
const IN_FLIGHT = { appends: 1_000, bytes: 8_000_000 };
/** How many events at the end of the target are compared with the source before the copy is continued. */
const OVERLAP = 2_000;
const PROGRESS_EVERY = 500;

export async function copyLog(source: CopySide, target: CopySide, options: CopyOptions = {}): Promise<CopyReport> {
  const related = source.related ?? (source.database && relatedOf(source.database));
  const both = related && target.database && !options.logOnly ? { related, to: target.database } : undefined;
  if (source.database) await writeLeases({ database: source.database, eventLog: source.log });
  const after = await findStart(source, target);
  if (both) {
    const rows = await both.related.rows();
    if (after === BEGINNING) await refuseForeignCredentials(target.name, rows, both.to.db);
    // Before the events as well, so that an incomplete target has the keys of its events.
    await writeRelated(both.to.db, rows);
  }
  const copied = await copyEvents(source, target, after, options);
  const policies = both ? await both.related.policies() : [];
  const compared = await compare(source, target, policies, options);
  const rows = both && {
    ...(await writeRelated(both.to.db, await both.related.rows())),
    'service.checkpoints': await storePolicies(both.to.db, policies, compared.positions),
  };
  return { copied, events: compared.events, sha256: compared.sha256, rows };
}

/** Position in the source after which to continue. @throws CopyError when the target has other events */
async function findStart(source: CopySide, target: CopySide): Promise<Position> {
  const last = (await gather(target.log.readAll({ direction: 'backwards', limit: OVERLAP }))).reverse();
  const end = last.at(-1);
  if (!end) return BEGINNING;
  const foreign = (event: LoggedEvent) =>
    new CopyError(
      `${target.name} holds events that ${source.name} does not have, or has at another position (${event.stream}, revision ${event.revision}). Copy into an empty target.`,
    );
  const [same] = await gather(source.log.readStream(end.stream, { from: end.revision, limit: 1 }));
  if (same?.id !== end.id) throw foreign(end);
  const before = await gather(
    source.log.readAll({ direction: 'backwards', from: same.position, limit: last.length - 1 }),
  );
  const mine = [...before.reverse(), same];
  for (const [index, event] of last.entries()) {
    const other = mine[index];
    if (!other || !equal(other, event)) throw foreign(event);
  }
  return same.position;
}

async function copyEvents(
  source: CopySide,
  target: CopySide,
  after: Position,
  { onProgress, signal }: CopyOptions,
): Promise<number> {
  const head = await source.log.head();
  const inFlight: { readonly append: Promise<Appended>; readonly bytes: number }[] = [];
  let bytesInFlight = 0;
  let last: Position = BEGINNING;
  let copied = 0;
  let reported = 0;
  /** Waits for the oldest append. The target must have the events in the order of the calls. */
  const settle = async () => {
    const { append, bytes } = inFlight[0] as (typeof inFlight)[0];
    const { position } = await append;
    inFlight.shift();
    bytesInFlight -= bytes;
    if (position <= last) {
      throw new CopyError(
        `${target.name} has written events in another order than they were sent, which can happen after a broken connection. Start again with an empty target.`,
      );
    }
    last = position;
  };
  try {
    for await (const page of source.log.readAll({ from: after })) {
      signal?.throwIfAborted();
      for (const run of runsOf(page)) {
        const bytes = run.reduce((sum, event) => sum + sizeOf(event), 0);
        while (inFlight.length > 0 && (inFlight.length >= IN_FLIGHT.appends || bytesInFlight + bytes > IN_FLIGHT.bytes))
          await settle();
        const { stream, revision } = run[0] as LoggedEvent;
        const events = run.map(({ id, type, data, meta }) => ({ id, type, data, meta }));
        const append = target.log.append(stream, events, revision === 0 ? 'none' : revision - 1);
        append.catch(() => undefined);
        inFlight.push({ append, bytes });
        bytesInFlight += bytes;
        copied += run.length;
      }
      if (copied - reported >= PROGRESS_EVERY) {
        reported = copied;
        onProgress?.({ phase: 'copying', events: copied, position: page.at(-1)?.position ?? after, target: head });
      }
    }
    while (inFlight.length > 0) await settle();
  } catch (error) {
    // Wait for appends in flight, so that the next run finds a target that no longer changes.
    await Promise.allSettled(inFlight.map(({ append }) => append));
    if (!(error instanceof ConflictError)) throw error;
    throw new CopyError(
      `${target.name} was written to by another process (${error.message}). Copy into an empty target.`,
      {
        cause: error,
      },
    );
  }
  return copied;
}

/** Groups consecutive events of one stream, up to the limits of an append. */
function* runsOf(page: readonly LoggedEvent[]): Generator<readonly LoggedEvent[]> {
  let run: LoggedEvent[] = [];
  let bytes = 0;
  for (const event of page) {
    const [first] = run;
    if (first && event.stream === first.stream && run.length < MAX_APPEND_EVENTS) {
      if (run.length === 1) bytes = sizeOf(first);
      bytes += sizeOf(event);
      if (bytes <= MAX_APPEND_BYTES) {
        run.push(event);
        continue;
      }
    }
    if (first) yield run;
    run = [event];
  }
  if (run.length > 0) yield run;
}

const sizeOf = ({ data, meta }: LoggedEvent): number =>
  Buffer.byteLength(JSON.stringify(data)) + Buffer.byteLength(JSON.stringify(meta));

export interface PolicyCheckpoint {
  readonly schema_name: string;
  readonly projection: string;
  readonly version: number;
  readonly position: Position;
}

/**
 * Compares both sides from the beginning to the target's end.
 *
 * @returns hash and number of the events, and for each policy's position in the source the corresponding one in the
 *   target
 * @throws CopyError at the first difference
 */
async function compare(
  source: CopySide,
  target: CopySide,
  policies: readonly PolicyCheckpoint[],
  { onProgress, signal }: CopyOptions,
): Promise<{ events: number; sha256: string; positions: Map<string, Position> }> {
  const hash = createHash('sha256');
  const positions = new Map(policies.map(({ schema_name }) => [schema_name, BEGINNING]));
  const head = await target.log.head();
  const originals = eventsOf(source.log);
  let events = 0;
  try {
    for await (const page of target.log.readAll()) {
      signal?.throwIfAborted();
      let text = '';
      for (const copy of page) {
        const original = await originals.next();
        if (original.done || !equal(original.value, copy)) {
          throw new CopyError(
            `${target.name} is not a copy of ${source.name}: event ${events + 1} (${copy.stream}, revision ${copy.revision}) differs. Start again with an empty target.`,
          );
        }
        text += canonical(copy);
        events++;
        for (const { schema_name, position } of policies) {
          if (original.value.position <= position) positions.set(schema_name, copy.position);
        }
      }
      hash.update(text);
      onProgress?.({ phase: 'comparing', events, position: page.at(-1)?.position ?? 0, target: head });
    }
  } finally {
    await originals.return(undefined);
  }
  return { events, sha256: hash.digest('hex'), positions };
}

/** Whether two events are equal, so that their `canonical` texts would be equal. */
function equal(one: LoggedEvent, other: LoggedEvent): boolean {
  return (
    one.stream === other.stream &&
    one.revision === other.revision &&
    one.type === other.type &&
    // Most stores keep the order of keys, so this comparison usually suffices and is fast.
    ((one.id === other.id &&
      JSON.stringify(one.data) === JSON.stringify(other.data) &&
      JSON.stringify(one.meta) === JSON.stringify(other.meta)) ||
      canonical(one) === canonical(other))
  );
}

async function* eventsOf(log: EventLog): AsyncGenerator<LoggedEvent, undefined> {
  for await (const page of log.readAll()) yield* page;
  return undefined;
}

/** One line per event, which is the same in every store. */
export function canonical({ stream, revision, id, type, data, meta }: LoggedEvent): string {
  return `${[stream, revision, id.toLowerCase(), type, data, meta].map(canonicalJson).join(' ')}\n`;
}

async function gather(pages: AsyncIterable<readonly LoggedEvent[]>): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for await (const page of pages) events.push(...page);
  return events;
}

/**
 * The columns that identify a row in both databases. Sessions are left out: they change often, and belong to users that
 * are checked anyway.
 */
const IDENTITY: Readonly<Record<string, readonly string[]>> = {
  'credentials.person_keys': ['person', 'key'],
  'credentials.passwords': ['id'],
  'credentials.keys': ['key_hash'],
  'credentials.secrets': ['name', 'value'],
  'credentials.log_keys': ['origin', 'public_key'],
};

/**
 * Refuses a target whose log is empty but whose database is in use, because its credentials would be lost. Rows that
 * are also in the source were copied by a run that was interrupted before its first event.
 */
async function refuseForeignCredentials(name: string, { pages }: RelatedRows, to: AnyDatabase): Promise<void> {
  for (const [table, columns] of Object.entries(IDENTITY)) {
    const rowsIn = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>[];
    const identity = (row: Readonly<Record<string, unknown>>) => JSON.stringify(columns.map((column) => row[column]));
    const { rows } = await sql<{ rows: string | null }>`
      SELECT json_agg(t)::text AS rows FROM ${sql.table(table)} t`.execute(to);
    const there = rowsIn(rows[0]?.rows ?? '[]');
    if (there.length === 0) continue;
    const own = new Set((pages.get(table) ?? []).flatMap(rowsIn).map(identity));
    if (there.every((row) => own.has(identity(row)))) continue;
    throw new CopyError(
      `The log of ${name} is empty, but its database has rows in ${table}, so it belongs to another deployment. Use empty stores.`,
    );
  }
}

/** The checkpoints of the policies of a deployment. */
export async function policyCheckpoints(from: AnyDatabase): Promise<PolicyCheckpoint[]> {
  const { rows } = await sql<PolicyCheckpoint>`
    SELECT schema_name, projection, version, position FROM service.checkpoints
    WHERE schema_name LIKE 'policy\\_%'`.execute(from);
  return rows;
}

/** Policies continue in the target from the same event as in the source, so nothing is repeated or missed. */
export async function storePolicies(
  to: AnyDatabase,
  policies: readonly PolicyCheckpoint[],
  positions: ReadonlyMap<string, Position>,
): Promise<number> {
  for (const { schema_name, projection, version } of policies) {
    const position = positions.get(schema_name) ?? BEGINNING;
    await sql`INSERT INTO service.checkpoints (schema_name, projection, version, position, updated_at)
      VALUES (${schema_name}, ${projection}, ${version}, ${position}, ${Date.now()})
      ON CONFLICT (schema_name) DO UPDATE SET position = excluded.position`.execute(to);
  }
  return policies.length;
}
