/**
 * Data directories for tests. The first one of a run is made as the service makes it (initdb, migrations, tables); the
 * others start as copies of its database, which saves several seconds each. Test files run in several processes, which
 * share the one template: mocha loads this file (`.mocharc.json`) and calls its global fixtures once per run.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { createLogger } from '../../infra/logging.ts';
import { until } from './until.ts';

const SHARED = 'SIGNALBOX_TEST_TEMPLATE';

export async function mochaGlobalSetup(): Promise<void> {
  process.env[SHARED] = await mkdtemp(join(tmpdir(), 'sbx-template-'));
}

export async function mochaGlobalTeardown(): Promise<void> {
  await rm(process.env[SHARED] as string, { recursive: true, force: true });
}

async function makeTemplate(directory: string): Promise<void> {
  const database = await openDatabase({
    dataDir: directory,
    poolSize: 2,
    statementTimeoutMs: 30_000,
    log: createLogger('silent'),
  });
  await migrate(database.db);
  await database.close();
}

/** Where the migrated database of this run is; made by the process that asks first, waited for by the others. */
async function template(): Promise<string> {
  const shared = process.env[SHARED];
  if (!shared) throw new Error('the tests run by mocha, whose configuration loads test/support/template.ts');
  const ready = join(shared, 'ready');
  if (existsSync(ready)) return ready;
  const making = join(shared, 'making');
  const first = await mkdir(making).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (first) {
    await makeTemplate(making);
    await rename(making, ready);
  } else await until('another test process has made the template', () => existsSync(ready), 60_000);
  return ready;
}

/** A new directory whose database has been migrated. The caller removes it. */
export async function dataDirectory(): Promise<string> {
  const from = await template();
  const directory = await mkdtemp(join(tmpdir(), 'sbx-'));
  await cp(join(from, 'pg'), join(directory, 'pg'), { recursive: true });
  return directory;
}
