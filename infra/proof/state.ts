/** The progress of the tree over the log, for `/health/ready` and `/metrics`. */
import { Gauge, type Registry } from 'prom-client';
import type { Position } from '../../shared/ports/event-log.ts';
import { within } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';

type Pool = Pick<Database['pool'], 'query'>;

/** Time limit for the database during a scrape, milliseconds. */
const SCRAPE_MS = 1_000;

export interface TreeState {
  /** Events in the tree, and the position of the last one. */
  readonly size: number;
  readonly position: Position;
  /** The latest checkpoint that the tree covers; `signedAt` in Unix milliseconds. */
  readonly checkpoint: { readonly size: number; readonly signedAt: number } | undefined;
}

/** Uses the primary keys of both tables, because probes are frequent. */
const STATE = `
  WITH tree AS (SELECT number + 1 AS size, position FROM log.entries ORDER BY number DESC LIMIT 1)
  SELECT tree.size, tree.position, signed.size AS signed_size, signed.signed_at
  FROM tree LEFT JOIN LATERAL (
    SELECT size, signed_at FROM credentials.log_checkpoints WHERE size <= tree.size ORDER BY size DESC LIMIT 1
  ) signed ON true`;

interface StateRow {
  readonly size: number;
  readonly position: Position;
  readonly signed_size: number | null;
  readonly signed_at: number | null;
}

export async function readTreeState(pool: Pool): Promise<TreeState> {
  const [row] = (await pool.query(STATE)).rows as StateRow[];
  if (!row) return { size: 0, position: 0, checkpoint: undefined };
  const { size, position, signed_size, signed_at } = row;
  const checkpoint =
    signed_size === null || signed_at === null ? undefined : { size: signed_size, signedAt: signed_at };
  return { size, position, checkpoint };
}

/** A scrape queries the database once. If the database does not respond, the numbers are NaN and nothing is blocked. */
export function addTreeMetrics(registry: Registry, pool: Pool): void {
  let asking: Promise<TreeState | undefined> | undefined;
  const state = () => {
    asking ??= within(SCRAPE_MS, readTreeState(pool), 'the tree over the log')
      .catch(() => undefined)
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  const gauge = (metric: string, help: string, shown: (state: TreeState) => number) =>
    new Gauge({
      name: metric,
      help,
      registers: [registry],
      async collect() {
        const now = await state();
        this.set(now ? shown(now) : Number.NaN);
      },
    });
  gauge('signalbox_log_tree_size', 'Events in the Merkle tree over the log', ({ size }) => size);
  gauge('signalbox_log_tree_position', 'Position of the last event in the tree', ({ position }) => position);
  gauge(
    'signalbox_log_checkpoint_size',
    'Events under the latest signed checkpoint',
    ({ checkpoint }) => checkpoint?.size ?? 0,
  );
  gauge(
    'signalbox_log_checkpoint_timestamp_seconds',
    'When it was signed, Unix seconds; 0 before the first one',
    ({ checkpoint }) => (checkpoint?.signedAt ?? 0) / 1_000,
  );
}
