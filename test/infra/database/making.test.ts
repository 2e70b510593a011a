/** First starts at the same time on one server: one makes the tables, the others wait for it, and not for longer than they may. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { makingTables, TABLES_LOCK } from '../../../infra/database/making.ts';
import { connected, freshDatabase } from '../../support/databases.ts';
import { closing, fixtureForEach } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { KEY, runCommand, startProcesses, temporaryDirectory } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

describeWith('TEST_DATABASE_URL', 'making tables', function () {
  this.timeout(120_000);
  const TIMEOUT_MS = 1_000;
  const database = fixtureForEach(freshDatabase);
  const env = () => ({ DATABASE_URL: database.url, DATABASE_TIMEOUT_MS: `${TIMEOUT_MS}` });
  /** Another program that migrates: Kysely's migrator has this lock. */
  const other = fixtureForEach(async () => {
    const client = await connected({ connectionString: database.url, application_name: 'another program' });
    await client.query(`SELECT pg_advisory_lock(${TABLES_LOCK})`);
    return client;
  });

  /** Processes that have been waiting for longer than a statement may take. */
  async function waiting(): Promise<number> {
    const { rows } = await other.query(
      `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'signalbox tables'
        AND now() - backend_start > $1 * interval '1 millisecond'`,
      [2 * TIMEOUT_MS],
    );
    return Number(rows[0].count);
  }

  it('two starts wait for another program longer than a statement may take, and then for each other', async () => {
    const starting = startProcesses(env(), ['all', 'all']);
    starting.catch(() => undefined);
    await until('both wait', async () => (await waiting()) === 2, 60_000);
    await other.query(`SELECT pg_advisory_unlock(${TABLES_LOCK})`);
    await using both = closing(await starting);
    for (const { url } of both.services) expect((await fetch(`${url}/health/ready`)).status).to.equal(200);
  });

  it('a start that has waited for as long as it may says who makes the tables', async () => {
    await using directory = closing(await temporaryDirectory());
    const start = { ...env(), DATA_DIR: directory.path, PORT: '0', API_KEY: KEY, START_TIMEOUT_MS: '3000' };
    const { code, err: said } = await runCommand(['start'], start);
    const { rows } = await other.query('SELECT pg_backend_pid() AS pid');
    expect(code).to.equal(1);
    expect(said).to.match(
      /another process makes or migrates the tables of the database, and did not finish within [123] s \(START_TIMEOUT_MS\)/,
    );
    expect(said).to.include(`the process id ${rows[0].pid} ("another program", from `);
    expect(said).to.include(`SELECT pg_terminate_backend(${rows[0].pid})`);
  });

  it('gives way to a lock on a table, and continues when it is released', async () => {
    await other.query(`SELECT pg_advisory_unlock(${TABLES_LOCK})`);
    await other.query('CREATE TABLE busy (id int)');
    await other.query('BEGIN; LOCK TABLE busy IN ACCESS SHARE MODE');
    const warnings: string[] = [];
    const warn = (_: object, message: string) => warnings.push(message);
    const connect = () => connected({ connectionString: database.url });
    const made = makingTables(
      { kind: 'server', connect, db: undefined as never },
      { deadline: Date.now() + 60_000, log: { warn, info: () => undefined } as never },
      async (db) => {
        await sql`ALTER TABLE busy ADD COLUMN more int`.execute(db);
      },
    );
    made.catch(() => undefined);
    await until('it gives way', async () => warnings.length > 0);
    expect(warnings[0]).to.equal('a table is locked by another connection; trying again');
    await other.query('COMMIT');
    await made;
    expect((await other.query('SELECT more FROM busy')).rows).to.deep.equal([]);
  });
});
