/** `signalbox jobs …`: lists jobs and retries those that failed for good. */
import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import { JOB_STATES, type JobRecord, type JobState, type Jobs } from '../../shared/ports/jobs.ts';
import { readConfig } from '../config.ts';
import { openConfigured } from '../database/database.ts';
import { openJobs } from '../jobs/jobs.ts';
import { createLogger } from '../logging.ts';
import { columns, requireDatabase } from './with-core.ts';

const SHOWN = 50;
const REASON_SHOWN = 120;

interface ListOptions {
  readonly state: JobState;
  readonly limit: number;
  readonly offset: number;
  readonly json?: boolean;
}

export function registerJobs(program: Command): void {
  const jobs = program.command('jobs').description('show background jobs and retry those that failed for good');
  paged(jobs.command('list').description('count jobs, and list those in one state'))
    .addOption(new Option('--state <state>', 'state to list').choices(JOB_STATES).default('waiting'))
    .action((options: ListOptions) => show(options));
  paged(jobs.command('dead').description('show the dead-letter list, newest first')).action(
    (options: Omit<ListOptions, 'state'>) => show({ ...options, state: 'dead' }),
  );
  jobs
    .command('retry')
    .description('retry dead jobs, with all their attempts')
    .argument('<id>', 'id of a dead job, or `all`')
    .action(async (id: string) => {
      const count = await withJobs((open) => open.retry(id));
      if (count === 0 && id !== 'all')
        throw new Error(`No dead job has the id ${id}; \`signalbox jobs dead\` lists them.`);
      console.log(`Retrying ${count} ${count === 1 ? 'job' : 'jobs'}`);
    });
}

function paged(command: Command): Command {
  return command
    .option('--limit <count>', 'how many to show', wholeNumber, SHOWN)
    .option('--offset <count>', 'how many to skip', wholeNumber, 0)
    .option('--json', 'as JSON');
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

async function show({ state, limit, offset, json }: ListOptions): Promise<void> {
  const { counts, records } = await withJobs(async (jobs) => ({
    counts: await jobs.counts(),
    records: await jobs.list(state, { limit, offset }),
  }));
  if (json) {
    console.log(JSON.stringify({ counts, jobs: records }, null, 2));
    return;
  }
  console.log(JOB_STATES.map((one) => `${one} ${counts[one]}`).join(', '));
  if (records.length === 0) return;
  const last = { waiting: [], running: [], delayed: ['due'], dead: ['failed', 'reason'] }[state];
  console.log(columns(['id', 'kind', 'attempts', 'added', ...last, 'payload'], records.map(cellsOf)));
}

function cellsOf({ id, kind, attempts, addedAt, dueAt, failedAt, reason, payload, state }: JobRecord): string[] {
  const cells = [id, kind, String(attempts), iso(addedAt)];
  if (state === 'delayed') cells.push(iso(dueAt));
  // The table truncates the reason; the JSON has the whole text.
  if (state === 'dead') cells.push(iso(failedAt), (reason ?? '').replaceAll(/\s+/g, ' ').slice(0, REASON_SHOWN));
  return [...cells, JSON.stringify(payload)];
}

const iso = (ms: number | undefined): string => (ms === undefined ? '' : new Date(ms).toISOString());

/** Opens the job store: Redis if configured, otherwise the database, including that of a running embedded service. */
async function withJobs<T>(work: (jobs: Jobs) => Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  if (!config.redisUrl) requireDatabase(config);
  const log = createLogger('warn', 'stderr');
  const database = config.redisUrl ? undefined : await openConfigured(config, log, { attach: true });
  try {
    const jobs = await openJobs({ config, database, log });
    try {
      return await work(jobs);
    } finally {
      await jobs.close();
    }
  } finally {
    await database?.close();
  }
}
