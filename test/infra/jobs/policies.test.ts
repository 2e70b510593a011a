/** Policies: one job per event despite restarts, crashes and Redis outages; none for history or a rebuild. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { definePolicy, type Policy, wantJob, whenever } from '../../../commands/policies/policy.ts';
import { readConfig } from '../../../infra/config.ts';
import type { Database } from '../../../infra/database/database.ts';
import { Following } from '../../../infra/following/following.ts';
import { openJobs } from '../../../infra/jobs/jobs.ts';
import { checkpointOf, type Policies, startPolicies } from '../../../infra/jobs/policies.ts';
import { createLogger } from '../../../infra/logging.ts';
import { change, defineProjection, defineTable, on } from '../../../projections/projection.ts';
import { defineJob, handleJob, type Jobs, JobsUnavailableError } from '../../../shared/ports/jobs.ts';
import { testEvent } from '../../support/boxes.ts';
import { fixture } from '../../support/fixture.ts';
import { listen } from '../../support/listen.ts';
import { describeWith, needs } from '../../support/needs.ts';
import { rebuildProjection } from '../../support/rebuild.ts';
import { freePort, temporaryDirectory } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';
import {
  databaseOnServer,
  embeddedDatabase,
  type openView,
  type TestDatabase,
  testOrigin,
  viewOn,
} from '../../support/world.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');

const rang = testEvent('BellRang', z.object({ bell: z.string() }));
const cracked = testEvent('BellCracked', z.object({ bell: z.string() }));
const unheard = testEvent('BellMoved', z.object({ bell: z.string() }));
const bells = defineTable('bells', { bell: 'text', rings: 'bigint' }, { key: ['bell'] });
const bellsProjection = defineProjection({
  name: 'bells',
  version: 1,
  tables: [bells],
  handlers: [
    on(rang, ({ data: { bell } }) => [change(bells, { bell }, (row) => ({ bell, rings: (row?.rings ?? 0) + 1 }))]),
  ],
});
const notify = defineJob({ name: 'notify', schema: z.object({ bell: z.string() }) });
const echo = definePolicy('echo', [whenever(rang, ({ data }) => [wantJob(notify, { bell: data.bell })])]);

/** The outside world: counts the calls that it receives, by id. */
async function receiver() {
  const calls: { readonly id: string; readonly bell: string }[] = [];
  const server = await listen((request, response) => {
    const url = new URL(request.url ?? '', 'http://receiver');
    calls.push({ id: url.searchParams.get('id') ?? '', bell: url.searchParams.get('bell') ?? '' });
    response.end();
  });
  return {
    calls,
    /** Calls about this bell. */
    of: (bell: string) => calls.filter((one) => one.bell === bell).map(({ id }) => id),
    handler: handleJob(notify, async ({ bell }, { id, signal }) => {
      await fetch(`${server.url}/?id=${id}&bell=${bell}`, { signal });
    }),
    close: server.close,
  };
}
type View = Awaited<ReturnType<typeof openView>>;

const definitions = [rang, cracked, unheard];
const append = async (view: View, ...drafts: { type: string; data: object }[]) => {
  const events = await view.store.prepare(drafts as never, testOrigin);
  await view.store.append('bell-1', events, 'any');
  return events.map(({ id }) => `echo-${id}`);
};
const positionOf = async (database: Database, policy: Policy): Promise<number> => {
  const { rows } = await database.pool.query('SELECT position FROM service.checkpoints WHERE schema_name = $1', [
    checkpointOf(policy),
  ]);
  return (rows[0] as { position: number } | undefined)?.position ?? -1;
};

function suite(name: string, open: () => Promise<TestDatabase>): void {
  describe(`policies on ${name}`, function () {
    this.timeout(60_000);
    let running: Policies[] = [];

    const { place, view } = viewOn(open, definitions, [bellsProjection]);
    const world = fixture(receiver);
    const jobsOn = (redisUrl: string | undefined) =>
      openJobs({ config: { ...readConfig({}), redisUrl, databaseUrl: place.url }, database: place.database, log });
    const jobs = fixture(() => jobsOn(undefined));
    before(() => jobs.work([world.handler]));
    afterEach(async () => {
      await Promise.all(running.map((one) => one.close()));
      running = [];
    });

    /** The policies of one process. */
    function start(policies: readonly Policy[], store: Pick<Jobs, 'enqueue'> = jobs, process = 'one'): Policies {
      const { database } = place;
      const following = new Following({ database, eventLog: view.eventLog, log });
      const started = startPolicies(policies, { database, store: view.store, following, jobs: store, log, process });
      let closing: Promise<void> | undefined;
      const one: Policies = {
        get statuses() {
          return started.statuses;
        },
        close() {
          closing ??= started.close().then(() => following.close());
          return closing;
        },
      };
      running.push(one);
      return one;
    }
    const passed = (policy: Policy) =>
      until(`${policy.name} has reached the end of the log`, async () => {
        const head = await view.eventLog.head();
        return (await positionOf(place.database, policy)) >= head;
      });

    it('fire for events after their first start, and for none before', async () => {
      await append(view, ...['h1', 'h2', 'h3'].map((bell) => rang.draft({ bell })));
      start([echo]);
      await passed(echo);
      const ids = await append(view, rang.draft({ bell: 'a1' }), unheard.draft({ bell: 'a1' }));
      await until('the receiver was told', () => world.of('a1').length > 0);
      expect(world.calls).to.deep.equal([{ id: ids[0], bell: 'a1' }]);
    });

    it('fire for every event if they start at the beginning', async () => {
      const ids = await append(view, rang.draft({ bell: 'i' }), rang.draft({ bell: 'i' }));
      const reactions = [
        whenever(rang, ({ data: { bell } }) => (bell === 'i' ? [wantJob(notify, { bell })] : [])),
      ] as const;
      const all = definePolicy('echo-of-all', reactions, 'beginning');
      start([all]);
      await until('the receiver was told', () => world.of('i').length >= ids.length);
      await passed(all);
      expect(world.of('i')).to.have.members(ids.map((id) => id.replace('echo-', 'echo-of-all-')));
    });

    it('fire once per event across restarts, including events in between', async () => {
      const wanted: string[] = [];
      for (let round = 0; round < 3; round++) {
        const policies = start([echo], jobs, `round ${round}`);
        wanted.push(...(await append(view, rang.draft({ bell: 'b' }), rang.draft({ bell: 'b' }))));
        if (round === 1) await until('all were told', () => world.of('b').length >= wanted.length);
        await policies.close();
        wanted.push(...(await append(view, rang.draft({ bell: 'b' }))));
      }
      start([echo]);
      await until('all were told', () => world.of('b').length >= wanted.length);
      await passed(echo);
      expect(world.of('b').toSorted()).to.deep.equal(wanted.toSorted());
    });

    it('fire once per event even if killed between storing the jobs and the checkpoint', async () => {
      let killed = 0;
      const dying = {
        enqueue: (async (kind, payload, options) => {
          await jobs.enqueue(kind, payload, options);
          killed++;
          throw new Error('killed');
        }) as Jobs['enqueue'],
      };
      const before = await positionOf(place.database, echo);
      const policies = start([echo], dying);
      const ids = await append(view, ...Array.from({ length: 6 }, () => rang.draft({ bell: 'c' })));
      await until('jobs were stored', () => killed >= 4);
      await policies.close();
      expect(await positionOf(place.database, echo), 'the checkpoint stayed').to.equal(before);
      // Some have been done already when the next one comes.
      await until('some were told', () => world.of('c').length >= 4);
      start([echo], jobs, 'two');
      await until('all were told', () => world.of('c').length >= ids.length);
      await passed(echo);
      await until('no job is left', async () => {
        const { waiting, running: active, delayed } = await jobs.counts();
        return waiting + active + delayed === 0;
      });
      expect(world.of('c').toSorted()).to.deep.equal(ids.toSorted());
    });

    it('keep their position if they are stopped while jobs are being stored', async () => {
      let asked = 0;
      let lose = (_reason: Error): void => {};
      const lost = new Promise<never>((_, reject) => {
        lose = reject;
      });
      const away = {
        enqueue: (() => {
          asked++;
          return lost;
        }) as Jobs['enqueue'],
      };
      const policies = start([echo], away);
      await passed(echo);
      const before = await positionOf(place.database, echo);
      const ids = await append(view, rang.draft({ bell: 's' }), rang.draft({ bell: 's' }));
      await until('the jobs are on their way', () => asked > 0);
      const closing = policies.close();
      lose(new JobsUnavailableError('the store is gone'));
      await closing;
      expect(await positionOf(place.database, echo)).to.equal(before);
      start([echo], jobs, 'two');
      await until('both were told', () => world.of('s').length >= ids.length);
      expect(world.of('s').toSorted()).to.deep.equal(ids.toSorted());
    });

    it('do not fire when read models are rebuilt', async () => {
      start([echo]);
      const projector = view.project('one');
      const [last] = await append(view, rang.draft({ bell: 'd' }));
      await passed(echo);
      await until('it was told', () => world.of('d').length === 1);
      await until('the read model has it', () => view.positions.shown('bells_v1') > 0);
      const told = world.calls.length;
      const { database, store } = view;
      const stores = { database, store, log, config: { dataDir: place.dataDir } };
      const report = await rebuildProjection(stores, bellsProjection);
      expect(report.events, 'the rebuild has read them all').to.be.above(told);
      const [next] = await append(view, rang.draft({ bell: 'd' }));
      await until('the next was told', () => world.of('d').length > 1);
      expect(world.of('d')).to.deep.equal([last, next]);
      expect(world.calls).to.have.length(told + 1);
      await projector.close();
    });

    it('distinguish several jobs of one event', async () => {
      const twice = definePolicy('twice', [
        whenever(rang, ({ data: { bell } }) => [
          wantJob(notify, { bell: `${bell}-left` }, 'left'),
          wantJob(notify, { bell: `${bell}-right` }, 'right'),
        ]),
      ]);
      start([twice]);
      await passed(twice);
      const [id] = await append(view, rang.draft({ bell: 'e' }));
      await until('both were told', () => world.of('e-left').length + world.of('e-right').length === 2);
      expect(world.of('e-left')).to.deep.equal([id?.replace('echo', 'twice').concat('-left')]);
    });

    it('do not wait for a stuck policy, which reports its position and continues when it can', async () => {
      let broken = true;
      const picky = definePolicy('picky', [
        whenever(cracked, ({ data }) => {
          if (broken) throw new Error('a cracked bell');
          return [wantJob(notify, { bell: `${data.bell}-cracked` })];
        }),
      ]);
      const policies = start([picky, echo]);
      await passed(picky);
      await append(view, cracked.draft({ bell: 'f' }), rang.draft({ bell: 'f' }));
      await until('the other goes on', () => world.of('f').length === 1);
      await until('it is stuck', () => policies.statuses[0]?.stuck);
      const stuck = policies.statuses[0]?.stuck;
      expect(stuck?.reason).to.equal('BellCracked: a cracked bell');
      const row = await until('it is in the table', async () => {
        const { rows } = await place.database.pool.query(
          'SELECT stuck_at, stuck_reason FROM service.checkpoints WHERE schema_name = $1 AND stuck_at IS NOT NULL',
          [checkpointOf(picky)],
        );
        return rows[0] as Record<string, unknown> | undefined;
      });
      expect(row).to.deep.equal({ stuck_at: stuck?.position, stuck_reason: stuck?.reason });
      broken = false;
      await until('it goes on', () => world.of('f-cracked').length === 1);
      await passed(picky);
      expect(policies.statuses[0]?.stuck).to.equal(undefined);
    });

    it('are led by one process, and another takes over', async function () {
      if (place.database.kind === 'embedded') this.skip();
      const [one, two] = [start([echo], jobs, 'one'), start([echo], jobs, 'two')];
      const leaders = () => [one, two].filter(({ statuses }) => (statuses[0]?.position ?? 0) > 0);
      await until('one leads', () => leaders().length > 0);
      const wanted = await append(view, rang.draft({ bell: 'g' }));
      await until('it was told', () => world.of('g').length > 0);
      expect(leaders()).to.have.length(1);
      await leaders()[0]?.close();
      wanted.push(...(await append(view, rang.draft({ bell: 'g' }))));
      await until('the other has told', () => world.of('g').length > 1);
      expect(world.of('g')).to.deep.equal(wanted);
    });

    describe('with jobs in Redis', () => {
      let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
      let port = 0;
      let server: ChildProcess | undefined;

      async function startRedis(): Promise<boolean> {
        const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory.path, '--save', ''];
        const child = spawn('redis-server', [...args, '--appendonly', 'yes', '--appendfsync', 'always'], {
          stdio: 'ignore',
        });
        const missing = new Promise<boolean>((resolve) => child.once('error', () => resolve(true)));
        if (await Promise.race([missing, once(child, 'spawn').then(() => false)])) return false;
        const probe = new Redis(port, { retryStrategy: () => 20, maxRetriesPerRequest: null });
        probe.on('error', () => undefined);
        await probe.ping();
        probe.disconnect();
        server = child;
        return true;
      }
      async function killRedis(): Promise<void> {
        const child = server;
        server = undefined;
        if (!child) return;
        child.kill('SIGKILL');
        await once(child, 'exit');
      }

      before(async function () {
        directory = await temporaryDirectory();
        port = await freePort();
        needs('redis-server', await startRedis(), this);
      });
      after(async () => {
        await killRedis();
        await directory?.remove();
      });

      it('continue after an outage of Redis, without losing a job', async () => {
        const inRedis = await jobsOn(`redis://127.0.0.1:${port}`);
        try {
          const relay = definePolicy('relay', [whenever(rang, ({ data }) => [wantJob(notify, { bell: data.bell })])]);
          start([relay], inRedis);
          await passed(relay);
          // Stored in Redis and not done yet when it dies: no worker takes jobs yet.
          const wanted = await append(view, rang.draft({ bell: 'r' }), rang.draft({ bell: 'r' }));
          await until('they wait in Redis', async () => (await inRedis.counts()).waiting === 2);
          await passed(relay);
          const before = await positionOf(place.database, relay);
          await killRedis();

          // Redis stays away until they are stored: writes do not wait for it.
          for (let n = 0; n < 5; n++) wanted.push(...(await append(view, rang.draft({ bell: 'r' }))));
          inRedis.work([world.handler]);
          await inRedis.enqueue(notify, { bell: 'x' }, { id: 'x' }).then(
            () => expect.fail('nothing can be stored'),
            () => undefined,
          );
          expect(await positionOf(place.database, relay), 'the checkpoint stays').to.equal(before);

          await startRedis();
          await until('everything was told', () => world.of('r').length >= wanted.length);
          await passed(relay);
          const ids = wanted.map((id) => id.replace('echo', 'relay'));
          expect(world.of('r').toSorted()).to.deep.equal(ids.toSorted());
        } finally {
          await Promise.all(running.map((one) => one.close()));
          await inRedis.close();
        }
      });
    });
  });
}

suite('PGlite', embeddedDatabase);
describeWith('TEST_DATABASE_URL', 'policies on a server', () => suite('PostgreSQL', databaseOnServer));
