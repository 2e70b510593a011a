/** COPY on a PostgreSQL server, as a rebuild uses it. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { type BulkSession, encodeRow, openBulkSession } from '../../../../infra/read-models/rebuild/bulk.ts';
import { defineTable } from '../../../../projections/projection.ts';
import { fixture } from '../../../support/fixture.ts';
import { describeWith } from '../../../support/needs.ts';
import { until } from '../../../support/until.ts';
import { databaseOnServer } from '../../../support/world.ts';

describeWith('TEST_DATABASE_URL', 'bulk session', () => {
  const notes = defineTable('notes', { id: 'bigint', text: 'text?' }, { key: ['id'] });
  const missing = defineTable('missing', { id: 'bigint' }, { key: ['id'] });
  const place = fixture(databaseOnServer);
  before(() =>
    place.database.pool.query(
      'CREATE SCHEMA s; CREATE TABLE s.notes (id bigint PRIMARY KEY, text text, position bigint)',
    ),
  );
  const session = fixture(() => openBulkSession(place.database, '', 'test'));

  const rowsOf = (...ids: number[]) =>
    Buffer.from(ids.map((id) => encodeRow(notes, { id, text: `a\tb\\${id}\n` }, 7)).join(''));
  const copy = (...args: Parameters<NonNullable<BulkSession['copy']>>) => session.copy?.(...args);
  const refusal = (work: Promise<void> | undefined) =>
    Promise.resolve(work).then(
      () => 'nothing was refused',
      (error: { readonly code?: string }) => error.code,
    );

  it('writes the rows of all chunks, and nothing without chunks', async () => {
    await copy('s', notes, [rowsOf(1, 2), rowsOf(3)]);
    await copy('s', notes, []);
    const { rows } = await sql`SELECT id, text FROM s.notes ORDER BY id`.execute(session.db);
    expect(rows).to.deep.equal([1, 2, 3].map((id) => ({ id, text: `a\tb\\${id}\n` })));
  });

  it('fails with the error of the database, and remains usable', async () => {
    expect(await refusal(copy('s', notes, [rowsOf(1)])), 'a key that is there').to.equal('23505');
    // More than the connection accepts at once, refused at its first row.
    const many = Array.from({ length: 200 }, (_, n) =>
      rowsOf(...Array.from({ length: 500 }, (_row, i) => n * 500 + i)),
    );
    expect(await refusal(copy('s', notes, many)), 'a key in the midst of much').to.equal('23505');
    expect(await refusal(copy('s', notes, [Buffer.from('x\ty\t1\n')])), 'what is no number').to.equal('22P02');
    expect(await refusal(copy('s', missing, [Buffer.from('1\t1\n')])), 'a table that is missing').to.equal('42P01');
    await copy('s', notes, [rowsOf(4)]);
    const { rows } = await sql`SELECT count(*)::int AS count FROM s.notes`.execute(session.db);
    expect(rows).to.deep.equal([{ count: 4 }]);
  });

  it('ends its connection when it is closed, used or not', async () => {
    const { pool } = place.database;
    const open = async () =>
      (await pool.query("SELECT FROM pg_stat_activity WHERE application_name LIKE '%to be closed'")).rows.length;
    for (const isUsed of [false, true]) {
      const other = await openBulkSession(place.database, '', 'to be closed');
      if (isUsed) await sql`SELECT 1`.execute(other.db);
      expect(await open()).to.equal(1);
      await other.close();
      await until('the server has ended the connection', async () => (await open()) === 0);
    }
  });

  it('fails when its connection is cut', async () => {
    const other = await openBulkSession(place.database, '', 'cut');
    const pieces = Array.from({ length: 200 }, (_, n) =>
      rowsOf(...Array.from({ length: 500 }, (_row, i) => 1_000_000 + n * 500 + i)),
    );
    // The table is locked, so the COPY is waiting when the connection is cut.
    const holder = await place.database.pool.connect();
    await holder.query('BEGIN; LOCK TABLE s.notes IN ACCESS EXCLUSIVE MODE');
    const copying = refusal(other.copy?.('s', notes, pieces));
    await holder.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%cut%'");
    expect(await copying).not.to.equal('nothing was refused');
    await holder.query('ROLLBACK');
    holder.release();
    await other.close();
  });
});
