/** `signalbox status`: processes, read models, the log. */
import type { Command } from 'commander';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import { pause } from '../../shared/waiting.ts';
import type { Core } from '../core.ts';
import { GONE_MS } from '../processes.ts';
import { TREE } from '../proof/tree.ts';
import { columns, withCore } from './with-core.ts';

interface ProcessRow {
  readonly id: string;
  readonly role: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly started_at: number;
  readonly seen_at: number;
}
interface CheckpointRow {
  readonly schema_name: string;
  readonly projection: string;
  readonly version: number;
  readonly position: number;
  readonly leader: string | null;
  readonly history_from: number | null;
  readonly stuck_at: number | null;
  readonly stuck_reason: string | null;
  readonly updated_at: number;
}

/** How long positions are observed to measure a rate, milliseconds. */
const WATCHED_MS = 1_000;

async function readStatus(core: Core) {
  const { pool } = core.database;
  const now = Date.now();
  const processes = (await pool.query('SELECT * FROM service.processes ORDER BY started_at')).rows as ProcessRow[];
  const read = async () =>
    (await pool.query('SELECT * FROM service.checkpoints ORDER BY schema_name')).rows as CheckpointRow[];
  const before = new Map((await read()).map((row) => [row.schema_name, row.position]));
  await pause(WATCHED_MS, undefined, { ref: true });
  const checkpoints = await read();
  const head = await core.eventLog.head();
  const live = new Set(projections.map(schemaOf));
  const running = new Set(processes.filter((one) => now - one.seen_at < GONE_MS).map((one) => one.id));
  return {
    log: { position: head },
    /** Since when it is paused after a restore, Unix seconds; null: it is not. */
    paused_since: await core.pause.since(),
    processes: processes.map((one) => ({ ...one, running: running.has(one.id) })),
    projections: checkpoints.map((row) => {
      const lag = Math.max(0, head - row.position);
      const moved = row.position - (before.get(row.schema_name) ?? row.position);
      return {
        schema: row.schema_name,
        projection: row.projection,
        version: row.version,
        in_use: live.has(row.schema_name) || row.schema_name.startsWith('policy_') || row.schema_name === TREE,
        position: row.position,
        lag,
        /** Positions per second, over the last second. */
        rate: Math.round((moved * 1_000) / WATCHED_MS),
        /** Seconds until it reaches the current head at this rate; null: it does not move. */
        remaining: lag === 0 ? 0 : moved > 0 ? Math.ceil((lag * WATCHED_MS) / (moved * 1_000)) : null,
        leader: row.leader !== null && running.has(row.leader) ? row.leader : null,
        /** Position at which its history begins, for reads with as_of; null: it has none. */
        history_from: row.history_from,
        stuck: row.stuck_at === null ? null : { position: row.stuck_at, reason: row.stuck_reason },
        updated_at: row.updated_at,
      };
    }),
  };
}

function stateOf(one: Awaited<ReturnType<typeof readStatus>>['projections'][number]): string {
  if (one.stuck) return `stuck at ${one.stuck.position}: ${one.stuck.reason}`;
  if (one.schema.endsWith('_rebuild')) return 'rebuild in progress or interrupted; `signalbox rebuild` continues it';
  if (one.schema.endsWith('_replay')) return 'replay in progress or killed; the next `signalbox replay` drops it';
  return one.in_use ? 'ok' : 'not used by this version';
}

const ago = (then: number): string => `${Math.max(0, Math.round((Date.now() - then) / 1_000))} s ago`;

export function addStatus(program: Command): void {
  program
    .command('status')
    .description('show processes, read models and the log')
    .option('--json', 'as JSON')
    .action(async (options: { json?: boolean }) => {
      const status = await withCore(readStatus);
      if (options.json) {
        console.log(JSON.stringify(status, null, 2));
        return;
      }
      console.log(`Log: position ${status.log.position}\n`);
      if (status.paused_since !== null)
        console.log(
          `Paused since ${new Date(status.paused_since * 1_000).toISOString()}, when a backup was restored: no call leaves, and no schedule runs. To end this: signalbox resume\n`,
        );
      if (status.processes.length === 0) console.log('No processes are registered.\n');
      else {
        const rows = status.processes.map((one) => [
          one.id,
          one.role,
          one.version,
          one.running ? 'running' : 'gone',
          ago(one.seen_at),
        ]);
        console.log(`${columns(['process', 'role', 'version', 'state', 'seen'], rows)}\n`);
      }
      const rows = status.projections.map((one) => [
        one.schema,
        String(one.position),
        String(one.lag),
        String(one.rate),
        one.remaining === null ? '-' : `${one.remaining} s`,
        one.history_from === null ? '-' : String(one.history_from),
        one.leader ?? '-',
        stateOf(one),
      ]);
      console.log(
        columns(['read model', 'position', 'lag', 'per second', 'remaining', 'past from', 'leader', 'state'], rows),
      );
    });
}
