/** `signalbox rebuild`: builds read models anew beside the live ones, compares, switches. */
import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';
import { projections } from '../../projections/index.ts';
import { repairTree } from '../proof/repair.ts';
import type { RebuildReport } from '../read-models/rebuild/plan.ts';
import { rebuildProjections } from '../read-models/rebuild/rebuild.ts';
import { columns, counted, withCore } from './with-core.ts';

/** Name of the tree over the log among the read models. */
const LOG_TREE = 'log-tree';

interface Options {
  readonly check?: boolean;
  readonly fresh?: boolean;
}

export function addRebuild(program: Command): void {
  program
    .command('rebuild')
    .description('rebuild read models from the log beside the live ones, compare them, and switch')
    .argument(
      '[projection...]',
      `read models to rebuild; all by default (${projections.map((one) => one.name).join(', ')}); ${LOG_TREE}: the tree over the log, of which only events are removed that the log does not have`,
    )
    .option('--check', 'only compare; exit code 3 when something differs')
    .option('--fresh', 'discard what an interrupted rebuild has built')
    .action(async (names: string[], options: Options) => {
      const known = [...projections.map((one) => one.name), LOG_TREE];
      const unknown = names.filter((name) => !known.includes(name));
      if (unknown.length > 0) {
        throw new Error(`Unknown projection: ${unknown.join(', ')}. Known ones: ${known.join(', ')}.`);
      }
      if (!options.check && (names.length === 0 || names.includes(LOG_TREE))) await repair();
      if (names.length === 1 && names[0] === LOG_TREE) return;
      const wanted = names.length === 0 ? projections : projections.filter((one) => names.includes(one.name));
      const stop = new AbortController();
      const interrupt = () => stop.abort(new Error('Interrupted; run rebuild again to continue from here.'));
      process.once('SIGINT', interrupt);
      process.once('SIGTERM', interrupt);
      const begun = performance.now();
      let events = 0;
      const bar = process.stderr.isTTY
        ? new SingleBar({
            format: '{phase} [{bar}] {percentage}% | {events} events, {rate}/s',
            stream: process.stderr,
            clearOnComplete: true,
          })
        : undefined;
      let reports: readonly RebuildReport[];
      try {
        reports = await withCore((core) => {
          bar?.start(1, 0, { phase: 'starting', events: 0, rate: 0 });
          return rebuildProjections(core, wanted, {
            check: options.check ?? false,
            fresh: options.fresh ?? false,
            signal: stop.signal,
            onProgress(progress) {
              events = progress.events;
              const rate = Math.round((events * 1_000) / (performance.now() - begun));
              bar?.setTotal(Math.max(progress.target, 1));
              bar?.update(progress.position, { phase: progress.phase, events, rate });
            },
          });
        });
      } finally {
        bar?.stop();
        process.off('SIGINT', interrupt);
        process.off('SIGTERM', interrupt);
      }
      const seconds = (performance.now() - begun) / 1_000;
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
      console.log(`${events} events in ${seconds.toFixed(1)} s, ${Math.round(events / seconds)}/s`);
      if (options.check && reports.some((report) => !report.equal || !report.compared)) process.exitCode = 3;
    });
}

async function repair(): Promise<void> {
  const { size, removed } = await withCore(({ database, eventLog }) => repairTree(database, eventLog));
  if (removed === 0) return;
  console.log(
    `The tree over the log has ${counted(size, 'event')}: ${removed} that the log does not have were removed. Checkpoints that had them are kept; new ones have another origin.`,
  );
}
