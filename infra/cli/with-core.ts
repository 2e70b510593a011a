/** Opens the stores for a command, projects events if no service does, and closes the stores. */
import { resolve } from 'node:path';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import { type Config, readConfig } from '../config.ts';
import { type Core, openCore } from '../core.ts';
import { systemContext } from '../credentials/first-start.ts';
import { holdsDatabase } from '../embedded/embedded.ts';
import { createLogger } from '../logging.ts';
import { startProjector } from '../read-models/projector.ts';

/**
 * Runs `work` on the configured stores. The embedded stores of a running service are reached through its socket.
 * Warnings go to stderr as JSON lines.
 *
 * @param options.create creates an embedded database if there is none; otherwise that is an error, because a command
 *   that reads an empty one would report that all is well
 * @param options.asIs leaves the tables as the service's version created them
 * @param options.project updates read models with the events that `work` appends, in the running service or in this
 *   process
 */
export async function withCore<T>(
  work: (core: Core) => Promise<T>,
  options: { create?: boolean; project?: boolean; asIs?: boolean } = {},
): Promise<T> {
  const config = readConfig(process.env);
  if (!options.create) requireDatabase(config);
  const log = createLogger(
    config.logLevel === 'debug' || config.logLevel === 'trace' ? config.logLevel : 'warn',
    'stderr',
  );
  const core = await openCore(config, log, { attach: true, asIs: options.asIs ?? false });
  try {
    const { database, positions, following } = core;
    if (!options.project) return await work(core);
    if (database.kind === 'server' || database.attached) positions.watch();
    // With the events since the lowest checkpoint, reads wait only for events that concern their read models. The
    // service stores the checkpoints of other read models seconds later.
    if (database.attached)
      await following.reader.started(AbortSignal.timeout(config.startTimeoutMs), await lowestCheckpoint(core));
    const projector = database.attached ? undefined : startProjector(projections, core);
    try {
      const before = await core.eventLog.head();
      const result = await work(core);
      // The service with the database learns of the events a moment later; its users may query the result at once.
      if (database.attached) await shown(core, before);
      return result;
    } finally {
      await projector?.close();
    }
  } finally {
    await core.close();
  }
}

/** The lowest checkpoint of the read models that are not stuck. */
async function lowestCheckpoint({ database }: Core): Promise<Position> {
  const { rows } = await database.pool.query(
    `SELECT coalesce(min(position), $2::bigint) AS position FROM service.checkpoints
     WHERE schema_name = ANY($1::text[]) AND stuck_at IS NULL`,
    [projections.map(schemaOf), BEGINNING],
  );
  return rows[0].position;
}

/** Waits until the running service shows what was appended after a position. */
async function shown({ eventLog, positions }: Core, from: number): Promise<void> {
  const types = new Set<string>();
  let position = from;
  for await (const events of eventLog.readAll({ from })) {
    for (const event of events) {
      types.add(event.type);
      position = event.position;
    }
  }
  await positions.reach([...types], { position });
}

/** @throws Error when the configuration names an embedded database that does not exist */
export function requireDatabase({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): void {
  if (databaseUrl !== undefined || holdsDatabase(dataDir)) return;
  throw new Error(
    `there is no database in ${resolve(dataDir)}. Set DATA_DIR, or DATABASE_URL, to what the service uses; its first start makes the database.`,
  );
}

/** The context of commands given on the command line. */
export const cliContext = () => systemContext('cli');

/** A number with its noun: 1 event, 2 events. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Columns of text, left-aligned, for people. */
export function columns(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
