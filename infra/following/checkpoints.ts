/**
 * The progress of each follower of the log, in `service.checkpoints`: one row per read model and policy.
 *
 * A checkpoint moves only from the position and generation that its follower last read. A follower that finds another
 * value is fenced: another process leads, or a rebuild has swapped the tables.
 */
import type { Position } from '../../shared/ports/event-log.ts';
import { nextTurn } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';

/** Where a follower starts. */
export interface Checkpoint {
  readonly position: Position;
  /** Changes when a rebuild swaps the tables. */
  readonly generation: number;
  /** Set when the previous leader was stuck at this event. */
  readonly stuckAt: Position | null;
}

export interface Stuck {
  readonly position: Position;
  readonly reason: string;
}

export interface Move {
  /** `schema_name` of the checkpoint. */
  readonly name: string;
  readonly generation: number;
  readonly from: Position;
  readonly to: Position;
}

/**
 * Another process moved the checkpoint, or a rebuild swapped the tables: the follower must restart from the stored
 * checkpoint.
 */
export class FencedError extends Error {
  constructor(name: string, options?: ErrorOptions) {
    super(`${name} is led by another process, or its tables were swapped`, options);
    this.name = 'FencedError';
  }
}

/** True for FencedError, and for a statement that the constraint on checkpoints refused (`writeBatches`). */
export function isFenced(error: unknown): boolean {
  if (error instanceof FencedError) return true;
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === '23514' && constraint === 'checkpoints_position_check';
}

const RETURNED = 'position, generation, stuck_at AS "stuckAt"';

/**
 * Restarts the history of a read model at its current position unless its versions reach that far, as after a rebuild
 * without history.
 *
 * @param position current position, in SQL
 */
export const keepHistory = (position: string): string =>
  `history_from = CASE WHEN history_to = ${position} THEN history_from ELSE ${position} END, history_to = ${position}`;

/** Takes over an existing checkpoint. */
export type TakeUp = (name: string) => Promise<Checkpoint>;

/**
 * @param process shown as the leader of the checkpoints
 * @returns a function that takes over checkpoints. On the embedded database, where each statement waits for the disk,
 *   requests of the same turn of the event loop share a statement. On a server each has its own, because a statement
 *   that locks several could deadlock with the batches of a leader that does not know yet that it was replaced
 */
export function createTakeUp(database: Pick<Database, 'kind' | 'pool'>, process: string): TakeUp {
  async function takeUp(names: readonly string[]): Promise<ReadonlyMap<string, Checkpoint>> {
    const { rows } = await database.pool.query(
      `UPDATE service.checkpoints SET leader = $2, ${keepHistory('position')} WHERE schema_name = ANY($1::text[])
       RETURNING schema_name AS name, ${RETURNED}`,
      [names, process],
    );
    const found = rows as ({ readonly name: string } & Checkpoint)[];
    return new Map(found.map(({ name, ...checkpoint }) => [name, checkpoint]));
  }
  let group: { readonly names: string[]; readonly taken: Promise<ReadonlyMap<string, Checkpoint>> } | undefined;
  function takeUpTogether(name: string): Promise<ReadonlyMap<string, Checkpoint>> {
    if (!group) {
      const names: string[] = [];
      const taken = nextTurn().then(() => {
        group = undefined;
        return takeUp(names);
      });
      group = { names, taken };
    }
    group.names.push(name);
    return group.taken;
  }
  return async (name) => {
    const taken = await (database.kind === 'embedded' ? takeUpTogether(name) : takeUp([name]));
    const checkpoint = taken.get(name);
    if (!checkpoint) throw new Error(`there is no checkpoint for ${name}: its tables have not been created`);
    return checkpoint;
  };
}

/** Takes over a checkpoint, creating it at `first` if there is none. @param label shown instead of the name */
export async function takeUpOrBegin(
  database: Database,
  name: string,
  process: string,
  { label, first }: { readonly label: string; readonly first: Position },
): Promise<Checkpoint> {
  const { rows } = await database.pool.query(
    `INSERT INTO service.checkpoints (schema_name, projection, version, position, leader, updated_at)
     VALUES ($1, $2, 1, $3, $4, $5)
     ON CONFLICT (schema_name) DO UPDATE SET leader = $4 RETURNING ${RETURNED}`,
    [name, label, first, process, Date.now()],
  );
  return rows[0] as Checkpoint;
}

/** Moves checkpoints whose followers changed no rows. @returns the names of those that moved; the others are fenced */
export async function moveCheckpoints(database: Database, moves: readonly Move[]): Promise<ReadonlySet<string>> {
  const { rows } = await database.pool.query(
    `UPDATE service.checkpoints c SET position = m.target, history_to = m.target, updated_at = $5, stuck_at = NULL, stuck_reason = NULL
     FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) AS m(name, generation, start, target)
     WHERE c.schema_name = m.name AND c.generation = m.generation AND c.position = m.start
     RETURNING c.schema_name AS name`,
    [
      moves.map(({ name }) => name),
      moves.map(({ generation }) => generation),
      moves.map(({ from }) => from),
      moves.map(({ to }) => to),
      Date.now(),
    ],
  );
  return new Set((rows as { name: string }[]).map(({ name }) => name));
}

/** If a rebuild has swapped the tables in the meantime, the new ones are not stuck. */
export async function storeStuck(database: Database, name: string, generation: number, stuck: Stuck): Promise<void> {
  await database.pool.query(
    `UPDATE service.checkpoints SET stuck_at = $2, stuck_reason = $3, updated_at = $4
     WHERE schema_name = $1 AND generation = $5`,
    [name, stuck.position, stuck.reason.slice(0, 1_000), Date.now(), generation],
  );
}
