/** Combinations of stores to measure on, and the processes of each. */
import { randomUUID } from 'node:crypto';
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service-process.ts';
import { freshBenchDatabase, type Place } from './report.ts';

/** Processes that are measured as one: requests go to the first. */
export type Deployment = Pick<ServiceProcess, 'url' | 'startedMs' | 'cpuMs' | 'memoryMb'> & {
  readonly place: Place;
  /** Stops the processes; the stores stay. */
  halt(): Promise<void>;
  /** Stops the processes and removes the stores. */
  stop(): Promise<void>;
};

export interface Combination {
  readonly tier: 'embedded' | 'postgres' | 'cluster';
  readonly name: string;
  readonly start: () => Promise<Deployment>;
}

type Env = Readonly<Record<string, string>>;

/** One process per role; CPU and memory are those of all of them. */
async function startAll(roles: readonly string[], env: Env, drop: () => Promise<void>): Promise<Deployment> {
  const directory = await temporaryDirectory();
  const processes = await Promise.all(roles.map((role) => startProcess(directory.path, { ...env }, ['--role', role])));
  const sum = (of: (one: ServiceProcess) => number) => processes.reduce((total, one) => total + of(one), 0);
  const [first] = processes as [ServiceProcess];
  const halt = async () => {
    await Promise.all(processes.map((one) => one.stop()));
  };
  const { DATABASE_URL: url, EVENTSTORE_URL: server, EVENTSTORE_STREAM_PREFIX: prefix } = env;
  return {
    place: {
      dataDir: directory.path,
      ...(url && { url }),
      ...(server && { events: { url: server, prefix: prefix ?? '' } }),
    },
    halt,
    url: first.url,
    startedMs: first.startedMs,
    cpuMs: () => sum((one) => one.cpuMs()),
    memoryMb: () => sum((one) => one.memoryMb()),
    async stop() {
      await halt();
      await directory.remove();
      await drop();
    },
  };
}

/** What is present: embedded always, PostgreSQL and the cluster where their addresses are set. */
export function combinations(): Combination[] {
  const { BENCH_DATABASE_URL, BENCH_EVENTSTORE_URL, BENCH_REDIS_URL } = process.env;
  const all: Combination[] = [
    { tier: 'embedded', name: 'embedded', start: () => startAll(['all'], {}, async () => {}) },
  ];
  if (!BENCH_DATABASE_URL) return all;
  all.push({
    tier: 'postgres',
    name: 'PostgreSQL',
    async start() {
      const fresh = await freshBenchDatabase(BENCH_DATABASE_URL);
      return startAll(['all'], { DATABASE_URL: fresh.url }, fresh.drop);
    },
  });
  if (!BENCH_EVENTSTORE_URL || !BENCH_REDIS_URL) return all;
  all.push({
    tier: 'cluster',
    name: 'EventStoreDB, PostgreSQL and Redis; two API processes (one of them driven), projector and worker',
    async start() {
      const fresh = await freshBenchDatabase(BENCH_DATABASE_URL);
      const env = {
        DATABASE_URL: fresh.url,
        EVENTSTORE_URL: BENCH_EVENTSTORE_URL,
        EVENTSTORE_STREAM_PREFIX: freshPrefix(),
        REDIS_URL: BENCH_REDIS_URL,
      };
      return startAll(['api', 'api', 'projector', 'worker'], env, fresh.drop);
    },
  });
  return all;
}

/** Streams of a measurement have a beginning of their own: the server may hold other logs. */
export const freshPrefix = (): string => `bench_${randomUUID().replaceAll('-', '')}.`;
