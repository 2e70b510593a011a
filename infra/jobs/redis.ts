/**
 * Jobs in Redis, shared by all processes of a deployment.
 *
 * Redis must be configured for durability: `appendonly yes` and `maxmemory-policy noeviction`. There is no other copy
 * of a job that Redis loses. So its configuration is checked on each connection, and a warning is logged.
 */
import type * as BullMQ from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../logging.ts';
import type { JobStore } from './store.ts';

/** Time limit for a producer's command, milliseconds. */
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
    // BullMQ closes the connections of a worker that could not start; the next attempt opens new ones.
    client.on('end', () => clients.delete(client));
    clients.add(client);
    return client;
  };
  const producer = keep(
    new Redis(url, {
      ...shared,
      commandTimeout: COMMAND_MS,
      // A caller that adds a job must be notified at once if it was not added.
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
      // BullMQ requires that a worker's commands are retried without limit.
      const client = keep(new Redis(url, { ...shared, maxRetriesPerRequest: null }));
      // The worker duplicates this connection for its blocking command. The duplicate is tracked here, because BullMQ
      // waits for a connection before closing it and would never finish while Redis is down.
      const duplicate = client.duplicate.bind(client);
      client.duplicate = (override) => keep(duplicate(override));
      return client;
    },
    async prepare() {
      // The first attempt may fail; after that the client reconnects by itself.
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
    (response) => {
      const [, appendOnly] = response as string[];
      if (appendOnly === 'no')
        log.warn(
          'Redis does not keep an append-only file, so waiting jobs are lost if it is killed. Set `appendonly yes`.',
        );
    },
    // A managed Redis may refuse CONFIG; its operator is responsible for durability.
    (error: unknown) => log.debug({ err: error }, 'could not find out whether Redis keeps an append-only file'),
  );
}
