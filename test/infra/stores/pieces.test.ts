/** Old rows leave every table in pieces: no statement removes more, however many there are. */
import { expect } from 'chai';
import { sessionsSchedule } from '../../../infra/credentials/credentials.ts';
import { blockOf } from '../../../infra/read-models/history.ts';
import { ensureTables } from '../../../infra/read-models/projector.ts';
import { beginPastAt } from '../../../infra/read-models/retention.ts';
import { purgeIdempotency } from '../../../infra/stores/idempotency.ts';
import { createLogEntries } from '../../../infra/stores/monitoring/logs.ts';
import { deleteOld, PIECE } from '../../../infra/stores/pieces.ts';
import { createWebhookQueue } from '../../../infra/stores/webhooks/queue.ts';
import { workflowsProjection } from '../../../projections/workflows.ts';
import { DAY } from '../../../shared/time.ts';
import { fixture } from '../../support/fixture.ts';
import { testDatabase } from '../../support/world.ts';

/** Old rows of each table: more than two pieces. */
const OLD = 2 * PIECE + 10;

describe('old rows', function () {
  this.timeout(60_000);
  const place = fixture(testDatabase);
  const query = async (text: string, values: unknown[] = []) => (await place.database.pool.query(text, values)).rows;

  before(async () => {
    await ensureTables(place.database, [workflowsProjection]);
    await query('CREATE TABLE public.removals (table_name text NOT NULL, rows int NOT NULL)');
    await query(`CREATE FUNCTION public.note_removal() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO public.removals SELECT TG_TABLE_NAME, count(*) FROM gone;
        RETURN NULL;
      END $$`);
  });

  /**
   * Fills a table with old rows and three new ones, and removes the old ones.
   *
   * @param columns of the rows: `n` counts from 1, and is larger than $1 in new rows
   */
  async function remove(table: string, columns: Readonly<Record<string, string>>, work: () => Promise<unknown>) {
    await query(`CREATE TRIGGER note_removal AFTER DELETE ON ${table} REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION public.note_removal()`);
    await query('DELETE FROM public.removals');
    await query(
      `INSERT INTO ${table} (${Object.keys(columns).join(', ')})
       SELECT ${Object.values(columns).join(', ')} FROM generate_series(1, $1::int + 3) n`,
      [OLD],
    );
    await work();
    const [{ left }] = (await query(`SELECT count(*)::int AS left FROM ${table}`)) as [{ left: number }];
    const pieces = await query('SELECT rows FROM public.removals WHERE rows > 0 ORDER BY rows DESC');
    expect(pieces.map(({ rows }) => rows)).to.deep.equal([PIECE, PIECE, OLD - 2 * PIECE]);
    expect(left).to.equal(3);
  }

  const now = Date.now();
  const age = (unit: number) => `CASE WHEN n <= $1 THEN n ELSE ${Math.floor(now / unit) + DAY} END`;

  it('of sessions', () =>
    remove(
      'credentials.sessions',
      {
        token_hash: "decode(md5(n::text), 'hex')",
        user_id: '1',
        credential: "'c'",
        created_at: '0',
        expires_at: age(1_000),
      },
      () => sessionsSchedule(place.database.pool, () => now).run(true, new AbortController().signal),
    ));

  it('of idempotency keys', () =>
    remove(
      'service.idempotency',
      {
        scope: "'s'",
        key_hash: "decode(md5(n::text), 'hex')",
        request_hash: "''",
        state: "'done'",
        owner: "'o'",
        locked_until: '0',
        created_at: age(1),
      },
      () => purgeIdempotency(place.database.pool),
    ));

  it('of the service’s log', () =>
    remove(
      'service.log_entries',
      {
        workspace: '1 + n % 2',
        id: 'n::text',
        at: age(1),
        level: "'info'",
        source: "'s'",
        message: "'m'",
        bytes: '1',
      },
      () => createLogEntries(place.database.pool).purge(1, now),
    ));

  it('of the service’s log beyond the limit of a workspace', async () => {
    await query('DELETE FROM service.log_entries');
    await query('DROP TRIGGER note_removal ON service.log_entries');
    await remove(
      'service.log_entries',
      { workspace: '7', id: 'n::text', at: '1', level: "'info'", source: "'s'", message: "'m'", bytes: '1' },
      () => createLogEntries(place.database.pool, { lines: 3, bytes: 1_000 }).purge(0, now),
    );
  });

  it('of deliveries of webhooks', async () => {
    await query('INSERT INTO service.webhooks (webhook_id, workspace_id, position, seen) VALUES (1, 1, 0, 0)');
    await remove(
      'service.webhook_deliveries',
      {
        webhook_id: '1',
        workspace_id: '1',
        message_id: 'n::text',
        event_type: "'t'",
        payload: "'{}'",
        duration_ms: '1',
        attempt: '1',
        created_at: age(1),
      },
      () => createWebhookQueue(place.database.pool, 1_000).purge(now),
    );
  });

  it('of the past', async () => {
    const [table] = workflowsProjection.tables;
    const columns = await query(
      `SELECT attname AS name, typname AS type FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
       WHERE attrelid = 'workflows_v1_history.${table?.name}'::regclass AND attnum > 0`,
    );
    const position = `CASE WHEN n <= $1 THEN 2 * n ELSE 100000 END`;
    const own: Readonly<Record<string, string>> = {
      position,
      until: `${position} + 1`,
      block: `2 * (${position}) + 1`,
    };
    expect(blockOf(200, 201)).to.equal(401);
    const value = (type: string) => (type === 'text' ? "'x'" : type === 'jsonb' ? "'{}'::jsonb" : '1');
    await remove(
      `workflows_v1_history.${table?.name}`,
      Object.fromEntries(columns.map(({ name, type }) => [name, own[name] ?? value(type)])),
      () => beginPastAt(place.database.db, [workflowsProjection], 3 * OLD),
    );
  });

  it('stay where they are after an abort', async () => {
    const ended = { table: 'service.log_entries', by: 'at', before: now };
    await query('DROP TRIGGER note_removal ON service.log_entries');
    const [{ before }] = (await query('SELECT count(*)::int AS before FROM service.log_entries')) as [
      { before: number },
    ];
    expect(await deleteOld(place.database.pool, ended, { signal: AbortSignal.abort() })).to.equal(0);
    expect(await query('SELECT count(*)::int AS before FROM service.log_entries')).to.deep.equal([{ before }]);
    expect(before).to.equal(3);
  });
});
