/**
 * Data directories for tests. Two are made once per run as the service makes them, one with migrated tables and one
 * with the tables of read models and jobs as well; the others start as copies of their databases, which saves several
 * seconds each. Test files run in several processes, which share them: mocha loads this file (`.mocharc.json`) and calls
 * its global fixtures once per run.
 */
import { appendFileSync, copyFileSync, type Dirent, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { readConfig } from '../../infra/config.ts';
import { openCore } from '../../infra/core.ts';
import { openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openJobs } from '../../infra/jobs/jobs.ts';
import { createLogger } from '../../infra/logging.ts';
import { dropEverything } from '../../infra/read-models/prepared.ts';
import { until } from './until.ts';

/**
 * Steps that let go of what several test files of a process use one after another. Where test files run in processes
 * of their own, nobody takes them: those processes end with what they have.
 */
export const atTheEnd: (() => Promise<void>)[] = [];

const SHARED = 'SIGNALBOX_TEST_TEMPLATE';
/** A file in it. */
const SKIPPED = 'skipped';
/** A file system in memory, as Linux has it. */
const MEMORY = '/dev/shm';
/**
 * A process of the command line ends after some seconds, which is too soon for V8's optimising compilers to pay off: they
 * took a third of its CPU time. The test files' own processes, which live longer, only leave PGlite unoptimised
 * (`liftoff-only` in `.mocharc.json`), which saves an eighth.
 */
const UNOPTIMISED = '--liftoff-only --no-opt';
/** Free bytes that it must have; a run uses less than half of them at a time. */
const ENOUGH = 4 * 2 ** 30;

// Listeners that nothing removes pile up: the first emitter that warns of it ends the run of its process.
process.on('warning', (warning) => {
  if (warning.name === 'MaxListenersExceededWarning') throw warning;
});

/** Makes them before any test, because a test that waited for them would need more time than it has. */
export async function mochaGlobalSetup(): Promise<void> {
  // Tests create and delete tens of thousands of files, and they kill processes, never the machine.
  if (process.env.TMPDIR === undefined && (await hasRoom(MEMORY))) process.env.TMPDIR = MEMORY;
  process.env.SERVICE_NODE_ARGS ??= UNOPTIMISED;
  process.env[SHARED] = await mkdtemp(join(tmpdir(), 'sbx-template-'));
  // At the same time: each has one thread of its own that works, and the tests wait for both.
  await Promise.all([makeMigrated(template('migrated')), makeService(template('service'))]);
}

/** Notes tests that are skipped, for the end of the run: their files run in processes of their own. */
export function noteSkipped(without: string, tests: number): void {
  const shared = process.env[SHARED];
  if (shared) appendFileSync(join(shared, SKIPPED), `${JSON.stringify([without, tests])}\n`);
}

/** Prints how many tests were skipped for want of what. */
function printSkipped(shared: string): void {
  const counts = new Map<string, number>();
  for (const line of readFileSync(join(shared, SKIPPED), { encoding: 'utf8', flag: 'a+' })
    .split('\n')
    .filter(Boolean)) {
    const [without, tests] = JSON.parse(line) as [string, number];
    counts.set(without, (counts.get(without) ?? 0) + tests);
  }
  for (const [without, tests] of counts) console.log(`  skipped without ${without}: ${tests} tests`);
}

export async function mochaGlobalTeardown(): Promise<void> {
  for (const end of atTheEnd) await end();
  printSkipped(process.env[SHARED] as string);
  await rm(process.env[SHARED] as string, { recursive: true, force: true });
}

async function hasRoom(directory: string): Promise<boolean> {
  const room = await statfs(directory).catch(() => undefined);
  return room !== undefined && room.bavail * room.bsize >= ENOUGH;
}

export type Template = 'migrated' | 'service';

function template(name: Template): string {
  const shared = process.env[SHARED];
  if (!shared) throw new Error('the tests run by mocha, whose configuration loads test/support/template.ts');
  return join(shared, name);
}

async function makeMigrated(dataDir: string): Promise<void> {
  const log = createLogger('silent');
  const database = await openDatabase({ dataDir, poolSize: 2, statementTimeoutMs: 30_000, log });
  // That of the build has read models, too.
  await dropEverything(database.db);
  await migrate(database.db);
  await database.close();
}

async function makeService(dataDir: string): Promise<void> {
  const core = await openCore(readConfig({ DATA_DIR: dataDir }), createLogger('silent'));
  const jobs = await openJobs(core);
  // The first call makes their tables, and may take longer than a call may.
  const made = () =>
    jobs.counts().then(
      () => true,
      () => false,
    );
  await until('the tables of the jobs have been made', made, 60_000);
  await jobs.close();
  await core.close();
}

/** Copies the database of one data directory, which no process has open, into another. */
export function copyDatabase(from: string, to: string): void {
  const [source, target] = [join(from, 'pg'), join(to, 'pg')];
  mkdirSync(target, { recursive: true, mode: 0o700 });
  // Costs a third less than `cpSync`, which looks at each file several times.
  const entries = readdirSync(source, { recursive: true, withFileTypes: true });
  const at = ({ parentPath, name }: Dirent) => join(target, relative(source, parentPath), name);
  for (const entry of entries) if (entry.isDirectory()) mkdirSync(at(entry), { recursive: true, mode: 0o700 });
  for (const entry of entries) if (entry.isFile()) copyFileSync(join(entry.parentPath, entry.name), at(entry));
}

async function copyOf(name: Template, parent = tmpdir()): Promise<string> {
  const directory = await mkdtemp(join(parent, 'sbx-'));
  copyDatabase(template(name), directory);
  return directory;
}

/** A new directory as a service without any events has left it. The caller removes it. */
export const dataDirectory = (): Promise<string> => copyOf('service');

/** A new directory whose database has been migrated, but has no read models. The caller removes it. */
export const migratedDirectory = (): Promise<string> => copyOf('migrated');

/** A directory for tests of this process; removed with the templates. */
export const keptDirectory = (name: Template): Promise<string> => copyOf(name, process.env[SHARED]);
