/**
 * Stores that are there and accept no writes: a PostgreSQL that a failover made read-only, a full disk, an event store
 * without a leader. Writes are 503 and say what to do, reads are served, and `/health/ready` is 503 until a write works.
 */
import { spawnSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { CUT_CONNECTIONS, connected, freshDatabase } from '../support/databases.ts';
import { startEventStoreStandIn } from '../support/eventstore-stand-in.ts';
import { needs, needsServer } from '../support/needs.ts';
import { call, type Reply, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/service-process.ts';
import { until } from '../support/until.ts';

const ready = async (base: TestService) => call(base, 'GET', '/health/ready');
const write = (base: TestService, title: string) => call(base, 'POST', '/api/tasks', { title });

function expectRefused({ status, body, headers }: Reply, code: string, says: RegExp): void {
  expect([status, body.code]).to.deep.equal([503, code]);
  expect(body.error).to.match(says);
  expect(Number(headers.get('retry-after'))).to.be.within(1, 60);
}

/** Breaks the store, checks what clients see, repairs it, and checks that all works again. */
async function breaksAndRecovers(
  base: TestService,
  how: { readonly code: string; readonly says: RegExp; fails(): unknown; works(): unknown },
): Promise<void> {
  expect((await write(base, 'before')).status).to.equal(201);
  expect((await ready(base)).status).to.equal(200);
  await how.fails();
  expectRefused(await write(base, 'meanwhile'), how.code, how.says);
  await until('the probe fails', async () => {
    const { status, body } = await ready(base);
    return status === 503 && body.checks.writes === 'failing' && /Operators: /.test(body.details.writes);
  });
  const read = await call(base, 'GET', '/api/tasks');
  expect([read.status, read.body.tasks[0].title]).to.deep.equal([200, 'before']);
  await how.works();
  await until('the probe succeeds', async () => (await ready(base)).status === 200);
  await until('writes succeed', async () => (await write(base, 'after')).status === 201);
  const { body } = await call(base, 'GET', '/api/tasks');
  expect(body.tasks.map(({ title }: { title: string }) => title))
    .to.include('after')
    .and.include('before');
  expect(Object.values((await ready(base)).body.checks)).to.not.include('stuck');
}

describe('a store that accepts no writes', function () {
  this.timeout(90_000);

  it('a PostgreSQL that is read-only', async function () {
    needsServer('TEST_DATABASE_URL', this);
    const database = await freshDatabase();
    const base = await startTestService({ DATABASE_URL: database.url });
    // Not through a database that refuses writes itself.
    await using admin = await connected({
      connectionString: database.url,
      options: '-c default_transaction_read_only=off',
    });
    const name = new URL(database.url).pathname.slice(1);
    const set = async (value: 'on' | 'off') => {
      await admin.query(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`);
      await admin.query(CUT_CONNECTIONS);
    };
    try {
      await breaksAndRecovers(base, {
        code: 'STORE_READ_ONLY',
        says: /promote it, set DATABASE_URL to the primary/,
        fails: async () => {
          await set('on');
          await until('no connection is left from before', async () => {
            const { body } = await write(base, 'meanwhile');
            return body.code !== 'STORE_UNAVAILABLE';
          });
        },
        works: () => set('off'),
      });
    } finally {
      await base.close();
      await database.drop();
    }
  });

  it('an embedded database whose disk is nearly full', async function () {
    const directory = await temporaryDirectory();
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=200m', 'tmpfs', directory.path]).status === 0;
    needs('the right to mount a file system', mounted, this);
    const ballast = join(directory.path, 'ballast');
    let base: TestService | undefined;
    try {
      base = await startTestService({ DATA_DIR: join(directory.path, 'data') });
      await breaksAndRecovers(base, {
        code: 'STORE_FULL',
        says: /Operators: free space on it/,
        fails: async () => {
          await writeFile(ballast, Buffer.alloc(100_000_000));
          // Read at most every quarter of a second, so a first write may succeed.
          await until(
            'the disk counts as full',
            async () => (await write(base as TestService, 'before')).status === 503,
          );
        },
        works: () => rm(ballast),
      });
    } finally {
      await base?.close();
      spawnSync('umount', [directory.path]);
      await directory.remove();
    }
  });

  it('an event store that has no leader', async function () {
    needsServer('TEST_DATABASE_URL', this);
    const database = await freshDatabase();
    const events = await startEventStoreStandIn();
    const base = await startTestService({
      DATABASE_URL: database.url,
      EVENTSTORE_URL: events.url,
      APPEND_TIMEOUT_MS: '1500',
    });
    try {
      await breaksAndRecovers(base, {
        code: 'LOG_UNAVAILABLE',
        says: /check that a majority of its nodes run and have free disk space/,
        fails: () => events.setLeader(false),
        works: () => events.setLeader(true),
      });
    } finally {
      await base.close();
      await events.stop();
      await database.drop();
    }
  });
});
