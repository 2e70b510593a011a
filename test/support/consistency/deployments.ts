/** What the clients of `clients.ts` run against on each tier, and what goes wrong there. */
import { rm } from 'node:fs/promises';
import type { ProcessRole } from '../../../infra/config.ts';
import { type Node, type Stores, startNode, startStores } from '../cluster.ts';
import { ownPostgres } from '../own-servers.ts';
import { freshDatabase } from '../service.ts';
import { startProcess } from '../service-process.ts';
import { dataDirectory } from '../template.ts';
import { until } from '../until.ts';
import type { Target } from './clients.ts';

export const TIERS = ['embedded', 'postgres', 'cluster'] as const;
export type Tier = (typeof TIERS)[number];

export interface Fault {
  readonly name: string;
  /** Resolves when what it ended is back. */
  cause(): Promise<void>;
}

export interface Deployment {
  /** For the title of a run. */
  readonly described: string;
  targets(): readonly Target[];
  readonly faults: readonly Fault[];
  /** Warnings and worse of its processes, the newest last. */
  complaints(): readonly string[];
  close(): Promise<void>;
}

/** @param withFaults servers of its own, where their programs are found, so that they can crash */
export const deploy = (tier: Tier, withFaults: boolean): Promise<Deployment> =>
  tier === 'embedded' ? embedded() : tier === 'postgres' ? postgres(withFaults) : cluster(withFaults);

async function embedded(): Promise<Deployment> {
  const directory = await dataDirectory();
  let service: Awaited<ReturnType<typeof startProcess>> | undefined = await startProcess(directory);
  let starts = 1;
  return {
    described: 'one process with the embedded database',
    targets: () => (service ? [{ url: service.url, name: `process ${starts}` }] : []),
    faults: [
      {
        name: 'the process is killed',
        async cause() {
          const killed = service;
          service = undefined;
          await killed?.stop('SIGKILL');
          const started = await startProcess(directory);
          starts++;
          service = started;
        },
      },
    ],
    complaints: () => [],
    async close() {
      await service?.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const ready = ({ url }: Node): Promise<boolean> =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );

/** Processes on shared stores, of which each may be killed, and the database crashed. */
async function processes(
  stores: Pick<Stores, 'env'>,
  roles: Readonly<Record<string, ProcessRole>>,
  crash: (() => Promise<void>) | undefined,
) {
  const nodes = new Map<string, Node>();
  /** How often each process has begun, and the database lost rows. */
  let starts = 0;
  const named = new Map<string, string>();
  const serves = ({ role }: Node) => role === 'api' || role === 'all';
  const begin = async (name: string) => {
    const node = await startNode(stores, name, roles[name] as ProcessRole, { LOG_LEVEL: 'warn' });
    await until(
      `${name} is ready`,
      async () => {
        if (!node.running) throw new Error(`${name} ended: ${node.complaints().join('\n')}`);
        return serves(node) ? ready(node) : true;
      },
      60_000,
    );
    nodes.set(name, node);
    named.set(name, `${name} ${++starts}`);
  };
  await Promise.all(Object.keys(roles).map(begin));
  const kill = (name: string): Fault => ({
    name: `${name} is killed`,
    async cause() {
      const node = nodes.get(name);
      named.delete(name);
      node?.kill('SIGKILL');
      await node?.ended;
      await begin(name);
    },
  });
  const faults = Object.keys(roles)
    .filter((name) => !name.startsWith('worker'))
    .map(kill);
  if (crash) {
    faults.push({
      name: 'the database crashes',
      async cause() {
        const rename = () => {
          for (const name of named.keys()) named.set(name, `${name} ${++starts}`);
        };
        rename();
        await crash();
        rename();
        const serving = () => [...nodes.values()].filter(serves);
        await until(
          'processes are ready',
          async () => (await Promise.all(serving().map(ready))).every(Boolean),
          60_000,
        );
      },
    });
  }
  return {
    targets: () =>
      [...named].flatMap(([key, name]) => {
        const node = nodes.get(key) as Node;
        return serves(node) ? [{ url: node.url, name }] : [];
      }),
    faults,
    complaints: () => [...nodes.values()].flatMap((node) => node.complaints().map((line) => `${node.name}: ${line}`)),
    async close() {
      for (const node of nodes.values()) node.kill('SIGKILL');
      await Promise.all([...nodes.values()].map((node) => node.ended));
    },
  };
}

async function postgres(withFaults: boolean): Promise<Deployment> {
  const own = withFaults ? await ownPostgres() : undefined;
  const fresh = own ? undefined : await freshDatabase();
  const env = { DATABASE_URL: own?.url.href ?? (fresh?.url as string) };
  const running = await processes({ env }, { one: 'all', two: 'all' }, own && (() => own.crash()));
  return {
    ...running,
    described: `two processes on ${own ? 'a PostgreSQL of their own' : 'PostgreSQL'}`,
    async close() {
      await running.close();
      await own?.close();
      await fresh?.drop();
    },
  };
}

async function cluster(withFaults: boolean): Promise<Deployment> {
  const stores = await startStores();
  const spare: Readonly<Record<string, ProcessRole>> = withFaults ? { 'projector-2': 'projector' } : {};
  const roles: Readonly<Record<string, ProcessRole>> = {
    ...{ 'api-1': 'api', 'api-2': 'api', 'projector-1': 'projector' },
    ...{ 'worker-1': 'worker', ...spare },
  };
  const running = await processes(stores, roles, () => stores.postgres.crash());
  return {
    ...running,
    described: `two API processes on ${stores.described}`,
    async close() {
      await running.close();
      await stores.close();
    },
  };
}
