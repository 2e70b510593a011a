/** Migrations: one more with made-up tables, and stores of other formats. */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { sql } from 'kysely';
import { refuseForeignLog } from '../../../infra/core.ts';
import { type AnyDatabase, openDatabase } from '../../../infra/database/database.ts';
import {
  isUpToDate,
  MIGRATION_TABLE,
  type Migrations,
  migrate,
  migrations,
} from '../../../infra/database/migrations.ts';
import { createLogger } from '../../../infra/logging.ts';
import { refuseOtherTables } from '../../../infra/read-models/tables.ts';
import { projections } from '../../../projections/index.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import { fixture } from '../../support/fixture.ts';
import { failureOf } from '../../support/kit.ts';
import { startTestService } from '../../support/service.ts';
import { dataDirectory, migratedDirectory } from '../../support/template.ts';
import { embeddedDatabase, onEveryDatabase } from '../../support/world.ts';

const log = createLogger('silent');
const BEFORE =
  'the database was made by a version of Signalbox before 1.0.0, which no other version reads: start with an empty DATA_DIR or database, or use the version that made this one.';

const withLamps: Migrations = {
  ...migrations,
  '0002_lamps': {
    async up(db) {
      await sql`CREATE TABLE service.lamps (place text PRIMARY KEY, position bigint NOT NULL)`.execute(db);
      await sql`INSERT INTO service.lamps SELECT 'head', position FROM log.head`.execute(db);
    },
  },
};

/** As a version before 1.0.0 recorded its migrations. */
const recordFormer = (db: AnyDatabase) => sql`UPDATE ${sql.table(MIGRATION_TABLE)} SET name = '0001_log'`.execute(db);

onEveryDatabase('migrations', (name, open) => {
  describe(`migrations on ${name}`, function () {
    this.timeout(60_000);
    const place = fixture(open);

    it('add tables to those that exist, once', async () => {
      const { db } = place.database;
      expect([await isUpToDate(db), await isUpToDate(db, withLamps)]).to.deep.equal([true, false]);
      await migrate(db, withLamps);
      await migrate(db, withLamps);
      expect(await isUpToDate(db, withLamps)).to.equal(true);
      const { rows } = await sql`SELECT place, position::int FROM service.lamps`.execute(db);
      expect(rows).to.deep.equal([{ place: 'head', position: 0 }]);
    });

    it('refuse a database of a newer version, with the remedy', async () => {
      expect(await failureOf(migrate(place.database.db))).to.equal(
        'the database was migrated by a newer version of Signalbox (0002_lamps): start that version or a newer one.',
      );
    });

    it('refuse a database from before 1.0.0, and change nothing in it', async () => {
      const { db } = place.database;
      await sql`DELETE FROM ${sql.table(MIGRATION_TABLE)} WHERE name = '0002_lamps'`.execute(db);
      await recordFormer(db);
      expect(await failureOf(migrate(db))).to.equal(BEFORE);
      const { rows } = await sql<{ name: string }>`SELECT name FROM ${sql.table(MIGRATION_TABLE)}`.execute(db);
      expect(rows.map((row) => row.name)).to.deep.equal(['0001_log']);
    });
  });
});

const openAt = (dataDir: string) => openDatabase({ dataDir, poolSize: 1, statementTimeoutMs: 15_000, log });

describe('stores of another format', function () {
  this.timeout(60_000);

  it('are refused at start, in one sentence', async () => {
    const dataDir = await migratedDirectory();
    const database = await openAt(dataDir);
    await recordFormer(database.db);
    await database.close();
    expect(await failureOf(startTestService({ DATA_DIR: dataDir }))).to.equal(BEFORE);
    await rm(dataDir, { recursive: true });
  });

  it('include read models with other tables or columns in the same version, and are refused at start', async () => {
    const dataDir = await dataDirectory();
    const database = await openAt(dataDir);
    const { db } = database;
    await refuseOtherTables(db, projections);
    const changes = [
      [
        'DROP TABLE activities_v1.open_hour CASCADE',
        'CREATE TABLE activities_v1.open_hour (id bigint NOT NULL, hour bigint NOT NULL, position bigint NOT NULL)',
      ],
      ['ALTER TABLE agents_v1.agents ADD COLUMN colour text', 'ALTER TABLE agents_v1.agents DROP COLUMN colour'],
      [
        'ALTER TABLE agents_v1.agents ALTER COLUMN name DROP NOT NULL',
        'ALTER TABLE agents_v1.agents ALTER COLUMN name SET NOT NULL',
      ],
    ] as const;
    for (const [change, back] of changes) {
      await sql.raw(change).execute(db);
      expect(await failureOf(refuseOtherTables(db, projections)), change).to.equal(BEFORE);
      await sql.raw(back).execute(db);
      await refuseOtherTables(db, projections);
    }
    await sql.raw(changes[0][0]).execute(db);
    await database.close();
    expect(await failureOf(startTestService({ DATA_DIR: dataDir }))).to.equal(BEFORE);
    await rm(dataDir, { recursive: true });
  });

  it('include an event store whose events have no counters in the database', async () => {
    const { database, close } = await embeddedDatabase();
    const logAt = (position: number) => ({ head: async () => position }) as unknown as EventLog;
    await refuseForeignLog(database, logAt(0));
    expect(await failureOf(refuseForeignLog(database, logAt(4_711)))).to.match(/holds events of another database/);
    await database.pool.query("INSERT INTO service.counters (name, value) VALUES ('event', 3)");
    await refuseForeignLog(database, logAt(4_711));
    await close();
  });
});
