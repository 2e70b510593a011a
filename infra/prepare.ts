/**
 * Part of the build: creates the database that first starts unpack (`infra/embedded/prepared.ts`), unless it exists. It
 * has the tables of the service, but no rows with data of a deployment.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/index.ts';
import { isPrepared, PREPARED, pack } from './embedded/prepared.ts';
import { hashOfTables, markPrepared } from './read-models/prepared.ts';

const CODE = ['embedded/worker.js', 'embedded/prepared.js', 'jobs/postgres.js', 'prepare.js'];
const BULLMQ = import.meta.resolve('bullmq/package.json');

const tables = await hashOfTables(projections);
const code = [...CODE, BULLMQ].map((name) => readFileSync(new URL(name, import.meta.url)));
const maker = createHash('sha256').update(Buffer.concat(code)).update(tables).digest('hex').slice(0, 16);
if (!isPrepared(maker)) {
  rmSync(PREPARED, { force: true });
  const dataDir = mkdtempSync(join(tmpdir(), 'sbx-'));
  await makeDatabase(dataDir);
  pack(join(dataDir, 'pg'), maker);
  rmSync(dataDir, { recursive: true, force: true });
}

async function makeDatabase(dataDir: string): Promise<void> {
  const { readConfig } = await import('./config.ts');
  const { openCore } = await import('./core.ts');
  const { loadBullMQ } = await import('./jobs/jobs.ts');
  const { openPostgresStore } = await import('./jobs/postgres.ts');
  const { createLogger } = await import('./logging.ts');
  const config = readConfig({ DATA_DIR: dataDir });
  const log = createLogger('warn');
  const { database, close } = await openCore(config, log);
  const { statementTimeoutMs } = config;
  await openPostgresStore(await loadBullMQ(), { database, databaseUrl: undefined, statementTimeoutMs, log }).prepare();
  await markPrepared(database.db, tables);
  await close();
}
