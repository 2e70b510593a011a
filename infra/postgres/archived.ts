/**
 * Events whose contents were archived (`infra/tools/archive.ts`): the table of the log has their places, a signed bundle
 * has their data. They are read from the bundle, and each is compared with its leaf in the tree over the log.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { AlteredBundleError, archived } from '../../shared/errors.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { EVENTS_FILE, leafHash } from '../event-log/leaf.ts';

/** An event as the table of the log has it: without contents if they were archived. */
type TableEvent = Omit<LoggedEvent, 'data' | 'meta'> & {
  readonly data: LoggedEvent['data'] | null;
  readonly meta: LoggedEvent['meta'] | null;
};

/** A bundle has a known place for the first of each this many events, so that one is found without reading them all. */
export const BLOCK = 32;

/** A part of the log in a bundle. */
interface Archive {
  /** Of the bundle's folder. */
  readonly name: string;
  /** The position before its first event, and that of its last one. */
  readonly after: Position;
  readonly until: Position;
  /** Unix milliseconds: all its events are from before. */
  readonly before: number;
}

const LF = 10;

export class ArchivedEvents {
  readonly #pool: pg.Pool;
  readonly #directory: string | undefined;
  /** Parts of the log are archived, and never come back. */
  #archives: readonly Archive[] = [];

  /** @param directory with the folders of the bundles */
  constructor(pool: pg.Pool, directory: string | undefined) {
    this.#pool = pool;
    this.#directory = directory;
  }

  /**
   * The events with their contents.
   *
   * @throws AppError 409 when a bundle is not there
   * @throws AlteredBundleError when an event is not the one that was archived
   */
  async complete(stored: readonly LoggedEvent[]): Promise<LoggedEvent[]> {
    const events: readonly TableEvent[] = stored;
    const places = events.filter(({ data }) => data === null).map(({ position }) => position);
    if (places.length === 0) return events as LoggedEvent[];
    const lines = await this.#linesAt(places);
    return events.map((event) => {
      const line = lines.get(event.position);
      return line ? { ...event, ...contentsOf(line) } : (event as LoggedEvent);
    });
  }

  /** The archived part of the log that has a position; undefined: its events are in the table. */
  async partWith(position: Position): Promise<Archive | undefined> {
    const has = ({ after, until }: Archive) => after < position && position <= until;
    const known = this.#archives.find(has);
    if (known) return known;
    const { rows } = await this.#pool.query('SELECT name, after, until, before FROM log.archives ORDER BY until');
    this.#archives = rows as Archive[];
    return this.#archives.find(has);
  }

  /** @param positions ascending or descending */
  async #linesAt(positions: readonly Position[]): Promise<ReadonlyMap<Position, Buffer>> {
    const leaves = await this.#leavesOf(positions);
    const lines = new Map<Position, Buffer>();
    let file: { readonly name: string; readonly handle: FileHandle; readonly offsets: readonly number[] } | undefined;
    let block: { readonly name: string; readonly number: number; readonly lines: readonly Buffer[] } | undefined;
    try {
      for (const position of positions) {
        const part = await this.partWith(position);
        if (!part)
          throw new Error(`the contents of the event at position ${position} are in no archived part of the log`);
        const { name, after } = part;
        if (file?.name !== name) {
          await file?.handle.close();
          file = undefined;
          file = { name, handle: await this.#open(part), offsets: await this.#offsetsOf(name) };
        }
        const at = position - after - 1;
        const number = Math.floor(at / BLOCK);
        if (block?.name !== name || block.number !== number)
          block = { name, number, lines: await linesOf(file.handle, file.offsets, number) };
        const line = block.lines[at % BLOCK];
        const leaf = leaves.get(position);
        if (!line || !leaf || !leafHash(line).equals(leaf)) throw new AlteredBundleError(name, position - 1);
        lines.set(position, line);
      }
    } finally {
      await file?.handle.close();
    }
    return lines;
  }

  /** The leaf of event n of the tree is that of the event at position n + 1: this log has no gaps. */
  async #leavesOf(positions: readonly Position[]): Promise<ReadonlyMap<Position, Buffer>> {
    const { rows } = await this.#pool.query(
      'SELECT number + 1 AS position, leaf FROM log.entries WHERE number = ANY ($1::bigint[])',
      [positions.map((position) => position - 1)],
    );
    return new Map((rows as { position: Position; leaf: Buffer }[]).map(({ position, leaf }) => [position, leaf]));
  }

  async #offsetsOf(name: string): Promise<readonly number[]> {
    const { rows } = await this.#pool.query('SELECT offsets::text FROM log.archives WHERE name = $1', [name]);
    return (rows[0] as { offsets: string }).offsets.slice(1, -1).split(',').map(Number);
  }

  async #open(part: Archive): Promise<FileHandle> {
    if (this.#directory === undefined) throw archived(part, 'ENOENT');
    try {
      return await open(join(this.#directory, part.name, EVENTS_FILE));
    } catch (error) {
      throw archived(part, (error as NodeJS.ErrnoException).code);
    }
  }
}

async function linesOf(file: FileHandle, offsets: readonly number[], block: number): Promise<Buffer[]> {
  const from = offsets[block] ?? 0;
  const to = offsets[block + 1] ?? (await file.stat()).size;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, to - from)), 0, to - from, from);
  const lines: Buffer[] = [];
  for (let [at, end] = [0, 0]; at < bytesRead; at = end + 1) {
    end = buffer.indexOf(LF, at);
    if (end < 0) break;
    lines.push(buffer.subarray(at, end));
  }
  return lines;
}

function contentsOf(line: Buffer): Pick<LoggedEvent, 'data' | 'meta'> {
  const { data, meta } = JSON.parse(String(line)) as LoggedEvent;
  return { data, meta };
}
