/** Jobs on each kind of store: once per id, retries, dead letters, sharing, repetition, shutdown. */
import * as bullmq from 'bullmq';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { readConfig } from '../../../infra/config.ts';
import { type JobsOptions, openJobs, pauseAfter } from '../../../infra/jobs/jobs.ts';
import { openPostgresStore } from '../../../infra/jobs/postgres.ts';
import { openRedisStore } from '../../../infra/jobs/redis.ts';
import { PREFIX } from '../../../infra/jobs/store.ts';
import { createLogger } from '../../../infra/logging.ts';
import {
  defineJob,
  handleJob,
  type JobHandler,
  type Jobs,
  JobsUnavailableError,
  MAX_PAYLOAD_BYTES,
} from '../../../shared/ports/jobs.ts';
import { closing, fixture } from '../../support/fixture.ts';
import { gate } from '../../support/memory-world.ts';
import { describeWith } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { databaseOnServer, embeddedDatabase, type TestDatabase } from '../../support/world.ts';
import { errorOf } from '../event-log/conformance/subject.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
const work = defineJob({ name: 'work', schema: z.object({ n: z.int() }) });
/** Three pauses of 40, 126 and 400 ms, each a fifth longer or shorter. */
const QUICK = { attempts: 4, firstMs: 40, lastMs: 400 };

interface Place {
  readonly options: Pick<JobsOptions, 'database' | 'config'>;
  close(): Promise<void>;
}

/** Runs `work` with a clock that is ahead; milliseconds. */
async function withClockAhead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => now() + ms;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

describe('pauses between attempts', () => {
  it('grow from the first to the last by a constant factor', () => {
    const times = { attempts: 8, firstMs: 1_000, lastMs: 600_000 };
    const pauses = [1, 2, 3, 4, 5, 6, 7].map((attempt) => pauseAfter(attempt, times, () => 0.5));
    expect(pauses[0]).to.equal(1_000);
    expect(pauses[6]).to.equal(600_000);
    for (const [index, ms] of pauses.slice(1).entries())
      expect(ms / (pauses[index] ?? 0)).to.be.closeTo(600 ** (1 / 6), 0.01);
  });

  it('vary by at most a fifth', () => {
    const times = { attempts: 3, firstMs: 1_000, lastMs: 1_000 };
    expect(pauseAfter(1, times, () => 0)).to.equal(800);
    expect(pauseAfter(2, times, () => 1)).to.equal(1_200);
  });
});

function suite(name: string, open: () => Promise<Place>): void {
  describe(`jobs on ${name}`, function () {
    this.timeout(60_000);
    const place = fixture(open);
    let queue = '';
    let opened: Jobs[] = [];
    let tests = 0;

    beforeEach(() => {
      queue = `test-${process.pid}-${++tests}`;
    });
    afterEach(async () => {
      await Promise.all(opened.map((jobs) => jobs.close()));
      opened = [];
    });

    /** One process's jobs. */
    async function start(
      handlers?: readonly JobHandler[],
      {
        config,
        ...more
      }: { config?: Partial<JobsOptions['config']>; retry?: JobsOptions['retry']; clockLookMs?: number } = {},
    ): Promise<Jobs> {
      const { options } = place;
      const all = { ...options.config, ...config };
      const jobs = await openJobs({ ...options, config: all, log, retry: QUICK, queue, ...more });
      opened.push(jobs);
      if (handlers) jobs.work(handlers);
      return jobs;
    }
    const settled = (jobs: Jobs) =>
      until('no job waits or runs', async () => {
        const { waiting, running, delayed } = await jobs.counts();
        return waiting + running + delayed === 0;
      });

    it('runs a job once, however often it is added, while it waits and after it is done', async () => {
      const seen: string[] = [];
      const jobs = await start();
      for (let times = 0; times < 3; times++) await jobs.enqueue(work, { n: 1 }, { id: 'one' });
      await jobs.enqueue(work, { n: 2 }, { id: 'two' });
      expect((await jobs.list('waiting')).map(({ id, kind, payload }) => ({ id, kind, payload }))).to.deep.equal([
        { id: 'one', kind: 'work', payload: { n: 1 } },
        { id: 'two', kind: 'work', payload: { n: 2 } },
      ]);
      jobs.work([
        handleJob(work, async ({ n }, { id, attempt }) => {
          seen.push(`${id} ${n} ${attempt}`);
        }),
      ]);
      await settled(jobs);
      await jobs.enqueue(work, { n: 1 }, { id: 'one' });
      await jobs.enqueue(work, { n: 3 }, { id: 'three', delayMs: 20 });
      await until('the third has run', () => seen.length >= 3);
      await settled(jobs);
      expect(seen).to.deep.equal(['one 1 1', 'two 2 1', 'three 3 1']);
    });

    it('retries with growing pauses', async () => {
      const at: number[] = [];
      const jobs = await start([
        handleJob(work, async (_payload, { attempt }) => {
          at.push(performance.now());
          if (attempt < 4) throw new Error('not yet');
        }),
      ]);
      await jobs.enqueue(work, { n: 1 }, { id: 'stubborn' });
      await until('the fourth attempt', () => at.length === 4);
      await settled(jobs);
      const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
      expect(pauses[0]).to.be.at.least(30);
      expect(pauses[1]).to.be.at.least(100);
      expect(pauses[2]).to.be.at.least(315);
      expect(await jobs.counts()).to.deep.equal({ waiting: 0, running: 0, delayed: 0, dead: 0 });
    });

    it('lists jobs that failed for good, and retries them on request', async () => {
      let broken = true;
      const seen: number[] = [];
      const jobs = await start([
        handleJob(work, async ({ n }) => {
          if (broken) throw new Error(`no luck with ${n}`);
          seen.push(n);
        }),
      ]);
      for (const n of [1, 2, 3]) await jobs.enqueue(work, { n }, { id: `job-${n}` });
      await until('all are dead', async () => (await jobs.counts()).dead === 3);
      const dead = await jobs.list('dead');
      expect(dead.map(({ id }) => id)).to.have.members(['job-1', 'job-2', 'job-3']);
      const one = dead.find(({ id }) => id === 'job-2');
      expect(one).to.deep.include({ kind: 'work', state: 'dead', attempts: 4, payload: { n: 2 } });
      expect(one?.reason).to.equal('no luck with 2');
      expect(one?.failedAt).to.be.closeTo(Date.now(), 60_000);
      expect(await jobs.list('dead', { limit: 1, offset: 2 })).to.have.length(1);

      await jobs.enqueue(work, { n: 2 }, { id: 'job-2' });
      expect((await jobs.counts()).dead, 'adding a dead job again does not bring it back').to.equal(3);
      broken = false;
      expect(await jobs.retry('nobody')).to.equal(0);
      expect(await jobs.retry('job-2')).to.equal(1);
      await until('it was done', () => seen.length === 1);
      await settled(jobs);
      expect(await jobs.retry('job-2'), 'it is not dead any more').to.equal(0);
      expect(await jobs.retry('all')).to.equal(2);
      await settled(jobs);
      expect(seen).to.have.members([1, 2, 3]);
      expect(await jobs.list('dead')).to.deep.equal([]);
    });

    it('gives a retried job all its attempts again', async () => {
      let attempts = 0;
      const jobs = await start([
        handleJob(work, async () => {
          attempts++;
          if (attempts < 7) throw new Error('not yet');
        }),
      ]);
      await jobs.enqueue(work, { n: 1 }, { id: 'long' });
      await until('it is dead', async () => (await jobs.counts()).dead === 1);
      await jobs.retry('long');
      await until('seven attempts', () => attempts === 7);
      await settled(jobs);
      expect((await jobs.counts()).dead).to.equal(0);
    });

    it('aborts an attempt that takes too long, through its signal', async () => {
      const slow = defineJob({ name: 'slow', schema: z.object({}), timeoutMs: 60 });
      let aborted = 0;
      const jobs = await start(
        [
          handleJob(slow, (_payload, { signal }) => {
            signal.addEventListener('abort', () => aborted++);
            return new Promise(() => undefined);
          }),
        ],
        { retry: { attempts: 2, firstMs: 20, lastMs: 20 } },
      );
      await jobs.enqueue(slow, {}, { id: 'slow' });
      await until('it is dead', async () => (await jobs.counts()).dead === 1);
      expect((await jobs.list('dead'))[0]).to.deep.include({ attempts: 2, reason: 'it took longer than 60 ms' });
      expect(aborted).to.equal(2);
    });

    it('rejects invalid jobs, and does not retry a payload that does not match its kind', async () => {
      const other = defineJob({ name: 'work', schema: z.object({ text: z.string() }) });
      const jobs = await start([handleJob(work, () => Promise.resolve())]);
      const failures = await Promise.allSettled([
        jobs.enqueue(work, { n: 1 }, { id: '1' }),
        jobs.enqueue(work, { n: 1 }, { id: 'a:b' }),
        jobs.enqueue(work, { n: 0.5 }, { id: 'half' }),
        jobs.enqueue(other, { text: 'x'.repeat(MAX_PAYLOAD_BYTES) }, { id: 'large' }),
      ]);
      expect(failures.map(({ status }) => status)).to.deep.equal(Array(4).fill('rejected'));
      for (const failure of failures)
        expect((failure as PromiseRejectedResult).reason).not.to.be.instanceOf(JobsUnavailableError);
      await jobs.enqueue(other, { text: 'no number' }, { id: 'wrong' });
      await until('it is dead', async () => (await jobs.counts()).dead === 1);
      expect((await jobs.list('dead'))[0]?.attempts).to.equal(1);
    });

    it('shares jobs between two processes, each job running in one of them', async () => {
      const seen: string[] = [];
      const who = new Set<string>();
      const both = gate();
      const as = (process: string) =>
        handleJob(work, async (_payload, { id }) => {
          seen.push(id);
          who.add(process);
          if (who.size === 2) both.open();
          // A process runs ten at once: while the first ones wait, the other process has to take some.
          await both.wait();
        });
      const [one] = await Promise.all([start([as('one')]), start([as('two')])]);
      const ids = Array.from({ length: 40 }, (_, index) => `shared-${index}`);
      await Promise.all(ids.map((id, n) => one?.enqueue(work, { n }, { id })));
      await until('all were done', () => seen.length >= ids.length);
      await settled(one as Jobs);
      expect(seen.toSorted()).to.deep.equal(ids.toSorted());
    });

    it('runs each scheduled job in one of two processes', async () => {
      const tick = defineJob({ name: 'tick', schema: z.object({}) });
      const turns: string[] = [];
      const handler = handleJob(tick, async (_payload, { id }) => {
        turns.push(id);
      });
      for (const jobs of await Promise.all([start([handler]), start([handler])])) {
        jobs.every(tick, 200);
        // A process that starts again says so again.
        jobs.every(tick, 200);
      }
      await until('six turns', () => turns.length >= 6);
      expect(new Set(turns).size, 'no turn twice').to.equal(turns.length);
      // The id of a scheduled job ends with the time when it was due.
      const due = turns.map((id) => Number(id.split(':').at(-1))).sort((a, b) => a - b);
      for (const [index, time] of due.slice(1).entries()) expect(time - (due[index] ?? 0)).to.be.at.least(200);
    });

    it('plans schedules anew when the clock was set back, at a start and while it runs', async () => {
      const hourMs = 3_600_000;
      const tick = defineJob({ name: 'tick', schema: z.object({}) });
      const planned = (jobs: Jobs, isPlanned: (waitMs: number) => boolean) =>
        until('the next run is planned', async () => {
          const [next, ...more] = await jobs.list('delayed');
          return more.length === 0 && next?.dueAt !== undefined && isPlanned(next.dueAt - Date.now());
        });
      const isNear = (waitMs: number) => waitMs > 0 && waitMs <= 60_000;
      const first = await withClockAhead(hourMs, async () => {
        const jobs = await start();
        jobs.every(tick, 60_000);
        await planned(jobs, isNear);
        return jobs;
      });
      await planned(first, (waitMs) => waitMs > hourMs - 1_000);
      await first.close();
      const second = await start();
      second.every(tick, 60_000);
      await planned(second, isNear);
      queue += '-running';
      const running = await withClockAhead(hourMs, async () => {
        const jobs = await start(undefined, { clockLookMs: 20 });
        jobs.every(tick, 60_000);
        await planned(jobs, isNear);
        return jobs;
      });
      await planned(running, isNear);
    });

    it('waits for a running job before it closes', async () => {
      const finish = gate();
      let ended = false;
      const jobs = await start([
        handleJob(work, async () => {
          await finish.wait();
          ended = true;
        }),
      ]);
      await jobs.enqueue(work, { n: 1 }, { id: 'last' });
      await finish.reached;
      const closing = jobs.close();
      expect(await errorOf(jobs.enqueue(work, { n: 1 }, { id: 'late' }))).to.be.instanceOf(JobsUnavailableError);
      finish.open();
      await closing;
      expect(ended).to.equal(true);
      const next = await start();
      expect(await next.counts()).to.deep.equal({ waiting: 0, running: 0, delayed: 0, dead: 0 });
    });

    it('aborts a job that exceeds the shutdown time limit, and runs it again later', async () => {
      const running = gate();
      const jobs = await start(
        [
          handleJob(work, (_payload, { signal }) => {
            running.open();
            return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          }),
        ],
        { config: { shutdownTimeoutMs: 30 } },
      );
      await jobs.enqueue(work, { n: 1 }, { id: 'long' });
      await running.wait();
      await jobs.close();
      const attempts: number[] = [];
      const next = await start([
        handleJob(work, async (_payload, { attempt }) => {
          attempts.push(attempt);
        }),
      ]);
      await until('it was done', () => attempts.length > 0);
      await settled(next);
      expect(attempts).to.deep.equal([2]);
    });

    it('takes over the job of a crashed process', async () => {
      const jobs = await start();
      await jobs.enqueue(work, { n: 1 }, { id: 'orphan' });
      // What a process that was killed leaves: a job that it had taken, and a lock that is no longer renewed.
      const { database, config } = place.options;
      const store = database
        ? openPostgresStore(bullmq, { ...config, database, log })
        : openRedisStore(bullmq, { url: config.redisUrl ?? '', log, complain: () => undefined });
      await store.prepare();
      const worker = new bullmq.Worker(
        queue,
        undefined,
        { connection: store.consumer(), prefix: PREFIX, lockDuration: 100, autorun: false },
        store.factory,
      );
      worker.on('error', () => undefined);
      const taken = await worker.getNextJob('a process that dies');
      expect(taken?.id).to.equal('orphan');
      await worker.close(true);
      await store.close();
      expect(await jobs.list('running')).to.have.length(1);

      const done: string[] = [];
      const next = await start(
        [
          handleJob(work, async (_payload, { id }) => {
            done.push(id);
          }),
        ],
        { config: { jobLockMs: 300 } },
      );
      await until('it was done', () => done.length > 0);
      await settled(next);
      expect(done).to.deep.equal(['orphan']);
    });
  });
}

const onDatabase = async (open: Promise<TestDatabase>) => {
  const { database, url, close } = await open;
  return { options: { database, config: { ...readConfig({}), databaseUrl: url } }, close };
};

suite('PGlite', () => onDatabase(embeddedDatabase()));

describe('a worker on PGlite', () => {
  it('leaves the channels of the shared session alone', async () => {
    await using place = closing(await onDatabase(embeddedDatabase()));
    const jobs = await openJobs({ ...place.options, log, retry: QUICK, queue: 'listening' });
    let ran = false;
    jobs.work([
      handleJob(work, async () => {
        ran = true;
      }),
    ]);
    await jobs.enqueue(work, { n: 1 }, { id: 'one' });
    await until('the job has run', () => ran);
    const { rows } = await place.options.database.pool.query('SELECT pg_listening_channels() AS channel');
    await jobs.close();
    expect(rows.map(({ channel }) => channel)).not.to.include('bullmq_jobs');
  });
});

describeWith('TEST_DATABASE_URL', 'jobs on a server', () => suite('PostgreSQL', () => onDatabase(databaseOnServer())));

describeWith('TEST_DATABASE_URL', 'schedules on PostgreSQL', () => {
  it('run each turn once if two processes store a schedule at the same time', async () => {
    const { database, url, close } = await databaseOnServer();
    const tick = defineJob({ name: 'tick', schema: z.object({}) });
    const turns: string[] = [];
    const open = () => openJobs({ config: { ...readConfig({}), databaseUrl: url }, database, log });
    const both = await Promise.all([open(), open()]);
    try {
      await both[0].counts();
      // The processes write in turn, each longer after it has read than a turn takes.
      await database.pool.query(`
        CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN PERFORM pg_advisory_xact_lock(1), pg_sleep(0.6); RETURN NEW; END $$;
        CREATE TRIGGER wait BEFORE INSERT ON bullmq.scheduler FOR EACH ROW EXECUTE FUNCTION public.wait()`);
      for (const jobs of both) {
        jobs.work([
          handleJob(tick, async (_payload, { id }) => {
            turns.push(id);
          }),
        ]);
        jobs.every(tick, 200);
      }
      await until('eight turns', () => turns.length >= 8);
      expect(turns.filter((id, at) => turns.indexOf(id) !== at)).to.deep.equal([]);
    } finally {
      await Promise.all(both.map((jobs) => jobs.close()));
      await close();
    }
  });
});

describeWith('TEST_REDIS_URL', 'jobs on Redis', () => {
  suite('Redis', async () => {
    const redisUrl = process.env.TEST_REDIS_URL as string;
    return {
      options: { database: undefined, config: { ...readConfig({}), redisUrl } },
      async close() {
        const redis = new Redis(redisUrl);
        const keys = await redis.keys(`${PREFIX}:test-${process.pid}-*`);
        if (keys.length > 0) await redis.del(...keys);
        redis.disconnect();
      },
    };
  });
});
