/** Jobs on a Redis that does not answer, or is too old. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { readConfig } from '../../../infra/config.ts';
import { openJobs } from '../../../infra/jobs/jobs.ts';
import { createLogger } from '../../../infra/logging.ts';
import { defineJob, handleJob, JobsUnavailableError } from '../../../shared/ports/jobs.ts';
import { freePort } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
const work = defineJob({ name: 'work', schema: z.object({ n: z.int() }) });

describe('jobs while the store is unavailable', () => {
  it('fail in time and close in time', async () => {
    const config = { ...readConfig({}), redisUrl: `redis://127.0.0.1:${await freePort()}` };
    const jobs = await openJobs({ config, database: undefined, log });
    jobs.work([handleJob(work, () => Promise.resolve())]);
    jobs.every(defineJob({ name: 'tick', schema: z.object({}) }), 1_000);
    const begun = performance.now();
    const failure = await jobs.enqueue(work, { n: 1 }, { id: 'one' }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(JobsUnavailableError);
    await jobs.close();
    expect(performance.now() - begun, 'milliseconds').to.be.below(15_000);
  });
});

describe('a Redis that cannot be used for jobs', () => {
  // BullMQ refuses Redis 4 each time it is asked for a queue or a worker.
  let old: Server;
  let connections = 0;
  const clients = new Set<Redis>();
  const { connect } = Redis.prototype;
  before(async () => {
    old = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined).on('close', () => (connections -= 1));
      socket.on('data', (bytes) => {
        for (const [, command = ''] of bytes.toString().matchAll(/(?:^|\r\n)\*\d+\r\n\$\d+\r\n(\w+)/g))
          socket.write(command.toLowerCase() === 'info' ? '$19\r\nredis_version:4.0.0\r\n' : '+OK\r\n');
      });
    });
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve));
    Redis.prototype.connect = function (...given) {
      clients.add(this);
      return connect.apply(this, given);
    };
  });
  after(() => {
    Redis.prototype.connect = connect;
    old.close();
  });

  it('leaves no additional listeners or connections, however often it is tried', async () => {
    const { port } = old.address() as AddressInfo;
    const config = { ...readConfig({}), redisUrl: `redis://127.0.0.1:${port}`, shutdownTimeoutMs: 1_000 };
    const jobs = await openJobs({ config, database: undefined, log });
    const failure = () => jobs.enqueue(work, { n: 1 }, { id: 'one' }).catch((error: unknown) => error);
    const listeners = () => {
      const [producer] = clients;
      return producer?.eventNames().map((name) => `${String(name)} ${producer.listenerCount(name)}`);
    };
    expect(await failure()).to.be.instanceOf(JobsUnavailableError);
    const [first, opened] = [listeners(), connections];
    expect(first).not.to.equal(undefined);
    for (let times = 0; times < 5; times++) expect(await failure()).to.be.instanceOf(JobsUnavailableError);
    expect([listeners(), connections]).to.deep.equal([first, opened]);

    jobs.work([handleJob(work, () => Promise.resolve())]);
    // Two connections each.
    await until('the worker was tried twice', () => clients.size >= 5);
    await until('no more than those of the last try are left', () => connections <= opened + 2);
    await jobs.close();
    await until('all connections have ended', () => connections === 0);
  });
});
