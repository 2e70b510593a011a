/**
 * The stored Merkle tree over the log: one row in `log.entries` for each event, with its leaf and the columns for
 * looking events up, and one in `log.nodes` for each complete tree of 16, 256, 4,096 … leaves. Rows are only added, so
 * data read from a tree stays valid.
 */
import { hash } from 'node:crypto';
import type { EventLog, LoggedEvent } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { leafHash, leafText } from '../event-log/leaf.ts';
import { FencedError, type Move } from '../following/checkpoints.ts';
import { type Beginning, HASH_BYTES, treeHash } from './hashing.ts';
import { completeTrees, type Span } from './paths.ts';

/** Each stored tree consists of this many stored trees of the level below; a power of two. */
export const WIDTH = 16;

/** Name of the tree's checkpoint in `service.checkpoints`. */
export const TREE = 'log_tree';

type Pool = Pick<Database['pool'], 'query'>;

/** A hash in the tree: a leaf (level 0), or the root of a complete tree with 16^level leaves. */
interface Place {
  readonly level: number;
  readonly index: number;
}

const nameOf = ({ level, index }: Place): string => `${level}/${index}`;

/** The places whose hashes give the hash of a complete tree. */
function placesOf({ first, leaves }: { readonly first: number; readonly leaves: number }): Place[] {
  let level = 0;
  let width = 1;
  while (width * WIDTH <= leaves) {
    level++;
    width *= WIDTH;
  }
  return Array.from({ length: leaves / width }, (_, n) => ({ level, index: first / width + n }));
}

async function hashesAt(pool: Pool, places: readonly Place[]): Promise<ReadonlyMap<string, Buffer>> {
  const nodes = places.filter(({ level }) => level > 0);
  const { rows } = await pool.query(
    `SELECT 0 AS level, number AS index, leaf AS hash FROM log.entries WHERE number = ANY($1::bigint[])
     UNION ALL
     SELECT level, index, hash FROM log.nodes
     WHERE (level, index) IN (SELECT * FROM unnest($2::int[], $3::bigint[]))`,
    [
      places.filter(({ level }) => level === 0).map(({ index }) => index),
      nodes.map(({ level }) => level),
      nodes.map(({ index }) => index),
    ],
  );
  return new Map((rows as (Place & { hash: Buffer })[]).map(({ hash, ...place }) => [nameOf(place), hash]));
}

/** How many leaves the stored tree has. */
export async function treeSize(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SELECT coalesce(max(number) + 1, 0) AS size FROM log.entries');
  return (rows[0] as { size: number }).size;
}

/** The hashes of the trees over spans of leaves, all of which are stored. */
export async function spanHashes(pool: Pool, spans: readonly Span[]): Promise<Buffer[]> {
  const trees = spans.map((span) => completeTrees(span).map(placesOf));
  const wanted = trees.flat(2);
  const found = wanted.length === 0 ? new Map<string, Buffer>() : await hashesAt(pool, wanted);
  const hashOf = (place: Place): Buffer => {
    const hash = found.get(nameOf(place));
    if (!hash) throw new Error(`the tree over the log lacks the hash ${nameOf(place)}`);
    return hash;
  };
  // From the right: a smaller tree is always to the right of a larger one.
  return trees.map((parts) =>
    parts.map((places) => treeHash(places.map(hashOf))).reduceRight((right, left) => treeHash([left, right])),
  );
}

/** The root of the tree with the first `size` leaves. */
export const rootAt = async (pool: Pool, size: number): Promise<Buffer> =>
  (await spanHashes(pool, [{ from: 0, to: size }]))[0] as Buffer;

/** The part of the tree that is not in a stored complete tree yet, in the memory of the process that adds to it. */
export interface Edge {
  readonly size: number;
  /** The latest time of any event, Unix milliseconds. */
  readonly latest: number;
  /** Hashes of complete trees that are not part of a larger one yet, by level, from the left. */
  readonly open: readonly (readonly Buffer[])[];
}

export async function readEdge(pool: Pool): Promise<Edge> {
  const size = await treeSize(pool);
  const places: Place[][] = [];
  for (let [level, count] = [0, size]; count > 0; level++) {
    const begin = count - (count % WIDTH);
    places.push(Array.from({ length: count - begin }, (_, n) => ({ level, index: begin + n })));
    count = Math.floor(count / WIDTH);
  }
  const hashes = await hashesAt(pool, places.flat());
  const { rows } = await pool.query('SELECT latest FROM log.entries WHERE number = $1', [size - 1]);
  return {
    size,
    latest: (rows[0] as { latest: number } | undefined)?.latest ?? 0,
    open: places.map((level) => level.map((place) => hashes.get(nameOf(place)) as Buffer)),
  };
}

/** An event in the tree, and its place in the log. */
export type Entry = Pick<LoggedEvent, 'position' | 'id' | 'stream' | 'revision'>;

const ENTRY = 'SELECT position, id, stream, revision FROM log.entries';

/** The event with this number in the tree; undefined if there is none. */
export async function entryAt(pool: Pool, number: number): Promise<Entry | undefined> {
  const { rows } = await pool.query(`${ENTRY} WHERE number = $1`, [number]);
  return rows[0] as Entry | undefined;
}

/** The last event in the tree; undefined if the tree is empty. */
export async function lastEntry(pool: Pool): Promise<Entry | undefined> {
  const { rows } = await pool.query(`${ENTRY} ORDER BY number DESC LIMIT 1`);
  return rows[0] as Entry | undefined;
}

/** Whether the log has an event at its place. */
export async function isInLog(log: Pick<EventLog, 'readStream'>, { position, id, ...place }: Entry): Promise<boolean> {
  for await (const [event] of log.readStream(place.stream, { from: place.revision, limit: 1 }))
    if (event?.id === id && event.position === position) return true;
  return false;
}

/** The actor key for looking events up: `user:7`, `agent:12`, `api:0`. */
export const actorKey = ({ type, id }: { readonly type: unknown; readonly id: unknown }): string => `${type}:${id}`;

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The indexed form of ids of causes: nearly all are UUIDs; for any other text, a UUID is derived from it. */
export const indexedId = (id: string): string => (UUID.test(id) ? id.toLowerCase() : hash('sha256', id).slice(0, 32));

/** The columns of an entry from an event's metadata. Logs of other programs may lack some of them. */
function indexed(meta: LoggedEvent['meta']) {
  const actor = (typeof meta.actor === 'object' && meta.actor !== null ? meta.actor : {}) as Record<string, unknown>;
  const { at, correlationId, causationId } = meta;
  return {
    at: Number.isSafeInteger(at) ? (at as number) : 0,
    actor: actorKey({ type: actor.type ?? '', id: actor.id ?? '' }),
    actorName: String(actor.name ?? ''),
    correlation: indexedId(String(correlationId ?? '')),
    causation: typeof causationId === 'string' ? indexedId(causationId) : null,
  };
}

/**
 * Adds events, in log order, and moves the checkpoint, in one statement.
 *
 * @throws FencedError when the checkpoint is not at the start of the move; nothing was added
 */
export async function addLeaves(pool: Pool, edge: Edge, events: readonly LoggedEvent[], move: Move): Promise<Edge> {
  const open = edge.open.map((hashes) => [...hashes]);
  const leaves: Buffer[] = [];
  const nodes: (Place & { readonly hash: Buffer })[] = [];
  const latest: number[] = [];
  const rows = events.map((event) => indexed(event.meta));
  for (const [n, event] of events.entries()) {
    let hash = leafHash(leafText(event));
    leaves.push(hash);
    latest.push(Math.max(latest.at(-1) ?? edge.latest, rows[n]?.at ?? 0));
    for (let [level, count] = [0, edge.size + n + 1]; ; level++) {
      const here = open[level] ?? [];
      open[level] = here;
      here.push(hash);
      if (here.length < WIDTH) break;
      hash = treeHash(here);
      open[level] = [];
      count /= WIDTH;
      nodes.push({ level: level + 1, index: count - 1, hash });
    }
  }
  const { rowCount } = await pool.query(ADD, [
    move.name,
    move.generation,
    move.from,
    move.to,
    Date.now(),
    edge.size,
    Buffer.concat(leaves),
    events.map(({ position }) => position),
    events.map(({ id }) => id),
    events.map(({ stream }) => stream),
    events.map(({ revision }) => revision),
    events.map(({ type }) => type),
    rows.map(({ at }) => at),
    latest,
    rows.map(({ actor }) => actor),
    rows.map(({ actorName }) => actorName),
    rows.map(({ correlation }) => correlation),
    rows.map(({ causation }) => causation),
    nodes.map(({ level }) => level),
    nodes.map(({ index }) => index),
    Buffer.concat(nodes.map(({ hash }) => hash)),
  ]);
  if (rowCount !== 1) throw new FencedError(move.name);
  return { size: edge.size + events.length, latest: latest.at(-1) ?? edge.latest, open };
}

/** Hashes are passed as one concatenated value: the driver would write each as text. */
const nthHash = (parameter: string): string =>
  `substring(${parameter}::bytea FROM (${HASH_BYTES} * (i.n - 1) + 1)::int FOR ${HASH_BYTES})`;

const ADD = `
  WITH moved AS (
    UPDATE service.checkpoints SET position = $4, updated_at = $5, stuck_at = NULL, stuck_reason = NULL
    WHERE schema_name = $1 AND generation = $2 AND position = $3 RETURNING 1
  ),
  entries AS (
    INSERT INTO log.entries
      (number, position, id, stream, revision, type, at, latest, actor, actor_name, correlation, causation, leaf)
    SELECT $6::bigint + i.n - 1, i.position, i.id, i.stream, i.revision, i.type, i.at, i.latest, i.actor, i.actor_name,
      i.correlation, i.causation, ${nthHash('$7')}
    FROM unnest($8::bigint[], $9::uuid[], $10::text[], $11::int[], $12::text[], $13::bigint[], $14::bigint[],
        $15::text[], $16::text[], $17::uuid[], $18::uuid[])
      WITH ORDINALITY AS i(position, id, stream, revision, type, at, latest, actor, actor_name, correlation, causation, n)
    WHERE EXISTS (SELECT FROM moved)
  ),
  nodes AS (
    INSERT INTO log.nodes (level, index, hash)
    SELECT i.level, i.index, ${nthHash('$21')}
    FROM unnest($19::int[], $20::bigint[]) WITH ORDINALITY AS i(level, index, n)
    WHERE EXISTS (SELECT FROM moved)
  )
  SELECT FROM moved`;

/** The trees before the leaf with this number. */
export async function beginningOf(pool: Pool, size: number): Promise<Beginning> {
  const spans = completeTrees({ from: 0, to: size }).map(({ first, leaves }) => ({ from: first, to: first + leaves }));
  return { size, trees: await spanHashes(pool, spans) };
}

/** The first `size` leaves, or those from `first` on, concatenated, in pages. */
export async function* leavesOf(pool: Pool, size: number, first = 0, page = 2_000): AsyncGenerator<Buffer> {
  for (let from = first; from < size; from += page) {
    const { rows } = await pool.query(
      'SELECT leaf FROM log.entries WHERE number >= $1 AND number < $2 ORDER BY number',
      [from, Math.min(from + page, size)],
    );
    yield Buffer.concat((rows as { leaf: Buffer }[]).map(({ leaf }) => leaf));
  }
}
