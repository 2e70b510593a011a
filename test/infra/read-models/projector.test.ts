/** The projection runner: batches, checkpoints, stuck events, fencing, leadership, reading one's own writes. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { z } from 'zod';
import type { Database } from '../../../infra/database/database.ts';
import { isFenced } from '../../../infra/following/checkpoints.ts';
import { createTables, dropSchema, loadRows, writeBatches } from '../../../infra/read-models/tables.ts';
import {
  change,
  defineProjection,
  defineTable,
  insert,
  on,
  schemaOf,
  update,
} from '../../../projections/projection.ts';
import { testEvent } from '../../support/boxes.ts';
import { CUT_CONNECTIONS } from '../../support/databases.ts';
import { describeWith } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import {
  databaseOnServer,
  embeddedDatabase,
  openView,
  type TestDatabase,
  testOrigin,
  viewOn,
} from '../../support/world.ts';

const opened = testEvent('BoxOpened', z.object({ box: z.int() }));
const filled = testEvent('BoxFilled', z.object({ box: z.int(), by: z.int() }));
const closed = testEvent('BoxClosed', z.object({ box: z.int() }));
const poisoned = testEvent('Poisoned', z.object({}));
const unseen = testEvent('Unseen', z.object({}));
const definitions = [opened, filled, closed, poisoned, unseen];

const boxes = defineTable(
  'boxes',
  { workspace_id: 'int', id: 'bigint', content: 'bigint' },
  { key: ['workspace_id', 'id'] },
);
const history = defineTable(
  'history',
  { workspace_id: 'int', id: 'bigint', text: 'text', extra: 'jsonb?' },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, position DESC'] },
);
const ws = { workspace_id: 1 };
const boxesProjection = defineProjection({
  name: 'boxes',
  version: 1,
  tables: [boxes],
  handlers: [
    on(opened, ({ data }) => [
      change(boxes, { ...ws, id: data.box }, (row) => row ?? { ...ws, id: data.box, content: 0 }),
    ]),
    on(filled, ({ data }) => [
      update(boxes, { ...ws, id: data.box }, (row) => ({ ...row, content: row.content + data.by })),
    ]),
    on(closed, ({ data }) => [update(boxes, { ...ws, id: data.box }, () => undefined)]),
  ],
});
/** An index on a part of its key. */
const members = defineTable(
  'members',
  { workspace_id: 'int', room: 'text', name: 'text', since: 'bigint' },
  { key: ['workspace_id', 'room', 'name'], indexes: ['workspace_id, name'] },
);
const membersProjection = defineProjection({ name: 'members', version: 1, tables: [members], handlers: [] });
let poison = true;
const historyProjection = defineProjection({
  name: 'history',
  version: 1,
  tables: [history],
  handlers: [
    on(filled, ({ data, meta }) => [
      insert(history, { ...ws, id: meta.number, text: `filled ${data.box}`, extra: { by: data.by } }),
    ]),
    on(poisoned, ({ meta }) => {
      if (poison) throw new Error('this event is poison');
      return [insert(history, { ...ws, id: meta.number, text: 'poison', extra: null })];
    }),
  ],
});
const projections = [boxesProjection, historyProjection];

type View = Awaited<ReturnType<typeof openView>>;
const add = async (view: View, stream: string, ...drafts: { type: string; data: object }[]) =>
  view.store.append(stream, await view.store.prepare(drafts as never, testOrigin), 'any');
const rows = async (database: Database, table: string) =>
  (await database.pool.query(`SELECT * FROM ${table} ORDER BY id`)).rows as Record<string, unknown>[];

function suite(name: string, open: () => Promise<TestDatabase>, two: boolean): void {
  describe(`the projector on ${name}`, () => {
    const { place, view } = viewOn(open, definitions, projections);

    it('inserts, updates and deletes rows with their position, and skips types without a handler', async () => {
      const projector = view.project('one');
      await add(view, 'box-1', opened.draft({ box: 1 }), filled.draft({ box: 1, by: 5 }), unseen.draft({}));
      const { position } = await add(
        view,
        'box-2',
        opened.draft({ box: 2 }),
        filled.draft({ box: 2, by: 1 }),
        closed.draft({ box: 2 }),
      );
      await view.positions.reach([closed.type, filled.type], { position });
      expect(await rows(place.database, 'boxes_v1.boxes')).to.deep.equal([
        { workspace_id: 1, id: 1, content: 5, position: 2 },
      ]);
      expect((await rows(place.database, 'history_v1.history')).map((row) => row.text)).to.deep.equal([
        'filled 1',
        'filled 2',
      ]);
      await projector.close();
    });

    it('resumes from a checkpoint that was moved under an idle read model', async () => {
      const projector = view.project('one');
      const at = async () =>
        (
          await place.database.pool.query('SELECT position FROM service.checkpoints WHERE schema_name = $1', [
            schemaOf(boxesProjection),
          ])
        ).rows[0].position as number;
      await until('it leads', () => projector.statuses[0]?.caughtUp);
      // Like a statement whose answer was lost: executed without anybody knowing.
      const head = await view.eventLog.head();
      await until('it has stored where it is', async () => (await at()) === head);
      await place.database.pool.query('UPDATE service.checkpoints SET position = position - 1 WHERE schema_name = $1', [
        schemaOf(boxesProjection),
      ]);
      const { position } = await add(view, 'nobody', unseen.draft({}));
      await until('the checkpoint moves on', async () => (await at()) === position);
      await projector.close();
    });

    it('stops only the projection with an event that cannot be applied, and reports it', async () => {
      poison = true;
      const projector = view.project('one');
      const { position } = await add(view, 'poison', poisoned.draft({}));
      const before = await rows(place.database, 'history_v1.history');
      const after = await add(view, 'box-4', opened.draft({ box: 4 }), filled.draft({ box: 4, by: 2 }));
      await until('boxes go on', () => view.positions.shown(schemaOf(boxesProjection)) >= after.position);
      const stuck = await until('stuck is stored', async () => {
        const { rows: found } = await place.database.pool.query(
          "SELECT stuck_at, stuck_reason, position FROM service.checkpoints WHERE projection = 'history' AND stuck_at IS NOT NULL",
        );
        return found[0];
      });
      expect(stuck.stuck_at).to.equal(position);
      expect(stuck.stuck_reason).to.match(/this event is poison/);
      expect(await rows(place.database, 'history_v1.history')).to.deep.equal(before);
      poison = false;
      await view.positions.reach([filled.type], { position: after.position });
      const { rows: cleared } = await place.database.pool.query('SELECT stuck_at FROM service.checkpoints');
      expect(cleared.map((row) => row.stuck_at)).to.deep.equal([null, null]);
      await projector.close();
    });

    it('applies none of one append with a poison event until that can be applied, and skips nothing', async () => {
      poison = true;
      const projector = view.project('one');
      const before = (await rows(place.database, 'history_v1.history')).length;
      const { position } = await add(
        view,
        'mixed',
        filled.draft({ box: 90, by: 1 }),
        poisoned.draft({}),
        filled.draft({ box: 91, by: 1 }),
      );
      await until('it is stuck', () => projector.statuses.some(({ stuck }) => stuck !== undefined));
      expect(await rows(place.database, 'history_v1.history'), 'half an append').to.have.length(before);
      poison = false;
      await view.positions.reach([filled.type], { position });
      const texts = (await rows(place.database, 'history_v1.history')).slice(before).map((row) => row.text);
      expect(texts).to.deep.equal(['filled 90', 'poison', 'filled 91']);
      await projector.close();
    });

    it('finds rows by their keys, even in a table without PostgreSQL statistics', async () => {
      const schema = schemaOf(membersProjection);
      const keys = [0, 1, 1_000, 2_000, 9_999].map((n) => ({ ...ws, room: `room ${n}`, name: 'ann' }));
      await place.database.db.transaction().execute(async (trx) => {
        await createTables(trx, membersProjection, schema);
        await sql`INSERT INTO ${sql.table(`${schema}.members`)} (workspace_id, room, name, since, position)
          SELECT 1, 'room ' || n, 'ann', n, n FROM generate_series(1, 2000) n`.execute(trx);
        const found = await loadRows(trx, schema, members, keys);
        expect([...found.values()].map(({ since }) => since)).to.have.members([1, 1_000, 2_000]);
        const { rows: read } = await sql<{ rows: number }>`
          SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS rows
          FROM pg_stat_xact_user_tables WHERE schemaname = ${schema} AND relname = 'members'`.execute(trx);
        // One row for each key: that of the key, or the next one.
        expect(read[0]?.rows).to.be.within(3, keys.length);
        await dropSchema(trx, schema);
      });
    });

    it('rejects a batch if its checkpoint was moved or its tables were swapped', async () => {
      const schema = schemaOf(boxesProjection);
      const read = async () =>
        (await place.database.pool.query('SELECT * FROM service.checkpoints WHERE schema_name = $1', [schema])).rows[0];
      const before = await read();
      const { position, generation } = before;
      const move = { schema, generation, from: position, to: position + 10, at: 1, notify: false };
      for (const stale of [
        { ...move, from: position - 1 },
        { ...move, from: position + 1 },
        { ...move, generation: generation - 1 },
      ]) {
        const row = { ...ws, id: 999, content: 1, position: position + 1 };
        const writes = [{ table: boxes as never, rows: [row], deletes: [], versions: [], forgets: [] }];
        const refusal = await writeBatches(place.database.db, [{ writes, move: stale }]).then(
          () => 'written',
          (error: unknown) => isFenced(error),
        );
        expect(refusal, JSON.stringify(stale)).to.equal(true);
      }
      expect(await read()).to.deep.equal(before);
      expect((await rows(place.database, 'boxes_v1.boxes')).filter((row) => row.id === 999)).to.deep.equal([]);
    });

    for (const [n, what, moved] of [
      [5, 'whose tables were swapped', 'generation = generation + 1'],
      [7, 'whose checkpoint somebody else has moved', 'position = position - 1'],
    ] as const) {
      it(`a follower ${what} is fenced and continues from the stored checkpoint`, async () => {
        const projector = view.project('one');
        const stream = `box-${n}`;
        const first = await add(view, stream, opened.draft({ box: n }), filled.draft({ box: n, by: 1 }));
        await view.positions.reach([filled.type], { position: first.position });
        await place.database.pool.query(
          `WITH moved AS (UPDATE service.checkpoints SET ${moved} WHERE projection = 'boxes')
           UPDATE boxes_v1.boxes SET content = 100 WHERE id = ${n}`,
        );
        const second = await add(view, stream, filled.draft({ box: n, by: 1 }));
        await view.positions.reach([filled.type], { position: second.position });
        const row = (await rows(place.database, 'boxes_v1.boxes')).find((one) => one.id === n);
        expect(row?.content, 'the row in memory was forgotten').to.equal(101);
        await projector.close();
      });
    }

    it('no longer trusts positions that a server crash has rolled back', async function () {
      if (!two) this.skip();
      const other = await openView(place.database, definitions, projections);
      const schema = schemaOf(boxesProjection);
      other.positions.watch();
      const before = await until('it hears of positions', () => other.positions.shown(schema));
      // Rows and checkpoints are written without waiting for the disk: this is what a crash leaves of them.
      await place.database.pool.query('UPDATE service.checkpoints SET position = position - 1 WHERE schema_name = $1', [
        schema,
      ]);
      const client = await place.database.connect('test');
      await client.query('TRUNCATE service.mark');
      await client.query(CUT_CONNECTIONS);
      await client.end();
      await until('it has read them anew', () => other.positions.shown(schema) === before - 1);
      expect(place.database.losses).to.equal(1);
      await other.close();
    });

    it('does not leave locks for hours after a machine dies', async function () {
      if (!two) this.skip();
      const client = await place.database.connect('test');
      const { rows: shown } = await client.query('SHOW tcp_keepalives_idle');
      expect(shown[0].tcp_keepalives_idle).to.equal('10');
      await client.end();
    });

    it('neither uses parallel workers nor compiles the statement of a request', async function () {
      if (!two) this.skip();
      const { rows } = await place.database.pool.query(
        "SELECT current_setting('jit') AS jit, current_setting('parallel_setup_cost')::int AS cost",
      );
      expect(rows[0]).to.deep.equal({ jit: 'off', cost: 100_000 });
    });

    it('has one leader, even while another process keeps trying', async function () {
      if (!two) this.skip();
      const leader = view.project('one');
      const leaders = async () =>
        (await place.database.pool.query('SELECT leader FROM service.checkpoints')).rows.map((row) => row.leader);
      await until('one leads', () => leader.statuses.every(({ caughtUp }) => caughtUp));
      let asked = 0;
      const connect = async (name: string) => {
        const client = await place.database.connect(name);
        const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
        client.query = (async (...args: unknown[]) => {
          const answer = await query(...args);
          if (JSON.stringify(args[0]).includes('pg_try_advisory_lock')) asked++;
          return answer;
        }) as never;
        return client;
      };
      const other = await openView({ ...place.database, connect }, definitions, projections);
      const rival = other.project('two');
      await until('it has asked for all, more than once', () => asked > projections.length);
      const { position } = await add(view, 'box-8', opened.draft({ box: 8 }), filled.draft({ box: 8, by: 1 }));
      await view.positions.reach([filled.type], { position });
      expect(new Set(await leaders())).to.deep.equal(new Set(['one']));
      expect(rival.statuses.map(({ caughtUp, applied }) => ({ caughtUp, applied }))).to.deep.equal(
        projections.map(() => ({ caughtUp: false, applied: 0 })),
      );
      await leader.close();
      await until('then it leads', async () => (await leaders()).every((name) => name === 'two'));
      await rival.close();
      await other.close();
    });

    it('is taken over by a second process, which learns positions in the meantime', async function () {
      if (!two) this.skip();
      const other = await openView(place.database, definitions, projections);
      other.positions.watch();
      const leader = view.project('one');
      await until('one leads', async () => {
        const { rows: found } = await place.database.pool.query('SELECT leader FROM service.checkpoints');
        return found.every((row) => row.leader === 'one');
      });
      const follower = other.project('two');
      const here = await add(other, 'box-6', opened.draft({ box: 6 }), filled.draft({ box: 6, by: 1 }));
      await other.positions.reach([filled.type], { position: here.position });
      await leader.close();
      const there = await add(view, 'box-6', filled.draft({ box: 6, by: 1 }));
      await other.positions.reach([filled.type], { position: there.position });
      const row = (await rows(place.database, 'boxes_v1.boxes')).find((one) => one.id === 6);
      expect(row?.content).to.equal(2);
      await follower.close();
      await other.close();
    });
  });
}

suite('PGlite', embeddedDatabase, false);

describeWith('TEST_DATABASE_URL', 'the projector on a server', () => {
  suite('PostgreSQL', databaseOnServer, true);
});
