/**
 * `signalbox rebuild`: rebuilds read models next to the live ones, compares, switches. `signalbox prepare`: builds
 * those of a new program version in advance.
 */
import type { Command } from 'commander';
import { projections } from '../../projections/index.ts';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import type { Core } from '../core.ts';
import { currentIndex } from '../log-index/current.ts';
import { repairTree } from '../proof/losses.ts';
import type { RebuildOptions, RebuildReport } from '../read-models/rebuild/plan.ts';
import { rebuildProjections } from '../read-models/rebuild/rebuild.ts';
import { beginningOfPast } from '../read-models/retention.ts';
import { withProgress } from './progress.ts';
import { columns, counted, withCore } from './with-core.ts';

/** Name of the Merkle tree of the log, listed among the read models. */
const LOG_TREE = 'log-tree';

interface Options {
  readonly check?: boolean;
  readonly fresh?: boolean;
  readonly history?: boolean;
}

export function addRebuild(program: Command): void {
  program
    .command('rebuild')
    .description('rebuild read models from the log beside the live ones, compare them, and switch')
    .argument(
      '[projection...]',
      `read models to rebuild; all by default (${projections.map((one) => one.name).join(', ')}); ${LOG_TREE}: removes from the tree over the log the events that the log no longer has`,
    )
    .option('--check', 'only compare; exit code 3 when something differs')
    .option('--fresh', 'discard what an interrupted rebuild has built')
    .option(
      '--history',
      'fill their past as well, for reads with as_of: from the beginning of the log, or as far back as MC_RETAIN_HISTORY_DAYS says',
    )
    .action(async (names: string[], options: Options) => {
      const known = [...projections.map((one) => one.name), LOG_TREE];
      const unknown = names.filter((name) => !known.includes(name));
      if (unknown.length > 0) {
        throw new Error(`Unknown projection: ${unknown.join(', ')}. Known ones: ${known.join(', ')}.`);
      }
      if (!options.check && (names.length === 0 || names.includes(LOG_TREE))) await repair();
      if (names.length === 1 && names[0] === LOG_TREE) return;
      const wanted = names.length === 0 ? projections : projections.filter((one) => names.includes(one.name));
      const { check = false, fresh = false, history = false } = options;
      const rebuildOptions = { check, fresh, history };
      const { reports, events, seconds } = await rebuildWithProgress(async () => wanted, rebuildOptions);
      console.log(
        columns(
          ['read model', 'table', 'rows', 'live', 'rebuilt'],
          reports.flatMap((report) => {
            const done = options.check ? 'compared' : 'switched';
            if (!report.compared)
              return [[report.projection, '', '', 'not compared: far behind the log, or from another one', done]];
            return report.tables.map((table) => [
              report.projection,
              table.table,
              String(table.rebuilt.rows),
              table.equal ? 'equal' : `differs (${table.live ? `${table.live.rows} rows` : 'unreadable'})`,
              done,
            ]);
          }),
        ),
      );
      console.log(speedOf(events, seconds));
      if (options.check && reports.some((report) => !report.equal || !report.compared)) process.exitCode = 3;
    });
}

export function addPrepare(program: Command): void {
  program
    .command('prepare')
    .description(
      'build the read models of this version while the old version still serves, so that they are ready at the next start',
    )
    .action(async () => {
      const { reports, events, seconds } = await rebuildWithProgress(neverFollowed, { farBehind: 0, history: true });
      if (reports.length === 0) {
        console.log('All read models have been built before.');
        return;
      }
      console.log(`Built: ${reports.map(({ projection }) => projection).join(', ')}`);
      console.log(speedOf(events, seconds));
    });
}

/** Read models for which no process has ever followed the log, if the log has events. */
async function neverFollowed({ database, eventLog }: Core): Promise<readonly Projection[]> {
  if ((await eventLog.head()) === BEGINNING) return [];
  const { rows } = await database.pool.query(
    'SELECT schema_name FROM service.checkpoints WHERE leader IS NULL AND position = $1',
    [BEGINNING],
  );
  const names = new Set((rows as { schema_name: string }[]).map((row) => row.schema_name));
  return projections.filter((one) => names.has(schemaOf(one)));
}

const speedOf = (events: number, seconds: number): string =>
  `${events} events in ${seconds.toFixed(1)} s, ${Math.round(events / seconds)}/s`;

interface Rebuilt {
  readonly reports: readonly RebuildReport[];
  readonly events: number;
  readonly seconds: number;
}

/** Rebuilds with a progress bar on a terminal; SIGINT and SIGTERM interrupt it. */
async function rebuildWithProgress(
  choose: (core: Core) => Promise<readonly Projection[]>,
  options: Pick<RebuildOptions, 'check' | 'fresh' | 'history' | 'farBehind'>,
): Promise<Rebuilt> {
  const { result, ...measured } = await withProgress(
    'Interrupted; run the command again to continue from here.',
    (watched) =>
      withCore(async (core) => {
        const wanted = await choose(core);
        if (wanted.length === 0) return [];
        const days = core.config.retainHistoryDays;
        const historyFrom = options.history && days > 0 ? await beginningOfPast(await currentIndex(core), days) : 0;
        return rebuildProjections(core, wanted, { ...options, historyFrom, ...watched });
      }),
  );
  return { reports: result, ...measured };
}

async function repair(): Promise<void> {
  const { size, removed } = await withCore(({ database, eventLog }) => repairTree(database, eventLog));
  if (removed === 0) return;
  console.log(
    `The tree over the log has ${counted(size, 'event')}: ${removed} that the log does not have were removed. Checkpoints that had them are kept; new ones have another origin.`,
  );
}
