/**
 * Archives the beginning of a log on PostgreSQL or PGlite: events up to a time are written to signed bundles
 * (`infra/proof/bundle.ts`), one for each month, and the contents of those that no command needs leave the table of the
 * log. Their places, their leaves in the tree and their entries in the index stay, so that positions, revisions, unique
 * ids and proofs are as before; their contents are read from the bundles (`infra/postgres/archived.ts`).
 *
 * A kill at any point loses nothing. A bundle appears when it is complete and on the disk; it is read back and verified;
 * then the log records it, then the table of archived parts, which the table of the log demands before it gives up
 * contents; then these leave in pieces. The next run continues where the last one ended.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { recordArchive } from '../../commands/admin/archive.ts';
import type { CommandContext } from '../../commands/handler.ts';
import { policies } from '../../commands/policies/index.ts';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { nextTurn, pause } from '../../shared/waiting.ts';
import { archiveDirOf } from '../config.ts';
import type { Core } from '../core.ts';
import { EVENTS_FILE } from '../event-log/leaf.ts';
import { checkpointOf } from '../jobs/policies.ts';
import { currentNote } from '../log-index/current.ts';
import { createLogIndex } from '../log-index/log-index.ts';
import { BLOCK } from '../postgres/archived.ts';
import { verifyBundle, writeBundle } from '../proof/bundle.ts';
import { noteUpTo } from '../proof/checkpoints.ts';
import { knownKeys } from '../proof/keys.ts';
import { type Note, verifierKeyText } from '../proof/notes.ts';
import { TREE } from '../proof/tree.ts';
import { PIECE } from '../stores/pieces.ts';

/**
 * Kinds of streams whose contents no command reads: they only record. The kind is the name of a stream up to its first
 * hyphen.
 */
const RECORDINGS = [
  'agent_messages',
  'chat',
  'exports',
  'personal_reads',
  'security_events',
  'sign_ins',
  'token_reports',
];
/**
 * Kinds of streams of short-lived records. Their contents leave when the record has not changed since; a later command on
 * it reads the bundle. What lives long, such as agents, users and settings, stays in the database.
 */
const RECORDS = ['chat_message', 'notification', 'notifications', 'pipeline_run', 'task', 'token_ledger'];

/** How long an idle follower may take to store its checkpoint, milliseconds. */
const CHECKPOINTS_MS = 15_000;
const LOOK_MS = 200;

export class ArchiveError extends Error {}

/** A part of the log that becomes a bundle. */
export interface Part {
  /** Of the bundle's folder: a month, such as 2026-01, or a time. */
  readonly name: string;
  readonly after: Position;
  readonly until: Position;
  /** Unix milliseconds: all its events are from before. */
  readonly before: number;
  readonly note: Note;
}

type Parts = Pick<Core, 'database' | 'eventLog' | 'config' | 'commands'>;

/** The end of a month, and its name. */
function monthOf(time: number): { readonly end: number; readonly name: string } {
  const date = new Date(time);
  return { end: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1), name: date.toISOString().slice(0, 7) };
}

/** The times at which bundles end, from the month of `from` to `to`. */
function cutsBetween(from: number, to: number): { readonly time: number; readonly name: string }[] {
  const cuts = [];
  let at = from;
  for (let month = monthOf(at); month.end <= to; month = monthOf(at)) {
    cuts.push({ time: month.end, name: month.name });
    at = month.end;
  }
  if (at < to) cuts.push({ time: to, name: new Date(to).toISOString().slice(0, 19).replaceAll(':', '-') });
  return cuts;
}

/** Where the archived part of the log ends. */
async function archivedUntil({ pool }: Core['database']): Promise<Position> {
  const { rows } = await pool.query('SELECT coalesce(max(until), 0) AS until FROM log.archives');
  return (rows[0] as { until: Position }).until;
}

/**
 * The parts of the log from before a time that are not archived yet. Each ends at a signed checkpoint.
 *
 * @param before Unix milliseconds
 * @throws ArchiveError on EventStoreDB
 */
export async function planArchive(core: Core, before: number): Promise<readonly Part[]> {
  const { database, eventLog, config } = core;
  const { pool } = database;
  if (config.eventStoreUrl !== undefined)
    throw new ArchiveError(
      'The event log is on EventStoreDB, which has its own archiving and scavenging: see its documentation, and docs/operations.md. This command is for logs on PostgreSQL and in DATA_DIR.',
    );
  await currentNote(core);
  const archivedTo = await archivedUntil(database);
  const { rows } = await pool.query('SELECT latest FROM log.entries WHERE number = $1', [archivedTo]);
  const [first] = rows as { latest: number }[];
  if (!first || first.latest >= before) return [];
  const index = createLogIndex({ database, eventLog, timeoutMs: config.visibleTimeoutMs });
  const cuts = cutsBetween(first.latest, before);
  const counts = await index.countsUpTo(cuts.map(({ time }) => time - 1));
  const parts: Part[] = [];
  let after = archivedTo;
  for (const [at, { time, name }] of cuts.entries()) {
    // This log has no gaps: event n of the tree is at position n + 1.
    const note = await noteUpTo(pool, counts[at]?.count ?? 0, after);
    if (!note) continue;
    parts.push({ name, after, until: note.size, before: time, note });
    after = note.size;
  }
  return parts;
}

/** How much leaves the table. */
export interface Leaving {
  readonly events: number;
  /** Of data and metadata as JSON. */
  readonly bytes: number;
}

/** Whether the contents of event `e` may leave, `$2` being the end of what is archived. */
const LEAVES = `e.data IS NOT NULL AND (
  split_part(e.stream, '-', 1) = ANY ('{${RECORDINGS.join(',')}}')
  OR (split_part(e.stream, '-', 1) = ANY ('{${RECORDS.join(',')}}')
    AND (SELECT l.position FROM log.events l WHERE l.stream = e.stream ORDER BY l.revision DESC LIMIT 1) <= $2))`;
const PLACES = `e.position > $1 AND e.position <= least($1::bigint + ${PIECE}, $2::bigint)`;

const COUNT = `SELECT count(*)::int AS events,
  coalesce(sum(octet_length(e.data::text) + octet_length(e.meta::text)), 0)::bigint AS bytes
  FROM log.events e WHERE ${PLACES} AND ${LEAVES}`;
const DROP = `WITH dropped AS (
    UPDATE log.events e SET data = NULL, meta = NULL, number = NULL, at = NULL, cause = NULL, origin = NULL
    WHERE ${PLACES} AND ${LEAVES}
    RETURNING 1
  ) SELECT count(*)::int AS events, 0::bigint AS bytes FROM dropped`;

async function inPieces(
  { pool }: Core['database'],
  statement: string,
  until: Position,
  { signal, onPiece }: { readonly signal?: AbortSignal | undefined; onPiece?(position: Position): void } = {},
): Promise<Leaving> {
  let [events, bytes] = [0, 0];
  for (let after = 0; after < until; after += PIECE) {
    signal?.throwIfAborted();
    const { rows } = await pool.query(statement, [after, until]);
    const some = rows[0] as Leaving;
    events += some.events;
    bytes += some.bytes;
    onPiece?.(Math.min(after + PIECE, until));
    await nextTurn();
  }
  return { events, bytes };
}

/** How much would leave the table if the log was archived up to a position. */
export const leavingUpTo = (database: Core['database'], until: Position): Promise<Leaving> =>
  inPieces(database, COUNT, until);

export interface ArchiveOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (phase: string, position: Position, target: Position) => void;
  /** Called before each step, for tests that end the process there. */
  readonly onStep?: (step: 'write' | 'verify' | 'record' | 'drop') => void;
}

/**
 * Writes the bundles, and removes contents from the table of the log, also what an earlier run has left.
 *
 * @throws ArchiveError when a follower of the log has not reached its end, or a bundle cannot be read back
 */
export async function archiveParts(
  core: Parts,
  context: CommandContext,
  parts: readonly Part[],
  { signal, onProgress, onStep }: ArchiveOptions = {},
): Promise<Leaving> {
  const { database, eventLog, config, commands } = core;
  const { pool } = database;
  const last = parts.at(-1);
  if (last) await requirePassed(core, last.until);
  for (const { name, after, until, before, note } of parts) {
    signal?.throwIfAborted();
    const folder = join(archiveDirOf(config), name);
    onStep?.('write');
    // It is there when a run was killed after it had appeared.
    if (!existsSync(folder))
      await writeBundle(database, eventLog, note, folder, {
        first: after,
        onEvent: (_events, position) => onProgress?.(`writing ${name}`, position, until),
      });
    onStep?.('verify');
    const { sha256, offsets } = await readBack(pool, folder, { after, note });
    onStep?.('record');
    await recordArchive(commands, context, { name, after, until, root: note.root.toString('base64'), sha256 });
    await pool.query(
      `INSERT INTO log.archives (name, after, until, before, root, sha256, offsets) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (name) DO NOTHING`,
      [name, after, until, before, note.root, sha256, offsets],
    );
  }
  onStep?.('drop');
  const end = await archivedUntil(database);
  return inPieces(database, DROP, end, {
    signal,
    onPiece: (position) => onProgress?.('removing contents', position, end),
  });
}

/**
 * @throws ArchiveError unless every read model, policy and webhook, and the tree over the log, have passed a position:
 *   otherwise they would need the bundles
 */
async function requirePassed({ database }: Pick<Core, 'database'>, until: Position): Promise<void> {
  const names = [...projections.map(schemaOf), ...policies.map(checkpointOf), TREE];
  const giveUpAt = performance.now() + CHECKPOINTS_MS;
  for (;;) {
    const { rows } = await database.pool.query(
      `SELECT schema_name AS name, position FROM service.checkpoints WHERE schema_name = ANY ($1::text[]) AND position < $2
       UNION ALL SELECT 'webhook ' || webhook_id, position FROM service.webhooks WHERE position < $2
       ORDER BY position LIMIT 1`,
      [names, until],
    );
    const [behind] = rows as { name: string; position: Position }[];
    if (!behind) return;
    if (performance.now() > giveUpAt)
      throw new ArchiveError(
        `${behind.name} has reached position ${behind.position} of the log only, and still needs the events up to ${until}. See: signalbox status. Archive when it has passed them, or up to an earlier time.`,
      );
    await pause(LOOK_MS, undefined, { ref: true });
  }
}

/**
 * Verifies a bundle as it is on the disk.
 *
 * @returns the hash of its events, and the places of their lines, one for each block
 */
async function readBack(
  pool: Core['database']['pool'],
  folder: string,
  { after, note }: Pick<Part, 'after' | 'note'>,
): Promise<{ readonly sha256: string; readonly offsets: readonly number[] }> {
  const keys = (await knownKeys(pool)).map(verifierKeyText).join('\n');
  const verified = await verifyBundle(folder, keys).catch((error: Error) => {
    throw new ArchiveError(`${folder} is not a complete bundle: ${error.message} Remove it, and archive again.`);
  });
  const isSame = verified.first === after && verified.signed === note.size && verified.size === note.size;
  if (!isSame || verified.findings.length > 0 || !verified.root.equals(note.root)) {
    const [finding = `it has other events than those from position ${after + 1} to ${note.size}.`] = verified.findings;
    throw new ArchiveError(
      `${folder} is not the bundle of this part of the log: ${finding} Remove it, and archive again; if this happens again, run: signalbox verify`,
    );
  }
  const hash = createHash('sha256');
  const offsets: number[] = [];
  let [lines, offset, isStart] = [0, 0, true];
  for await (const chunk of createReadStream(join(folder, EVENTS_FILE)) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    for (let at = 0; at < chunk.length; ) {
      if (isStart && lines % BLOCK === 0) offsets.push(offset + at);
      const end = chunk.indexOf(10, at);
      isStart = end >= 0;
      if (!isStart) break;
      lines++;
      at = end + 1;
    }
    offset += chunk.length;
  }
  return { sha256: hash.digest('hex'), offsets };
}
