/** Reads of the past: what they read, and how far back it goes. */
import { expect } from 'chai';
import { z } from 'zod';
import { createLogger } from '../../../infra/logging.ts';
import { blockOf, lookAt, pastOf } from '../../../infra/read-models/history.ts';
import { ensureTables } from '../../../infra/read-models/projector.ts';
import { beginningOfPast, beginPastAt } from '../../../infra/read-models/retention.ts';
import { change, defineProjection, defineTable, historyOf, on, schemaOf } from '../../../projections/projection.ts';
import { tables } from '../../../queries/reads.ts';
import type { AppError } from '../../../shared/errors.ts';
import { testEvent } from '../../support/boxes.ts';
import { fixture } from '../../support/fixture.ts';
import { outcomeText } from '../../support/kit.ts';
import { rebuildProjection } from '../../support/rebuild.ts';
import { temporaryDirectory } from '../../support/service-process.ts';
import { openView, testDatabase, testOrigin } from '../../support/world.ts';

const named = testEvent('ThingNamed', z.object({ id: z.int(), name: z.string() }));
const things = defineTable(
  'things',
  { workspace_id: 'int', id: 'bigint', created_at: 'bigint', name: 'text' },
  { key: ['workspace_id', 'id'], createdAt: 'created_at', indexes: ['workspace_id, created_at DESC, id DESC'] },
);
const projection = defineProjection({
  name: 'things',
  version: 1,
  tables: [things],
  handlers: [
    on(named, ({ meta, data: { id, name } }) => [
      change(things, { workspace_id: meta.workspace, id }, () => ({
        workspace_id: meta.workspace,
        id,
        created_at: id,
        name,
      })),
    ]),
  ],
});
const schema = schemaOf(projection);

describe('past versions of a read model', () => {
  const place = fixture(testDatabase);
  before(() => ensureTables(place.database, [projection]));
  const one = async (text: string, values: unknown[] = []) => (await place.database.pool.query(text, values)).rows[0];

  describe('with many rows', () => {
    const LIVE = 20_000;
    const AT = 900_000;
    before(async () => {
      // One row in twenty has changed since, and each of these has forty earlier versions.
      await one(
        `INSERT INTO ${schema}.things (workspace_id, id, created_at, name, position)
         SELECT 1, n, n, 'thing', CASE WHEN n % 20 = 0 THEN $2::bigint + n ELSE n END FROM generate_series(1, $1::int) n`,
        [LIVE, AT],
      );
      const versions = Array.from({ length: (LIVE / 20) * 40 }, (_, n) => {
        const id = 20 * (1 + Math.floor(n / 40));
        const from = id + (n % 40) * 20_000;
        const until = n % 40 === 39 ? AT + id : from + 20_000;
        return { workspace_id: 1, id, created_at: id, name: 'old', position: from, until, block: blockOf(from, until) };
      });
      await one(
        `INSERT INTO ${historyOf(schema)}.things (workspace_id, id, created_at, name, position, until, block)
         SELECT workspace_id, id, created_at, name, position, until, block
         FROM json_populate_recordset(null::${historyOf(schema)}.things, $1)`,
        [JSON.stringify(versions)],
      );
      await one(`ANALYZE ${schema}.things`);
      await one(`ANALYZE ${historyOf(schema)}.things`);
    });
    after(async () => {
      await one(`TRUNCATE ${schema}.things`);
      await one(`TRUNCATE ${historyOf(schema)}.things`);
    });

    interface Node {
      readonly 'Relation Name'?: string;
      readonly Schema?: string;
      readonly 'Actual Rows': number;
      readonly 'Actual Loops': number;
      readonly 'Rows Removed by Filter'?: number;
      readonly Plans?: readonly Node[];
    }
    /** Rows of a schema's tables that a plan has read. */
    const rowsRead = (node: Node, of: string): number => {
      const own = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
      const below = (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child, of), 0);
      return node.Schema === of ? own + below : below;
    };
    const explained = async (query: string, parameters: readonly unknown[], look = lookAt(AT, [schema])) => {
      const explain = { sql: `EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ${query}`, parameters };
      const [, rows] = await place.database.together([look, explain]);
      const [explanation] = rows as { 'QUERY PLAN': { Plan: Node }[] }[];
      const plan = explanation?.['QUERY PLAN'][0]?.Plan as Node;
      return { live: rowsRead(plan, schema), versions: rowsRead(plan, historyOf(schema)) };
    };

    it('are listed from the page’s rows and the versions of that time, without a scan of the whole table', async () => {
      const { live, versions } = await explained(
        `SELECT * FROM ${pastOf(schema)}.things WHERE workspace_id = $1 ORDER BY created_at DESC, id DESC LIMIT 50`,
        [1],
      );
      expect(live).to.be.within(47, 100);
      // A thousand of forty thousand stood then; the rest of these is in the same blocks.
      expect(versions).to.be.within(1_000, 4_000);
    });

    it('is listed without reading the rows that were created later', async () => {
      const [early, at] = [LIVE / 4, (LIVE / 4) * 1_000];
      const newest = `SELECT id FROM ${pastOf(schema)}.things WHERE workspace_id = $1 ORDER BY created_at DESC, id DESC LIMIT 50`;
      const { live } = await explained(newest, [1], lookAt(early, [schema], at));
      expect(live).to.be.within(47, 100);
      const listed = async (look: ReturnType<typeof lookAt>) =>
        (await place.database.together([look, { sql: newest, parameters: [1] }]))[1];
      expect(await listed(lookAt(early, [schema], at))).to.deep.equal(await listed(lookAt(early, [schema])));
    });

    it('are looked up by key for each joined row', async () => {
      const { live, versions } = await explained(
        `SELECT t.* FROM unnest($2::bigint[]) wanted (id)
         JOIN ${pastOf(schema)}.things t ON t.workspace_id = $1 AND t.id = wanted.id`,
        [1, [20, 21, 22]],
      );
      expect(live).to.be.at.most(3);
      expect(versions).to.be.at.most(10);
    });
  });

  it('are looked up in every block that may contain a version, and in no larger blocks', async () => {
    const { position } = await one('SELECT position FROM service.checkpoints WHERE schema_name = $1', [schema]);
    try {
      for (const end of [1, 2, 1_000, 2 ** 20 - 1, 2 ** 20, 2 ** 20 + 1, 3_000_000, 2 ** 33 + 7, 2 ** 45]) {
        await one('UPDATE service.checkpoints SET position = $1 WHERE schema_name = $2', [end, schema]);
        const blocksAt = async (at: number) => {
          const text = "SELECT current_setting('signalbox.as_of_blocks')::bigint[]::float8[] AS blocks";
          const [, rows] = await place.database.together([lookAt(at, [schema]), { sql: text, parameters: [] }]);
          return (rows as { blocks: number[] }[])[0]?.blocks ?? [];
        };
        // All versions end by then; some have stood since the beginning, or across the largest boundary.
        for (const at of [0, 1, Math.floor(end / 3), Math.floor(end / 2), end - 1].filter((one) => one < end)) {
          const blocks = await blocksAt(at);
          for (const from of [0, Math.floor(at / 2), at])
            for (const until of [at + 1, Math.ceil((at + 1 + end) / 2), end])
              expect(blocks, `${from} to ${until} at ${at} of ${end}`).to.include(blockOf(from, until));
          expect(blocks[0]).to.equal(0);
          expect(blocks.length).to.equal(Math.min(51, Math.ceil(Math.log2(end + 2 ** 20)) + 3));
        }
      }
    } finally {
      await one('UPDATE service.checkpoints SET position = $1 WHERE schema_name = $2', [position, schema]);
    }
  });

  describe('with a retention time', () => {
    /** Positions of the events, of which the n-th names thing 1 `n`. */
    const at: number[] = [];
    const view = fixture(() => openView(place.database, [named], [projection]));
    fixture(() => view.project('past test'));
    before(async () => {
      for (let n = 0; n < 10; n++) {
        const events = await view.store.prepare([named.draft({ id: 1, name: String(n) })], testOrigin);
        await view.store.append('things', events, n - 1 < 0 ? 'none' : n - 1);
        at.push(await view.store.log.head());
      }
      await view.positions.reachSchemas([schema], { position: at[9] as number });
    });

    const nameAt = async (n: number) => {
      const past = tables(view.reads.asOf(at[n] as number), projection);
      const found = await past.selectFrom('things').select('name').executeTakeFirst();
      return found?.name;
    };
    const refusal = (n: number) => nameAt(n).catch((error: AppError) => [error.status, error.extras.code]);
    const count = async (): Promise<number> =>
      (await one(`SELECT count(*)::int AS count FROM ${historyOf(schema)}.things`)).count;
    const begin = (n: number, options = {}) => beginPastAt(place.database.db, [projection], at[n] as number, options);

    it('go back to the first event at first', async () => {
      expect([await nameAt(0), await nameAt(8), await nameAt(9)]).to.deep.equal(['0', '8', '9']);
      expect(await count()).to.equal(9);
    });

    it('move their start before a version is removed, so that a killed process leaves no partial past', async () => {
      // As if the process had been killed when it was about to remove the first version.
      await one(`ALTER TABLE ${historyOf(schema)}.things RENAME TO away`);
      const failure = await outcomeText(begin(2));
      await one(`ALTER TABLE ${historyOf(schema)}.away RENAME TO things`);
      expect(failure).to.match(/does not exist/);
      expect(await count()).to.equal(9);
      expect(await refusal(1)).to.deep.equal([409, 'HISTORY_NOT_KEPT']);
      expect(await nameAt(2)).to.equal('2');
    });

    it('are removed in batches if they ended before the start, and no others', async () => {
      expect(await begin(6, { batch: 2 })).to.equal(6);
      expect(await count()).to.equal(3);
      expect(await refusal(5)).to.deep.equal([409, 'HISTORY_NOT_KEPT']);
      for (const n of [6, 7, 8, 9]) expect(await nameAt(n)).to.equal(String(n));
      expect(await begin(6)).to.equal(0);
    });

    it('never move their start back by themselves', async () => {
      await begin(3);
      expect(await refusal(4)).to.deep.equal([409, 'HISTORY_NOT_KEPT']);
    });

    it('start at the position given to a rebuild', async () => {
      const directory = await temporaryDirectory();
      const stores = { ...view, log: createLogger('silent'), config: { dataDir: directory.path } };
      await rebuildProjection(stores, projection, { history: true, historyFrom: at[4] as number });
      await directory.remove();
      expect(await nameAt(4)).to.equal('4');
      expect(await refusal(3)).to.deep.equal([409, 'HISTORY_NOT_KEPT']);
    });
  });

  it('start at the last event before the days of retention', async () => {
    const times: number[] = [];
    const index = {
      momentAt: async (asked: { time: number } | { position: number }) => {
        if ('time' in asked) times.push(asked.time);
        return times.length === 1 ? { position: 7, at: 1 } : undefined;
      },
    };
    const now = Date.UTC(2026, 0, 31);
    expect(await beginningOfPast(index, 30, now)).to.equal(7);
    expect(times).to.deep.equal([Date.UTC(2026, 0, 1)]);
    expect(await beginningOfPast(index, 30, now), 'before the first event').to.equal(0);
    expect(await beginningOfPast(index, 0, now), 'for ever').to.equal(0);
    expect(times).to.have.length(2);
  });
});
