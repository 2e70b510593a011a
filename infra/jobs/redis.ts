/**
 * Jobs in Redis, shared by all processes of a deployment.
 *
 * Redis has to keep what it was told: `appendonly yes` and `maxmemory-policy noeviction`. A Redis that forgets, forgets
 * jobs that were handed to it; nobody else has them. So it is looked at on each connection and complained about.
 */
import type * as BullMQ from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../logging.ts';
import type { JobStore } from './store.ts';

/** A command of a producer is given up after this time, milliseconds. */
const COMMAND_MS = 5_000;
const CONNECT_MS = 5_000;
/** Pauses between attempts to connect, milliseconds. */
const RECONNECT = { first: 100, last: 2_000 };

const retryStrategy = (times: number): number => Math.min(RECONNECT.first * 2 ** Math.min(times, 10), RECONNECT.last);

export function openRedisStore(
  bullmq: typeof BullMQ,
  options: { readonly url: string; readonly log: Logger; readonly complain: (error: Error) => void },
): JobStore {
  const { url, log, complain } = options;
  const shared = { lazyConnect: true, connectTimeout: CONNECT_MS, retryStrategy };
  const clients = new Set<Redis>();
  const keep = (client: Redis): Redis => {
    client.on('error', complain);
    // BullMQ ends those of a worker that could not start; the next attempt makes new ones.
    client.on('end', () => clients.delete(client));
    clients.add(client);
    return client;
  };
  const producer = keep(
    new Redis(url, {
      ...shared,
      commandTimeout: COMMAND_MS,
      // Whoever adds a job has to know at once that it was not added.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
    }),
  );
  producer.on('ready', () => checkMemory(producer, log));
  let connecting: Promise<void> | undefined;
  return {
    kind: 'redis',
    factory: bullmq.createRedisBackend as BullMQ.BackendFactory<BullMQ.IQueueBackend, unknown>,
    producer: () => producer,
    consumer() {
      // BullMQ demands that a worker's commands are never given up.
      const client = keep(new Redis(url, { ...shared, maxRetriesPerRequest: null }));
      // It makes a second connection for the command that blocks. Without a hold on it, a process that stops while
      // Redis is away could not end it: BullMQ waits for a connection before it closes it.
      const duplicate = client.duplicate.bind(client);
      client.duplicate = (override) => keep(duplicate(override));
      return client;
    },
    async prepare() {
      // The first attempt may fail; those after it are the client's own.
      connecting ??= producer.connect();
      await connecting.catch(() => undefined);
      if (producer.status !== 'ready') throw new Error('Redis cannot be reached');
    },
    onReturn(listener) {
      producer.on('ready', listener);
    },
    close() {
      for (const client of clients) client.disconnect();
      return Promise.resolve();
    },
  };
}

function checkMemory(redis: Redis, log: Logger): void {
  redis.config('GET', 'appendonly').then(
    (answer) => {
      const [, appendOnly] = answer as string[];
      if (appendOnly === 'no')
        log.warn(
          'Redis keeps no append-only file: jobs that wait in it are lost when it is killed. Set `appendonly yes`.',
        );
    },
    // A Redis of others may refuse CONFIG; whoever runs it knows how it keeps what it is told.
    (error: unknown) => log.debug({ err: error }, 'Redis does not tell whether it keeps an append-only file'),
  );
}
