/**
 * Data directories for tests. The first one of a run is made as the service makes it (initdb, migrations, tables); the
 * others start as copies of its database, which saves several seconds each.
 */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../infra/database/database.ts';
import { migrate } from '../../infra/database/migrations.ts';
import { createLogger } from '../../infra/logging.ts';

let template: Promise<string> | undefined;

async function makeTemplate(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sbx-template-'));
  const database = await openDatabase({
    dataDir: directory,
    poolSize: 2,
    statementTimeoutMs: 30_000,
    log: createLogger('silent'),
  });
  await migrate(database.db);
  await database.close();
  return directory;
}

/** A new directory whose database has been migrated. The caller removes it. */
export async function dataDirectory(): Promise<string> {
  template ??= makeTemplate();
  const from = await template;
  const directory = await mkdtemp(join(tmpdir(), 'sbx-'));
  await cp(join(from, 'pg'), join(directory, 'pg'), { recursive: true });
  return directory;
}

// Mocha's root hook: the template goes when the run is over.
if (typeof after === 'function') {
  after(async () => {
    if (template) await rm(await template, { recursive: true, force: true });
  });
}
