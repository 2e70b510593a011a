/**
 * `signalbox rebuild`: rebuilds read models next to the live ones, compares, switches. `signalbox prepare`: builds
 * those of a new program version in advance.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { projections } from '../../projections/index.ts';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import { readConfig } from '../config.ts';
import type { Core } from '../core.ts';
import { currentIndex } from '../log-index/current.ts';
import { repairTree } from '../proof/losses.ts';
import type { RebuildOptions, RebuildReport } from '../read-models/rebuild/plan.ts';
import { rebuildProjections } from '../read-models/rebuild/rebuild.ts';
import { beginningOfPast } from '../read-models/retention.ts';
import { type Watched, withProgress } from './progress.ts';
import { asPart, divided, MOST_JOBS, rebuildInProcesses, weightsOf } from './rebuild-jobs.ts';
import { columns, counted, withCore } from './with-core.ts';

/** Name of the Merkle tree of the log, listed among the read models. */
const LOG_TREE = 'log-tree';

interface Options {
  readonly check?: boolean;
  readonly fresh?: boolean;
  readonly history?: boolean;
  readonly jobs: number;
  /** Runs as a process of another rebuild, with this bound for live tables that are not compared. */
  readonly part?: boolean;
  readonly farBehind?: number;
}

const jobsOption = () =>
  new Option('--jobs <n>', 'how many processes share the read models; each uses a core (PostgreSQL only)')
    .default(1)
    .argParser((text) => {
      const jobs = Number(text);
      if (Number.isInteger(jobs) && jobs >= 1 && jobs <= MOST_JOBS) return jobs;
      throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_JOBS}.`);
    });

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
    .addOption(jobsOption())
    .addOption(new Option('--part').hideHelp())
    .addOption(new Option('--far-behind <events>').argParser(Number).hideHelp())
    .action(async (names: string[], options: Options) => {
      const known = [...projections.map((one) => one.name), LOG_TREE];
      const unknown = names.filter((name) => !known.includes(name));
      if (unknown.length > 0) {
        throw new Error(`Unknown projection: ${unknown.join(', ')}. Known ones: ${known.join(', ')}.`);
      }
      if (!options.part && !options.check && (names.length === 0 || names.includes(LOG_TREE))) await repair();
      if (names.length === 1 && names[0] === LOG_TREE) return;
      const wanted = names.length === 0 ? projections : projections.filter((one) => names.includes(one.name));
      const { check = false, fresh = false, history = false, jobs, farBehind } = options;
      const rebuildOptions = { check, fresh, history, jobs, ...(farBehind !== undefined && { farBehind }) };
      if (options.part) return asPart((watched) => rebuildHere(async () => wanted, rebuildOptions, watched));
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
    .addOption(jobsOption())
    .action(async ({ jobs }: Pick<Options, 'jobs'>) => {
      const { reports, events, seconds } = await rebuildWithProgress(neverFollowed, {
        ...{ farBehind: 0, history: true, jobs },
      });
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

type Chosen = (core: Core) => Promise<readonly Projection[]>;
type Given = Pick<RebuildOptions, 'check' | 'fresh' | 'history' | 'farBehind'> & Pick<Options, 'jobs'>;

/** Rebuilds with a progress bar on a terminal; SIGINT and SIGTERM interrupt it. */
async function rebuildWithProgress(choose: Chosen, options: Given): Promise<Rebuilt> {
  const { result, ...measured } = await withProgress(
    'Interrupted; run the command again to continue from here.',
    (watched) => (isEmbedded() && options.jobs === 1 ? rebuildHere : rebuildByJobs)(choose, options, watched),
  );
  return { reports: result, ...measured };
}

const isEmbedded = () => readConfig(process.env).databaseUrl === undefined;

const rebuildHere = (choose: Chosen, { jobs: _, ...options }: Given, watched: Watched) =>
  withCore(async (core) => {
    const wanted = await choose(core);
    if (wanted.length === 0) return [];
    const days = core.config.retainHistoryDays;
    const historyFrom = options.history && days > 0 ? await beginningOfPast(await currentIndex(core), days) : 0;
    return rebuildProjections(core, wanted, { ...options, historyFrom, ...watched });
  });

async function rebuildByJobs(
  choose: Chosen,
  { jobs, check, fresh, history, farBehind }: Given,
  watched: Watched,
): Promise<readonly RebuildReport[]> {
  const groups = await withCore(async (core) => {
    if (core.database.kind !== 'server')
      throw new Error('--jobs needs PostgreSQL (DATABASE_URL): the embedded database computes on one thread.');
    const wanted = await choose(core);
    return divided(wanted, jobs, await weightsOf(core, wanted));
  });
  const flags = { '--check': check, '--fresh': fresh, '--history': history };
  const given = Object.entries(flags).flatMap(([flag, isGiven]) => (isGiven ? flag : []));
  if (farBehind !== undefined) given.push('--far-behind', String(farBehind));
  const reports = await rebuildInProcesses(groups, given, watched);
  const place = ({ projection }: RebuildReport) => projections.findIndex(({ name }) => name === projection);
  return reports.toSorted((one, other) => place(one) - place(other));
}

async function repair(): Promise<void> {
  const { size, removed } = await withCore(({ database, eventLog }) => repairTree(database, eventLog));
  if (removed === 0) return;
  console.log(
    `The tree over the log has ${counted(size, 'event')}: ${removed} that the log does not have were removed. Checkpoints that had them are kept; new ones have another origin.`,
  );
}
