/** Rows that are written in larger groups, as long as no read waits for them. */
import { expect } from 'chai';
import { z } from 'zod';
import { openDatabase } from '../../../infra/database/database.ts';
import { createGathering, type Gathering } from '../../../infra/following/gathering.ts';
import { createLogger } from '../../../infra/logging.ts';
import { createChangeTracker } from '../../../infra/read-models/change-tracker.ts';
import { ensureTables, startProjector } from '../../../infra/read-models/projector.ts';
import { RowCaches } from '../../../infra/read-models/row-cache.ts';
import { change, defineProjection, defineTable, on } from '../../../projections/projection.ts';
import { tables } from '../../../queries/reads.ts';
import { testEvent } from '../../support/boxes.ts';
import { fixture } from '../../support/fixture.ts';
import { migratedDirectory } from '../../support/template.ts';
import { until } from '../../support/until.ts';
import { openView, testOrigin } from '../../support/world.ts';

const log = createLogger('silent');

describe('gathering of reads and writes', () => {
  const open = (awaited = false) => createGathering(() => awaited);
  const begun = (gathering: Gathering, ...names: string[]) => {
    const seen: string[] = [];
    for (const name of names)
      gathering.wait().then(
        () => seen.push(name),
        () => undefined,
      );
    return seen;
  };

  it('lets all begin at the same time', async () => {
    const gathering = open();
    gathering.end();
    const seen = begun(gathering, 'a', 'b', 'c');
    await new Promise(setImmediate);
    expect(seen).to.deep.equal([]);
    gathering.end();
    await new Promise(setImmediate);
    expect(seen).to.deep.equal(['a', 'b', 'c']);
  });

  it('does not delay appends while a read waits for rows', async () => {
    const seen = begun(open(true), 'a', 'b');
    await new Promise(setImmediate);
    expect(seen).to.deep.equal(['a', 'b']);
  });

  it('ends by itself after a moment, repeatedly', async () => {
    const gathering = open();
    for (const name of ['a', 'b']) {
      const seen = begun(gathering, name);
      await until('it has begun', () => seen.length === 1);
    }
  });
});

describe('gathered rows', () => {
  const added = testEvent('Added', z.object({ to: z.int(), amount: z.int() }));
  const poison = { on: false };
  const sums = defineTable('sums', { workspace_id: 'int', id: 'int', sum: 'bigint' }, { key: ['workspace_id', 'id'] });
  const projection = defineProjection({
    name: 'sums',
    version: 1,
    tables: [sums],
    handlers: [
      on(added, ({ data, meta }) => {
        if (poison.on) throw new Error('this event is poison');
        const key = { workspace_id: meta.workspace, id: data.to };
        return [change(sums, key, (row) => ({ ...key, sum: (row?.sum ?? 0) + data.amount }))];
      }),
    ],
  });
  // One connection for requests: a read that waited with it would wait for ever.
  const database = fixture(async () =>
    openDatabase({ dataDir: await migratedDirectory(), poolSize: 1, statementTimeoutMs: 15_000, log }),
  );
  before(() => ensureTables(database, [projection]));
  const view = fixture(() => openView(database, [added], [projection]));
  after(() => {
    poison.on = false;
  });
  const projector = fixture(async () => {
    const { store, following, positions } = view;
    const gathering = createGathering(() => positions.isAwaited());
    positions.onWait(gathering.end);
    const parts = { changes: createChangeTracker(), rows: new RowCaches(), log, process: 'one' };
    const started = startProjector([projection], { database, store, following, positions, ...parts }, { gathering });
    await until('it keeps up', () => started.statuses[0]?.caughtUp);
    return started;
  });

  const add = (to: number, amount: number) =>
    view.commands.record(`sum-${to}`, { origin: testOrigin }, [added.draft({ to, amount })]);
  const isBehind = () => view.positions.shown('sums_v1') < (view.eventLog.headKnown?.() ?? Number.POSITIVE_INFINITY);
  const sumOf = async (id: number) => {
    const row = await tables(view.reads, projection)
      .selectFrom('sums')
      .select('sum')
      .where('id', '=', id)
      .executeTakeFirst();
    return Number(row?.sum ?? 0);
  };

  it('are shown by every read after the acknowledged write, hundreds of times, and writes do not wait', async () => {
    let late = 0;
    for (let n = 1; n <= 300; n++) {
      await add(1, 1);
      if (isBehind()) late++;
      // Some writes in a row, so that reads find several of them.
      if (n % 7 < 3) expect(await sumOf(1)).to.equal(n);
    }
    expect(late, 'answers before the rows were there').to.be.greaterThan(150);
  });

  it('agree under concurrent reads and writes', async () => {
    const one = async (n: number) => {
      for (let turn = 1; turn <= 20; turn++) {
        await add(n, 2);
        expect(await sumOf(n)).to.equal(2 * turn);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => one(n + 10)));
  });

  it('are visible to a client that has received their event from the log', async () => {
    const seen: Promise<number>[] = [];
    const policy = view.following.follow(
      {
        name: 'policy',
        types: new Set([added.type]),
        begin: async () => ({ position: await view.eventLog.head(), generation: 0, stuckAt: null }),
        async apply(events) {
          for (const { data } of events) seen.push(sumOf((data as { to: number }).to));
        },
        forget: () => undefined,
        isTransient: () => false,
        stuck: async () => undefined,
      },
      { log, by: 'each process' },
    );
    await until('it has caught up', () => policy.status.caughtUp);
    // Without a command, so no response acknowledges it.
    for (let n = 1; n <= 20; n++) {
      const event = added.draft({ to: 100 + n, amount: n });
      await view.store.append(`sum-${100 + n}`, await view.store.prepare([event] as never, testOrigin), 'any');
    }
    await until('it has received all', () => seen.length === 20);
    expect(await Promise.all(seen)).to.deep.equal(Array.from({ length: 20 }, (_, n) => n + 1));
    await policy.close();
  });

  it('are written even if no read waits for them', async () => {
    await add(2, 5);
    await until('the row is there', async () => {
      const { rows } = await database.pool.query('SELECT sum FROM sums_v1.sums WHERE id = 2');
      return Number(rows[0]?.sum) === 5;
    });
  });

  it('time out for a read of a stuck read model, and are read once it continues', async () => {
    poison.on = true;
    await add(3, 1);
    const refused = await sumOf(3).catch((error: unknown) => error);
    expect(refused).to.include({ status: 503 });
    await until('it is known to be stuck', () => projector.statuses[0]?.stuck);
    poison.on = false;
    await until('it goes on', async () => !isBehind());
    expect(await sumOf(3)).to.equal(1);
  });
});
