import { expect } from 'chai';
import fc from 'fast-check';
import { createLogger } from '../../../../infra/logging.ts';
import { replayerOf } from '../../../../infra/read-models/rebuild/building.ts';
import {
  differs,
  type ProjectionReplay,
  type ReplayOptions,
  replayProjections,
} from '../../../../infra/read-models/replay/replay.ts';
import { agentsProjection, agentsTable } from '../../../../projections/agents/agents.ts';
import { MemoryTables } from '../../../../projections/apply.ts';
import { usersProjection } from '../../../../projections/auth/users.ts';
import { projections } from '../../../../projections/index.ts';
import { historyOf, type Projection, schemaOf, type Table } from '../../../../projections/projection.ts';
import { agentDeleted } from '../../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../../shared/events/agents/heartbeat.ts';
import { accessRequested } from '../../../../shared/events/auth/access-requests.ts';
import { personErased } from '../../../../shared/events/auth/people.ts';
import { catalogue } from '../../../../shared/events/catalogue.ts';
import type { DomainEvent, EventDraft } from '../../../../shared/events/define.ts';
import { fixture } from '../../../support/fixture.ts';
import { writeHistory } from '../../../support/history.ts';
import { failureOf, sample } from '../../../support/kit.ts';
import { rebuildProjection } from '../../../support/rebuild.ts';
import { runs } from '../../../support/runs.ts';
import { until } from '../../../support/until.ts';
import { onEveryDatabase, type TestDatabase, testOrigin, viewOn } from '../../../support/world.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
const AGENTS = `${schemaOf(agentsProjection)}.agents`;
const AGENTS_PAST = `${historyOf(schemaOf(agentsProjection))}.agents`;

/** A row without its position, as text. */
const contentsOf = (table: Table, row: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  row && JSON.stringify(Object.keys(table.columns).map((name) => row[name] ?? null));

function suite(name: string, open: () => Promise<TestDatabase>): void {
  describe(`replay on ${name}`, function () {
    this.timeout(180_000);
    let events: DomainEvent[];

    const { place, view } = viewOn(open, [...catalogue.values()], projections);
    fixture(() => view.project('live'));
    before(async () => {
      await writeHistory(view.store, { events: 500, agents: 6 });
      await live();
      events = [];
      for await (const page of view.store.log.readAll())
        for (const event of page) events.push(await view.store.decode(event));
    });

    /** Waits until the checkpoint of a read model, or every one, is stored at the end of the log. */
    const live = (schema?: string) =>
      until('the read models have caught up', async () => {
        const { rows } = await pool().query(
          'SELECT min(position) AS position FROM service.checkpoints WHERE schema_name = coalesce($1, schema_name)',
          [schema ?? null],
        );
        return rows[0].position >= (await view.store.log.head());
      });
    const pool = () => place.database.pool;
    const stores = () => ({ database: place.database, store: view.store, log, config: { dataDir: place.dataDir } });
    const replay = (which: readonly Projection[], options: ReplayOptions = {}) =>
      replayProjections(stores(), which, options);
    const replayed = async (which: Projection, options: ReplayOptions = {}): Promise<ProjectionReplay> =>
      (await replay([which], options))[0] as ProjectionReplay;
    const agentsOf = ({ tables }: ProjectionReplay) => tables.find(({ table }) => table === 'agents')?.differences;
    /** Everything that is not to change: the schemas, the checkpoints, and the rows of all tables. */
    const everything = async () => {
      const { rows: schemas } = await pool().query('SELECT nspname FROM pg_namespace ORDER BY 1');
      const { rows: checkpoints } = await pool().query(
        'SELECT schema_name, position, generation, leader, history_from, history_to FROM service.checkpoints ORDER BY 1',
      );
      const { rows: tables } = await pool().query(
        `SELECT table_schema || '.' || table_name AS name FROM information_schema.tables
         WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
           AND table_name NOT IN ('checkpoints', 'processes') ORDER BY 1`,
      );
      const each = tables.map(
        ({ name: table }) =>
          `SELECT '${table}' AS name, coalesce(sum(hashtextextended(t::text, 0)), 0)::text AS hash FROM ${table} t`,
      );
      const { rows: hashes } = await pool().query(`${each.join(' UNION ALL ')} ORDER BY 1`);
      return { head: await view.store.log.head(), schemas, checkpoints, hashes };
    };

    /** Runs `work` with a change made by hand, which is then taken back. */
    const planted = async (statement: string, values: unknown[], work: () => Promise<void>) => {
      await pool().query(`CREATE TABLE public.kept AS SELECT * FROM ${AGENTS}`);
      await pool().query(`CREATE TABLE public.kept_past AS SELECT * FROM ${AGENTS_PAST}`);
      try {
        await pool().query(statement, values);
        await work();
      } finally {
        await pool().query(`DELETE FROM ${AGENTS}`);
        await pool().query(`INSERT INTO ${AGENTS} SELECT * FROM public.kept`);
        await pool().query(`DELETE FROM ${AGENTS_PAST}`);
        await pool().query(`INSERT INTO ${AGENTS_PAST} SELECT * FROM public.kept_past`);
        await pool().query('DROP TABLE public.kept, public.kept_past');
      }
    };
    const oneAgent = async () => {
      const { rows } = await pool().query(
        `SELECT * FROM ${AGENTS} a WHERE EXISTS (SELECT FROM ${AGENTS_PAST} h WHERE (h.workspace_id, h.id) = (a.workspace_id, a.id))
         ORDER BY id LIMIT 1`,
      );
      return rows[0];
    };

    it('confirms tables that match the log, and writes and leaves nothing', async () => {
      const before = await everything();
      const replays = await replay(projections);
      expect(replays).to.have.length(projections.length);
      expect(replays.flatMap(({ tables }) => tables.filter(differs))).to.deep.equal([]);
      expect(replays.every(({ from, until }) => from === 0 && until === before.head)).to.equal(true);
      const { rows } = await pool().query(`SELECT count(*)::int AS count FROM ${AGENTS}`);
      expect(agentsOf(replays.find(({ projection }) => projection === 'agents') as ProjectionReplay)?.rows).to.equal(
        rows[0].count,
      );
      expect(await everything()).to.deep.equal(before);
    });

    it('detects a manually changed value, and the position since when it is wrong', async () => {
      const agent = await oneAgent();
      await planted(
        `UPDATE ${AGENTS} SET role = 'impostor' WHERE workspace_id = $1 AND id = $2`,
        [agent.workspace_id, agent.id],
        async () => {
          const found = agentsOf(await replayed(agentsProjection));
          expect(found).to.include({ onlyLive: 0, onlyReplayed: 0, different: 1, past: 0, first: agent.position });
          const [example] = found?.examples ?? [];
          expect(found?.examples).to.have.length(1);
          expect(example?.key).to.deep.equal({ workspace_id: agent.workspace_id, id: agent.id });
          expect(example?.live?.role).to.equal('impostor');
          expect(example?.replayed?.role).to.equal(agent.role);
          const before = agentsOf(await replayed(agentsProjection, { until: agent.position - 1 }));
          expect(before).to.include({ different: 0, past: 0, first: null });
        },
      );
    });

    it('detects a manually removed row and an added row', async () => {
      const agent = await oneAgent();
      await planted(
        `DELETE FROM ${AGENTS} WHERE workspace_id = $1 AND id = $2`,
        [agent.workspace_id, agent.id],
        async () => {
          const found = agentsOf(await replayed(agentsProjection));
          expect(found).to.include({ onlyLive: 0, onlyReplayed: 1, different: 0, past: 0, first: agent.position });
          expect(found?.examples[0]?.live).to.equal(undefined);
          expect(found?.examples[0]?.replayed?.name).to.equal(agent.name);
        },
      );
      const columns = Object.keys(agentsTable.columns);
      const copied = columns.map((column) => (column === 'id' ? '999999' : column)).join(', ');
      await planted(
        `INSERT INTO ${AGENTS} (${columns.join(', ')}, position) SELECT ${copied}, position FROM ${AGENTS} WHERE id = $1`,
        [agent.id],
        async () => {
          const found = agentsOf(await replayed(agentsProjection));
          expect(found).to.include({ onlyLive: 1, onlyReplayed: 0, different: 0, first: agent.position });
        },
      );
    });

    it('detects a manually changed past version', async () => {
      const agent = await oneAgent();
      const { rows } = await pool().query(
        `SELECT position, until FROM ${AGENTS_PAST} WHERE workspace_id = $1 AND id = $2 ORDER BY position LIMIT 1`,
        [agent.workspace_id, agent.id],
      );
      const [version] = rows;
      await planted(
        `UPDATE ${AGENTS_PAST} SET name = 'nobody' WHERE workspace_id = $1 AND id = $2 AND position = $3`,
        [agent.workspace_id, agent.id, version.position],
        async () => {
          const found = agentsOf(await replayed(agentsProjection));
          expect(found).to.include({ different: 0, past: 1, first: version.position });
          expect(found?.examples[0]).to.include({ first: version.position, at: version.position });
          expect(found?.examples[0]?.live?.name).to.equal('nobody');
          const { until: end } = version;
          expect(agentsOf(await replayed(agentsProjection, { from: end }))?.first).to.equal(null);
          const within = agentsOf(await replayed(agentsProjection, { from: end - 1 }));
          expect(within?.first).to.equal(end - 1);
        },
      );
    });

    it('reports the same for a changed projection as two folds in memory, in any range', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            /** From which event on the projection is another one. */
            since: fc.nat({ max: events.length - 1 }),
            range: fc.tuple(fc.nat({ max: events.length - 1 }), fc.nat({ max: events.length - 1 })),
            ignored: fc.constantFrom(agentHeartbeatReceived.type, agentDeleted.type, 'AgentStatusChanged'),
            part: fc.constantFrom(7, 50_000),
          }),
          async ({ since, range, ignored, part }) => {
            const changedAt = events[since]?.position as number;
            const changed: Projection = {
              ...agentsProjection,
              project: (event) =>
                event.type === ignored && event.position >= changedAt ? [] : agentsProjection.project(event),
            };
            const [from, end] = range.toSorted((a, b) => a - b).map((n) => events[n]?.position as number) as [
              number,
              number,
            ];
            const [one, other] = [new MemoryTables(), new MemoryTables()];
            const firsts = new Map<string, Map<string, number>>();
            for (const event of events.filter(({ position }) => position <= end)) {
              one.apply(agentsProjection, [event]);
              other.apply(changed, [event]);
              for (const table of agentsProjection.tables as readonly Table[]) {
                const keyed = (rows: MemoryTables) =>
                  new Map(rows.rows(table).map((row) => [table.key.map((k) => row[k]).join(), contentsOf(table, row)]));
                const [live, replay] = [keyed(one), keyed(other)];
                const first = firsts.get(table.name) ?? new Map<string, number>();
                firsts.set(table.name, first);
                for (const key of new Set([...live.keys(), ...replay.keys()])) {
                  const isFirst = event.position >= from && !first.has(key);
                  if (isFirst && live.get(key) !== replay.get(key)) first.set(key, event.position);
                }
              }
            }
            const { tables } = await replayed(changed, { from, until: end, examples: 100, part });
            for (const { table, differences } of tables) {
              const first = firsts.get(table) as Map<string, number>;
              const of = agentsProjection.tables.find(({ name }) => name === table) as unknown as Table;
              const rows = (memory: MemoryTables) =>
                new Map(memory.rows(of).map((row) => [of.key.map((k) => row[k]).join(), contentsOf(of, row)]));
              const [live, replay] = [rows(one), rows(other)];
              const keys = [...new Set([...live.keys(), ...replay.keys()])];
              const count = (is: (l: string | undefined, r: string | undefined) => boolean) =>
                keys.filter((key) => is(live.get(key), replay.get(key))).length;
              const { examples, ...counts } = differences ?? { examples: [] };
              expect(counts, `${table} from ${from} to ${end}`).to.deep.equal({
                rows: keys.length,
                onlyLive: count((_, r) => r === undefined),
                onlyReplayed: count((l) => l === undefined),
                different: count((l, r) => l !== undefined && r !== undefined && l !== r),
                past: [...first.keys()].filter((key) => live.get(key) === replay.get(key)).length,
                first: first.size === 0 ? null : Math.min(...first.values()),
              });
              const shown = examples.map(({ key, first }) => [of.key.map((k) => key[k]).join(), first] as const);
              expect(new Map(shown)).to.deep.equal(first);
              for (const { key, first, at } of examples) {
                const isPast =
                  live.get(of.key.map((k) => key[k]).join()) === replay.get(of.key.map((k) => key[k]).join());
                expect(at).to.equal(isPast ? first : end);
              }
            }
          },
        ),
        { numRuns: runs(4, 12) },
      );
    });

    it('compares the common columns with another version, and names the others', async () => {
      const { runtime_type: _, ...columns } = agentsTable.columns;
      const next: Table = { ...agentsTable, columns: { ...columns, shouted: 'text' } };
      const rest = agentsProjection.tables.filter((table) => table.name === 'agent_texts') as unknown as Table[];
      const changed: Projection = {
        ...agentsProjection,
        version: agentsProjection.version + 1,
        tables: [next, { ...rest[0], name: 'brand_new' } as Table],
        project: (event) =>
          agentsProjection.project(event).flatMap((change) => {
            if (change.table.name !== 'agents') return [];
            const apply = (row: Record<string, unknown> | undefined) => {
              const after = change.apply(row);
              return after && { ...after, shouted: String(after.name).toUpperCase() };
            };
            return [{ ...change, table: next, apply }];
          }),
      };
      const before = await everything();
      const found = await replayed(changed);
      expect(found).to.include({ live: schemaOf(agentsProjection), replayed: schemaOf(changed) });
      expect(found.tables.map(({ table, reason }) => [table, reason])).to.deep.equal([
        ['agents', undefined],
        ['brand_new', 'only in the replay'],
        ['agent_texts', 'only live'],
      ]);
      expect(found.tables[0]?.columns).to.deep.include({ onlyLive: ['runtime_type'], onlyReplayed: ['shouted'] });
      expect(found.tables[0]?.differences).to.include({ different: 0, past: 0, first: null });
      expect(found.tables.map(differs)).to.deep.equal([true, true, true]);
      const otherKey = { ...agentsProjection, tables: [{ ...agentsTable, key: ['id'] } as Table, ...rest] };
      const keyed = await replayed({ ...otherKey, project: () => [] });
      expect(keyed.tables[0]).to.include({ reason: 'another key', differences: undefined });
      expect(await everything()).to.deep.equal(before);
    });

    it('names the event at which a projection fails, and leaves nothing behind', async () => {
      const before = await everything();
      const failing = events.filter(({ type }) => type === agentHeartbeatReceived.type)[3] as DomainEvent;
      const broken: Projection = {
        ...agentsProjection,
        project: (event) =>
          agentsProjection.project(event).map((change) => ({
            ...change,
            apply: (row: unknown) => {
              if (event.id === failing.id) throw new Error('no such field');
              return change.apply(row);
            },
          })),
      };
      expect(await failureOf(replay([broken]))).to.equal(
        `agents cannot apply AgentHeartbeatReceived at position ${failing.position} (${failing.id}): no such field`,
      );
      const stop = new AbortController();
      stop.abort(new Error('interrupted'));
      expect(await failureOf(replay([agentsProjection], { signal: stop.signal }))).to.equal('interrupted');
      expect(await everything()).to.deep.equal(before);
    });

    it('drops the remains of a killed replay', async () => {
      const before = await everything();
      await pool().query('CREATE SCHEMA chat_v1_replay');
      await pool().query('CREATE SCHEMA chat_v1_replay_history');
      await pool().query('CREATE TABLE chat_v1_replay.left_behind (id int)');
      await pool().query(
        "INSERT INTO service.checkpoints (schema_name, projection, version, leader) VALUES ('chat_v1_replay', 'chat', 1, $1)",
        [replayerOf(999_999_999)],
      );
      await replay([agentsProjection]);
      expect(await everything()).to.deep.equal(before);
    });

    it('rejects positions beyond the live read model', async () => {
      const head = await view.store.log.head();
      const schema = schemaOf(agentsProjection);
      expect(await failureOf(replay([agentsProjection], { until: head + 1 }))).to.equal(
        `--until: must be at most ${head}, the position of ${schema}`,
      );
      expect(await failureOf(replay([agentsProjection], { from: 20, until: 10 }))).to.equal(
        '--from must not be after the end',
      );
      expect(await failureOf(replay([{ ...agentsProjection, name: 'unheard_of' }]))).to.match(/has no read model/);
      await pool().query('UPDATE service.checkpoints SET history_from = 10 WHERE schema_name = $1', [schema]);
      try {
        expect((await replayed(agentsProjection)).from).to.equal(10);
        expect(await failureOf(replay([agentsProjection], { from: 9 }))).to.match(/goes back to position 10 only/);
        await pool().query('UPDATE service.checkpoints SET history_to = position - 1 WHERE schema_name = $1', [schema]);
        expect(await failureOf(replay([agentsProjection]))).to.match(/has no past to compare with; run: .* agents$/);
      } finally {
        await pool().query(
          'UPDATE service.checkpoints SET history_from = 0, history_to = position WHERE schema_name = $1',
          [schema],
        );
      }
    });

    it('compares at its starting position while the live read model advances', async () => {
      const head = await view.store.log.head();
      let more: Promise<unknown> | undefined;
      const options: ReplayOptions = {
        onProgress: () => {
          more ??= writeMore();
        },
      };
      const writeMore = async () => {
        const agent = events.find(({ type }) => type === 'AgentRegistered') as DomainEvent<
          string,
          { agent_id: number }
        >;
        const beat = sample(agentHeartbeatReceived, {
          agent_id: agent.data.agent_id,
          name: 'late',
          last_activity: 'Heartbeat',
        });
        await view.store.append(agent.stream, await view.store.prepare([beat], testOrigin), 'any');
        await live();
      };
      const found = await replayed(agentsProjection, options);
      await more;
      expect(await view.store.log.head()).to.be.above(head);
      expect(found.until).to.equal(head);
      expect(found.tables.filter(differs)).to.deep.equal([]);
      expect((await replayed(agentsProjection)).tables.filter(differs)).to.deep.equal([]);
    });

    it('confirms the past of erased people, before and after a rebuild', async () => {
      const stream = 'access_request-7';
      const asked = sample(accessRequested, { request_id: 7, provider: 'google', email: 'eve@example.org' });
      const erased = personErased.draft({ kind: 'access_request', id: 7 });
      const append = async (...drafts: EventDraft[]) => {
        await view.store.append(stream, await view.store.prepare(drafts, testOrigin), 'any');
        await live(schemaOf(usersProjection));
      };
      // Whether an erasure shares a batch with other changes makes no difference.
      await append(asked, asked);
      await append(asked, erased, asked, asked);
      const versions = async () => {
        const { rows } = await pool().query(
          `SELECT position, until FROM ${historyOf(schemaOf(usersProjection))}.access_requests ORDER BY position`,
        );
        return rows;
      };
      const before = await versions();
      expect(before).to.have.length(2);
      expect((await replayed(usersProjection)).tables.filter(differs)).to.deep.equal([]);
      await rebuildProjection(stores(), usersProjection, { history: true });
      expect(await versions()).to.deep.equal(before);
      expect((await replayed(usersProjection)).tables.filter(differs)).to.deep.equal([]);
    });
  });
}

onEveryDatabase('replay', suite);
