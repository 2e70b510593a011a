/** Maintenance of the embedded database, which has no autovacuum and no checkpointer. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { type Embedded, openEmbedded } from '../../../infra/embedded/embedded.ts';
import { temporaryDirectory } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

describe('maintenance of the embedded database', function () {
  this.timeout(60_000);
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let embedded: Embedded;
  let client: pg.Client;
  const warnings: string[] = [];

  before(async () => {
    const note = (_fields: object, line: string) => warnings.push(line);
    directory = await temporaryDirectory();
    embedded = await openEmbedded({
      dataDir: directory.path,
      log: { info: () => undefined, warn: note, error: note },
      vacuumLookMs: 500,
    });
    const { socketDir: host, port } = embedded;
    client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' });
    await client.connect();
  });

  after(async () => {
    await client.end();
    await embedded.close();
    await directory.remove();
  });

  it('renews the statistics of tables that have doubled, not of one with changed rows, although it is never idle', async () => {
    const analyses = async (table: string): Promise<number> => {
      const { rows } = await client.query(
        'SELECT analyze_count::int AS n FROM pg_stat_all_tables WHERE relid = $1::regclass',
        [table],
      );
      return rows[0].n;
    };
    await client.query('CREATE TABLE changed WITH (fillfactor = 10) AS SELECT n FROM generate_series(1, 3000) n');
    await client.query('ANALYZE changed');
    // Twice as many changes as rows, in the same blocks.
    for (let round = 0; round < 2; round++) await client.query('UPDATE changed SET n = n + 1');
    // The first may be found in the same look as a table with changed rows, the second is found in a later one.
    for (const table of ['grown', 'grown_later']) {
      await client.query(`CREATE TABLE ${table} AS SELECT n FROM generate_series(1, 3000) n`);
      await until('it is analysed', async () => (await analyses(table)) > 0);
    }
    expect(await analyses('changed')).to.equal(1);
  });

  it('creates a checkpoint after a load and keeps 64 MB of log, removes dead rows and renews statistics', async () => {
    await client.query('CREATE TABLE numbers AS SELECT n FROM generate_series(1, 2000) n');
    await client.query('UPDATE numbers SET n = n + 10000');
    await client.query('CREATE TABLE large (body text)');
    await client.query('ALTER TABLE large ALTER body SET STORAGE EXTERNAL');
    for (let round = 0; round < 20; round++) {
      await client.query("INSERT INTO large SELECT repeat('x', 100000) FROM generate_series(1, 100)");
    }
    // Those of 16 MB; 200 MB were written.
    const segments = async () =>
      (await readdir(join(directory.path, 'pg', 'pg_wal'))).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;
    expect(await segments()).to.be.above(4);
    await until('a checkpoint has removed the log but for 64 MB', async () => (await segments()) <= 4);
    await until('it is vacuumed', async () => {
      await sleep(400);
      const { rows } = await client.query(
        `SELECT vacuum_count > 0 AND analyze_count > 0 AND n_dead_tup = 0 AS done
           FROM pg_stat_all_tables WHERE relid = 'numbers'::regclass`,
      );
      return rows[0].done;
    });
    expect(warnings.filter((line) => /VACUUM|ANALYZE|maintenance/.test(line))).to.deep.equal([]);
  });
});
