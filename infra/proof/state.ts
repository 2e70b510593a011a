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
  readonly checkpoint: { readonly size: number; readonly signedAt: number } | null;
}

/** Uses the primary keys of both tables, because probes are frequent. */
const STATE = `
  WITH tree AS (SELECT number + 1 AS size, position FROM log.entries ORDER BY number DESC LIMIT 1)
  SELECT tree.size, tree.position, CASE WHEN signed.size IS NOT NULL
    THEN json_build_object('size', signed.size, 'signedAt', signed.signed_at) END AS checkpoint
  FROM tree LEFT JOIN LATERAL (
    SELECT size, signed_at FROM credentials.log_checkpoints WHERE size <= tree.size ORDER BY size DESC LIMIT 1
  ) signed ON true`;

export async function readTreeState(pool: Pool): Promise<TreeState> {
  const { rows } = await pool.query(STATE);
  return (rows[0] as TreeState | undefined) ?? { size: 0, position: 0, checkpoint: null };
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
