/**
 * Heartbeats that change nothing, under kill -9, crashes of the stores, backups and summaries: none that was acknowledged
 * is lost, and each is summed up once. A heartbeat without a response may have been counted or not.
 *
 * A single process that is killed: `kill.test.ts`; a PostgreSQL that crashes: `restart.test.ts`.
 */
import { rm } from 'node:fs/promises';
import { missingStores, type Node, startNode, startStores } from '../support/cluster.ts';
import { closing } from '../support/fixture.ts';
import { beatUntil, checkHeartbeats, expectRebuilt, register, Sent } from '../support/heartbeats.ts';
import { needs, needsServer } from '../support/needs.ts';
import { runs } from '../support/runs.ts';
import { freshDatabase } from '../support/service.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const ROUNDS = runs(1, 3);

/** Two processes with the API, and a worker, which is killed and started again. */
async function twoProcesses(env: Record<string, string>): Promise<void> {
  const path = await dataDirectory();
  await using directory = closing({ path, remove: () => rm(path, { recursive: true, force: true }) });
  const sent = new Sent();
  const one = await startProcess(directory.path, env);
  const other = await startProcess(directory.path, env, ['--role', 'api']);
  let extra: ServiceProcess | undefined;
  try {
    const agents = await register(one.url);
    let over = false;
    const beating = Promise.all([
      beatUntil(
        () => one.url,
        sent,
        agents,
        () => over,
      ),
      beatUntil(
        () => other.url,
        sent,
        agents,
        () => over,
      ),
    ]);
    for (let n = 0; n < ROUNDS; n++) {
      extra = await startProcess(directory.path, env);
      const now = sent.total();
      await until('heartbeats go on', () => sent.total() > now + 30);
      await extra.stop('SIGKILL');
    }
    const now = sent.total();
    await until('heartbeats go on', () => sent.total() > now + 30);
    over = true;
    await beating;
    await checkHeartbeats(one.url, sent, agents);
    await checkHeartbeats(other.url, sent, agents);
    await expectRebuilt(env);
  } finally {
    await extra?.stop('SIGKILL');
    await other.stop();
    await one.stop();
  }
}

describe('heartbeats that change nothing, under faults', function () {
  this.timeout(180_000);

  it('of several processes, one of which is killed', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using fresh = closing(await freshDatabase());
    await twoProcesses({ DATABASE_URL: fresh.url });
  });

  it('survive kill -9 of each process of a cluster, and crashes of its stores', async function () {
    // Eight processes start.
    this.timeout(300_000);
    const missing = missingStores();
    needs(missing ?? 'stores', missing === undefined, this);
    await using stores = closing(await startStores());
    const roles = { one: 'api', other: 'api', projector: 'projector', worker: 'worker' } as const;
    const nodes = new Map<keyof typeof roles, Node>();
    const node = (name: keyof typeof roles) => nodes.get(name) as Node;
    const start = async (name: keyof typeof roles) => {
      const started = await startNode(stores, name, roles[name]);
      nodes.set(name, started);
      await started.ready;
    };
    const sent = new Sent();
    try {
      for (const name of Object.keys(roles) as (keyof typeof roles)[]) await start(name);
      const agents = await register(node('one').url);
      let over = false;
      const beating = Promise.all([
        beatUntil(
          () => node('one').url,
          sent,
          agents,
          () => over,
        ),
        beatUntil(
          () => node('other').url,
          sent,
          agents,
          () => over,
        ),
      ]);
      const more = async () => {
        const now = sent.total();
        await until('heartbeats go on', () => sent.total() > now + 30, 60_000);
      };
      for (const name of ['other', 'projector', 'worker', 'one'] as const) {
        await more();
        const dead = node(name);
        dead.kill('SIGKILL');
        await dead.ended;
        await start(name);
      }
      await more();
      await stores.postgres.crash();
      await more();
      stores.events.proxy.cut();
      await more();
      over = true;
      await beating;
      await checkHeartbeats(node('one').url, sent, agents);
      await checkHeartbeats(node('other').url, sent, agents);
      await expectRebuilt(stores.env);
    } finally {
      for (const one of nodes.values()) one.kill('SIGKILL');
    }
  });
});
