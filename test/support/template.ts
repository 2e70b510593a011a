/**
 * Data directories for tests. Two are made once per run as the service makes them, one with migrated tables and one
 * with the tables of read models and jobs as well; the others start as copies of their databases, which saves several
 * seconds each. Test files run in several processes, which share them: mocha loads this file (`.mocharc.json`) and calls
 * its global fixtures once per run.
 */
import { cpSync, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../infra/config.ts';
import { openCore } from '../../infra/core.ts';
import { openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { openCoreJobs } from '../../infra/jobs/work.ts';
import { createLogger } from '../../infra/logging.ts';
import { until } from './until.ts';

const SHARED = 'SIGNALBOX_TEST_TEMPLATE';
/** A file system in memory, as Linux has it. */
const MEMORY = '/dev/shm';
/** Free bytes that it must have; a run uses less than half of them at a time. */
const ENOUGH = 4 * 2 ** 30;

export async function mochaGlobalSetup(): Promise<void> {
  // Tests create and delete tens of thousands of files, and they kill processes, never the machine.
  if (process.env.TMPDIR === undefined && (await hasRoom(MEMORY))) process.env.TMPDIR = MEMORY;
  process.env[SHARED] = await mkdtemp(join(tmpdir(), 'sbx-template-'));
}

export async function mochaGlobalTeardown(): Promise<void> {
  await rm(process.env[SHARED] as string, { recursive: true, force: true });
}

async function hasRoom(directory: string): Promise<boolean> {
  const room = await statfs(directory).catch(() => undefined);
  return room !== undefined && room.bavail * room.bsize >= ENOUGH;
}

/** Where the directory of this name is; made by the process that asks first, waited for by the others. */
async function once(name: string, make: (directory: string) => Promise<void>): Promise<string> {
  const shared = process.env[SHARED];
  if (!shared) throw new Error('the tests run by mocha, whose configuration loads test/support/template.ts');
  const ready = join(shared, name);
  if (existsSync(ready)) return ready;
  const making = `${ready}.new`;
  const first = await mkdir(making).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (first) {
    await make(making);
    await rename(making, ready);
  } else await until(`another test process has made ${name}`, () => existsSync(ready), 60_000);
  return ready;
}

const migratedTemplate = (): Promise<string> =>
  once('migrated', async (directory) => {
    const options = { dataDir: directory, poolSize: 2, statementTimeoutMs: 30_000, log: createLogger('silent') };
    const database = await openDatabase(options);
    await migrate(database.db);
    await database.close();
  });

const serviceTemplate = (): Promise<string> =>
  once('service', async (directory) => {
    copyDatabase(await migratedTemplate(), directory);
    const core = await openCore(readConfig({ DATA_DIR: directory }), createLogger('silent'));
    const jobs = await openCoreJobs(core);
    // The first call makes their tables.
    await jobs.counts();
    await jobs.close();
    await core.close();
  });

// A third of what the asynchronous copy costs.
const copyDatabase = (from: string, to: string): void => cpSync(join(from, 'pg'), join(to, 'pg'), { recursive: true });

async function copyOf(template: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sbx-'));
  copyDatabase(template, directory);
  return directory;
}

/** A new directory as a service without any events has left it. The caller removes it. */
export const dataDirectory = async (): Promise<string> => copyOf(await serviceTemplate());

/** A new directory whose database has been migrated, but has no read models. The caller removes it. */
export const migratedDirectory = async (): Promise<string> => copyOf(await migratedTemplate());
