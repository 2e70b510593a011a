/** Signed checkpoints in the database. */
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import type { Database } from '../../../infra/database/database.ts';
import { newestNote } from '../../../infra/proof/checkpoints.ts';
import { EMPTY_ROOT } from '../../../infra/proof/hashing.ts';
import { signNote } from '../../../infra/proof/notes.ts';
import { fixture } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { databaseOnServer, embeddedDatabase, type TestDatabase } from '../../support/world.ts';

const { privateKey } = generateKeyPairSync('ed25519');
/** One every 30 seconds for a day, and most of them under an origin that a restore has ended. */
const SIGNED = 2_880;

function suite(name: string, open: () => Promise<TestDatabase>) {
  describe(`checkpoints on ${name}`, () => {
    const place = fixture(open);

    it('the latest is read through an index, even if one from before a restore is larger', async () => {
      const { pool } = place.database;
      expect(await newestNote(pool)).to.equal(undefined);
      const note = (origin: string, size: number) => signNote({ origin, size, root: EMPTY_ROOT }, privateKey);
      const insert = 'INSERT INTO credentials.log_checkpoints (origin, size, note, signed_at)';
      await pool.query(`${insert} SELECT 'log', n, $1, n FROM generate_series(1, ${SIGNED}) n`, [note('log', SIGNED)]);
      await pool.query(`${insert} VALUES ('log/2', 7, $1, $2)`, [note('log/2', 7), SIGNED + 1]);
      expect(await newestNote(pool)).to.include({ origin: 'log/2', size: 7 });

      await pool.query('ANALYZE credentials.log_checkpoints');
      const plans: string[] = [];
      const explaining = {
        async query(text: string) {
          const { rows } = await pool.query(`EXPLAIN ${text}`);
          plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
          return pool.query(text);
        },
      };
      await newestNote(explaining as unknown as Database['pool']);
      expect(plans).to.have.length(1);
      expect(plans[0])
        .to.match(/Index Scan/)
        .and.not.match(/Sort|Seq Scan/);
    });
  });
}

suite('PGlite', embeddedDatabase);
describeWith('TEST_DATABASE_URL', 'checkpoints on a server', () => suite('PostgreSQL', databaseOnServer));
